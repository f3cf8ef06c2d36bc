//! The subway as a whole: the built-in network, a timetable if one is loaded, and the live feeds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use threadkeep_transit::{Changes, Line, LiveFeed, Schedule, Station, Timetable, Walks};

use crate::gtfs::{GtfsError, load_timetable};
use crate::live::{LiveOptions, LivePicture, LiveTrains};
use crate::place::Trouble;
use crate::system::network;
use crate::travel::{ServiceMoment, TravelTime, new_york, travel_time_on_line};

/// Answers questions about the subway. Each tool is one method; `now` is an argument of all that depend on it.
#[derive(Debug)]
pub struct Subway {
    pub(crate) live: LiveTrains,
    timetable: Option<Arc<Timetable>>,
    /// The day that was laid out last: most questions are about today.
    day: Mutex<Option<(Date, Arc<Schedule>)>>,
}

/// What a subway is made of.
#[derive(Debug, Clone, Default)]
pub struct SubwayOptions {
    /// Where live trains come from.
    pub live: LiveOptions,
    /// The file that keeps the timetable. Without one, and where it does not exist, a stop counts for two minutes.
    pub timetable: Option<PathBuf>,
}

impl Subway {
    /// A subway with the timetable that is kept in a file, if it is there. Nothing is asked of any feed yet.
    ///
    /// # Errors
    /// [`GtfsError`], where the file is damaged or of another version. [`Subway::new`] works without it.
    pub fn open(options: SubwayOptions) -> Result<Self, GtfsError> {
        let timetable = options.timetable.as_deref().map(load_timetable).transpose()?.flatten();
        let subway = Self::new(LiveTrains::new(options.live));
        Ok(match timetable {
            Some(timetable) => subway.with_timetable(Arc::new(timetable)),
            None => subway,
        })
    }

    /// A subway without a timetable: travel times are two minutes a stop.
    pub fn new(live: LiveTrains) -> Self {
        Self { live, timetable: None, day: Mutex::new(None) }
    }

    /// The same with a timetable.
    #[must_use]
    pub fn with_timetable(self, timetable: Arc<Timetable>) -> Self {
        Self { timetable: Some(timetable), day: Mutex::new(None), ..self }
    }

    /// The timetable, if one is loaded.
    pub fn timetable(&self) -> Option<&Arc<Timetable>> {
        self.timetable.as_ref()
    }

    pub(crate) fn travel_time(&self, from: &str, to: &str, line: &str, now: Timestamp) -> Option<TravelTime> {
        travel_time_on_line(self.timetable.as_deref(), from, to, line, now)
    }

    /// The schedule of the day that stands for `now`, and how its times are read.
    pub(crate) fn schedule(&self, now: Timestamp) -> Option<(Arc<Schedule>, ServiceMoment)> {
        let timetable = self.timetable.as_ref()?;
        let moment = ServiceMoment::new(timetable, now)?;
        let date = moment.at.date();
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept, schedule)) = &*day
            && *kept == date
        {
            return Some((Arc::clone(schedule), moment));
        }
        let mut schedule = Schedule::around(timetable, date, &new_york(), &walks());
        set_accessible(&mut schedule);
        let schedule = Arc::new(schedule);
        *day = Some((date, Arc::clone(&schedule)));
        Some((schedule, moment))
    }

    /// The same with the live trains merged in; `None` where the timetable does not reach `now`, so that live trains and
    /// scheduled ones are of different days.
    pub(crate) fn live_schedule(&self, picture: &LivePicture, now: Timestamp) -> Option<(Schedule, ServiceMoment)> {
        let timetable = self.timetable.as_ref()?;
        let moment = ServiceMoment::new(timetable, now).filter(|moment| moment.is_covered)?;
        let feeds: Vec<LiveFeed> = picture.feeds.iter().map(|feed| LiveFeed::clone(feed)).collect();
        let changes = Changes::new(timetable, &feeds, &new_york(), now);
        let mut schedule = Schedule::with_changes(timetable, moment.at.date(), &new_york(), &walks(), &changes);
        set_accessible(&mut schedule);
        Some((schedule, moment))
    }
}

/// Stations of a complex are connected even where the feed's transfers leave one out, as they do South Ferry.
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

/// The feed says nothing of wheelchairs; the table of stations does.
fn set_accessible(schedule: &mut Schedule) {
    let platforms = |station: &Station| {
        station.accessible.iter().map(|way| format!("{}{way}", station.id)).collect::<Vec<String>>()
    };
    let accessible: Vec<String> = network().stations().iter().flat_map(platforms).collect();
    schedule.set_accessible(accessible.iter().map(String::as_str));
}

/// The lines that a name stands for: "6" is also the express variant, "S" is three shuttles.
pub(crate) fn lines_called(name: &str) -> Result<Vec<&'static Line>, Trouble> {
    let name = name.trim().trim_start_matches("the ").trim_end_matches(" train").trim();
    let name = if name.eq_ignore_ascii_case("shuttle") { "S" } else { name };
    let lines: Vec<&Line> = network().lines_named(name).collect();
    if lines.is_empty() { Err(Trouble::UnknownLine { line: name.to_owned() }) } else { Ok(lines) }
}

/// What the signs call a line of the feed.
pub(crate) fn sign_of(route: &str) -> String {
    let line = network().lines().iter().find(|line| line.id == route);
    line.map_or_else(|| route.to_owned(), |line| line.name.clone())
}
