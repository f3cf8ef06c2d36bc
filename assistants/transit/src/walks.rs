//! Ways on foot: changing trains within a station, and walking to another one.

use crate::timetable::Timetable;

/// What is known about ways on foot beyond the feed's `transfers.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walks {
    /// How long a change of trains takes in a station for which the feed says nothing.
    pub change_seconds: u32,
    /// Groups of stations, by id, that are connected inside. Pairs that the feed has keep its time; the others take
    /// `change_seconds`.
    pub complexes: Vec<Vec<String>>,
}

impl Default for Walks {
    /// Three minutes, which is what New York's feed gives for most changes.
    fn default() -> Self {
        Self { change_seconds: 180, complexes: Vec::new() }
    }
}

/// Shortest ways on foot between stations, closed: whoever can walk from A to B and from B to C finds A to C here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footpaths {
    /// Seconds for a change within each station.
    pub(crate) change: Vec<u32>,
    /// For each station the others in reach, and the seconds.
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
}

impl Footpaths {
    pub(crate) fn new(timetable: &Timetable, walks: &Walks) -> Self {
        let count = timetable.stations.len();
        let mut footpaths = Self { change: vec![walks.change_seconds; count], ways: vec![Vec::new(); count] };
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
        footpaths.close();
        footpaths
    }

    pub(crate) fn reversed(&self) -> Self {
        let mut reversed = Self { change: self.change.clone(), ways: vec![Vec::new(); self.ways.len()] };
        for (from, ways) in (0..).zip(&self.ways) {
            for (to, seconds) in ways {
                reversed.ways[*to as usize].push((from, *seconds));
            }
        }
        reversed
    }

    fn connect(&mut self, stations: &[u32], seconds: u32) {
        for from in stations {
            for to in stations {
                let is_known = self.ways[*from as usize].iter().any(|(known, _)| known == to);
                if from != to && !is_known {
                    self.ways[*from as usize].push((*to, seconds));
                }
            }
        }
    }

    /// Dijkstra from each station; a component has few stations, so a sorted list does for a queue.
    fn close(&mut self) {
        let direct = std::mem::take(&mut self.ways);
        self.ways = (0..direct.len()).map(|origin| shortest_ways(origin, &direct)).collect();
    }

    fn shorten(&mut self, from: u32, to: u32, seconds: u32) {
        match self.ways[from as usize].iter_mut().find(|(known, _)| *known == to) {
            Some((_, known)) => *known = seconds.min(*known),
            None => self.ways[from as usize].push((to, seconds)),
        }
    }
}

fn shortest_ways(origin: usize, direct: &[Vec<(u32, u32)>]) -> Vec<(u32, u32)> {
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
    fn ways_are_closed_and_shortest() {
        let direct = vec![vec![(1, 100), (2, 400)], vec![(2, 150)], vec![], vec![(0, 10)]];
        let mut footpaths = Footpaths { change: vec![0; 4], ways: direct };
        footpaths.close();
        assert_eq!(
            footpaths.ways,
            [vec![(1, 100), (2, 250)], vec![(2, 150)], vec![], vec![(0, 10), (1, 110), (2, 260)]]
        );
        assert_eq!(footpaths.reversed().ways[2], [(0, 250), (1, 150), (3, 260)]);
    }

    #[test]
    fn a_complex_adds_only_what_the_feed_lacks() {
        let mut footpaths = Footpaths { change: vec![0; 3], ways: vec![vec![(1, 90)], vec![], vec![]] };
        footpaths.connect(&[0, 1, 2], 180);
        assert_eq!(footpaths.ways[0], [(1, 90), (2, 180)]);
        assert_eq!(footpaths.ways[1], [(0, 180), (2, 180)]);
    }
}
