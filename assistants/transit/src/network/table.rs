//! The text format of a network: one entry per line, with fields separated by tabs.
//!
//! ```text
//! station  ID  COMPLEX  NAME  AREA  TRUNK  LINES  LATITUDE  LONGITUDE  TOWARDS  ACCESSIBLE
//! line  ID  NAME
//! way  SUFFIX  STATION STATION …  [SECONDS SECONDS …]
//! ```
//!
//! A `way` (stopping sequence) belongs to the `line` above it. LINES, ACCESSIBLE and stations are separated by spaces. TOWARDS
//! is a list of `SUFFIX=name` separated by `|`. SECONDS are the running times between the stations of a way, if they are known.

use std::fmt::Write;

use super::path::Nodes;
use super::{Line, LineSequence, Network, Station};

/// An error in the text of a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("network table, line {line}: {problem}")]
pub struct NetworkError {
    /// The 1-based line number.
    pub line: usize,
    /// The problem.
    pub problem: &'static str,
}

/// The definition of a line for [`Network::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDefinition {
    /// `route_id`.
    pub id: String,
    /// The public name.
    pub name: String,
    /// The stopping sequences, most frequent first.
    pub ways: Vec<(String, Vec<String>)>,
}

impl Network {
    /// Parses the text format.
    ///
    /// # Errors
    /// [`NetworkError`], with the first invalid line.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let mut network = Self { stations: Vec::new(), lines: Vec::new(), nodes: Nodes::default() };
        for (number, text) in (1..).zip(text.lines()) {
            let fields: Vec<&str> = text.split('\t').collect();
            let parsed = match fields[..] {
                [""] => Ok(()),
                ["station", ref fields @ ..] => network.parse_station(fields),
                ["line", id, name] => {
                    network.lines.push(Line { id: id.to_owned(), name: name.to_owned(), sequences: Vec::new() });
                    Ok(())
                }
                ["way", way, stations] => network.parse_way(way, stations, ""),
                ["way", way, stations, seconds] => network.parse_way(way, stations, seconds),
                _ => Err("expected a station, line or way"),
            };
            parsed.map_err(|problem| NetworkError { line: number, problem })?;
        }
        network.nodes = Nodes::new(&network);
        Ok(network)
    }

    /// Writes the text format that [`parse`](Self::parse) reads.
    pub fn to_table(&self) -> String {
        let mut text = String::new();
        for station in &self.stations {
            let towards: Vec<String> = station.towards.iter().map(|(way, name)| format!("{way}={name}")).collect();
            let Station { id, complex, name, area, trunk, lines, latitude, longitude, accessible, .. } = station;
            let (lines, towards, accessible) = (lines.join(" "), towards.join("|"), accessible.join(" "));
            let _ = writeln!(
                text,
                "station\t{id}\t{complex}\t{name}\t{area}\t{trunk}\t{lines}\t{latitude}\t{longitude}\t{towards}\t{accessible}"
            );
        }
        for line in &self.lines {
            let _ = writeln!(text, "line\t{}\t{}", line.id, line.name);
            for sequence in &line.sequences {
                let ids: Vec<&str> = sequence.stations.iter().map(|index| self.stations[*index].id.as_str()).collect();
                let seconds: Vec<String> = sequence.seconds.iter().map(u32::to_string).collect();
                let seconds = if seconds.is_empty() { String::new() } else { format!("\t{}", seconds.join(" ")) };
                let _ = writeln!(text, "way\t{}\t{}{seconds}", sequence.way, ids.join(" "));
            }
        }
        text
    }

    /// Creates a network.
    ///
    /// # Errors
    /// Returns the first station id in a stopping sequence that is not in `stations`.
    pub fn new(stations: Vec<Station>, lines: Vec<LineDefinition>) -> Result<Self, String> {
        let mut network = Self { stations, lines: Vec::new(), nodes: Nodes::default() };
        for LineDefinition { id, name, ways } in lines {
            let mut sequences = Vec::new();
            for (way, ids) in ways {
                let indexes: Result<Vec<usize>, String> =
                    ids.into_iter().map(|id| network.index(&id).ok_or(id)).collect();
                sequences.push(LineSequence { way, stations: indexes?, seconds: Vec::new() });
            }
            network.lines.push(Line { id, name, sequences });
        }
        network.nodes = Nodes::new(&network);
        Ok(network)
    }

    fn parse_station(&mut self, fields: &[&str]) -> Result<(), &'static str> {
        let [id, complex, name, area, trunk, lines, latitude, longitude, towards, accessible] = *fields else {
            return Err("a station must have ten fields");
        };
        if self.index(id).is_some() {
            return Err("duplicate station");
        }
        let degrees = |text: &str| text.parse::<f64>().map_err(|_| "invalid coordinate");
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let towards = towards.split('|').filter_map(|one| one.split_once('='));
        self.stations.push(Station {
            id: id.to_owned(),
            complex: complex.to_owned(),
            name: name.to_owned(),
            area: area.to_owned(),
            trunk: trunk.to_owned(),
            lines: split(lines),
            latitude: degrees(latitude)?,
            longitude: degrees(longitude)?,
            towards: towards.map(|(way, name)| (way.to_owned(), name.to_owned())).collect(),
            accessible: split(accessible),
        });
        Ok(())
    }

    fn parse_way(&mut self, way: &str, stations: &str, seconds: &str) -> Result<(), &'static str> {
        let indexes: Option<Vec<usize>> = stations.split(' ').map(|id| self.index(id)).collect();
        let stations = indexes.ok_or("unknown station in this way")?;
        let seconds: Result<Vec<u32>, _> = seconds.split_whitespace().map(str::parse).collect();
        let seconds = seconds.map_err(|_| "invalid running time")?;
        if !seconds.is_empty() && seconds.len() + 1 != stations.len() {
            return Err("expected one running time between each two stations of this way");
        }
        let line = self.lines.last_mut().ok_or("a way must follow a line")?;
        line.sequences.push(LineSequence { way: way.to_owned(), stations, seconds });
        Ok(())
    }
}
