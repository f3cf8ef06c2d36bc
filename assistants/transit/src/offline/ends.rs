//! Where a line ends, and where its branches part.

use std::collections::BTreeSet;

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;
use crate::wording;

/// The value of a question about where the branches of a line part.
pub(super) const BRANCHES: &str = "branches";
/// The value of a question about where a line ends.
const ENDS: &str = "ends";

/// Finds a question about the ends of a line or about its branches: "which ones are at the two ends", "where do the branches split".
#[must_use]
pub fn find_ends(message: &Utterance) -> Vec<Mention> {
    let count = message.words().len();
    let word = |at: usize| message.word(at);
    let has = |known: &[&str]| (0..count).any(|at| known.contains(&word(at)));
    if !has(&["where", "wheres", "which", "what", "whats", "between"]) || has(&["next", "when", "long", "many", "get"])
    {
        return Vec::new();
    }
    let branch = (0..count).find(|at| matches!(word(*at), "branch" | "branches" | "line" | "lines" | "they"));
    // "Where does the 5 fork?"
    let branch = branch.or_else(|| {
        (1..count).find(|at| matches!(word(*at), "split" | "fork" | "diverge") && matches!(word(0), "where" | "wheres"))
    });
    let parts = has(&[
        "split", "splits", "part", "parts", "diverge", "diverges", "fork", "forks", "separate", "branches", "divide",
    ]);
    let asks_where = has(&["where", "wheres"]) || matches!(word(0), "which" | "what");
    let branching = branch.filter(|at| {
        let parts =
            parts && (word(*at) != "branches" || has(&["split", "part", "diverge", "fork", "separate", "divide"]));
        parts && asks_where && !has(&["of", "that", "route"])
    });
    let end = || {
        (0..count).find(|at| {
            let before = at.checked_sub(1).map_or("", word);
            match word(*at) {
                "ends" => matches!(before, "two" | "both" | "its" | "the" | "which"),
                "termini" | "terminals" | "terminuses" => true,
                "stations" | "stops" | "points" => matches!(before, "end" | "terminal" | "final" | "terminus"),
                _ => false,
            }
        })
    };
    // "Where else do they go?"
    let elsewhere = || {
        let at = (0..count).find(|at| matches!(word(*at), "where" | "wheres") && word(at + 1) == "else")?;
        has(&["go", "goes", "run", "runs", "end"]).then_some(at)
    };
    let end = || end().or_else(elsewhere);
    let found = branching.map(|at| (at, BRANCHES)).or_else(|| Some((end()?, ENDS)));
    let mention = found
        .map(|(at, what)| Mention::incidental(at..at + 1, vec![Choice::new(json!(what), message.said(at..at + 1))]));
    mention.into_iter().collect()
}

impl Speech {
    /// Says at which stations the branches of a line part, and where they go.
    pub(super) fn branches_of_line(&self, line: &str) -> String {
        let network = (self.system.network)();
        let name = self.system.line_name(line);
        let is_meant = |known: &&crate::Line| known.name == name || known.id == line;
        let sequences: Vec<_> = network.lines().iter().filter(is_meant).flat_map(|line| &line.sequences).collect();
        let mut parting: Vec<(usize, BTreeSet<&str>)> = Vec::new();
        for (at, one) in sequences.iter().enumerate() {
            for other in &sequences[at + 1..] {
                let (stations, others) = (&one.stations, &other.stations);
                let (Some(end), Some(other_end)) = (stations.last(), others.last()) else { continue };
                if one.way != other.way || stations.contains(other_end) || others.contains(end) {
                    continue;
                }
                let common = stations.iter().rposition(|station| others.contains(station));
                let Some(station) = common.filter(|common| *common > 0).map(|common| stations[common]) else {
                    continue;
                };
                let ends = [*end, *other_end].map(|end| network.stations()[end].name.as_str());
                match parting.iter_mut().find(|(known, _)| *known == station) {
                    Some((_, known)) => known.extend(ends),
                    None => parting.push((station, ends.into())),
                }
            }
        }
        let rows: Vec<String> = parting
            .into_iter()
            .map(|(station, ends)| {
                let ends: Vec<String> = ends.into_iter().map(str::to_owned).collect();
                format!("{} (for {})", network.stations()[station].name, wording::join_with_and(&ends))
            })
            .collect();
        match rows.is_empty() {
            true => format!("The {name} has no branches. {}", self.ends_of_line(line)),
            false => format!("The branches of the {name} part at {}.", rows.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_ends_and_branches_are_found() {
        for (text, expected) in [
            ("Which ones are at the two ends?", Some(ENDS)),
            ("what are its end stations", Some(ENDS)),
            ("what are the termini of the L", Some(ENDS)),
            ("where do the branches split", Some(BRANCHES)),
            ("where does the uxbridge branch split off", Some(BRANCHES)),
            ("where does the 5 fork", Some(BRANCHES)),
            ("where else do they go", Some(ENDS)),
            ("which part of the line is closed", None),
            ("where does my trip end", None),
            ("when does the last train end", None),
        ] {
            let found = find_ends(&Utterance::new(text));
            assert_eq!(found.first().and_then(|mention| mention.choices[0].value.as_str()), expected, "{text}");
        }
    }
}
