//! Journeys, with the ids of the feed.

use super::search::{FoundJourney, Step};
use crate::schedule::{Layout, RunSource, Schedule, Time};
use crate::timetable::StopTime;

/// A journey from one station to another: rides, and walks between stations.
///
/// A change of trains within one station is not a leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journey {
    /// The legs in order. The first and the last can be walks, and at least one is a ride.
    pub legs: Vec<Leg>,
}

/// A part of a [`Journey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leg {
    /// A ride on one train.
    Ride(Ride),
    /// A walk to another station.
    Walk(Walk),
}

/// A ride on one train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ride {
    /// `route_id` of the line.
    pub route: String,
    /// `trip_id` of the feed, or of the realtime feed for an added trip.
    pub trip: String,
    /// The destination shown on the train.
    pub headsign: String,
    /// The id of the station to board at.
    pub from: String,
    /// The id of the platform to board at.
    pub from_platform: String,
    /// The time of departure.
    pub departs: Time,
    /// The id of the station to alight at.
    pub to: String,
    /// The id of the platform to alight at.
    pub to_platform: String,
    /// The time of arrival.
    pub arrives: Time,
    /// The ids of the intermediate stations, in order.
    pub passes: Vec<String>,
    /// Whether the times are realtime predictions rather than scheduled times.
    pub is_live: bool,
}

/// A walk between two stations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The id of the station where it starts.
    pub from: String,
    /// The id of the station where it ends.
    pub to: String,
    /// The duration in seconds.
    pub seconds: u32,
}

impl Ride {
    /// Returns the number of stops to the one to alight at.
    pub fn stops_ridden(&self) -> usize {
        self.passes.len() + 1
    }
}

impl Journey {
    /// Returns the rides in order.
    pub fn rides(&self) -> impl DoubleEndedIterator<Item = &Ride> {
        self.legs.iter().filter_map(|leg| match leg {
            Leg::Ride(ride) => Some(ride),
            Leg::Walk(_) => None,
        })
    }

    /// Returns the number of changes of trains.
    pub fn changes(&self) -> usize {
        self.rides().count().saturating_sub(1)
    }

    /// Returns the start of the journey: the first departure, or the start of the walk to it.
    pub fn departs(&self) -> Time {
        let walked = self.walked_before_riding(self.legs.iter());
        Time(self.rides().next().map_or(0, |ride| ride.departs.0).saturating_sub(walked))
    }

    /// Returns the end of the journey: the last arrival, or the end of the walk after it.
    pub fn arrives(&self) -> Time {
        let walked = self.walked_before_riding(self.legs.iter().rev());
        Time(self.rides().next_back().map_or(0, |ride| ride.arrives.0) + walked)
    }

    fn walked_before_riding<'a>(&self, legs: impl Iterator<Item = &'a Leg>) -> u32 {
        let walks = legs.map_while(|leg| match leg {
            Leg::Walk(walk) => Some(walk.seconds),
            Leg::Ride(_) => None,
        });
        walks.sum()
    }

    /// Whether this leaves no earlier, arrives no later and changes no more often than another.
    pub(super) fn is_as_good_as(&self, other: &Self) -> bool {
        self.departs() >= other.departs() && self.arrives() <= other.arrives() && self.changes() <= other.changes()
    }
}

impl FoundJourney {
    pub(super) fn to_journey(&self, schedule: &Schedule) -> Journey {
        Journey { legs: self.steps.iter().map(|step| leg_of(schedule, *step)).collect() }
    }

    /// Converts a journey that was found in the mirrored layout.
    pub(super) fn to_journey_in_mirror(&self, schedule: &Schedule) -> Journey {
        let reversed = self.steps.iter().rev().map(|step| step.reversed(&schedule.layout));
        Journey { legs: reversed.map(|step| leg_of(schedule, step)).collect() }
    }
}

impl Step {
    fn reversed(self, layout: &Layout) -> Self {
        match self {
            Self::Walk { from, to, seconds } => Self::Walk { from: to, to: from, seconds },
            Self::Ride { sequence, run, board, alight } => {
                let of = layout.sequences[sequence as usize];
                let position = |position: u32| of.stop_count - 1 - position;
                Self::Ride { sequence, run: of.run_count - 1 - run, board: position(alight), alight: position(board) }
            }
        }
    }
}

fn leg_of(schedule: &Schedule, step: Step) -> Leg {
    let timetable = &schedule.timetable;
    let station = |index: u32| timetable.stations[index as usize].id.clone();
    match step {
        Step::Walk { from, to, seconds } => Leg::Walk(Walk { from: station(from), to: station(to), seconds }),
        Step::Ride { sequence, run, board, alight } => {
            let layout = &schedule.layout;
            let stops = &layout.stops_of(sequence)[board as usize..=alight as usize];
            let (first, last) = (stops[0], stops[stops.len() - 1]);
            let platform = |index: u32| timetable.platforms[index as usize].id.clone();
            let StopTime { departure, .. } = layout.time(sequence, run, board);
            let StopTime { arrival, .. } = layout.time(sequence, run, alight);
            let (route, trip, headsign, is_live) = names_of(schedule, layout.run(sequence, run).source);
            Leg::Ride(Ride {
                route,
                trip,
                headsign,
                from: station(first.station),
                from_platform: platform(first.platform),
                departs: Time(departure),
                to: station(last.station),
                to_platform: platform(last.platform),
                arrives: Time(arrival),
                passes: stops[1..stops.len() - 1].iter().map(|stop| station(stop.station)).collect(),
                is_live,
            })
        }
    }
}

fn names_of(schedule: &Schedule, source: RunSource) -> (String, String, String, bool) {
    match source {
        RunSource::Scheduled { trip, .. } => {
            let row = &schedule.timetable.trips[trip as usize];
            let route = schedule.timetable.routes[row.route as usize].id.clone();
            (route, row.id.clone(), row.headsign.clone(), false)
        }
        RunSource::Live { index } => {
            let run = &schedule.layout.live[index as usize];
            (run.route.clone(), run.trip.clone(), run.headsign.clone(), true)
        }
    }
}
