//! Converts a network to the map that pages draw.

use threadkeep::agent::plugin::{MapLine, MapStation, NetworkMap};

use crate::{Line, Network};

/// Converts a network. `colour_of` returns the colour of a line, such as `#0039a6`, and `full_name_of` its name in full, if its name
/// alone is unclear.
///
/// Patterns apply to both directions: of two patterns, one of which contains the other or its reverse, only the longer is
/// kept.
pub fn network_map(
    network: &Network,
    colour_of: impl Fn(&Line) -> &'static str,
    full_name_of: impl Fn(&Line) -> Option<&'static str>,
) -> NetworkMap {
    let stations = network.stations().iter().map(|station| MapStation {
        id: station.id.clone(),
        complex: station.complex.clone(),
        name: station.name.clone(),
        latitude: station.latitude,
        longitude: station.longitude,
    });
    let lines = network.lines().iter().map(|line| MapLine {
        id: line.id.clone(),
        name: line.name.clone(),
        full_name: full_name_of(line),
        colour: colour_of(line),
        patterns: patterns(line.sequences.iter().map(|sequence| sequence.stations.as_slice())),
    });
    NetworkMap { stations: stations.collect(), lines: lines.collect() }
}

fn patterns<'a>(sequences: impl Iterator<Item = &'a [usize]>) -> Vec<Vec<usize>> {
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for sequence in sequences {
        let reversed: Vec<usize> = sequence.iter().rev().copied().collect();
        if kept.iter().any(|known| contains(known, sequence) || contains(known, &reversed)) {
            continue;
        }
        let is_part = |known: &Vec<usize>| contains(sequence, known) || contains(&reversed, known);
        let position = kept.iter().position(&is_part).unwrap_or(kept.len());
        kept.retain(|known| !is_part(known));
        kept.insert(position, sequence.to_vec());
    }
    kept
}

/// Whether `part` occurs in `whole` without gaps.
fn contains(whole: &[usize], part: &[usize]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_in_other_patterns_or_in_their_reverse_are_left_out() {
        let sequences: [&[usize]; 6] = [&[1, 2, 3], &[3, 2, 1], &[2, 3], &[1, 3], &[0, 1, 2, 3], &[3, 4]];
        assert_eq!(patterns(sequences.into_iter()), [vec![0, 1, 2, 3], vec![1, 3], vec![3, 4]]);
    }
}
