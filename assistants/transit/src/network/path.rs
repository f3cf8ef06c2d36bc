//! Finds the shortest path through a network at a fixed time per stop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Network, SECONDS_A_STOP};

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
    /// Ids of lines that are not used.
    pub avoid: Vec<&'a str>,
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
}

impl NetworkLeg {
    /// Returns the number of stops to the end.
    pub fn stops(&self) -> usize {
        self.stations.len() - 1
    }
}

/// A node of the search: at a station, or on a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum SearchNode {
    At(usize),
    Riding { line: usize, sequence: usize, position: usize },
}

struct NodeCost {
    seconds: u32,
    before: Option<SearchNode>,
}

impl Network {
    /// Returns the fastest path at [`SECONDS_A_STOP`] per stop and `change_seconds` per change of trains. Changes between
    /// stations are possible within a complex; whether the way between their platforms has steps is not known.
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
        let mut search =
            PathSearch { network: self, change_seconds, conditions, reached: HashMap::new(), open: BinaryHeap::new() };
        for station in &from {
            search.reach(SearchNode::At(*station), 0, None);
        }
        while let Some(Reverse((seconds, node))) = search.open.pop() {
            match node {
                SearchNode::At(station) if to.contains(&station) => return Some(search.path_to(node, seconds)),
                _ if search.reached[&node].seconds < seconds => {}
                SearchNode::At(station) => search.board(station, seconds, from.contains(&station)),
                SearchNode::Riding { .. } => search.ride_on(node, seconds),
            }
        }
        None
    }
}

struct PathSearch<'a> {
    network: &'a Network,
    change_seconds: u32,
    conditions: &'a PathConditions<'a>,
    reached: HashMap<SearchNode, NodeCost>,
    open: BinaryHeap<Reverse<(u32, SearchNode)>>,
}

impl PathSearch<'_> {
    fn reach(&mut self, node: SearchNode, seconds: u32, before: Option<SearchNode>) {
        if self.reached.get(&node).is_none_or(|known| seconds < known.seconds) {
            self.reached.insert(node, NodeCost { seconds, before });
            self.open.push(Reverse((seconds, node)));
        }
    }

    /// Boarding costs `change_seconds`, except at the origin.
    fn board(&mut self, station: usize, seconds: u32, is_origin: bool) {
        let before = Some(SearchNode::At(station));
        let boarded_at = if is_origin { seconds } else { seconds + self.change_seconds };
        let complex = &self.network.stations[station].complex;
        let is_allowed = |line: &crate::Line| !self.conditions.avoid.contains(&line.id.as_str());
        for (line, of) in self.network.lines.iter().enumerate().filter(|(_, line)| is_allowed(line)) {
            for (sequence, way) in of.sequences.iter().enumerate() {
                let here = |index: &usize| {
                    *index == station || !is_origin && self.network.stations[*index].complex == *complex
                };
                for position in way.stations.iter().enumerate().filter(|(_, index)| here(index)).map(|(at, _)| at) {
                    if self.is_usable(way.stations[position], &way.way) {
                        self.reach(SearchNode::Riding { line, sequence, position }, boarded_at, before);
                    }
                }
            }
        }
    }

    fn ride_on(&mut self, node: SearchNode, seconds: u32) {
        let SearchNode::Riding { line, sequence, position } = node else { return };
        let way = &self.network.lines[line].sequences[sequence];
        let stations = &way.stations;
        if self.is_usable(stations[position], &way.way) {
            self.reach(SearchNode::At(stations[position]), seconds, Some(node));
        }
        if position + 1 < stations.len() {
            self.reach(
                SearchNode::Riding { line, sequence, position: position + 1 },
                seconds + SECONDS_A_STOP,
                Some(node),
            );
        }
    }

    /// Whether a platform may be boarded and alighted at.
    fn is_usable(&self, station: usize, way: &str) -> bool {
        !self.conditions.accessible_only || self.network.stations[station].accessible.iter().any(|known| known == way)
    }

    fn path_to(&self, node: SearchNode, seconds: u32) -> NetworkPath {
        let mut legs: Vec<NetworkLeg> = Vec::new();
        let mut at = Some(node);
        let mut riding = false;
        while let Some(node) = at {
            if let SearchNode::Riding { line, sequence, position } = node {
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
            riding = matches!(node, SearchNode::Riding { .. });
            at = self.reached[&node].before;
        }
        legs.reverse();
        NetworkPath { legs, seconds }
    }
}
