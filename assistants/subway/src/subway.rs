//! The entry point for queries: the built-in network, an optional timetable, and the live feeds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use threadkeep_transit::{Changes, Line, LiveFeed, Schedule, Station, Timetable, Walks};

use crate::gtfs::{GtfsError, load_timetable};
use crate::live::{LiveOptions, LiveSnapshot, LiveTrains};
use crate::place::QueryError;
use crate::system::network;
use crate::travel::{ServiceMoment, TravelTime, new_york, travel_time_on_line};

/// Answers queries about the subway. Each tool is one method; methods that depend on the time take `now` as an argument.
#[derive(Debug)]
pub struct Subway {
    pub(crate) live: LiveTrains,
    timetable: Option<Arc<Timetable>>,
    /// The schedule of the most recent day, cached because most queries are about today.
    day: Mutex<Option<(Date, Arc<Schedule>)>>,
}

/// Options of [`Subway::open`].
#[derive(Debug, Clone, Default)]
pub struct SubwayOptions {
    /// Options of the live feeds.
    pub live: LiveOptions,
    /// The cached timetable. If `None`, or if the file does not exist, travel times are estimated at two minutes per stop.
    pub timetable: Option<PathBuf>,
}

impl Subway {
    /// Opens a subway with the cached timetable, if it exists. Does not request any feed.
    ///
    /// # Errors
    /// [`GtfsError`] if the file is damaged or has another format version. [`Subway::new`] works without it.
    pub fn open(options: SubwayOptions) -> Result<Self, GtfsError> {
        let timetable = options.timetable.as_deref().map(load_timetable).transpose()?.flatten();
        let subway = Self::new(LiveTrains::new(options.live));
        Ok(match timetable {
            Some(timetable) => subway.with_timetable(Arc::new(timetable)),
            None => subway,
        })
    }

    /// Creates a subway without a timetable: travel times are estimated at two minutes per stop.
    pub fn new(live: LiveTrains) -> Self {
        Self { live, timetable: None, day: Mutex::new(None) }
    }

    /// Adds a timetable.
    #[must_use]
    pub fn with_timetable(self, timetable: Arc<Timetable>) -> Self {
        Self { timetable: Some(timetable), day: Mutex::new(None), ..self }
    }

    /// Returns the timetable, if one is loaded.
    pub fn timetable(&self) -> Option<&Arc<Timetable>> {
        self.timetable.as_ref()
    }

    pub(crate) fn travel_time(&self, from: &str, to: &str, line: &str, now: Timestamp) -> Option<TravelTime> {
        travel_time_on_line(self.timetable.as_deref(), from, to, line, now)
    }

    /// Returns the schedule of the service day used for `now`, and the moment within it.
    pub(crate) fn schedule(&self, now: Timestamp) -> Option<(Arc<Schedule>, ServiceMoment)> {
        let timetable = self.timetable.as_ref()?;
        let moment = ServiceMoment::new(timetable, now)?;
        let date = moment.at.date();
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached, schedule)) = &*day
            && *cached == date
        {
            return Some((Arc::clone(schedule), moment));
        }
        let mut schedule = Schedule::around(timetable, date, &new_york(), &walks());
        set_accessible(&mut schedule);
        let schedule = Arc::new(schedule);
        *day = Some((date, Arc::clone(&schedule)));
        Some((schedule, moment))
    }

    /// Returns the schedule with live trains merged in; `None` if the timetable does not cover `now`, because live and
    /// scheduled trains would then belong to different days.
    pub(crate) fn live_schedule(&self, snapshot: &LiveSnapshot, now: Timestamp) -> Option<(Schedule, ServiceMoment)> {
        let timetable = self.timetable.as_ref()?;
        let moment = ServiceMoment::new(timetable, now).filter(|moment| moment.is_covered)?;
        let feeds: Vec<LiveFeed> = snapshot.feeds.iter().map(|feed| LiveFeed::clone(feed)).collect();
        let changes = Changes::new(timetable, &feeds, &new_york(), now);
        let mut schedule = Schedule::with_changes(timetable, moment.at.date(), &new_york(), &walks(), &changes);
        set_accessible(&mut schedule);
        Some((schedule, moment))
    }
}

/// Connects all stations of a complex, because the feed's transfers omit some, such as South Ferry.
fn walks() -> Walks {
    let mut complexes: Vec<(&str, Vec<String>)> = Vec::new();
    for station in network().stations() {
        match complexes.iter_mut().find(|(complex, _)| *complex == station.complex) {
            Some((_, ids)) => ids.push(station.id.clone()),
            None => complexes.push((&station.complex, vec![station.id.clone()])),
        }
    }
    Walks { complexes: complexes.into_iter().map(|(_, ids)| ids).collect(), ..Walks::default() }
}

/// Marks accessible platforms according to the station table, because the feed does not contain this information.
fn set_accessible(schedule: &mut Schedule) {
    let platforms = |station: &Station| {
        station.accessible.iter().map(|way| format!("{}{way}", station.id)).collect::<Vec<String>>()
    };
    let accessible: Vec<String> = network().stations().iter().flat_map(platforms).collect();
    schedule.set_accessible(accessible.iter().map(String::as_str));
}

/// Returns the lines with the given name: "6" includes its express variant, and "S" is three shuttles.
pub(crate) fn find_lines(name: &str) -> Result<Vec<&'static Line>, QueryError> {
    let name = name.trim().trim_start_matches("the ").trim_end_matches(" train").trim();
    let name = if name.eq_ignore_ascii_case("shuttle") { "S" } else { name };
    let lines: Vec<&Line> = network().lines_named(name).collect();
    if lines.is_empty() { Err(QueryError::UnknownLine { line: name.to_owned() }) } else { Ok(lines) }
}

/// Returns the public name of the line with the given id.
pub(crate) fn line_name_of(route: &str) -> String {
    let line = network().lines().iter().find(|line| line.id == route);
    line.map_or_else(|| route.to_owned(), |line| line.name.clone())
}
