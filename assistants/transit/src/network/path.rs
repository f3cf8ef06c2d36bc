//! The best way through a network at a fixed time a stop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Network, SECONDS_A_STOP};

/// A way from station to station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPath {
    /// The rides in order; none where origin and destination are one.
    pub legs: Vec<NetworkLeg>,
    /// The time for the stops and the changes, without waiting.
    pub seconds: u32,
}

/// A ride of a [`NetworkPath`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkLeg {
    /// The line's id.
    pub line: String,
    /// The suffix of the platforms, which tells the direction.
    pub way: String,
    /// The ids of the stations, both ends included.
    pub stations: Vec<String>,
}

impl NetworkLeg {
    /// How many stops it is to the end.
    pub fn stops(&self) -> usize {
        self.stations.len() - 1
    }
}

/// Where the search stands: at a station, or on a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    At(usize),
    Riding { line: usize, sequence: usize, position: usize },
}

struct Reached {
    seconds: u32,
    before: Option<Place>,
}

impl Network {
    /// The quickest way at [`SECONDS_A_STOP`] a stop and `change_seconds` for each change of trains; changing between
    /// stations is possible within a complex.
    ///
    /// From a station to itself the way is empty. `None` where there is no way or a station is unknown.
    pub fn find_path(&self, from: &[&str], to: &[&str], change_seconds: u32) -> Option<NetworkPath> {
        let indexes = |ids: &[&str]| ids.iter().filter_map(|id| self.index(id)).collect::<Vec<_>>();
        let (from, to) = (indexes(from), indexes(to));
        if from.iter().any(|station| to.contains(station)) {
            return Some(NetworkPath { legs: Vec::new(), seconds: 0 });
        }
        let mut search = PathSearch { network: self, change_seconds, reached: HashMap::new(), open: BinaryHeap::new() };
        for station in &from {
            search.reach(Place::At(*station), 0, None);
        }
        while let Some(Reverse((seconds, place))) = search.open.pop() {
            match place {
                Place::At(station) if to.contains(&station) => return Some(search.path_to(place, seconds)),
                _ if search.reached[&place].seconds < seconds => {}
                Place::At(station) => search.board(station, seconds, from.contains(&station)),
                Place::Riding { .. } => search.ride_on(place, seconds),
            }
        }
        None
    }
}

struct PathSearch<'a> {
    network: &'a Network,
    change_seconds: u32,
    reached: HashMap<Place, Reached>,
    open: BinaryHeap<Reverse<(u32, Place)>>,
}

impl PathSearch<'_> {
    fn reach(&mut self, place: Place, seconds: u32, before: Option<Place>) {
        if self.reached.get(&place).is_none_or(|known| seconds < known.seconds) {
            self.reached.insert(place, Reached { seconds, before });
            self.open.push(Reverse((seconds, place)));
        }
    }

    /// Boarding costs a change, but at the origin.
    fn board(&mut self, station: usize, seconds: u32, is_origin: bool) {
        let before = Some(Place::At(station));
        let boarded_at = if is_origin { seconds } else { seconds + self.change_seconds };
        let complex = &self.network.stations[station].complex;
        for (line, of) in self.network.lines.iter().enumerate() {
            for (sequence, way) in of.sequences.iter().enumerate() {
                let here = |index: &usize| {
                    *index == station || !is_origin && self.network.stations[*index].complex == *complex
                };
                for position in way.stations.iter().enumerate().filter(|(_, index)| here(index)).map(|(at, _)| at) {
                    self.reach(Place::Riding { line, sequence, position }, boarded_at, before);
                }
            }
        }
    }

    fn ride_on(&mut self, place: Place, seconds: u32) {
        let Place::Riding { line, sequence, position } = place else { return };
        let stations = &self.network.lines[line].sequences[sequence].stations;
        self.reach(Place::At(stations[position]), seconds, Some(place));
        if position + 1 < stations.len() {
            self.reach(Place::Riding { line, sequence, position: position + 1 }, seconds + SECONDS_A_STOP, Some(place));
        }
    }

    fn path_to(&self, place: Place, seconds: u32) -> NetworkPath {
        let mut legs: Vec<NetworkLeg> = Vec::new();
        let mut at = Some(place);
        let mut riding = false;
        while let Some(place) = at {
            if let Place::Riding { line, sequence, position } = place {
                let line = &self.network.lines[line];
                let way = &line.sequences[sequence];
                let station = self.network.stations[way.stations[position]].id.clone();
                match legs.last_mut().filter(|_| riding) {
                    Some(leg) => leg.stations.insert(0, station),
                    None => {
                        legs.push(NetworkLeg { line: line.id.clone(), way: way.way.clone(), stations: vec![station] });
                    }
                }
            }
            riding = matches!(place, Place::Riding { .. });
            at = self.reached[&place].before;
        }
        legs.reverse();
        NetworkPath { legs, seconds }
    }
}
