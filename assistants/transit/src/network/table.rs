//! The text in which a network is kept: one fact a line, fields separated by tabs.
//!
//! ```text
//! station  ID  COMPLEX  NAME  AREA  TRUNK  LINES  LATITUDE  LONGITUDE  TOWARDS  ACCESSIBLE
//! line  ID  NAME
//! way  SUFFIX  STATION STATION …
//! ```
//!
//! `way` belongs to the `line` above it. LINES, ACCESSIBLE and stations are separated by spaces, TOWARDS is
//! `SUFFIX=name` separated by `|`.

use std::fmt::Write;

use super::{Line, LineSequence, Network, Station};

/// Why a table is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the network's table: {problem}")]
pub struct NetworkError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A line as it is put into a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFacts {
    /// `route_id`.
    pub id: String,
    /// What the signs call it.
    pub name: String,
    /// Its ways, the most frequent first: the suffix of the platforms, and the stations by id.
    pub ways: Vec<(String, Vec<String>)>,
}

impl Network {
    /// Reads the table.
    ///
    /// # Errors
    /// [`NetworkError`], with the first line that does not fit.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let mut network = Self { stations: Vec::new(), lines: Vec::new() };
        for (number, text) in (1..).zip(text.lines()) {
            let fields: Vec<&str> = text.split('\t').collect();
            let parsed = match fields[..] {
                [""] => Ok(()),
                ["station", ref fields @ ..] => network.parse_station(fields),
                ["line", id, name] => {
                    network.lines.push(Line { id: id.to_owned(), name: name.to_owned(), sequences: Vec::new() });
                    Ok(())
                }
                ["way", way, stations] => network.parse_way(way, stations),
                _ => Err("neither a station nor a line nor a way"),
            };
            parsed.map_err(|problem| NetworkError { line: number, problem })?;
        }
        Ok(network)
    }

    /// Writes the table; what [`parse`](Self::parse) reads.
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
                let _ = writeln!(text, "way\t{}\t{}", sequence.way, ids.join(" "));
            }
        }
        text
    }

    /// A network of given facts.
    ///
    /// # Errors
    /// The id of a station that a way names and that does not exist.
    pub fn new(stations: Vec<Station>, lines: Vec<LineFacts>) -> Result<Self, String> {
        let mut network = Self { stations, lines: Vec::new() };
        for LineFacts { id, name, ways } in lines {
            let mut sequences = Vec::new();
            for (way, ids) in ways {
                let indexes: Result<Vec<usize>, String> =
                    ids.into_iter().map(|id| network.index(&id).ok_or(id)).collect();
                sequences.push(LineSequence { way, stations: indexes? });
            }
            network.lines.push(Line { id, name, sequences });
        }
        Ok(network)
    }

    fn parse_station(&mut self, fields: &[&str]) -> Result<(), &'static str> {
        let [id, complex, name, area, trunk, lines, latitude, longitude, towards, accessible] = *fields else {
            return Err("a station has ten fields");
        };
        if self.index(id).is_some() {
            return Err("the station was named before");
        }
        let degrees = |text: &str| text.parse::<f64>().map_err(|_| "a coordinate is no number");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let towards = towards.split('|').filter_map(|one| one.split_once('='));
        self.stations.push(Station {
            id: id.to_owned(),
            complex: complex.to_owned(),
            name: name.to_owned(),
            area: area.to_owned(),
            trunk: trunk.to_owned(),
            lines: words(lines),
            latitude: degrees(latitude)?,
            longitude: degrees(longitude)?,
            towards: towards.map(|(way, name)| (way.to_owned(), name.to_owned())).collect(),
            accessible: words(accessible),
        });
        Ok(())
    }

    fn parse_way(&mut self, way: &str, stations: &str) -> Result<(), &'static str> {
        let indexes: Option<Vec<usize>> = stations.split(' ').map(|id| self.index(id)).collect();
        let stations = indexes.ok_or("the way calls at an unknown station")?;
        let line = self.lines.last_mut().ok_or("the way stands before any line")?;
        line.sequences.push(LineSequence { way: way.to_owned(), stations });
        Ok(())
    }
}
