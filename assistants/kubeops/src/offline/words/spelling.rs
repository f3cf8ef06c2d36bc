//! Misspelled words of commands.

use crate::kinds::{Kind, kind_word};

use super::vocabulary::{VERBS, is_ordinary};

/// Words that are corrected, besides verbs and kinds.
const OTHERS: [&str; 24] = [
    "replicas",
    "namespace",
    "kubectl",
    "previous",
    "work",
    "wait",
    "exit",
    "pending",
    "crashing",
    "failing",
    "running",
    "restarts",
    "restarted",
    "memory",
    "version",
    "image",
    "status",
    "limit",
    "healthy",
    "broken",
    "second",
    "third",
    "other",
    "completed",
];
/// Misspellings in which a letter of a short word is missing or wrong.
const SLIPS: [(&str, &str); 6] = [
    ("wich", "which"),
    ("whitch", "which"),
    ("shwo", "show"),
    ("chekc", "check"),
    ("chek", "check"),
    ("stauts", "status"),
];
/// The kinds whose plurals and singulars are corrected.
const KINDS: [&str; 16] = [
    "pods",
    "deployment",
    "deployments",
    "service",
    "services",
    "statefulset",
    "statefulsets",
    "daemonset",
    "configmap",
    "configmaps",
    "secret",
    "secrets",
    "node",
    "nodes",
    "ingress",
    "namespaces",
];

/// Returns the word of a command that a word is a misspelling of: two letters are swapped, or one is missing or doubled.
pub(super) fn corrected(word: &str) -> Option<&'static str> {
    let is_plain = word.len() >= 4 && word.chars().all(|c| c.is_ascii_lowercase());
    if !is_plain || is_ordinary(word) || kind_word(word).is_some() || VERBS.iter().any(|(verb, _)| *verb == word) {
        return None;
    }
    debug_assert!(KINDS.iter().all(|kind| Kind::find(kind).is_some()));
    let verbs = VERBS.iter().map(|(verb, _)| *verb).filter(|verb| !verb.contains(' '));
    if let Some((_, known)) = SLIPS.iter().find(|(slip, _)| *slip == word) {
        return Some(known);
    }
    let mut found = verbs.chain(KINDS).chain(OTHERS).filter(|known| is_misspelled(word, known));
    let first = found.next()?;
    // "deploymnt" fits one word only; what fits several is left alone.
    found.all(|other| other == first).then_some(first)
}

/// Words of ordinary sentences that become another one if two letters are swapped.
const OWN_WORDS: [&str; 12] =
    ["cup", "won", "wont", "form", "team", "trail", "sacred", "bets", "dose", "gets", "lots", "files"];

/// Returns the ordinary word that a word with two swapped letters stands for: "the" for "teh".
pub(super) fn swapped(word: &str) -> Option<String> {
    let is_plain = (3..=9).contains(&word.len()) && word.chars().all(|c| c.is_ascii_lowercase());
    if OWN_WORDS.contains(&word) {
        return None;
    }
    if !is_plain || is_ordinary(word) || kind_word(word).is_some() || VERBS.iter().any(|(verb, _)| *verb == word) {
        return None;
    }
    let mut found = (0..word.len() - 1).filter_map(|at| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.swap(at, at + 1);
        let other: String = letters.into_iter().collect();
        is_ordinary(&other).then_some(other)
    });
    // "Hwo" is "how" rather than "who".
    let first = found.next()?;
    Some(found.next().filter(|_| first == "who").unwrap_or(first))
}

fn is_misspelled(word: &str, known: &str) -> bool {
    let is_form = ["s", "d", "r", "ed", "er"].iter().any(|ending| word.strip_suffix(ending) == Some(known));
    if is_form || known.len() < 4 || !known.is_ascii() {
        return false;
    }
    let (one, other) = (word.as_bytes(), known.as_bytes());
    let common = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    if one.len() == other.len() {
        let mut swapped = one.to_vec();
        return common + 1 < one.len() && {
            swapped.swap(common, common + 1);
            swapped == other
        };
    }
    let (longer, shorter) = if one.len() > other.len() { (one, other) } else { (other, one) };
    let doubled = one.len() < other.len() || common > 0 && one[common] == one[common - 1];
    shorter.len() >= 4
        && longer.len() >= 6
        && longer.len() == shorter.len() + 1
        && doubled
        && longer[common + 1..] == shorter[common..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_missing_and_doubled_letters_are_corrected() {
        for (word, known) in [
            ("dleete", "delete"),
            ("delte", "delete"),
            ("resatrt", "restart"),
            ("deploymet", "deployment"),
            ("pdos", "pods"),
            ("descrribe", "describe"),
        ] {
            assert_eq!(corrected(word), Some(known), "{word}");
        }
        for name in ["scaled", "scaler", "notes", "served", "web", "api-gateway", "restarter"] {
            assert_eq!(corrected(name), None, "{name}");
        }
    }
}
