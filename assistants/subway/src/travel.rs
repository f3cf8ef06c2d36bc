//! Travel times on one line.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Serialize;
use threadkeep_transit::{SECONDS_A_STOP, Timetable};

use crate::system::network;

/// The source of a travel time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeSource {
    /// The timetable.
    Timetable,
    /// An estimate of two minutes per stop, because no timetable is loaded or it has no such ride.
    TwoMinutesAStop,
}

/// A ride on one line between two stations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TravelTime {
    /// The duration in seconds.
    pub seconds: u32,
    /// The number of stops.
    pub stops: u32,
    /// The source of the duration.
    pub source: TimeSource,
    /// The direction of travel, N or S (the suffix of GTFS platform ids), from the order of the line's stations.
    pub way: String,
}

/// Returns New York's time zone. Built from its rule, in force since 2007, because a machine may lack the time zone database.
pub fn new_york() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("the rule is a constant, and a test parses it")
}

/// The date and time that are looked up in the timetable for an instant: its own date or, if the timetable does not cover
/// that date, the last covered date with the same weekday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceMoment {
    pub(crate) at: DateTime,
    pub(crate) is_covered: bool,
}

impl ServiceMoment {
    pub(crate) fn new(timetable: &Timetable, now: Timestamp) -> Option<Self> {
        let local = now.to_zoned(new_york()).datetime();
        let (first, last) = timetable.valid_dates()?;
        if (first..=last).contains(&local.date()) {
            return Some(Self { at: local, is_covered: true });
        }
        let back = last.weekday().since(local.date().weekday());
        let date: Date = last.checked_sub(back.days()).ok()?;
        Some(Self { at: date.to_datetime(local.time()), is_covered: false })
    }
}

/// Returns the travel time on a line between two stations; `None` if its trains do not stop at both during the day.
///
/// With a timetable, this is the median of the rides that start within two hours of `now`, or else of the whole day.
pub fn travel_time_on_line(
    timetable: Option<&Timetable>,
    from: &str,
    to: &str,
    line: &str,
    now: Timestamp,
) -> Option<TravelTime> {
    let ride = network().ride(line, from, to)?;
    let (stops, way) = (ride.stops(), ride.way.to_owned());
    let scheduled = timetable.and_then(|timetable| scheduled_seconds(timetable, from, to, line, now));
    let source = scheduled.map_or(TimeSource::TwoMinutesAStop, |_| TimeSource::Timetable);
    Some(TravelTime { seconds: scheduled.unwrap_or(stops * SECONDS_A_STOP), stops, source, way })
}

fn scheduled_seconds(timetable: &Timetable, from: &str, to: &str, line: &str, now: Timestamp) -> Option<u32> {
    const AROUND_SECONDS: u32 = 2 * 3600;
    let moment = ServiceMoment::new(timetable, now)?;
    let time = moment.at.time();
    let of_day = u32::try_from(i32::from(time.hour()) * 3600 + i32::from(time.minute()) * 60).unwrap_or(0);
    let services = timetable.services_on(moment.at.date());
    let rides: Vec<(u32, u32)> = services.flat_map(|service| timetable.ride_times(line, service, from, to)).collect();
    let near = rides.iter().filter(|(departure, _)| departure.abs_diff(of_day) <= AROUND_SECONDS);
    median(near.map(|(_, seconds)| *seconds).collect())
        .or_else(|| median(rides.iter().map(|(_, seconds)| *seconds).collect()))
}

fn median(mut seconds: Vec<u32>) -> Option<u32> {
    seconds.sort_unstable();
    seconds.get(seconds.len() / 2).copied()
}
