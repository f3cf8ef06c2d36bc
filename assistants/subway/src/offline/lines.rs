//! Recognises subway lines in a message: "the next 6", "N or W", "1 vs 2/3".

use threadkeep::dialogue::Utterance;
use threadkeep_transit::Resolution;
use threadkeep_transit::offline::{LineRun, UNITS, group_lines};

use crate::system::{names, network};

/// Finds all lines in the message, grouped into runs.
pub(super) fn runs(message: &Utterance) -> Vec<LineRun> {
    group_lines(message, line_at)
}

/// Returns the line named at a word, and the number of words in its name. `follows_a_line` says whether the word may continue
/// a run.
fn line_at(message: &Utterance, at: usize, follows_a_line: bool) -> Option<(String, usize)> {
    let word = message.word(at);
    if word == "staten"
        && message.word(at + 1) == "island"
        && matches!(message.word(at + 2), "rail" | "railway" | "train")
    {
        return Some(("SIR".to_owned(), 3));
    }
    if let Some(shuttle) = named_shuttle(message, at) {
        return Some(shuttle);
    }
    if word == "shuttle" {
        return Some(("S".to_owned(), 1));
    }
    if let Some(line) = spelled_line(message, at) {
        return Some((line.to_owned(), 1));
    }
    let (name, is_plural) = match word.strip_suffix('s').filter(|name| name.len() == 1) {
        // A plural, as in "4s" or "the J's".
        Some(name) if name.chars().all(|c| c.is_ascii_digit()) || message.said(at..at + 1).contains(['\'', '’']) => {
            (name, true)
        }
        _ => (word, false),
    };
    let sign = network().lines().iter().find(|line| line.name.eq_ignore_ascii_case(name)).map(|line| &line.name)?;
    let is_article = word == "a" && at > 0 && message.word(at - 1) == "for";
    let is_joined = follows_a_line && !is_street(message.word(at + 1)) && !is_article;
    let is_line = is_plural || is_joined || means_a_line(message, at);
    is_line.then(|| (sign.clone(), 1))
}

/// Returns the line that a spelled number means: "the four train", "on the six from 77th". In "the four lines", the number counts.
fn spelled_line(message: &Utterance, at: usize) -> Option<&'static str> {
    const NUMBERS: [(&str, &str); 7] =
        [("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"), ("five", "5"), ("six", "6"), ("seven", "7")];
    let (word, line) = NUMBERS.iter().find(|(word, _)| *word == message.word(at))?;
    let before = |steps: usize| at.checked_sub(steps).map_or("", |at| message.word(at));
    let next = message.word(at + 1);
    let is_train =
        matches!(next, "train" | "local" | "express") && !matches!(before(1), "no" | "which" | "any" | "this");
    let is_taken =
        before(1) == "the" && matches!(before(2), "on" | "take" | "taking" | "catch" | "board" | "via" | "ride");
    let is_followed =
        matches!(next, "" | "from" | "to" | "up" | "down" | "uptown" | "downtown" | "instead" | "there" | "then");
    // "The one" can be anything.
    let is_line = is_train && (*word != "one" || before(1) == "the" && next == "train")
        || *word != "one" && is_taken && is_followed;
    is_line.then_some(*line)
}

/// Returns the shuttle that a name means, and the number of words in the name: "the Franklin Avenue shuttle".
fn named_shuttle(message: &Utterance, at: usize) -> Option<(String, usize)> {
    const NAMES: [(&str, &[&str]); 3] = [
        ("FS", &["franklin"]),
        ("H", &["rockaway", "rockaways", "broad channel"]),
        ("GS", &["times square", "times sq", "grand central", "42", "42nd", "midtown"]),
    ];
    const BETWEEN: [&str; 7] = ["av", "ave", "avenue", "park", "st", "street", "line"];
    NAMES.iter().find_map(|(id, names)| {
        names.iter().find_map(|name| {
            let count = name.split(' ').count();
            let is_here = name.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word);
            let end = at + count + usize::from(BETWEEN.contains(&message.word(at + count)));
            // In "Franklin Av shuttle to Prospect Park", the name is where the trip starts.
            (is_here && message.word(end) == "shuttle" && message.word(end + 1) != "to")
                .then(|| ((*id).to_owned(), end + 1 - at))
        })
    })
}

/// Whether a number after this word is a time or an amount rather than a line: "around 5".
fn is_before_hour(word: &str) -> bool {
    matches!(
        word,
        "at" | "from"
            | "to"
            | "in"
            | "near"
            | "for"
            | "of"
            | "by"
            | "around"
            | "about"
            | "before"
            | "after"
            | "until"
            | "till"
            | "like"
            | "roughly"
            | "past"
            | "than"
            | "approx"
            | "circa"
            | "is"
            | "hes"
            | "shes"
    )
}

/// Whether a number followed by this word means a street or an amount.
fn is_street(next: &str) -> bool {
    matches!(next, "st" | "street" | "av" | "ave" | "avenue" | "avs" | "rd" | "nd" | "th") || UNITS.contains(&next)
}

/// Whether words name a station, which a line's name can precede: "7 willets pt next to manhattan".
fn is_at_station(message: &Utterance, at: usize) -> bool {
    const MAX_WORDS: usize = 3;
    let ends = at + 1..=message.words().len().min(at + MAX_WORDS);
    let is_one = |end: usize| {
        let name = message.spelled(at..end);
        name.len() > 3 && matches!(names().resolve(&name), Resolution::Certain(_))
    };
    !message.word(at).starts_with(|c: char| c.is_ascii_digit()) && ends.into_iter().any(is_one)
}

