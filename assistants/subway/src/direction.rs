//! Directions of travel in the user's words: "uptown", "toward Manhattan", "Queens-bound", "to 8 Av".

use std::collections::BTreeSet;

use threadkeep::core::text::fold;
use threadkeep_transit::{Line, Place, Station};

use crate::place::{QueryError, find};
use crate::system::network;

/// Words that say nothing about which direction is meant.
const FILLERS: [&str; 12] =
    ["bound", "toward", "towards", "to", "the", "train", "trains", "direction", "side", "platform", "going", "into"];

/// Maps the names of boroughs to the areas of stations.
const BOROUGHS: [(&str, &str); 5] =
    [("manhattan", "M"), ("brooklyn", "Bk"), ("bronx", "Bx"), ("queens", "Q"), ("staten island", "SI")];

/// Returns the heading, N or S, that a direction in the user's words means at the given stations, for the trains of the given lines
/// (all lines if empty).
///
/// # Errors
/// [`QueryError::UnknownDirection`] if the words match no heading, or both.
pub(crate) fn heading_of(direction: &str, stations: &[&str], lines: &[&str]) -> Result<String, QueryError> {
    // "Away from Manhattan" is the opposite of "Manhattan". After arrivals towards Manhattan, "the other way" is passed
    // on as "away from Manhattan".
    if let Some(opposite) = direction.trim().strip_prefix("away from ") {
        let heading = heading_of(opposite, stations, lines)?;
        return Ok(if heading == "N" { "S" } else { "N" }.to_owned());
    }
    let folded = fold(direction).replace(|c: char| !c.is_alphanumeric(), " ");
    let words: Vec<&str> = folded.split_whitespace().filter(|word| !FILLERS.contains(word)).collect();
    let words = words.join(" ");
    let here: Vec<&Station> = stations.iter().filter_map(|id| network().find_station(id)).collect();
    let headings = match words.as_str() {
        "uptown" | "north" | "northbound" | "n" => BTreeSet::from(["N".to_owned()]),
        "downtown" | "south" | "southbound" | "s" => BTreeSet::from(["S".to_owned()]),
        "inbound" => headings_to("manhattan", &here, lines),
        "outbound" => {
            let inbound = headings_to("manhattan", &here, lines);
            inbound.iter().map(|heading| if heading == "N" { "S" } else { "N" }.to_owned()).collect()
        }
        "" => BTreeSet::new(),
        words => {
            // At Canal St, the trains to Brooklyn are northbound on one line and southbound on another.
            let is_meant = |station: &&Station| {
                lines.is_empty() || station.lines.iter().any(|line| lines.contains(&line.as_str()))
            };
            let here: Vec<&Station> = here.iter().copied().filter(is_meant).collect();
            // At Marcy Av, the J to Manhattan is southbound and the M northbound: the rides of the lines are more exact than the signs.
            let area = BOROUGHS.iter().find(|(name, _)| *name == words).map(|(_, area)| *area);
            let is_elsewhere = area.is_some_and(|area| here.iter().all(|station| station.area != area));
            let ridden =
                if is_elsewhere && !lines.is_empty() { headings_to(words, &here, lines) } else { BTreeSet::new() };
            if let (Some(heading), 1) = (ridden.first(), ridden.len()) {
                return Ok(heading.clone());
            }
            let (signs, unsigned): (Vec<&Station>, Vec<&Station>) =
                here.iter().partition(|station| !headings_on_signs(words, &[**station]).is_empty());
            let mut headings = headings_on_signs(words, &signs);
            if headings.is_empty() || BOROUGHS.iter().any(|(name, _)| *name == words) {
                headings.extend(headings_to(words, &unsigned, lines));
            }
            headings
        }
    };
    let mut headings = headings.into_iter();
    match (headings.next(), headings.next()) {
        (Some(heading), None) => Ok(heading),
        _ => Err(QueryError::UnknownDirection { direction: direction.trim().to_owned(), signs: signs(&here) }),
    }
}

/// Returns the place and the lines that go there from the given stations if a direction is a station, which is not on their signs.
pub(crate) fn lines_towards(direction: &str, stations: &[&str]) -> Option<(Place, BTreeSet<String>)> {
    let folded = fold(direction).replace(|c: char| !c.is_alphanumeric(), " ");
    let words: Vec<&str> = folded.split_whitespace().filter(|word| !FILLERS.contains(word)).collect();
    let words = words.join(" ");
    let here: Vec<&Station> = stations.iter().filter_map(|id| network().find_station(id)).collect();
    let is_general = matches!(
        words.as_str(),
        "" | "uptown"
            | "north"
            | "northbound"
            | "n"
            | "downtown"
            | "south"
            | "southbound"
            | "s"
            | "inbound"
            | "outbound"
    );
    let is_borough = BOROUGHS.iter().any(|(name, _)| *name == words);
    if is_general || is_borough || words.starts_with("away from ") || !headings_on_signs(&words, &here).is_empty() {
        return None;
    }
    let names: Vec<&str> = here.iter().flat_map(|station| &station.lines).map(String::as_str).collect();
    let place = find(&words, &names).ok()?.place;
    let goes = |line: &Line| {
        here.iter().any(|from| place.stations.iter().any(|to| network().ride(&line.id, &from.id, to).is_some()))
    };
    let lines: BTreeSet<String> = names
        .iter()
        .flat_map(|name| network().lines_named(name))
        .filter(|line| goes(line))
        .map(|line| line.name.clone())
        .collect();
    (!lines.is_empty()).then_some((place, lines))
}

/// Returns the headings whose signs contain the words.
fn headings_on_signs(words: &str, here: &[&Station]) -> BTreeSet<String> {
    let towards = here.iter().flat_map(|station| &station.towards);
    let matching = towards.filter(|(_, sign)| format!(" {} ", fold(sign)).contains(&format!(" {words} ")));
    matching.map(|(heading, _)| heading.clone()).collect()
}

/// Returns the headings of the trains to a borough or a station.
fn headings_to(words: &str, here: &[&Station], only: &[&str]) -> BTreeSet<String> {
    let area = BOROUGHS.iter().find(|(name, _)| *name == words).map(|(_, area)| *area);
    let targets: Vec<String> = match area {
        // In the borough itself, "Queens-bound" is the heading away from Manhattan.
        Some(area) if here.iter().any(|station| station.area == area) => {
            let inbound = if area == "M" { BTreeSet::new() } else { headings_to("manhattan", here, only) };
            let opposite = |heading: &String| if heading == "N" { "S" } else { "N" }.to_owned();
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
    let mut headings = BTreeSet::new();
    for station in here {
        let is_meant = |sign: &&String| only.is_empty() || only.contains(&sign.as_str());
        for line in station.lines.iter().filter(is_meant).flat_map(|sign| network().lines_named(sign)) {
            let rides = targets.iter().filter_map(|target| network().ride(&line.id, &station.id, target));
            headings.extend(rides.map(|ride| ride.way.to_owned()));
        }
    }
    headings
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
            let heading = heading_of(direction, &[station], &[]);
            assert_eq!(heading.as_deref().ok(), expected, "{direction} at {station}: {heading:?}");
        }
    }
}
