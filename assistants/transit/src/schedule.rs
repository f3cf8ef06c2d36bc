//! A timetable laid out for searching: the trips of some service days, on one time axis.

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

/// A point on a [`Schedule`]'s time axis: whole seconds since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u32);

/// What is searched for journeys.
///
/// Either the trips of one service, its times as the feed writes them ([`of_service`](Self::of_service)), or those of
/// a date with the days before and after it, on a time axis of real instants ([`around`](Self::around)): the day before
/// because its service runs past midnight, the day after because a night's search goes on into it.
#[derive(Debug)]
pub struct Schedule {
    pub(crate) timetable: Arc<Timetable>,
    pub(crate) layout: Layout,
    /// The same backwards in time, for searches from an arrival; made when first asked for.
    mirrored: OnceLock<Layout>,
    begins_at: Option<Timestamp>,
    /// By platform of the timetable.
    pub(crate) accessible: Vec<bool>,
}

impl Schedule {
    /// Lays out the trips of one service as it stands, whatever the calendar says; `None` for an unknown service.
    ///
    /// [`Time`] then counts from the beginning of the service day, as the feed's times do.
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

    /// Lays out the trips of the service days `date` - 1 to `date` + 1, in the feed's time zone `zone`.
    pub fn around(timetable: &Arc<Timetable>, date: Date, zone: &TimeZone, walks: &Walks) -> Self {
        Self::with_changes(timetable, date, zone, walks, &Changes::default())
    }

    /// As [`around`](Self::around), with what is known of the trains on their way: delayed, cancelled and added trips.
    pub fn with_changes(
        timetable: &Arc<Timetable>,
        date: Date,
        zone: &TimeZone,
        walks: &Walks,
        changes: &Changes,
    ) -> Self {
        let days = [date.saturating_sub(1.day()), date, date.saturating_add(1.day())];
        let begins_at = service_day_start(days[0], zone);
        let mut assembly = Assembly::new(timetable);
        for day in days {
            let offset = seconds_between(begins_at, service_day_start(day, zone));
            let runs: Vec<bool> = timetable.services.iter().map(|service| service.runs_on(day)).collect();
            for (index, trip) in (0..).zip(&timetable.trips) {
                if runs[trip.service as usize] && !changes.replaces(index, day) {
                    assembly.add_scheduled(index, offset, trip.start + offset);
                }
            }
        }
        for run in &changes.runs {
            let times: Option<Vec<StopTime>> = run.calls.iter().map(|call| call.since(begins_at)).collect();
            if let Some(times) = times {
                let stops = run.calls.iter().map(|call| call.stop()).collect();
                assembly.add_live(run.clone(), stops, times);
            }
        }
        Self::assembled(timetable, assembly, walks, Some(begins_at))
    }

    fn assembled(
        timetable: &Arc<Timetable>,
        assembly: Assembly<'_>,
        walks: &Walks,
        begins_at: Option<Timestamp>,
    ) -> Self {
        let footpaths = Footpaths::new(timetable, walks);
        let layout = assembly.into_layout(footpaths);
        let accessible = timetable.platforms.iter().map(|platform| platform.wheelchair == Some(true)).collect();
        Self { timetable: Arc::clone(timetable), layout, mirrored: OnceLock::new(), begins_at, accessible }
    }

    /// Says which platforms a wheelchair can board at, by id, instead of what the feed says. Unknown ids count for
    /// nothing.
    pub fn set_accessible<'a>(&mut self, platforms: impl IntoIterator<Item = &'a str>) {
        self.accessible.fill(false);
        for platform in platforms {
            if let Some(index) = self.timetable.platform(platform) {
                self.accessible[index as usize] = true;
            }
        }
    }

    /// The timetable that was laid out.
    pub fn timetable(&self) -> &Arc<Timetable> {
        &self.timetable
    }

    /// The instant of a time; `None` where the schedule is of a service without a date.
    pub fn instant(&self, time: Time) -> Option<Timestamp> {
        self.begins_at?.checked_add(SignedDuration::from_secs(time.0.into())).ok()
    }

    /// The time of an instant; `None` before the schedule's beginning or more than four days after it.
    pub fn time(&self, instant: Timestamp) -> Option<Time> {
        const LONGEST_SECONDS: i64 = 4 * 86_400;
        let seconds = instant.duration_since(self.begins_at?).as_secs();
        u32::try_from(seconds).ok().filter(|_| seconds < LONGEST_SECONDS).map(Time)
    }

    pub(crate) fn mirrored(&self) -> &Layout {
        self.mirrored.get_or_init(|| self.layout.mirrored())
    }
}

/// GTFS counts from noon minus twelve hours, which is not midnight on the days when the clocks change.
pub(crate) fn service_day_start(date: Date, zone: &TimeZone) -> Timestamp {
    let noon = zone.to_ambiguous_timestamp(date.at(12, 0, 0, 0)).compatible();
    noon.and_then(|noon| noon.checked_sub(SignedDuration::from_hours(12))).unwrap_or(Timestamp::MIN)
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}
