//! Routes found with the built-in running times, compared with another search over the same data.

use threadkeep_transit::{Network, PathConditions};
use threadkeep_underground::{CHANGE_SECONDS, LINES, network};

/// Returns the rides that are possible without a change: for each station, the stations reached and the seconds.
fn direct_rides(network: &Network) -> Vec<Vec<(usize, u32)>> {
    let ids: Vec<&str> = network.stations().iter().map(|station| station.id.as_str()).collect();
    let index = |id: &str| ids.iter().position(|known| *known == id).expect("the station is in the table");
    let mut rides: Vec<Vec<(usize, u32)>> = vec![Vec::new(); ids.len()];
    let table = network.to_table();
    for way in table.lines().filter_map(|line| line.strip_prefix("way\t")) {
        let fields: Vec<&str> = way.split('\t').collect();
        let stations: Vec<usize> = fields[1].split(' ').map(index).collect();
        let seconds: Vec<u32> = fields[2].split(' ').map(|text| text.parse().expect("seconds are numbers")).collect();
        for from in 0..stations.len() {
            let mut total = 0;
            for to in from + 1..stations.len() {
                total += seconds[to - 1];
                rides[stations[from]].push((stations[to], total));
            }
        }
    }
    rides
}

/// Returns the fewest seconds from a station to all others, searched in rounds of one ride each. A trip may start at any station of
/// the same interchange.
fn fewest_seconds(network: &Network, rides: &[Vec<(usize, u32)>], from: usize) -> Vec<u32> {
    let stations = network.stations();
    let in_complex = |of: usize| {
        let is_there = move |at: &usize| stations[*at].complex == stations[of].complex;
        (0..stations.len()).filter(is_there).collect::<Vec<usize>>()
    };
    let mut best = vec![u32::MAX; stations.len()];
    let mut round = vec![(from, 0_u32)];
    let mut is_first = true;
    while !round.is_empty() {
        let mut improved = Vec::new();
        for (station, seconds) in round {
            let boards = in_complex(station);
            let boarded = if is_first { 0 } else { seconds + CHANGE_SECONDS };
            for (to, ride) in boards.into_iter().flat_map(|at| &rides[at]) {
                if boarded + ride < best[*to] {
                    best[*to] = boarded + ride;
                    improved.push((*to, boarded + ride));
                }
            }
        }
        round = improved;
        is_first = false;
    }
    best
}

/// Checks the routes from every `step`th Tube station to all others: a route exists, it takes the fewest seconds, and each leg follows
/// a stopping pattern.
pub(crate) fn check_routes(step: usize) {
    let network = network();
    let rides = direct_rides(network);
    let table = network.to_table();
    let is_tube =
        |lines: &[String]| lines.iter().any(|line| LINES.iter().any(|known| known.id == line && known.has_timetable));
    let tube: Vec<usize> = (0..network.stations().len()).filter(|at| is_tube(&network.stations()[*at].lines)).collect();
    assert_eq!(tube.len(), 272);
    for from in tube.iter().step_by(step) {
        let best = fewest_seconds(network, &rides, *from);
        let origin = &network.stations()[*from];
        // A place consists of all stations of its interchange.
        let starts: Vec<&str> = network.stations_of(&origin.complex).map(|station| station.id.as_str()).collect();
        for to in tube.iter().filter(|to| *to != from) {
            let target = &network.stations()[*to];
            let ends: Vec<&str> = network.stations_of(&target.complex).map(|station| station.id.as_str()).collect();
            if ends.contains(&origin.id.as_str()) {
                continue;
            }
            let fewest = (0..network.stations().len())
                .filter(|at| network.stations()[*at].complex == target.complex)
                .map(|at| best[at])
                .min();
            let path = network
                .find_path(&starts, &ends, CHANGE_SECONDS, &PathConditions::default())
                .unwrap_or_else(|| panic!("no path from {} to {}", origin.name, target.name));
            assert_eq!(Some(path.seconds), fewest, "{} to {}", origin.name, target.name);
            for leg in &path.legs {
                let (first, last) = (&leg.stations[0], &leg.stations[leg.stations.len() - 1]);
                let is_a_ride = table.contains(&leg.stations.join(" "));
                assert!(is_a_ride, "{} from {first} to {last} follows no stopping pattern", leg.line);
            }
        }
    }
}
