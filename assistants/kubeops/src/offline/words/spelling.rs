//! Misspelled words of commands.

use crate::command::Verb;
use crate::kinds::{Kind, kind_word};

use super::vocabulary::{VERBS, is_ordinary};

/// Words that are corrected, besides verbs and kinds.
const OTHERS: [&str; 30] = [
    "rollout",
    "history",
    "promote",
    "restarting",
    "instead",
    "actually",
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

/// Returns the word of a command that a word is a misspelling of: two letters are swapped, one is missing or doubled, or one is that of a
/// key beside the right one.
pub(super) fn corrected(word: &str) -> Option<&'static str> {
    let is_plain = word.len() >= 3 && word.chars().all(|c| c.is_ascii_lowercase());
    if !is_plain || is_ordinary(word) || kind_word(word).is_some() || VERBS.iter().any(|(verb, _)| *verb == word) {
        return None;
    }
    debug_assert!(KINDS.iter().all(|kind| Kind::find(kind).is_some()));
    // Three letters are too few to ask for a change.
    let is_enough = |verb: &Verb| word.len() > 3 || verb.is_read();
    let verbs = VERBS.iter().filter(|(phrase, verb)| !phrase.contains(' ') && is_enough(verb));
    let verbs = verbs.map(|(phrase, _)| *phrase);
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
    let doubles_end = word.ends_with("ss");
    let is_form =
        !doubles_end && ["s", "d", "r", "ed", "er"].iter().any(|ending| word.strip_suffix(ending) == Some(known));
    if is_form || known.len() < 4 || !known.is_ascii() {
        return false;
    }
    let (one, other) = (word.as_bytes(), known.as_bytes());
    let common = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    if one.len() == other.len() {
        let mut swapped = one.to_vec();
        // The first and the last letter are rarely wrong, and may make another word: "logger".
        let is_inner = common > 0 && common + 1 < one.len() && one.len() >= 5;
        return common + 1 < one.len() && {
            swapped.swap(common, common + 1);
            swapped == other
                || is_inner && one[common + 1..] == other[common + 1..] && are_neighbours(one[common], other[common])
        };
    }
    let is_missing = one.len() < other.len();
    let (longer, shorter) = if is_missing { (other, one) } else { (one, other) };
    if longer.len() != shorter.len() + 1 || longer[common + 1..] != shorter[common..] {
        return false;
    }
    let letter = longer[common];
    let is_repeated = common > 0 && longer[common - 1] == letter;
    match is_missing {
        // "Shw" lacks a vowel, and "aply" one of two equal letters.
        true => longer.len() >= 6 || is_repeated || common > 0 && b"aeiou".contains(&letter),
        false => {
            let beside = |at: usize| longer.get(at).is_some_and(|next| are_neighbours(letter, *next));
            is_repeated || shorter.len() >= 5 && common > 0 && (beside(common - 1) || beside(common + 1))
        }
    }
}

/// Whether two letters are beside each other on a keyboard.
fn are_neighbours(one: u8, other: u8) -> bool {
    const ROWS: [&[u8]; 3] = [b"qwertyuiop", b"asdfghjkl", b"zxcvbnm"];
    let place = |letter: u8| {
        ROWS.iter().enumerate().find_map(|(row, keys)| Some((row, keys.iter().position(|key| *key == letter)?)))
    };
    let (Some((row, at)), Some((other_row, other_at))) = (place(one), place(other)) else { return false };
    // A key touches two keys of the row below.
    match row.abs_diff(other_row) {
        0 => at.abs_diff(other_at) == 1,
        1 => {
            let (upper, lower) = if row < other_row { (at, other_at) } else { (other_at, at) };
            upper == lower || upper == lower + 1
        }
        _ => false,
    }
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
            ("shw", "show"),
            ("nodess", "nodes"),
            ("lgos", "logs"),
            ("aply", "apply"),
            ("resrart", "restart"),
            ("describve", "describe"),
        ] {
            assert_eq!(corrected(word), Some(known), "{word}");
        }
        for name in [
            "scaled",
            "scaler",
            "notes",
            "served",
            "web",
            "api-gateway",
            "restarter",
            "logger",
            "shop",
            "remote",
            "kll",
        ] {
            assert_eq!(corrected(name), None, "{name}");
        }
    }
}
