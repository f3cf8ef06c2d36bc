//! Finds the fastest path through a network by running times, or at a fixed time per stop where they are not known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use super::{LineSequence, Network};

/// A path between stations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPath {
    /// The rides in order. Empty if origin and destination are the same.
    pub legs: Vec<NetworkLeg>,
    /// The time for stops and changes, without waiting.
    pub seconds: u32,
}

/// Conditions on a [`NetworkPath`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathConditions<'a> {
    /// Whether to board and alight only at accessible platforms.
    pub accessible_only: bool,
    /// Ids of lines to avoid.
    pub avoid: Vec<&'a str>,
    /// Pairs of ids: a line, and a station at which it does not stop at the time of the trip.
    pub unserved: HashSet<(&'a str, &'a str)>,
}

/// A ride of a [`NetworkPath`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkLeg {
    /// The line's id.
    pub line: String,
    /// The platform suffix, which identifies the direction.
    pub way: String,
    /// The ids of the stations, including both ends.
    pub stations: Vec<String>,
    /// The duration.
    pub seconds: u32,
    /// The id of the last station of the train.
    pub terminal: String,
}

impl NetworkLeg {
    /// Returns the number of stops to the end.
    pub fn stops(&self) -> usize {
        self.stations.len() - 1
    }
}

/// The nodes of the search: the stations, then each position of each stopping sequence, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Nodes {
    /// The positions, in the order of their nodes.
    positions: Vec<Position>,
    /// For each station, the nodes at which a train can be boarded there.
    at_station: Vec<Vec<u32>>,
    /// For each station, the nodes at which a train can be boarded in its complex.
    in_complex: Vec<Vec<u32>>,
}

/// A position of a stopping sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: u32,
    sequence: u32,
    position: u32,
    station: u32,
}

impl Nodes {
    pub(crate) fn new(network: &Network) -> Self {
        let count = network.stations.len();
        let mut nodes = Self { positions: Vec::new(), at_station: vec![Vec::new(); count], in_complex: Vec::new() };
        for (line, of) in (0..).zip(&network.lines) {
            for (sequence, way) in (0..).zip(&of.sequences) {
                if of.sequences[..sequence as usize].iter().any(|usual| is_express_of(way, usual)) {
                    continue;
                }
                for (position, station) in (0..).zip(&way.stations) {
                    nodes.at_station[*station].push(to_u32(count + nodes.positions.len()));
                    nodes.positions.push(Position { line, sequence, position, station: to_u32(*station) });
                }
            }
        }
        nodes.in_complex = network.stations.iter().map(|station| nodes.of_complex(network, &station.complex)).collect();
        nodes
    }

    fn of_complex(&self, network: &Network, complex: &str) -> Vec<u32> {
        let stations = network.stations.iter().zip(&self.at_station).filter(|(station, _)| station.complex == complex);
        let mut nodes: Vec<u32> = stations.flat_map(|(_, nodes)| nodes.iter().copied()).collect();
        nodes.sort_unstable();
        nodes
    }
}

/// Whether a sequence skips stops of a more frequent one between the same ends, and its running times are not known.
/// Such trains run only at certain hours, so an estimate without a timetable does not rely on them.
fn is_express_of(way: &LineSequence, usual: &LineSequence) -> bool {
    let (Some(first), Some(last)) = (way.stations.first(), way.stations.last()) else { return false };
    let at = |station: &usize| usual.stations.iter().position(|other| other == station);
    let skips = match (at(first), at(last)) {
        (Some(start), Some(end)) if start < end => end - start + 1 > way.stations.len(),
        _ => false,
    };
    way.seconds.is_empty() && way.way == usual.way && skips && way.stations.iter().all(|station| at(station).is_some())
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a network has far fewer stops than 2^32")
}

const UNREACHED: u32 = u32::MAX;
const ORIGIN: u32 = u32::MAX;

/// The shortest known time to a node, and the node before it.
#[derive(Debug, Clone, Copy)]
struct NodeCost {
    seconds: u32,
    before: u32,
}

