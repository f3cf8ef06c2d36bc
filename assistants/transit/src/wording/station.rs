use crate::{CommonTrip, Place, Resolution, Station, StationView, System};

/// The direction on the signs of a terminal.
pub const LAST_STOP: &str = "Last Stop";

/// Returns a station's name, qualified by its lines or trunk line if the name alone is ambiguous. Every tool resolves the
/// result to the same station.
#[must_use]
pub fn place(system: &System, view: &StationView) -> String {
    let complex = complex_of(system, view);
    let resolves_back = |text: &String| match (system.names)().resolve(text) {
        Resolution::Certain(place) => Some(place.complex.as_str()) == complex,
        _ => false,
    };
    let stations = view.stop_ids.iter().filter_map(|id| system.station(id));
    // A complex may include stations with other names; their lines would not resolve together with this name.
    let named: Vec<&Station> = stations.filter(|station| station.name == view.name).collect();
    let with = |qualifier: &str| format!("{} ({qualifier})", view.name);
    let with_lines = || with(&super::distinct(named.iter().flat_map(|station| &station.lines)).join(" "));
    let with_trunk = || with(named.first().map_or("", |station| station.trunk.as_str()));
    let forms: [&dyn Fn() -> String; 3] = [&|| view.name.clone(), &with_lines, &with_trunk];
    forms.into_iter().map(|form| form()).find(resolves_back).unwrap_or_else(with_lines)
}

/// Returns a station's name with its lines.
#[must_use]
pub fn with_lines(system: &System, view: &StationView) -> String {
    format!("{} ({})", view.name, (system.lines_text)(&view.lines))
}

fn complex_of(system: &System, view: &StationView) -> Option<&'static str> {
    let first = view.stop_ids.first().and_then(|id| system.station(id));
    first.map(|station| station.complex.as_str())
}

/// Returns the name of the whole complex of a station, so that all of its platforms have the same name.
#[must_use]
pub fn whole_place(system: &System, view: &StationView) -> String {
    let Some(complex) = complex_of(system, view) else { return place(system, view) };
    let stations = (system.network)().stations_of(complex).map(|station| station.id.clone()).collect();
    place(system, &system.view_of(&Place { complex: complex.to_owned(), stations }))
}

/// Formats the stations of a line in order. Starts a new line where the next station is not the next stop, as at the end of a
/// branch.
#[must_use]
pub fn line_stations(system: &System, line: &str, ways: &[Vec<StationView>]) -> String {
    let network = (system.network)();
    let is_next_stop = |one: &StationView, next: &StationView| {
        let ids = one.stop_ids.iter().flat_map(|one| next.stop_ids.iter().map(move |next| (one, next)));
        ids.into_iter().any(|(one, next)| {
            let rides = network
                .lines_named(line)
                .flat_map(|line| [network.ride(&line.id, one, next), network.ride(&line.id, next, one)]);
            rides.flatten().any(|ride| ride.stops() == 1)
        })
    };
    let texts = ways.iter().map(|way| {
        let branches = way
            .chunk_by(is_next_stop)
            .map(|branch| branch.iter().map(|view| view.name.as_str()).collect::<Vec<_>>().join(" · "));
        let count = super::counted(way.len(), "station", "stations");
        let usually = system.words.usually;
        Some(format!("The {line} stops at {count}{usually}:\n{}", branches.collect::<Vec<_>>().join("\n")))
    });
    super::join_lines(texts)
}

/// Formats the trips of a user with their counts.
#[must_use]
pub fn common_trips(trips: &[CommonTrip]) -> String {
    if trips.is_empty() {
        return "You have not asked for any trips yet.".to_owned();
    }
    let trip = |trip: &CommonTrip| {
        let often = if trip.count == 1 { "once".to_owned() } else { format!("{} times", trip.count) };
        format!("- {} to {}: {often}", trip.from, trip.to)
    };
    let lines: Vec<String> = trips.iter().map(trip).collect();
    format!("Your most common trips:\n{}", lines.join("\n"))
}
