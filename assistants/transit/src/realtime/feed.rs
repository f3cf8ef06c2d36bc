//! Decodes and checks a realtime message.

use jiff::Timestamp;
use jiff::civil::Date;
use prost::Message;

use super::wire;
use crate::feed::table::parse_date;

/// The maximum size of a message, in bytes. New York's largest subway feed has 240 KB; a bus feed of 3,547 trips has
/// 2.2 MB.
const LIMIT_BYTES: usize = 4 << 20;
/// The maximum numbers of trips and of replacement periods in a message. Each of them is compared with the timetable.
const TRIP_LIMIT: usize = 20_000;
const PERIOD_LIMIT: usize = 1_000;
/// The age after which a message is stale.
const STALE_AFTER_SECONDS: i64 = 5 * 60;
/// The time without movement after which a train is stalled.
const STALLED_AFTER_SECONDS: i64 = 90;

/// An error in decoding a realtime message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The message exceeds the size limit.
    #[error("the realtime message has {bytes} bytes, the limit is {LIMIT_BYTES}")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
    },
    /// The message has too many trips, entities or periods.
    #[error("the realtime message has {count} {unit}, the limit is {limit}")]
    TooMany {
        /// The number.
        count: usize,
        /// What is counted.
        unit: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The bytes are not a GTFS-Realtime message.
    #[error("not a GTFS-Realtime message")]
    Malformed {
        /// The error of the decoder.
        #[source]
        source: prost::DecodeError,
    },
    /// The message has no timestamp, so its age is unknown.
    #[error("the realtime message has no timestamp")]
    NoTimestamp,
}

/// A decoded realtime message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFeed {
    /// The timestamp of the message.
    pub made_at: Timestamp,
    /// The trips, in the order of the message. A trip without calls can be a cancelled one.
    pub trips: Vec<LiveTrip>,
    /// The lines and periods for which the message is complete.
    pub replaced: Vec<Replacement>,
}

/// A line and period for which the message is complete: scheduled trips that start in the period and are not in the message
/// are cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// `route_id`.
    pub route: String,
    /// The start of the period; `None` if it is unbounded.
    pub from: Option<Timestamp>,
    /// The end of the period.
    pub until: Timestamp,
}

/// A trip of a message, running or planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTrip {
    /// `trip_id`.
    pub id: String,
    /// `route_id`, which can be empty.
    pub route: String,
    /// The service day.
    pub start_date: Option<Date>,
    /// Whether a train is assigned. A trip without a train is only planned. True if the feed has no such field.
    pub is_assigned: bool,
    /// The railway direction, which can differ from the compass direction.
    pub direction: Option<Direction>,
    /// Whether the trip is cancelled.
    pub is_cancelled: bool,
    /// When the train last moved, if reported.
    pub moved_at: Option<Timestamp>,
    /// The remaining stops.
    pub calls: Vec<Call>,
}

/// A railway direction. North is uptown and towards the Bronx, for the whole length of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Platform ids that end in N.
    North,
    /// Platform ids that end in S.
    South,
}

/// A remaining stop of a trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `stop_id`. Some feeds include points that are not passenger stops.
    pub platform: String,
    /// The time of arrival; absent at the first stop of a trip.
    pub arrival: Option<Timestamp>,
    /// The time of departure; absent at the last stop of a trip.
    pub departure: Option<Timestamp>,
    /// Whether the train uses a track other than the scheduled one, so the remaining stops are uncertain.
    pub is_rerouted: bool,
}

impl Call {
    /// Returns the time of arrival, or of departure at the first stop of a trip.
    pub fn at(&self) -> Option<Timestamp> {
        self.arrival.or(self.departure)
    }
}

impl LiveTrip {
    /// Whether the train has not moved for more than 90 seconds.
    pub fn is_stalled(&self, now: Timestamp) -> bool {
        self.moved_at.is_some_and(|moved_at| now.duration_since(moved_at).as_secs() > STALLED_AFTER_SECONDS)
    }

    /// Whether the trip should have started but has no train, so it will not run.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        !self.is_assigned
            && self.calls.first().and_then(|call| call.departure.or(call.arrival)).is_some_and(|at| at < now)
    }
}

