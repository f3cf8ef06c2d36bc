//! What a search found, in the words of the feed.

use super::search::{Found, Step};
use crate::schedule::{Layout, RunSource, Schedule, Time};
use crate::timetable::StopTime;

/// A way from one station to another: rides, and walks between stations.
///
/// A change of trains within one station is no leg; it is the gap between two rides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journey {
    /// In order; the first and the last may be walks, and at least one is a ride.
    pub legs: Vec<Leg>,
}

/// A part of a [`Journey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leg {
    /// On one train.
    Ride(Ride),
    /// On foot to another station.
    Walk(Walk),
}

/// A ride on one train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ride {
    /// `route_id` of the line.
    pub route: String,
    /// `trip_id`, the feed's, or that of the realtime feed for an added train.
    pub trip: String,
    /// Where the train says that it goes.
    pub headsign: String,
    /// Where to board: the station's id.
    pub from: String,
    /// The platform to board at.
    pub from_platform: String,
    /// When the train leaves.
    pub departs: Time,
    /// Where to alight: the station's id.
    pub to: String,
    /// The platform to alight at.
    pub to_platform: String,
    /// When the train arrives.
    pub arrives: Time,
    /// The ids of the stations between, in order.
    pub passes: Vec<String>,
    /// Whether the times are those of a train on its way rather than of the timetable.
    pub is_live: bool,
}

/// A way on foot between two stations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The station's id.
    pub from: String,
    /// The station's id.
    pub to: String,
    /// How long it takes.
    pub seconds: u32,
}

impl Ride {
    /// How many stops it is to the one to alight at.
    pub fn stops_ridden(&self) -> usize {
        self.passes.len() + 1
    }
}

impl Journey {
    /// The rides in order.
    pub fn rides(&self) -> impl DoubleEndedIterator<Item = &Ride> {
        self.legs.iter().filter_map(|leg| match leg {
            Leg::Ride(ride) => Some(ride),
            Leg::Walk(_) => None,
        })
    }

    /// How often one changes trains.
    pub fn changes(&self) -> usize {
        self.rides().count().saturating_sub(1)
    }

    /// When one has to set off: the first departure, or the walk that leads to it.
    pub fn departs(&self) -> Time {
        let walked = self.walked_before_riding(self.legs.iter());
        Time(self.rides().next().map_or(0, |ride| ride.departs.0).saturating_sub(walked))
    }

    /// When one is there: the last arrival, and the walk that follows it.
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

impl Found {
    pub(super) fn to_journey(&self, schedule: &Schedule) -> Journey {
        Journey { legs: self.steps.iter().map(|step| leg_of(schedule, *step)).collect() }
    }

    /// A journey found in the mirror, turned round.
    pub(super) fn to_journey_in_mirror(&self, schedule: &Schedule) -> Journey {
        let turned = self.steps.iter().rev().map(|step| step.turned(&schedule.layout));
        Journey { legs: turned.map(|step| leg_of(schedule, step)).collect() }
    }
}

impl Step {
    fn turned(self, layout: &Layout) -> Self {
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
