//! The map of the subway, in the colours of the MTA.

use std::sync::LazyLock;

use threadkeep::agent::plugin::NetworkMap;
use threadkeep_transit::{Line, network_map};

use crate::system::network;

/// Returns the map.
pub(crate) fn map() -> &'static NetworkMap {
    static MAP: LazyLock<NetworkMap> = LazyLock::new(|| network_map(network(), colour_of, full_name_of));
    &MAP
}

fn colour_of(line: &Line) -> &'static str {
    match line.name.as_str() {
        "1" | "2" | "3" => "#ee352e",
        "4" | "5" | "6" => "#00933c",
        "7" => "#b933ad",
        "A" | "C" | "E" => "#0039a6",
        "B" | "D" | "F" | "M" => "#ff6319",
        "G" => "#6cbe45",
        "J" | "Z" => "#996633",
        "L" => "#a7a9ac",
        "N" | "Q" | "R" | "W" => "#fccc0a",
        "SIR" => "#08179c",
        _ => "#808183",
    }
}

/// Names shuttles and express lines, which share the names of other lines, and Staten Island's railway.
fn full_name_of(line: &Line) -> Option<&'static str> {
    match line.id.as_str() {
        "6X" => Some("6 Express"),
        "7X" => Some("7 Express"),
        "FX" => Some("F Express"),
        "FS" => Some("S Franklin Av Shuttle"),
        "GS" => Some("S 42 St Shuttle"),
        "H" => Some("S Rockaway Park Shuttle"),
        "SI" => Some("Staten Island Railway"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shuttles_have_the_default_colour() {
        let is_grey = |line: &&Line| colour_of(line) == "#808183";
        let grey: Vec<&str> = network().lines().iter().filter(is_grey).map(|line| line.id.as_str()).collect();
        assert_eq!(grey, ["FS", "GS", "H"]);
    }

    #[test]
    fn lines_with_the_name_of_another_one_have_a_full_name() {
        let map = map();
        for line in &map.lines {
            let shares_its_name = map.lines.iter().any(|other| other.id != line.id && other.name == line.name);
            assert_eq!(
                line.full_name.is_some(),
                line.name == "SIR" || (shares_its_name && line.id != line.name),
                "{}",
                line.id
            );
        }
    }

    #[test]
    fn each_line_has_a_pattern_of_known_stations() {
        let map = map();
        for line in &map.lines {
            assert!(line.patterns.iter().any(|pattern| pattern.len() > 1), "{}", line.id);
            assert!(line.patterns.iter().flatten().all(|index| *index < map.stations.len()), "{}", line.id);
        }
        assert_eq!(map.stations.len(), network().stations().len());
    }
}