impl LiveFeed {
    /// Decodes a message.
    ///
    /// Incomplete entities are ignored, because feeds contain empty ones. Stop ids are not checked.
    ///
    /// # Errors
    /// [`LiveError`], if the whole message is unusable.
    pub fn decode(bytes: &[u8]) -> Result<Self, LiveError> {
        if bytes.len() > LIMIT_BYTES {
            return Err(LiveError::TooLarge { bytes: bytes.len() });
        }
        let message = wire::FeedMessage::decode(bytes).map_err(|source| LiveError::Malformed { source })?;
        let made_at = message.header.timestamp.and_then(instant).ok_or(LiveError::NoTimestamp)?;
        let replaced = message.header.nyct.unwrap_or_default().trip_replacement_period;
        check_count(replaced.len(), "periods", PERIOD_LIMIT)?;
        check_count(message.entity.len(), "entities", 2 * TRIP_LIMIT)?;
        let entities = message.entity.into_iter().filter(|entity| !entity.is_deleted());
        let (mut trips, mut vehicles) = (Vec::new(), Vec::new());
        for entity in entities {
            trips.extend(entity.trip_update.map(trip_of));
            vehicles.extend(entity.vehicle);
        }
        check_count(trips.len(), "trips", TRIP_LIMIT)?;
        let mut feed = Self { made_at, trips, replaced: replaced.into_iter().filter_map(replacement).collect() };
        feed.set_moved_at(vehicles);
        Ok(feed)
    }

    /// Whether the message is more than five minutes old.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.duration_since(self.made_at).as_secs() > STALE_AFTER_SECONDS
    }

    /// Sets `moved_at` of trips. Vehicle positions are separate entities with the same trip.
    fn set_moved_at(&mut self, vehicles: Vec<wire::VehiclePosition>) {
        let mut moved: std::collections::HashMap<(String, String), Timestamp> = std::collections::HashMap::new();
        for vehicle in vehicles {
            if let (Some(trip), Some(at)) = (vehicle.trip, vehicle.timestamp.and_then(instant)) {
                moved.insert((trip.trip_id().to_owned(), trip.start_date().to_owned()), at);
            }
        }
        for trip in &mut self.trips {
            let date = trip.start_date.map(|date| date.strftime("%Y%m%d").to_string()).unwrap_or_default();
            trip.moved_at = moved.get(&(trip.id.clone(), date)).copied();
        }
    }
}

fn check_count(count: usize, unit: &'static str, limit: usize) -> Result<(), LiveError> {
    if count > limit { Err(LiveError::TooMany { count, unit, limit }) } else { Ok(()) }
}

fn trip_of(update: wire::TripUpdate) -> LiveTrip {
    const CANCELED: i32 = 3;
    let trip = update.trip;
    let direction = match trip.nyct.as_ref().map(wire::NyctTripDescriptor::direction) {
        Some(1) => Some(Direction::North),
        Some(3) => Some(Direction::South),
        _ => None,
    };
    LiveTrip {
        id: trip.trip_id().to_owned(),
        route: trip.route_id().to_owned(),
        start_date: parse_date(trip.start_date()),
        is_assigned: trip.nyct.as_ref().is_none_or(wire::NyctTripDescriptor::is_assigned),
        direction,
        is_cancelled: trip.schedule_relationship() == CANCELED,
        moved_at: None,
        calls: update.stop_time_update.into_iter().filter_map(call_of).collect(),
    }
}

/// Returns `None` for a stop that is skipped or has no id or no time.
fn call_of(update: wire::StopTimeUpdate) -> Option<Call> {
    const SKIPPED: i32 = 1;
    let time = |event: Option<wire::StopTimeEvent>| instant(u64::try_from(event?.time?).ok()?);
    let tracks = update.nyct.clone().unwrap_or_default();
    let is_rerouted = tracks.actual_track.is_some() && tracks.actual_track != tracks.scheduled_track;
    let (is_skipped, platform) = (update.schedule_relationship() == SKIPPED, update.stop_id.unwrap_or_default());
    let call = Call { platform, arrival: time(update.arrival), departure: time(update.departure), is_rerouted };
    (!is_skipped && !call.platform.is_empty() && call.at().is_some()).then_some(call)
}

fn replacement(period: wire::TripReplacementPeriod) -> Option<Replacement> {
    let range = period.replacement_period?;
    let (from, until) = (range.start.and_then(instant), range.end.and_then(instant)?);
    Some(Replacement { route: period.route_id?, from, until })
}

/// Feeds use zero for an unknown time.
fn instant(seconds: u64) -> Option<Timestamp> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds > 0).and_then(|seconds| Timestamp::from_second(seconds).ok())
}
