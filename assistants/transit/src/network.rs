//! The fixed facts of a system: stations, complexes, and the order of the stations on each line.
//!
//! A network answers without a timetable: which stations a line calls at, which way a train goes from here to there, and
//! about how long it takes at a fixed time a stop. It is kept as a table of text ([`Network::parse`]).

mod path;
mod table;

pub use path::{NetworkLeg, NetworkPath};
pub use table::{LineFacts, NetworkError};

/// What a stop counts for where no timetable says more.
pub const SECONDS_A_STOP: u32 = 120;

/// A system of lines and stations.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// In the order of the table.
    pub(crate) stations: Vec<Station>,
    pub(crate) lines: Vec<Line>,
}

/// A station: one stop of the feed with its platforms.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// The parent stop's id.
    pub id: String,
    /// Which stations are connected inside: those of one complex share this.
    pub complex: String,
    /// The name, which other stations may share.
    pub name: String,
    /// The borough or district.
    pub area: String,
    /// The line of tracks that the station lies on, such as "Lexington Av".
    pub trunk: String,
    /// Lines that call here by day, as the signs write them.
    pub lines: Vec<String>,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// What the signs call the two directions, by suffix of the platform.
    pub towards: Vec<(String, String)>,
    /// The suffixes of the platforms that can be reached without steps.
    pub accessible: Vec<String>,
}

/// A line and the ways its trains usually take.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// `route_id`.
    pub id: String,
    /// What the signs call it.
    pub name: String,
    /// Stations in the order of travel, the most frequent way first.
    pub sequences: Vec<LineSequence>,
}

/// One way of a line, in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSequence {
    /// The suffix of the platforms, which tells the direction.
    pub way: String,
    /// Indexes into the network's stations.
    pub(crate) stations: Vec<usize>,
}

impl Network {
    /// All stations.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// All lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The station with an id.
    pub fn find_station(&self, id: &str) -> Option<&Station> {
        self.index(id).map(|index| &self.stations[index])
    }

    /// The stations of a complex, in the order of the table; none for an unknown one.
    pub fn stations_of(&self, complex: &str) -> impl Iterator<Item = &Station> {
        self.stations.iter().filter(move |station| station.complex == complex)
    }

    /// The lines that a name on the signs stands for: several where variants or shuttles share it. Letter case does not
    /// count.
    pub fn lines_named(&self, name: &str) -> impl Iterator<Item = &Line> {
        let is_named = move |line: &&Line| line.name.eq_ignore_ascii_case(name) || line.id.eq_ignore_ascii_case(name);
        self.lines.iter().filter(is_named)
    }

    /// The stations of a line from one end to the other, its branches in between; none for an unknown line.
    pub fn stations_on(&self, line: &str) -> Vec<&Station> {
        let Some(line) = self.line(line) else { return Vec::new() };
        let Some(first) = line.sequences.first() else { return Vec::new() };
        let same_way = line.sequences.iter().filter(|sequence| sequence.way == first.way);
        let mut merged: Vec<usize> = Vec::new();
        for sequence in same_way {
            merge(&mut merged, &sequence.stations);
        }
        // Stops that trains make in the other direction only.
        for sequence in line.sequences.iter().filter(|sequence| sequence.way != first.way) {
            let turned: Vec<usize> = sequence.stations.iter().rev().copied().collect();
            merge(&mut merged, &turned);
        }
        merged.into_iter().map(|index| &self.stations[index]).collect()
    }

    /// Whether a line calls at a station on one of its usual ways.
    pub fn calls_at(&self, line: &str, station: &str) -> bool {
        let (Some(line), Some(index)) = (self.line(line), self.index(station)) else { return false };
        line.sequences.iter().any(|sequence| sequence.stations.contains(&index))
    }

    /// The stations on a single ride, both ends included, on the line's most frequent way that has them in this order.
    ///
    /// `None` where the line does not go from one to the other without changing.
    pub fn ride(&self, line: &str, from: &str, to: &str) -> Option<LineRide<'_>> {
        let (from, to) = (self.index(from)?, self.index(to)?);
        self.line(line)?.sequences.iter().find_map(|sequence| {
            let start = sequence.stations.iter().position(|index| *index == from)?;
            let length = sequence.stations[start..].iter().position(|index| *index == to)?;
            let stations = &sequence.stations[start..=start + length];
            let stations = stations.iter().map(|index| &self.stations[*index]).collect();
            (length > 0).then_some(LineRide { way: &sequence.way, stations })
        })
    }

    pub(crate) fn line(&self, id: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.id == id)
    }

    pub(crate) fn index(&self, id: &str) -> Option<usize> {
        self.stations.iter().position(|station| station.id == id)
    }
}

/// A ride on one line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRide<'a> {
    /// The suffix of the platforms, which tells the direction.
    pub way: &'a str,
    /// The stations in order, both ends included.
    pub stations: Vec<&'a Station>,
}

impl LineRide<'_> {
    /// How many stops it is to the end.
    pub fn stops(&self) -> u32 {
        u32::try_from(self.stations.len() - 1).expect("a line has far fewer stations than 2^32")
    }
}

/// Puts the stations of a further way behind the ones they follow.
fn merge(merged: &mut Vec<usize>, sequence: &[usize]) {
    let mut at = None;
    for (position, station) in sequence.iter().enumerate() {
        at = Some(match (merged.iter().position(|known| known == station), at) {
            (Some(known), _) => known,
            (None, Some(before)) => {
                merged.insert(before + 1, *station);
                before + 1
            }
            (None, None) => {
                let following =
                    sequence[position..].iter().find_map(|next| merged.iter().position(|known| known == next));
                let place = following.unwrap_or(merged.len());
                merged.insert(place, *station);
                place
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_merged_in_order() {
        let mut merged = vec![1, 2, 3, 4];
        merge(&mut merged, &[1, 2, 9, 8]);
        assert_eq!(merged, [1, 2, 9, 8, 3, 4]);
        merge(&mut merged, &[7, 6, 2, 3]);
        assert_eq!(merged, [1, 7, 6, 2, 9, 8, 3, 4]);
    }
}
