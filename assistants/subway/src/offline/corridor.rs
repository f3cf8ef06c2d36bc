//! Finds the local line, the express lines and the transfer that a local-or-express question refers to.

use threadkeep_transit::{LineRide, Place, Resolution, Station};

use crate::system::{SUBWAY, names, network};

/// The stations and lines that a question mentions.
#[derive(Debug, Clone, Copy)]
pub(super) struct CorridorQuery<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) transfer: Option<&'a str>,
    /// The mentioned lines, local or express.
    pub(super) lines: &'a [String],
}

/// The arguments of `compare_local_vs_express`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Corridor {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) transfer: String,
    pub(super) local: String,
    pub(super) express: Vec<String>,
}

/// Finds the most likely corridor: the first pair of places that a local connects, with an express that skips stops between
/// them. Returns `None` if there is none.
pub(super) fn find(query: &CorridorQuery<'_>) -> Option<Corridor> {
    let transfers = query.transfer.map(places);
    for from in places(query.from) {
        for to in places(query.to) {
            if let Some(corridor) = between(&from, &to, transfers.as_deref(), query.lines) {
                return Some(corridor);
            }
        }
    }
    None
}

/// Returns the lines at a station that skip some of the stops that `local` makes after it.
pub(super) fn expresses_at(station: &Station, local: &str) -> Vec<String> {
    let passes = |sign: &&String| {
        let ahead = network().stations().iter().filter(|other| other.id != station.id);
        ahead.filter_map(|other| ride(local, &station.id, &other.id)).any(|slow| {
            let last = slow.stations.last().expect("a ride has a last station");
            ride(sign, &station.id, &last.id).is_some_and(|fast| is_faster(&fast, &slow))
        })
    };
    station.lines.iter().filter(|sign| *sign != local).filter(passes).cloned().collect()
}

/// Returns the number of stops of a line between two stations.
pub(super) fn stops(sign: &str, from: &str, to: &str) -> Option<u32> {
    if from == to {
        return Some(0);
    }
    let ids = |name: &str| places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<_>>();
    let (from, to) = (ids(from), ids(to));
    let rides = from.iter().flat_map(|from| to.iter().filter_map(move |to| ride(sign, from, to)));
    rides.map(|ride| ride.stops()).min()
}

/// Returns the places that a name can refer to, most likely first.
pub(super) fn places(name: &str) -> Vec<Place> {
    SUBWAY.places(name)
}

fn between(from: &Place, to: &Place, transfers: Option<&[Place]>, lines: &[String]) -> Option<Corridor> {
    let mut rides: Vec<(&'static str, LineRide<'static>)> = Vec::new();
    for line in network().lines().iter().filter(|line| !line.id.ends_with('X')) {
        let pairs = from.stations.iter().flat_map(|from| to.stations.iter().map(move |to| (from, to)));
        let longest = pairs.filter_map(|(from, to)| network().ride(&line.id, from, to)).max_by_key(LineRide::stops);
        rides.extend(longest.map(|ride| (line.name.as_str(), ride)));
    }
    // The local is the line with the most stops. If several lines are mentioned, it is one of them.
    rides.sort_by_key(|(sign, ride)| {
        (lines.len() > 1 && !lines.iter().any(|line| line == sign), std::cmp::Reverse(ride.stops()))
    });
    rides.iter().find_map(|(local, ride)| {
        let express: Vec<&str> = match lines {
            [] => Vec::new(),
            [only] if only == local => Vec::new(),
            lines => lines.iter().map(String::as_str).filter(|line| line != local).collect(),
        };
        with_local(local, ride, transfers, &express)
    })
}

/// Finds the transfer on the ride of a local. `express` contains the mentioned express lines; if empty, any line that skips
/// stops qualifies.
fn with_local(local: &str, ride: &LineRide<'_>, transfers: Option<&[Place]>, express: &[&str]) -> Option<Corridor> {
    let (from, to) = (ride.stations.first()?, ride.stations.last()?);
    let stops = &ride.stations[..ride.stations.len() - 1];
    let is_allowed = |station: &Station| {
        transfers.is_none_or(|places| places.iter().any(|place| place.stations.contains(&station.id)))
    };
    stops.iter().enumerate().filter(|(_, station)| is_allowed(station)).find_map(|(at, station)| {
        let rest = ride.rest(at);
        let found: Vec<&str> = match express {
            [] => station
                .lines
                .iter()
                .map(String::as_str)
                .filter(|sign| *sign != local)
                .filter(|sign| skips(sign, &rest))
                .collect(),
            named => named.iter().copied().filter(|sign| shares_start(sign, &rest)).collect(),
        };
        let express: Vec<String> = found.into_iter().map(str::to_owned).collect();
        (!express.is_empty()).then(|| Corridor {
            from: on_line(from, local),
            to: on_line(to, local),
            transfer: on_line(station, local),
            local: local.to_owned(),
            express,
        })
    })
}

