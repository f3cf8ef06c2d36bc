//! Directions of travel in the user's words: "uptown", "toward Manhattan", "Queens-bound", "to 8 Av".

use std::collections::BTreeSet;

use threadkeep::core::text::fold;
use threadkeep_transit::Station;

use crate::place::{QueryError, find};
use crate::system::network;

/// Words that say nothing about which direction is meant.
const FILLERS: [&str; 12] =
    ["bound", "toward", "towards", "to", "the", "train", "trains", "direction", "side", "platform", "going", "into"];

/// The areas of stations, by the names of boroughs.
const BOROUGHS: [(&str, &str); 5] =
    [("manhattan", "M"), ("brooklyn", "Bk"), ("bronx", "Bx"), ("queens", "Q"), ("staten island", "SI")];

/// Returns the direction, N or S, that words mean at the stations of a place.
///
/// # Errors
/// [`QueryError::UnknownDirection`] if they mean none, or both.
pub(crate) fn way_of(direction: &str, stations: &[&str]) -> Result<String, QueryError> {
    // "Away from Manhattan" is the opposite of "Manhattan": what "the other way" means after a board of one direction.
    if let Some(opposite) = direction.trim().strip_prefix("away from ") {
        let way = way_of(opposite, stations)?;
        return Ok(if way == "N" { "S" } else { "N" }.to_owned());
    }
    let folded = fold(direction).replace(|c: char| !c.is_alphanumeric(), " ");
    let words: Vec<&str> = folded.split_whitespace().filter(|word| !FILLERS.contains(word)).collect();
    let words = words.join(" ");
    let here: Vec<&Station> = stations.iter().filter_map(|id| network().find_station(id)).collect();
    let ways = match words.as_str() {
        "uptown" | "north" | "northbound" | "n" => BTreeSet::from(["N".to_owned()]),
        "downtown" | "south" | "southbound" | "s" => BTreeSet::from(["S".to_owned()]),
        "inbound" => ways_to("manhattan", &here),
        "outbound" => {
            let inbound = ways_to("manhattan", &here);
            inbound.iter().map(|way| if way == "N" { "S" } else { "N" }.to_owned()).collect()
        }
        "" => BTreeSet::new(),
        words => {
            let signed = ways_on_signs(words, &here);
            if signed.is_empty() { ways_to(words, &here) } else { signed }
        }
    };
    let mut ways = ways.into_iter();
    match (ways.next(), ways.next()) {
        (Some(way), None) => Ok(way),
        _ => Err(QueryError::UnknownDirection { direction: direction.trim().to_owned(), signs: signs(&here) }),
    }
}

/// Returns the directions whose signs contain the words.
fn ways_on_signs(words: &str, here: &[&Station]) -> BTreeSet<String> {
    let towards = here.iter().flat_map(|station| &station.towards);
    let matching = towards.filter(|(_, sign)| format!(" {} ", fold(sign)).contains(&format!(" {words} ")));
    matching.map(|(way, _)| way.clone()).collect()
}

/// Returns the directions in which trains go to a borough or a station.
fn ways_to(words: &str, here: &[&Station]) -> BTreeSet<String> {
    let area = BOROUGHS.iter().find(|(name, _)| *name == words).map(|(_, area)| *area);
    let targets: Vec<String> = match area {
        // In the borough itself, "Queens-bound" is the way that does not lead to Manhattan.
        Some(area) if here.iter().any(|station| station.area == area) => {
            let inbound = if area == "M" { BTreeSet::new() } else { ways_to("manhattan", here) };
            let opposite = |way: &String| if way == "N" { "S" } else { "N" }.to_owned();
            return inbound.iter().map(opposite).collect();
        }
        Some(area) => {
            let stations = network().stations().iter().filter(|station| station.area == area);
            stations.map(|station| station.id.clone()).collect()
        }
        None => {
            let lines: Vec<&str> = here.iter().flat_map(|station| &station.lines).map(String::as_str).collect();
            find(words, &lines).map(|found| found.place.stations).unwrap_or_default()
        }
    };
    let mut ways = BTreeSet::new();
    for station in here {
        for line in station.lines.iter().flat_map(|sign| network().lines_named(sign)) {
            let rides = targets.iter().filter_map(|target| network().ride(&line.id, &station.id, target));
            ways.extend(rides.map(|ride| ride.way.to_owned()));
        }
    }
    ways
}

fn signs(here: &[&Station]) -> Vec<String> {
    let mut signs: Vec<String> = Vec::new();
    for (_, sign) in here.iter().flat_map(|station| &station.towards) {
        if !signs.contains(sign) {
            signs.push(sign.clone());
        }
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_signs_boroughs_and_stations() {
        for (direction, station, expected) in [
            ("uptown", "127", Some("N")),
            ("Manhattan-bound", "L08", Some("N")),
            ("toward Brooklyn", "127", Some("S")),
            ("to the Bronx", "127", Some("N")),
            ("to 8 Av", "L08", Some("N")),
            ("toward Queens", "101", None),
            ("sideways", "127", None),
            ("away from Manhattan", "L08", Some("S")),
            ("Brooklyn bound", "L08", Some("S")),
            ("inbound", "L08", Some("N")),
            ("Manhattan bound", "127", None),
        ] {
            let way = way_of(direction, &[station]);
            assert_eq!(way.as_deref().ok(), expected, "{direction} at {station}: {way:?}");
        }
    }
}
