//! A timetable prepared for searching: the trips of some service days on one time axis.

mod assemble;
mod layout;

use std::sync::{Arc, OnceLock};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::realtime::Changes;
use crate::timetable::{StopTime, Timetable};
use crate::walks::{Footpaths, Walks};
use assemble::Assembly;
pub(crate) use layout::{Layout, RunSource};

/// A point on the time axis of a [`Schedule`], in whole seconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u32);

/// A schedule that can be searched for journeys.
///
/// Contains either the trips of one service with times as in the feed ([`of_service`](Self::of_service)), or the trips of a date
/// and of the days before and after it on a time axis of instants ([`around`](Self::around)). The day before is included because
/// its service continues past midnight, the day after because a search at night can extend into it.
#[derive(Debug)]
pub struct Schedule {
    pub(crate) timetable: Arc<Timetable>,
    pub(crate) layout: Layout,
    /// The layout reversed in time, for searches from an arrival. Created on first use.
    mirrored: OnceLock<Layout>,
    starts_at: Option<Timestamp>,
    /// Whether each platform of the timetable is accessible.
    pub(crate) accessible: Vec<bool>,
}

impl Schedule {
    /// Creates a schedule of the trips of one service, independent of the calendar. Returns `None` for an unknown service.
    ///
    /// Its [`Time`] counts from the start of the service day, as in the feed.
    pub fn of_service(timetable: &Arc<Timetable>, service: &str, walks: &Walks) -> Option<Self> {
        let service = timetable.services.iter().position(|row| row.id == service)?;
        let mut assembly = Assembly::new(timetable);
        for (index, trip) in (0..).zip(&timetable.trips) {
            if trip.service as usize == service {
                assembly.add_scheduled(index, 0, trip.start);
            }
        }
        Some(Self::assembled(timetable, assembly, walks, None))
    }

    /// Creates a schedule of the service days `date` - 1 to `date` + 1, in the feed's time zone `zone`.
    pub fn around(timetable: &Arc<Timetable>, date: Date, zone: &TimeZone, walks: &Walks) -> Self {
        Self::with_changes(timetable, date, zone, walks, &Changes::default())
    }

    /// Creates a schedule as [`around`](Self::around) does, with delayed, cancelled and added trips applied.
    pub fn with_changes(
        timetable: &Arc<Timetable>,
        date: Date,
        zone: &TimeZone,
        walks: &Walks,
        changes: &Changes,
    ) -> Self {
        let days = [date.saturating_sub(1.day()), date, date.saturating_add(1.day())];
        let starts_at = service_day_start(days[0], zone);
        let mut assembly = Assembly::new(timetable);
        for day in days {
            let offset = seconds_between(starts_at, service_day_start(day, zone));
            let runs: Vec<bool> = timetable.services.iter().map(|service| service.runs_on(day)).collect();
            for (index, trip) in (0..).zip(&timetable.trips) {
                if runs[trip.service as usize] && !changes.replaces(index, day) {
                    assembly.add_scheduled(index, offset, trip.start + offset);
                }
            }
        }
        for run in &changes.runs {
            let times: Option<Vec<StopTime>> = run.calls.iter().map(|call| call.since(starts_at)).collect();
            if let Some(times) = times {
                let stops = run.calls.iter().map(|call| call.stop()).collect();
                assembly.add_live(run.clone(), stops, times);
            }
        }
        Self::assembled(timetable, assembly, walks, Some(starts_at))
    }

    fn assembled(
        timetable: &Arc<Timetable>,
        assembly: Assembly<'_>,
        walks: &Walks,
        starts_at: Option<Timestamp>,
    ) -> Self {
        let footpaths = Footpaths::new(timetable, walks);
        let layout = assembly.into_layout(footpaths);
        let accessible = timetable.platforms.iter().map(|platform| platform.wheelchair == Some(true)).collect();
        Self { timetable: Arc::clone(timetable), layout, mirrored: OnceLock::new(), starts_at, accessible }
    }

    /// Sets the ids of the wheelchair accessible platforms, replacing the data of the feed. Unknown ids are ignored.
    pub fn set_accessible<'a>(&mut self, platforms: impl IntoIterator<Item = &'a str>) {
        self.accessible.fill(false);
        for platform in platforms {
            if let Some(index) = self.timetable.platform(platform) {
                self.accessible[index as usize] = true;
            }
        }
    }

    /// Returns the timetable.
    pub fn timetable(&self) -> &Arc<Timetable> {
        &self.timetable
    }

    /// Converts a time to an instant. Returns `None` for a schedule of a service without a date.
    pub fn instant(&self, time: Time) -> Option<Timestamp> {
        self.starts_at?.checked_add(SignedDuration::from_secs(time.0.into())).ok()
    }

    /// Converts an instant to a time. Returns `None` before the start of the schedule or more than four days after it.
    pub fn time(&self, instant: Timestamp) -> Option<Time> {
        const MAX_SECONDS: i64 = 4 * 86_400;
        let seconds = instant.duration_since(self.starts_at?).as_secs();
        u32::try_from(seconds).ok().filter(|_| seconds < MAX_SECONDS).map(Time)
    }

    pub(crate) fn mirrored(&self) -> &Layout {
        self.mirrored.get_or_init(|| self.layout.mirrored())
    }
}

/// Returns the start of a service day. GTFS defines it as noon minus twelve hours, which is not midnight on days with a clock
/// change.
pub(crate) fn service_day_start(date: Date, zone: &TimeZone) -> Timestamp {
    let noon = zone.to_ambiguous_timestamp(date.at(12, 0, 0, 0)).compatible();
    noon.and_then(|noon| noon.checked_sub(SignedDuration::from_hours(12))).unwrap_or(Timestamp::MIN)
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}
