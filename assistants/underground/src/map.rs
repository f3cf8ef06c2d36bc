//! The map of London's network, in TfL's colours.

use std::sync::LazyLock;

use threadkeep::agent::plugin::NetworkMap;
use threadkeep_transit::{Line, network_map};

use crate::network::network;

/// The colour of each line, by id.
const COLOURS: [(&str, &str); 19] = [
    ("bakerloo", "#b36305"),
    ("central", "#e32017"),
    ("circle", "#ffd300"),
    ("district", "#00782a"),
    ("hammersmith-city", "#f3a9bb"),
    ("jubilee", "#a0a5a9"),
    ("metropolitan", "#9b0056"),
    ("northern", "#000000"),
    ("piccadilly", "#003688"),
    ("victoria", "#0098d4"),
    ("waterloo-city", "#95cdba"),
    ("elizabeth", "#6950a1"),
    ("dlr", "#00a4a7"),
    ("liberty", "#676767"),
    ("lioness", "#f1b41c"),
    ("mildmay", "#437ec1"),
    ("suffragette", "#39b97a"),
    ("weaver", "#972861"),
    ("windrush", "#ef4d5e"),
];

/// Returns the map.
pub(crate) fn map() -> &'static NetworkMap {
    static MAP: LazyLock<NetworkMap> = LazyLock::new(|| network_map(network(), colour_of, |_| None));
    &MAP
}

fn colour_of(line: &Line) -> &'static str {
    COLOURS.iter().find(|(id, _)| *id == line.id).map_or("#808183", |(_, colour)| colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_own_colour_and_a_pattern() {
        let map = map();
        assert_eq!(map.lines.len(), COLOURS.len());
        for line in &map.lines {
            assert!(COLOURS.iter().any(|(id, _)| *id == line.id), "{}", line.id);
            assert!(line.patterns.iter().any(|pattern| pattern.len() > 1), "{}", line.id);
        }
    }
}
