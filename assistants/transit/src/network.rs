//! The static data of a system: stations, complexes, and the order of the stations on each line.
//!
//! A network answers questions without a timetable: the stations of a line, the path between two stations, and its approximate
//! duration at a fixed time per stop. It is stored as a text table ([`Network::parse`]).

mod path;
mod table;

pub use path::{NetworkLeg, NetworkPath, PathConditions};
pub use table::{LineDefinition, NetworkError};

/// The assumed time per stop, in seconds, without a timetable.
pub const SECONDS_A_STOP: u32 = 120;

/// A system of lines and stations.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The stations, in the order of the table.
    pub(crate) stations: Vec<Station>,
    pub(crate) lines: Vec<Line>,
    pub(crate) nodes: path::Nodes,
}

/// A station: a parent stop of the feed with its platforms.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// The parent stop's id.
    pub id: String,
    /// The id of the complex. Stations of a complex are connected by transfers.
    pub complex: String,
    /// The name, which need not be unique.
    pub name: String,
    /// The borough or district.
    pub area: String,
    /// The trunk line of the station, such as "Lexington Av".
    pub trunk: String,
    /// The public names of the lines that stop here during the day.
    pub lines: Vec<String>,
    /// The latitude in degrees.
    pub latitude: f64,
    /// The longitude in degrees.
    pub longitude: f64,
    /// The signed destination of each direction, by platform suffix.
    pub towards: Vec<(String, String)>,
    /// The suffixes of the accessible platforms, or the ids of lines all of whose platforms are accessible.
    pub accessible: Vec<String>,
}

/// A line and its usual stopping sequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// `route_id`.
    pub id: String,
    /// The public name.
    pub name: String,
    /// The stopping sequences, most frequent first.
    pub sequences: Vec<LineSequence>,
}

/// A stopping sequence of a line in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSequence {
    /// The platform suffix, which identifies the direction.
    pub way: String,
    /// Indexes of the network's stations, in order of travel.
    pub stations: Vec<usize>,
    /// The running times between them in seconds. Empty if they are unknown; a fixed time per stop is used then.
    pub(crate) seconds: Vec<u32>,
}

impl LineSequence {
    /// Returns the running time from one position to the next.
    pub(crate) fn seconds_after(&self, position: usize) -> u32 {
        self.seconds.get(position).copied().unwrap_or(SECONDS_A_STOP)
    }
}

impl Network {
    /// Returns all stations.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// Returns all lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the station with the given id.
    pub fn find_station(&self, id: &str) -> Option<&Station> {
        self.index(id).map(|index| &self.stations[index])
    }

    /// Returns the stations of a complex, in the order of the table. Empty for an unknown complex.
    pub fn stations_of(&self, complex: &str) -> impl Iterator<Item = &Station> {
        self.stations.iter().filter(move |station| station.complex == complex)
    }

    /// Returns the lines with the given public name or id, ignoring case. Variants and shuttles can share a name.
    pub fn lines_named(&self, name: &str) -> impl Iterator<Item = &Line> {
        let is_named = move |line: &&Line| line.name.eq_ignore_ascii_case(name) || line.id.eq_ignore_ascii_case(name);
        self.lines.iter().filter(is_named)
    }

    /// Returns the stations of a line from end to end, with branches merged. Empty for an unknown line.
    pub fn stations_on(&self, line: &str) -> Vec<&Station> {
        let Some(line) = self.line(line) else { return Vec::new() };
        let Some(first) = line.sequences.first() else { return Vec::new() };
        let same_direction = line.sequences.iter().filter(|sequence| sequence.way == first.way);
        let mut merged: Vec<usize> = Vec::new();
        for sequence in same_direction {
            merge(&mut merged, &sequence.stations);
        }
        // Stops that are served only in the opposite direction.
        for sequence in line.sequences.iter().filter(|sequence| sequence.way != first.way) {
            let reversed: Vec<usize> = sequence.stations.iter().rev().copied().collect();
            merge(&mut merged, &reversed);
        }
        merged.into_iter().map(|index| &self.stations[index]).collect()
    }

    /// Whether a line stops at a station on one of its usual sequences.
    pub fn calls_at(&self, line: &str, station: &str) -> bool {
        let (Some(line), Some(index)) = (self.line(line), self.index(station)) else { return false };
        line.sequences.iter().any(|sequence| sequence.stations.contains(&index))
    }

    /// Returns the stations of a direct ride, including both ends, on the line's most frequent sequence that has both
    /// ends in this order.
    ///
    /// Returns `None` if the line has no direct ride between them.
    pub fn ride(&self, line: &str, from: &str, to: &str) -> Option<LineRide<'_>> {
        let (from, to) = (self.index(from)?, self.index(to)?);
        self.line(line)?.sequences.iter().find_map(|sequence| {
            let start = sequence.stations.iter().position(|index| *index == from)?;
            let length = sequence.stations[start..].iter().position(|index| *index == to)?;
            let stations = &sequence.stations[start..=start + length];
            let stations = stations.iter().map(|index| &self.stations[*index]).collect();
            let seconds = (start..start + length).map(|position| sequence.seconds_after(position)).collect();
            let terminal = &self.stations[*sequence.stations.last()?];
            (length > 0).then_some(LineRide { way: &sequence.way, stations, seconds, terminal })
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
    /// The platform suffix, which identifies the direction.
    pub way: &'a str,
    /// The stations in order, including both ends.
    pub stations: Vec<&'a Station>,
    /// The last station of the train.
    pub terminal: &'a Station,
    /// The running times between them: those of the network, or a fixed time per stop.
    seconds: Vec<u32>,
}

impl LineRide<'_> {
    /// Returns the number of stops to the end.
    pub fn stops(&self) -> u32 {
        u32::try_from(self.stations.len() - 1).expect("a line has far fewer stations than 2^32")
    }

    /// Returns the running time from end to end.
    pub fn seconds(&self) -> u32 {
        self.seconds.iter().sum()
    }

    /// Returns the part of the ride from a station, given by its position, to the end.
    #[must_use]
    pub fn rest(&self, at: usize) -> Self {
        Self {
            way: self.way,
            stations: self.stations[at..].to_vec(),
            terminal: self.terminal,
            seconds: self.seconds[at..].to_vec(),
        }
    }
}

/// Merges another sequence, inserting each new station after the station that it follows.
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
                let insert_at = following.unwrap_or(merged.len());
                merged.insert(insert_at, *station);
                insert_at
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
