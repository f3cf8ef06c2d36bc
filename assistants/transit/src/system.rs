//! A public transport system that an assistant answers questions about.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::{
    Assumption, Line, Names, Network, NetworkLeg, Place, QueryError, Resolution, Station, StationMatch, StationView,
};

/// A network with its names, and the words that answers use for it.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// A name that distinguishes the system from others in the same program.
    pub name: &'static str,
    /// Returns the lines and stations.
    pub network: fn() -> &'static Network,
    /// Returns the index that resolves names of stations.
    pub names: fn() -> &'static Names<'static>,
    /// Returns the local time zone.
    pub zone: fn() -> TimeZone,
    /// Returns the name for users of a station's area.
    pub area: fn(&str) -> String,
    /// Returns the lines of a station as a short text.
    pub lines_text: fn(&[String]) -> String,
    /// Finds the lines that a name refers to.
    pub find_lines: fn(&str) -> Result<Vec<&'static Line>, QueryError>,
    /// Returns the direction of a ride, as signs show it.
    pub towards: fn(&NetworkLeg) -> String,
    /// The words in answers.
    pub words: SystemWords,
}

/// The words of one system in answers.
#[derive(Clone, Copy, Debug)]
pub struct SystemWords {
    /// A station: "subway station".
    pub station: &'static str,
    /// A route: "subway route".
    pub route: &'static str,
    /// The noun after a line's name: "train".
    pub line: &'static str,
    /// The qualifier of statements about where lines stop, with a trailing space: "during the day "; may be empty.
    pub by_day: &'static str,
    /// The same qualifier, with a leading space.
    pub usually: &'static str,
    /// The note on step-free routes, including what is not known about them.
    pub step_free: &'static str,
    /// The note on why a route for a requested time has no clock times.
    pub no_timetable: &'static str,
}

impl System {
    /// Returns the station with the given id.
    #[must_use]
    pub fn station(&self, id: &str) -> Option<&'static Station> {
        (self.network)().find_station(id)
    }

    /// Returns the name of the station with the given id; the id itself if it is unknown.
    #[must_use]
    pub fn station_name(&self, id: &str) -> String {
        self.station(id).map_or_else(|| id.to_owned(), |station| station.name.clone())
    }

    /// Returns the public name of a line, given by its name or id; the text itself if it is unknown.
    #[must_use]
    pub fn line_name(&self, line: &str) -> String {
        let known = (self.network)().lines().iter().find(|known| known.id == line);
        let known = known.or_else(|| (self.network)().lines_named(line).next());
        known.map_or_else(|| line.to_owned(), |known| known.name.clone())
    }

    /// Resolves a name to a place. Prefers places on `lines`, if any are given.
    ///
    /// # Errors
    /// The name is unknown or ambiguous, or none of its places is on the lines.
    pub fn find(&self, name: &str, lines: &[&str]) -> Result<StationMatch, QueryError> {
        let trimmed = || name.trim().to_owned();
        let views = |places: &[Place]| places.iter().map(|place| self.view_of(place)).collect::<Vec<_>>();
        match (self.names)().resolve_on(name, lines) {
            Resolution::Certain(place) => {
                let place = self.on_lines_of_complex(place, lines);
                Ok(StationMatch { view: self.view_of(&place), place, assumption: None })
            }
            Resolution::Assumed { taken, others } => {
                let view = self.view_of(&taken);
                let assumption = Assumption { said: trimmed(), taken: view.clone(), others: views(&others) };
                Ok(StationMatch { place: taken, assumption: Some(assumption), view })
            }
            Resolution::Several(places) => Err(QueryError::WhichStation { name: trimmed(), choices: views(&places) }),
            Resolution::NotOnLine { lines, places } => {
                Err(QueryError::NotOnLine { lines, name: trimmed(), choices: views(&places) })
            }
            Resolution::Unknown => Err(QueryError::UnknownStation { name: trimmed() }),
        }
    }

    /// Returns the stations of a place's complex at which the lines stop if they do not stop at the place itself: the G at "Lorimer St
    /// (L)" stops at Metropolitan Av.
    fn on_lines_of_complex(&self, place: Place, lines: &[&str]) -> Place {
        let stops = |station: &Station| station.lines.iter().any(|line| lines.contains(&line.as_str()));
        let is_here = place.stations.iter().filter_map(|id| self.station(id)).any(stops);
        if is_here || lines.is_empty() {
            return place;
        }
        let others = (self.network)().stations_of(&place.complex).filter(|station| stops(station));
        let stations: Vec<String> = others.map(|station| station.id.clone()).collect();
        if stations.is_empty() { place } else { Place { stations, ..place } }
    }

    /// Returns the places that a name can refer to, most likely first.
    #[must_use]
    pub fn places(&self, name: &str) -> Vec<Place> {
        match (self.names)().resolve(name) {
            Resolution::Certain(place) => vec![place],
            Resolution::Assumed { taken, others } => [taken].into_iter().chain(others).collect(),
            Resolution::Several(places) | Resolution::NotOnLine { places, .. } => places,
            Resolution::Unknown => Vec::new(),
        }
    }

    /// Returns a place as it appears in answers.
    #[must_use]
    pub fn view_of(&self, place: &Place) -> StationView {
        let stations: Vec<&Station> = place.stations.iter().filter_map(|id| self.station(id)).collect();
        let mut lines: Vec<String> = Vec::new();
        for line in stations.iter().flat_map(|station| &station.lines) {
            if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
        let first = stations.first();
        StationView {
            name: first.map(|station| station.name.clone()).unwrap_or_default(),
            lines,
            area: first.map(|station| (self.area)(&station.area)).unwrap_or_default(),
            stop_ids: place.stations.clone(),
        }
    }

    /// Formats an instant as local time, such as `18:52`.
    #[must_use]
    pub fn clock(&self, at: Timestamp) -> String {
        at.to_zoned((self.zone)()).strftime("%H:%M").to_string()
    }
}
