//! `get_station_info`, `find_stations_on_line` and `get_train_times`.

use jiff::Timestamp;
use serde::Serialize;
use threadkeep_transit::{Assumption, Place, QueryError, Station, StationView};

use crate::lines::LineInfo;
use crate::network::{LONDON, network};
use crate::services::{Service, services_at};
use crate::underground::Underground;

/// What is known about a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StationInfo {
    /// The station.
    pub station: StationView,
    /// The ids of the lines with step-free access from the street to all of their platforms.
    pub step_free: Vec<String>,
    /// The ids of the other lines.
    pub with_steps: Vec<String>,
    /// What is disrupted now; `None` if TfL could not be reached.
    pub disruptions: Option<Vec<String>>,
    /// The assumption made about the station's name, if any.
    pub assumption: Option<Assumption>,
}

/// The stations of a line, from end to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineStations {
    /// The name of the line.
    pub line: String,
    /// The stations, with branches where they diverge.
    pub stations: Vec<StationView>,
}

/// First and last trains at a station, and trains per hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainTimes {
    /// The station.
    pub station: StationView,
    /// The services, by line, direction and days.
    pub services: Vec<Service>,
    /// The ids of the lines for which the station has no timetable.
    pub unknown: Vec<String>,
    /// The assumption made about the station's name, if any.
    pub assumption: Option<Assumption>,
}

impl Underground {
    /// Returns the lines, the step-free access and the disruptions of a station.
    ///
    /// # Errors
    /// [`QueryError`] if the station is unknown or ambiguous.
    pub async fn station_info(&self, station: &str, now: Timestamp) -> Result<StationInfo, QueryError> {
        let found = LONDON.find(station, &[])?;
        let stations: Vec<&Station> = found.ids().into_iter().filter_map(|id| LONDON.station(id)).collect();
        let lines = stations.iter().flat_map(|station| station.lines.iter().map(move |line| (*station, line)));
        let (step_free, with_steps): (Vec<_>, Vec<_>) =
            lines.partition(|(station, line)| station.accessible.contains(line));
        let names = |lines: Vec<(&Station, &String)>| {
            let mut names: Vec<String> = Vec::new();
            for (_, line) in lines {
                if !names.contains(line) {
                    names.push(line.clone());
                }
            }
            names
        };
        let step_free = names(step_free);
        let mut with_steps = names(with_steps);
        with_steps.retain(|line| !step_free.contains(line));
        let first = found.ids().first().map(|id| (*id).to_owned()).unwrap_or_default();
        let disruptions = self.tfl.disruptions(&first, now).await.ok();
        let disruptions = disruptions.map(|all| all.into_iter().map(|disruption| disruption.description).collect());
        Ok(StationInfo { station: found.view(), step_free, with_steps, disruptions, assumption: found.assumption })
    }
}

/// Returns the stations of a line.
#[must_use]
pub fn find_stations_on_line(line: &LineInfo) -> LineStations {
    let view = |station: &&Station| {
        LONDON.view_of(&Place { complex: station.complex.clone(), stations: vec![station.id.clone()] })
    };
    LineStations { line: line.name.to_owned(), stations: network().stations_on(line.id).iter().map(view).collect() }
}

/// Returns the first trains, the last trains, and the trains per hour at a station, restricted to one line if it is given.
///
/// # Errors
/// [`QueryError`] if the station is unknown or ambiguous, or the line does not stop there.
pub fn train_times(station: &str, line: Option<&LineInfo>) -> Result<TrainTimes, QueryError> {
    let lines: Vec<&str> = line.iter().map(|line| line.id).collect();
    let found = LONDON.find(station, &lines)?;
    let is_asked = |id: &str| line.is_none_or(|line| line.id == id);
    let all = found.ids().into_iter().flat_map(services_at).filter(|service| is_asked(&service.line));
    let services: Vec<Service> = all.cloned().collect();
    let here = found.view().lines.into_iter().filter(|line| is_asked(line));
    let unknown = here.filter(|line| services.iter().all(|service| service.line != *line)).collect();
    Ok(TrainTimes { station: found.view(), services, unknown, assumption: found.assumption })
}