impl Network {
    /// Returns the fastest path by running times and `change_seconds` per change of trains. Changes between stations are
    /// possible within a complex; it is not known whether the way between their platforms has steps.
    ///
    /// The path from a station to itself is empty. Returns `None` if there is no path or a station is unknown.
    pub fn find_path(
        &self,
        from: &[&str],
        to: &[&str],
        change_seconds: u32,
        conditions: &PathConditions<'_>,
    ) -> Option<NetworkPath> {
        let indexes = |ids: &[&str]| ids.iter().filter_map(|id| self.index(id)).collect::<Vec<_>>();
        let (from, to) = (indexes(from), indexes(to));
        if from.iter().any(|station| to.contains(station)) {
            return Some(NetworkPath { legs: Vec::new(), seconds: 0 });
        }
        let count = self.stations.len() + self.nodes.positions.len();
        let mut search = PathSearch {
            network: self,
            change_seconds,
            conditions,
            is_avoided: self.lines.iter().map(|line| conditions.avoid.contains(&line.id.as_str())).collect(),
            reached: vec![NodeCost { seconds: UNREACHED, before: ORIGIN }; count],
            open: BinaryHeap::new(),
        };
        for station in &from {
            search.reach(to_u32(*station), 0, ORIGIN);
        }
        while let Some(Reverse((seconds, node))) = search.open.pop() {
            if search.reached[node as usize].seconds < seconds {
                continue;
            }
            match search.position(node) {
                Some(position) => search.ride_on(node, position, seconds),
                None if to.contains(&(node as usize)) => return Some(search.path_to(node, seconds)),
                None => search.board(node, seconds, from.contains(&(node as usize))),
            }
        }
        None
    }
}

struct PathSearch<'a> {
    network: &'a Network,
    change_seconds: u32,
    conditions: &'a PathConditions<'a>,
    /// For each line, whether it is avoided.
    is_avoided: Vec<bool>,
    reached: Vec<NodeCost>,
    open: BinaryHeap<Reverse<(u32, u32)>>,
}

impl PathSearch<'_> {
    /// Returns the position of a node; `None` for a station.
    fn position(&self, node: u32) -> Option<Position> {
        (node as usize).checked_sub(self.network.stations.len()).map(|at| self.network.nodes.positions[at])
    }

    fn reach(&mut self, node: u32, seconds: u32, before: u32) {
        let known = &mut self.reached[node as usize];
        if seconds < known.seconds {
            *known = NodeCost { seconds, before };
            self.open.push(Reverse((seconds, node)));
        }
    }

    /// Boarding costs `change_seconds`, except at the origin.
    fn board(&mut self, station: u32, seconds: u32, is_origin: bool) {
        let boarded_at = if is_origin { seconds } else { seconds + self.change_seconds };
        let nodes = &self.network.nodes;
        let here = if is_origin { &nodes.at_station } else { &nodes.in_complex };
        for node in &here[station as usize] {
            let Some(position) = self.position(*node) else { continue };
            if !self.is_avoided[position.line as usize] && self.is_usable(position) {
                self.reach(*node, boarded_at, station);
            }
        }
    }

    fn ride_on(&mut self, node: u32, at: Position, seconds: u32) {
        if self.is_usable(at) {
            self.reach(at.station, seconds, node);
        }
        let way = &self.network.lines[at.line as usize].sequences[at.sequence as usize];
        let position = at.position as usize;
        if position + 1 < way.stations.len() {
            self.reach(node + 1, seconds + way.seconds_after(position), node);
        }
    }

    /// Whether passengers can board and alight at a position, given the conditions.
    fn is_usable(&self, at: Position) -> bool {
        let line = &self.network.lines[at.line as usize];
        let station = &self.network.stations[at.station as usize];
        if self.conditions.unserved.contains(&(line.id.as_str(), station.id.as_str())) {
            return false;
        }
        if !self.conditions.accessible_only {
            return true;
        }
        let way = &line.sequences[at.sequence as usize].way;
        let accessible = &station.accessible;
        accessible.contains(way) || accessible.contains(&line.id)
    }

    fn path_to(&self, node: u32, seconds: u32) -> NetworkPath {
        let mut legs: Vec<NetworkLeg> = Vec::new();
        let mut at = node;
        // The time of alighting from the train of the leg that was added last.
        let mut left_at = None;
        while at != ORIGIN {
            let cost = self.reached[at as usize];
            match self.position(at) {
                None => left_at = None,
                Some(position) => {
                    let station = self.network.stations[position.station as usize].id.clone();
                    match (left_at, legs.last_mut()) {
                        (Some(left_at), Some(leg)) => {
                            leg.stations.insert(0, station);
                            leg.seconds = left_at - cost.seconds;
                        }
                        _ => {
                            legs.push(self.leg_at(position, station));
                            left_at = Some(cost.seconds);
                        }
                    }
                }
            }
            at = cost.before;
        }
        legs.reverse();
        NetworkPath { legs, seconds }
    }

    /// Returns a leg that contains only its last station so far.
    fn leg_at(&self, position: Position, station: String) -> NetworkLeg {
        let line = &self.network.lines[position.line as usize];
        let way = &line.sequences[position.sequence as usize];
        let terminal = way.stations.last().map_or_else(String::new, |last| self.network.stations[*last].id.clone());
        NetworkLeg { line: line.id.clone(), way: way.way.clone(), stations: vec![station], seconds: 0, terminal }
    }
}
