//! The built-in network, parsed once, and the system that transit answers for.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use threadkeep::dialogue::{Choice, Names as NameList};
use threadkeep_transit::{Names, Network, NetworkLeg, System, SystemWords};

use crate::lines::{LINES, find_network_lines};
use crate::names::{ALIASES, VOCABULARY};
use crate::offline::SPEECH;

/// All lines and stations with running times, made by `cargo xtask london-network`.
const TABLE: &str = include_str!("../data/network.tsv");

static NETWORK: LazyLock<Network> =
    LazyLock::new(|| Network::parse(TABLE).expect("the built-in table is generated, and a test reads it"));

static NAMES: LazyLock<Names<'static>> = LazyLock::new(|| Names::new(&NETWORK, VOCABULARY));

/// London's network.
pub(crate) const LONDON: System = System {
    name: "underground",
    network,
    names,
    zone: london,
    area,
    lines_text,
    find_lines: find_network_lines,
    towards,
    words: SystemWords {
        station: "London station of the Underground, Elizabeth line, DLR or Overground",
        route: "route",
        line: "line",
        by_day: "",
        usually: "",
        step_free: "Step-free stations only, from street to train or platform; I do not know which lifts work now.",
        no_timetable: "I know running times, not which trains run then.",
    },
};

/// Returns the lines and stations.
pub fn network() -> &'static Network {
    &NETWORK
}

/// Returns the index that resolves station names.
pub fn names() -> &'static Names<'static> {
    &NAMES
}

/// Returns London's time zone. Built from its rule, in force since 1996, because a machine may lack the time zone database.
///
/// # Panics
/// Never: the rule is a constant, and a test reads it.
#[must_use]
pub fn london() -> TimeZone {
    TimeZone::posix("GMT0BST,M3.5.0/1,M10.5.0").expect("the rule is a constant, and a test reads it")
}

fn area(zone: &str) -> String {
    if zone.is_empty() { "outside the zones".to_owned() } else { format!("zone {zone}") }
}

/// Formats lines, given by id or name: "Central, Jubilee and Elizabeth lines".
pub(crate) fn lines_text(lines: &[String]) -> String {
    let name = |line: &String| LONDON.line_name(line);
    let all: Vec<String> = lines.iter().map(name).collect();
    let (named, other): (Vec<String>, Vec<String>) = all.into_iter().partition(|name| name.ends_with(" line"));
    let short: Vec<&str> = named.iter().map(|name| name.trim_end_matches(" line")).collect();
    let noun = if short.len() == 1 { "line" } else { "lines" };
    let named = if short.is_empty() { None } else { Some(format!("{} {noun}", short.join(", "))) };
    named.into_iter().chain(other).collect::<Vec<_>>().join(", ")
}

/// The direction of a ride: the last station of the train.
fn towards(leg: &NetworkLeg) -> String {
    format!("towards {}", LONDON.station_name(&leg.terminal))
}

static GAZETTEER: LazyLock<NameList> = LazyLock::new(|| {
    let mut texts: Vec<&str> = network().stations().iter().map(|station| station.name.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    let named = texts.iter().fold(NameList::new(), |list, name| {
        let variants = variants(name);
        let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
        list.with(Choice::new(*name, *name), &variants)
    });
    ALIASES.iter().fold(named, |list, (alias, _)| list.with(Choice::new(*alias, *alias), &[]))
});

/// Returns the names and aliases of stations: their values are texts that resolve to places.
pub(crate) fn gazetteer() -> &'static NameList {
    &GAZETTEER
}

/// Returns other ways to write a name: "&" as "and", abbreviations of its last word.
fn variants(name: &str) -> Vec<String> {
    let mut variants = Vec::new();
    if name.contains('&') {
        variants.extend([name.replace('&', "and"), name.replace('&', "n"), name.replace(" &", "")]);
    }
    for (long, short) in [(" Road", " Rd"), (" Street", " St"), (" Square", " Sq"), (" Park", " Pk"), (" Lane", " Ln")]
    {
        if name.ends_with(long) {
            variants.push(name.replace(long, short));
        }
    }
    if let Some(rest) = name.strip_prefix("St. ") {
        variants.push(format!("Saint {rest}"));
    }
    if name.contains("High Street") {
        variants.push(name.replace("High Street", "High St"));
    }
    variants
}

/// Returns the places that an entry of the gazetteer means, as tool arguments with labels for the user.
pub(crate) fn place_choices(text: &str) -> Vec<Choice> {
    SPEECH.choices_of(text, &[])
}

/// Whether running times of a line are built in; otherwise they are estimates by distance.
pub(crate) fn has_timetable(line: &str) -> bool {
    LINES.iter().any(|known| known.id == line && known.has_timetable)
}

#[cfg(test)]
mod tests {
    use threadkeep_transit::Resolution;

    use super::*;

    #[test]
    fn the_table_has_all_lines_and_tube_stations() {
        let lines: Vec<&str> = network().lines().iter().map(|line| line.id.as_str()).collect();
        assert_eq!(lines, LINES.map(|line| line.id));
        let tube = network().stations().iter().filter(|station| station.lines.iter().any(|line| has_timetable(line)));
        assert_eq!(tube.count(), 272);
        assert_eq!(network().stations_on("victoria").len(), 16);
        assert_eq!(network().stations_on("waterloo-city").len(), 2);
    }

    #[test]
    fn every_station_is_found_by_its_name() {
        for station in network().stations() {
            let complexes: Vec<String> = match names().resolve(&station.name) {
                Resolution::Certain(place) => vec![place.complex],
                Resolution::Assumed { taken, others } => {
                    std::iter::once(taken).chain(others).map(|place| place.complex).collect()
                }
                Resolution::Several(places) => places.into_iter().map(|place| place.complex).collect(),
                other => panic!("{}: {other:?}", station.name),
            };
            assert!(complexes.contains(&station.complex), "{}: {complexes:?}", station.name);
        }
    }

    #[test]
    fn aliases_name_stations() {
        for (alias, id) in ALIASES {
            assert!(network().find_station(id).is_some(), "{alias}: {id}");
            let found = names().resolve(alias);
            assert!(matches!(found, Resolution::Certain(_) | Resolution::Assumed { .. }), "{alias}: {found:?}");
        }
    }

    #[test]
    fn times_are_london_times() {
        let summer: jiff::Timestamp = "2026-06-16T07:40:00Z".parse().unwrap();
        let winter: jiff::Timestamp = "2026-01-16T07:40:00Z".parse().unwrap();
        assert_eq!((LONDON.clock(summer), LONDON.clock(winter)), ("08:40".to_owned(), "07:40".to_owned()));
    }
}
