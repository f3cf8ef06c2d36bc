//! Walking: changes of trains within a station, and walks between stations.

use crate::timetable::Timetable;

/// Walking times in addition to the feed's `transfers.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walks {
    /// The seconds for a change of trains in a station without a transfer time in the feed.
    pub change_seconds: u32,
    /// Groups of ids of connected stations. Pairs without a transfer time in the feed take `change_seconds`.
    pub complexes: Vec<Vec<String>>,
}

impl Default for Walks {
    /// Three minutes, as for most changes in New York's feed.
    fn default() -> Self {
        Self { change_seconds: 180, complexes: Vec::new() }
    }
}

/// The shortest walks between stations. Transitively closed: walks from A to B and from B to C imply one from A to C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footpaths {
    /// Seconds for a change within each station.
    pub(crate) change: Vec<u32>,
    /// For each station, the reachable stations and the seconds.
    pub(crate) paths: Vec<Vec<(u32, u32)>>,
}

impl Footpaths {
    pub(crate) fn new(timetable: &Timetable, walks: &Walks) -> Self {
        let count = timetable.stations.len();
        let mut footpaths = Self { change: vec![walks.change_seconds; count], paths: vec![Vec::new(); count] };
        for transfer in &timetable.transfers {
            if transfer.from == transfer.to {
                footpaths.change[transfer.from as usize] = transfer.seconds;
            } else {
                footpaths.shorten(transfer.from, transfer.to, transfer.seconds);
            }
        }
        for complex in &walks.complexes {
            let stations: Vec<u32> = complex.iter().filter_map(|id| timetable.station(id)).collect();
            footpaths.connect(&stations, walks.change_seconds);
        }
        footpaths.compute_closure();
        footpaths
    }

    pub(crate) fn reversed(&self) -> Self {
        let mut reversed = Self { change: self.change.clone(), paths: vec![Vec::new(); self.paths.len()] };
        for (from, paths) in (0..).zip(&self.paths) {
            for (to, seconds) in paths {
                reversed.paths[*to as usize].push((from, *seconds));
            }
        }
        reversed
    }

    fn connect(&mut self, stations: &[u32], seconds: u32) {
        for from in stations {
            for to in stations {
                let is_known = self.paths[*from as usize].iter().any(|(known, _)| known == to);
                if from != to && !is_known {
                    self.paths[*from as usize].push((*to, seconds));
                }
            }
        }
    }

    /// Runs Dijkstra's algorithm from each station. Components are small, so a list is sufficient as a queue.
    fn compute_closure(&mut self) {
        let direct = std::mem::take(&mut self.paths);
        self.paths = (0..direct.len()).map(|origin| shortest_paths(origin, &direct)).collect();
    }

    fn shorten(&mut self, from: u32, to: u32, seconds: u32) {
        match self.paths[from as usize].iter_mut().find(|(known, _)| *known == to) {
            Some((_, known)) => *known = seconds.min(*known),
            None => self.paths[from as usize].push((to, seconds)),
        }
    }
}

fn shortest_paths(origin: usize, direct: &[Vec<(u32, u32)>]) -> Vec<(u32, u32)> {
    let mut settled: Vec<(u32, u32)> = Vec::new();
    let mut open = direct[origin].clone();
    while let Some(at) = (0..open.len()).min_by_key(|index| open[*index].1) {
        let (station, seconds) = open.swap_remove(at);
        if station as usize == origin || settled.iter().any(|(known, _)| *known == station) {
            continue;
        }
        settled.push((station, seconds));
        open.extend(direct[station as usize].iter().map(|(to, further)| (*to, seconds + further)));
    }
    settled.sort_unstable();
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_transitively_closed_and_shortest() {
        let direct = vec![vec![(1, 100), (2, 400)], vec![(2, 150)], vec![], vec![(0, 10)]];
        let mut footpaths = Footpaths { change: vec![0; 4], paths: direct };
        footpaths.compute_closure();
        assert_eq!(
            footpaths.paths,
            [vec![(1, 100), (2, 250)], vec![(2, 150)], vec![], vec![(0, 10), (1, 110), (2, 260)]]
        );
        assert_eq!(footpaths.reversed().paths[2], [(0, 250), (1, 150), (3, 260)]);
    }

    #[test]
    fn a_complex_adds_only_missing_pairs() {
        let mut footpaths = Footpaths { change: vec![0; 3], paths: vec![vec![(1, 90)], vec![], vec![]] };
        footpaths.connect(&[0, 1, 2], 180);
        assert_eq!(footpaths.paths[0], [(1, 90), (2, 180)]);
        assert_eq!(footpaths.paths[1], [(0, 180), (2, 180)]);
    }
}
