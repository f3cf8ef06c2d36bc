//! One realtime message, decoded and checked.

use jiff::Timestamp;
use jiff::civil::Date;
use prost::Message;

use super::wire;
use crate::feed::table::parse_date;

/// The largest message that is decoded. New York's largest subway feed has 240 KB, a bus feed of 3,547 trips 2.2 MB.
const LIMIT_BYTES: usize = 4 << 20;
/// Trips of a message, and periods for which it claims to be complete: each of them is held against the timetable.
const TRIP_LIMIT: usize = 20_000;
const PERIOD_LIMIT: usize = 1_000;
/// A message is stale when it was made longer ago.
const STALE_AFTER_SECONDS: i64 = 5 * 60;
/// A train that has not reported for longer stands still.
const STALLED_AFTER_SECONDS: i64 = 90;

/// Why a realtime message was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The message is larger than any feed that this crate is meant for.
    #[error("the realtime message has {bytes} bytes, and at most {LIMIT_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The message has more trips or periods than any feed that this crate is meant for.
    #[error("the realtime message has {count} {unit}, and at most {limit} are read")]
    TooMany {
        /// How many.
        count: usize,
        /// Of what.
        unit: &'static str,
        /// How many are read.
        limit: usize,
    },
    /// The bytes are no GTFS-Realtime message.
    #[error("the bytes are no GTFS-Realtime message")]
    Malformed {
        /// What the decoder said.
        #[source]
        source: prost::DecodeError,
    },
    /// The message does not say when it was made, so that nothing in it can be judged.
    #[error("the realtime message has no timestamp")]
    NoTimestamp,
}

/// What one message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFeed {
    /// When the message was made.
    pub made_at: Timestamp,
    /// Trips in the order of the message. Those without calls are kept: a cancelled trip has none.
    pub trips: Vec<LiveTrip>,
    /// Lines for which the message is complete for a time.
    pub replaced: Vec<Replacement>,
}

/// A line of which every scheduled trip that starts in a period and is not in the message counts as cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// `route_id`.
    pub route: String,
    /// The beginning of the period; `None` for one that has been going on.
    pub from: Option<Timestamp>,
    /// Its end.
    pub until: Timestamp,
}

/// A trip of a message: on its way, or planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTrip {
    /// `trip_id`.
    pub id: String,
    /// `route_id`, which may be empty.
    pub route: String,
    /// The service day.
    pub start_date: Option<Date>,
    /// Whether a train has been assigned. A trip without one is only planned. True in feeds that do not tell.
    pub is_assigned: bool,
    /// Where the trip goes, in the railway's terms, which are not the compass.
    pub direction: Option<Direction>,
    /// Whether the trip does not run.
    pub is_cancelled: bool,
    /// When the train last moved, as far as it reported.
    pub moved_at: Option<Timestamp>,
    /// The stops that are still to come.
    pub calls: Vec<Call>,
}

/// A railway direction: north is uptown and towards the Bronx, for a whole line whichever way its tracks turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Platforms that end in N.
    North,
    /// Platforms that end in S.
    South,
}

/// A stop that a trip is still to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `stop_id`. Some feeds name points that are no stops for passengers.
    pub platform: String,
    /// When the train arrives; absent at the first stop of a trip.
    pub arrival: Option<Timestamp>,
    /// When the train leaves; absent at the last stop of a trip.
    pub departure: Option<Timestamp>,
    /// Whether the train runs on another track than planned, so that the stops to come are in doubt.
    pub is_rerouted: bool,
}

impl Call {
    /// When a passenger meets the train: on its arrival, at the first stop of a trip on its departure.
    pub fn at(&self) -> Option<Timestamp> {
        self.arrival.or(self.departure)
    }
}

impl LiveTrip {
    /// Whether the train has reported nothing for more than 90 seconds.
    pub fn is_stalled(&self, now: Timestamp) -> bool {
        self.moved_at.is_some_and(|moved_at| now.duration_since(moved_at).as_secs() > STALLED_AFTER_SECONDS)
    }

    /// Whether the trip should have begun without a train: nobody will come.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        !self.is_assigned
            && self.calls.first().and_then(|call| call.departure.or(call.arrival)).is_some_and(|at| at < now)
    }
}

impl LiveFeed {
    /// Decodes one message.
    ///
    /// Entities that lack what they need are passed over: feeds hold empty ones. Stops are not looked up here.
    ///
    /// # Errors
    /// [`LiveError`], where the whole message is of no use.
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
        feed.note_vehicles(vehicles);
        Ok(feed)
    }

    /// Whether the message was made so long ago that its times say little.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.duration_since(self.made_at).as_secs() > STALE_AFTER_SECONDS
    }

    /// A trip and the position of its train are separate entities with the same trip.
    fn note_vehicles(&mut self, vehicles: Vec<wire::VehiclePosition>) {
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

/// `None` for a stop that is skipped, unnamed or without a time.
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

/// Zero is how feeds write "unknown".
fn instant(seconds: u64) -> Option<Timestamp> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds > 0).and_then(|seconds| Timestamp::from_second(seconds).ok())
}