/// Whether a line's name refers to the line in its context, rather than to a street, a time or an article.
fn means_a_line(message: &Utterance, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let (word, next) = (message.word(at), message.word(at + 1));
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_street = is_street(next) && (is_number(word) || !UNITS.contains(&next));
    if is_street || matches!(before, "avenue" | "ave" | "av" | "beach" | "ocean") {
        return false;
    }
    // "W 4" means West 4th Street.
    if is_number(word) && matches!(before, "w" | "e" | "west" | "east") {
        return false;
    }
    // "The next 2 trains" counts them.
    if is_number(word)
        && matches!(next, "trains" | "ones" | "departures")
        && matches!(before, "next" | "first" | "last")
    {
        return false;
    }
    let is_introduced = matches!(
        before,
        "the" | "next" | "this" | "that" | "last" | "uptown" | "downtown" | "bound" | "local" | "express"
    );
    let is_named_train = matches!(next, "train" | "trains" | "line" | "local" | "express");
    match word {
        _ if is_introduced || is_named_train && word != "a" => true,
        "a" if matches!(next, "vs" | "versus") || before == "vs" => true,
        // In "for a 4", it is an article.
        "a" if before == "for" && network().lines().iter().any(|line| line.name.eq_ignore_ascii_case(next)) => false,
        "a" => {
            let is_capital = message.said(at..at + 1) == "A";
            let is_article =
                matches!(before, "there" | "take" | "get" | "catch" | "is" | "need" | "want" | "miss" | "as" | "such");
            // "A back to Manhattan", "A uptown?"
            let is_directed = matches!(next, "from" | "towards" | "toward" | "uptown" | "downtown")
                || next == "back" && matches!(message.word(at + 2), "to" | "towards" | "toward" | "from");
            is_capital && (at > 0 || is_directed || matches!(next, "train" | "or" | "vs" | "at" | "to"))
                || is_named_train && !is_article
        }
        "s" | "e" | "w" | "n" if is_number(next) => false,
        "sir" => message.said(at..at + 1) == "SIR",
        // In chats, "n" and "r" also stand for "and" and "are".
        "n" | "r" if message.said(at..at + 1) == word => {
            matches!(before, "on" | "take" | "via" | "avoid" | "without") || matches!(next, "or" | "vs")
        }
        _ if is_number(word) && at == 0 && is_at_station(message, at + 1) => true,
        _ if is_number(word) => {
            let is_alone = next.is_empty() && !is_before_hour(before);
            let is_directed = matches!(next, "uptown" | "downtown" | "northbound" | "southbound" | "either" | "please");
            // "4 stop at 77?", "and does 7 go all night"
            let opens = at == 0
                || matches!(
                    before,
                    "and"
                        | "ok"
                        | "okay"
                        | "so"
                        | "does"
                        | "do"
                        | "is"
                        | "about"
                        | "but"
                        | "then"
                        | "if"
                        | "also"
                        | "plus"
                        | "nah"
                        | "nope"
                        | "any"
                );
            let acts = matches!(
                next,
                "same"
                    | "goes"
                    | "go"
                    | "stop"
                    | "run"
                    | "runs"
                    | "running"
                    | "all"
                    | "come"
                    | "comes"
                    | "coming"
                    | "instead"
                    | "then"
                    | "still"
                    | "yet"
                    | "too"
                    | "also"
                    | "there"
                    | "here"
            );
            let is_choice = opens && next == "after" && message.word(at + 2) == "all";
            (is_alone || is_directed || is_choice || opens && acts) && !is_number(before)
                || matches!(next, "or" | "vs" | "versus" | "at" | "from" | "in" | "to") && !is_number(before)
                || next == "out" && message.word(at + 2) == "of" && !is_number(before)
                || matches!(before, "or" | "vs" | "versus" | "on" | "via" | "no" | "avoid" | "without" | "skip")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Vec<String>> {
        runs(&Utterance::new(text)).into_iter().map(|run| run.lines).collect()
    }

    #[test]
    fn runs_ignore_streets_times_and_articles() {
        for (text, lines) in [
            ("next uptown 6 at astor", &[&["6"][..]][..]),
            ("is there a train at 7 av", &[]),
            ("the A or the C", &[&["A", "C"]]),
            ("1 vs 2/3 from south ferry", &[&["1", "2", "3"]]),
            ("6 to 96 st or change to the 4", &[&["6"], &["4"]]),
            ("next M in 20 min, 5 minutes from 1 av", &[&["M"]]),
            ("any 4s? when is the SIR", &[&["4"], &["SIR"]]),
            ("the staten island railway", &[&["SIR"]]),
            ("what's 2+2", &[]),
            ("the next 3 trains please", &[]),
            ("take the 6 or wait for a 4/5", &[&["6", "4", "5"]]),
            ("W 4 St to E 149 St", &[]),
            ("n how many stops r there", &[]),
            ("how do i get from w 8 to e 180", &[]),
            ("the n or the r", &[&["N", "R"]]),
            ("isn't there a four train at fordham", &[&["4"]]),
            ("the ride on the four from yankee stadium", &[&["4"]]),
            ("the one at 63rd, the four lines there", &[]),
            ("nah 7 after all", &[&["7"]]),
            ("any 5 yet?", &[&["5"]]),
            ("A back to Queens", &[&["A"]]),
            ("A back door", &[]),
            ("7 willets point to manhattan", &[&["7"]]),
            ("all the stops of the franklin avenue shuttle", &[&["FS"]]),
            ("is the rockaway park shuttle on time", &[&["H"]]),
        ] {
            assert_eq!(found(text), lines, "{text}");
        }
    }
}