/// Whether a line makes the same ride with fewer stops.
fn skips(sign: &str, slow: &LineRide<'_>) -> bool {
    let Some((first, last)) = slow.stations.first().zip(slow.stations.last()) else { return false };
    ride(sign, &first.id, &last.id).is_some_and(|fast| is_faster(&fast, slow))
}

/// Whether a line makes at least the first part of the ride.
fn shares_start(sign: &str, slow: &LineRide<'_>) -> bool {
    let Some((first, ahead)) = slow.stations.split_first() else { return false };
    ahead.iter().any(|station| ride(sign, &first.id, &station.id).is_some_and(|fast| fast.way == slow.way))
}

fn is_faster(fast: &LineRide<'_>, slow: &LineRide<'_>) -> bool {
    fast.way == slow.way && fast.stops() < slow.stops()
}

/// Returns the ride on the line that the signs show with the given name.
fn ride(sign: &str, from: &str, to: &str) -> Option<LineRide<'static>> {
    let mut lines = network().lines().iter().filter(|line| line.name == sign && !line.id.ends_with('X'));
    lines.find_map(|line| network().ride(&line.id, from, to))
}

/// Returns text that the tool, which is also given the local line, resolves to this station: its name or else its id.
fn on_line(station: &Station, line: &str) -> String {
    match names().resolve(&station.name) {
        Resolution::Certain(place) if place.stations.contains(&station.id) => return station.name.clone(),
        _ => {}
    }
    // Only the lines of the station itself: the tool restricts the complex to the line in any case.
    let named = format!("{} ({})", station.name, station.lines.join(" "));
    match names().resolve_on(&named, &[line]) {
        Resolution::Certain(place) if place.stations.contains(&station.id) => named,
        _ => station.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(from: &str, to: &str, transfer: Option<&str>, lines: &[&str]) -> Option<String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let corridor = find(&CorridorQuery { from, to, transfer, lines: &lines })?;
        let Corridor { from, to, transfer, local, express } = corridor;
        Some(format!("{from} > {transfer} > {to}: {local} or {}", express.join(",")))
    }

    #[test]
    fn find_infers_local_express_and_transfer() {
        type Case = (&'static str, &'static str, Option<&'static str>, &'static [&'static str], &'static str);
        let cases: [Case; 6] = [
            (
                "South Ferry",
                "penn",
                None,
                &[],
                "South Ferry > Chambers St (1 2 3) > 34 St-Penn Station (1 2 3): 1 or 2,3",
            ),
            (
                "South Ferry",
                "penn",
                Some("chambers"),
                &["2"],
                "South Ferry > Chambers St (1 2 3) > 34 St-Penn Station (1 2 3): 1 or 2",
            ),
            ("72nd st", "penn", None, &[], "72 St (1 2 3) > 72 St (1 2 3) > 34 St-Penn Station (1 2 3): 1 or 2,3"),
            ("14th st", "96 st", Some("59th st"), &["6", "4"], "14 St-Union Sq > 59 St (4 5 6) > 96 St (6): 6 or 4"),
            (
                "72nd st",
                "14th st",
                Some("59th st"),
                &["A"],
                "72 St (C B) > 59 St-Columbus Circle > 14 St (A C E): C or A",
            ),
            (
                "christopher st",
                "times sq",
                Some("14th st"),
                &["1"],
                "Christopher St-Stonewall > 14 St (1 2 3) > Times Sq-42 St: 1 or 2,3",
            ),
        ];
        for (from, to, transfer, lines, expected) in cases {
            let found = summary(from, to, transfer, lines).unwrap_or_default();
            let expected = expected.replace("-Stonewall", "");
            assert_eq!(found.replace("-Stonewall", ""), expected);
        }
        assert_eq!(summary("Bedford Av", "1 Av", None, &[]), None, "the L has no express");
    }

    #[test]
    fn expresses_at_returns_lines_that_skip_stops() {
        let station = network().find_station("123").unwrap();
        assert_eq!(expresses_at(station, "1"), ["2", "3"]);
        assert!(expresses_at(network().find_station("636").unwrap(), "6").is_empty());
    }
}
