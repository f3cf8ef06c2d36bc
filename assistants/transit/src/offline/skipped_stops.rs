//! The stations that a line passes without stopping.

use super::Speech;
use crate::{Line, LineRide, Station, wording};

impl Speech {
    /// Lists the stations between two places at which other lines on the way stop, but not this one.
    pub(super) fn skipped_stops(&self, line: &str, lines: &[&Line], start: &str, end: &str) -> String {
        let network = (self.system.network)();
        let ids = |name: &str| -> Vec<String> {
            self.system.places(name).into_iter().flat_map(|place| place.stations).collect()
        };
        let (from, to) = (ids(start), ids(end));
        let ride_of = |line: &Line| {
            let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
            pairs.filter_map(|(from, to)| network.ride(&line.id, from, to)).min_by_key(LineRide::stops)
        };
        let Some(own) = lines.iter().filter_map(|line| ride_of(line)).min_by_key(LineRide::stops) else {
            return format!("The {line} does not run between {start} and {end}.");
        };
        let complexes = |ride: &LineRide<'_>| -> Vec<String> {
            ride.stations.iter().map(|station| station.complex.clone()).collect()
        };
        let stops = complexes(&own);
        // A line that stops wherever this one does is on the same tracks.
        let is_local = |ride: &LineRide<'_>| {
            let theirs = complexes(ride);
            theirs.len() > stops.len() && stops.iter().all(|stop| theirs.contains(stop))
        };
        let others = network.lines().iter().filter_map(|line| Some((line, ride_of(line)?)));
        let Some((other, local)) =
            others.filter(|(_, ride)| is_local(ride)).max_by_key(|(_, ride)| ride.stations.len())
        else {
            return format!("I know no station that the {line} passes without stopping between {start} and {end}.");
        };
        let is_skipped = |station: &&&Station| !stops.contains(&station.complex);
        let names: Vec<&str> = local.stations.iter().filter(is_skipped).map(|station| station.name.as_str()).collect();
        format!(
            "Between {start} and {end} the {line} skips {}, at which the {} stops: {}.",
            wording::counted(names.len(), "station", "stations"),
            other.name,
            names.join(" · ")
        )
    }
}
