//! Questions that depend on the state of a line: "if the Victoria is delayed, how else can I get there?"

use std::ops::Range;

use threadkeep::dialogue::{Choice, Extractor as _, Mention, Utterance};

use crate::lines::{LINES, LineInfo, find_line, line_runs};
use crate::network::gazetteer;

const GOOD: [&str; 6] = ["ok", "okay", "fine", "running", "normal", "good"];
const BAD: [&str; 16] = [
    "delayed",
    "late",
    "disrupted",
    "slow",
    "delays",
    "problems",
    "problem",
    "down",
    "closed",
    "suspended",
    "bad",
    "wrong",
    "trouble",
    "delay",
    "disruption",
    "issues",
];
/// Words for another way.
const ELSEWHERE: [&str; 9] =
    ["another", "other", "alternative", "different", "else", "around", "instead", "otherwise", "alternatives"];

fn has(message: &Utterance, words: &[&str]) -> bool {
    message.words().iter().any(|word| words.contains(&word.folded.as_str()))
}

fn bytes(message: &Utterance, words: Range<usize>) -> Range<usize> {
    let word = |at: usize| &message.words()[at].span;
    word(words.start).start..word(words.end - 1).end
}

/// Asks for the state of a line on which a question depends, too, and rules the line out if the question is for another way.
pub(super) fn with_condition_asked(text: &str) -> Option<String> {
    state_then_way(text).or_else(|| way_after_condition(text)).or_else(|| condition_first(text))
}

/// Returns the words of the ends of a trip: "from Bank to Angel".
fn ends_said(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let places = gazetteer().find(&message);
    let before = |place: &Mention| place.words.start.checked_sub(1).map_or("", |at| message.word(at));
    let from = places.iter().find(|place| before(place) == "from")?;
    let to = places.iter().find(|place| before(place) == "to")?;
    (places.len() == 2)
        .then(|| format!("from {} to {}", message.said(from.words.clone()), message.said(to.words.clone())))
}

/// "Is the Metropolitan delayed? If so I need another way from Finchley Road to Baker Street."
fn state_then_way(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let count = message.words().len();
    let condition = (1..count).find(|at| {
        message.word(*at) == "if"
            && (matches!(message.word(at + 1), "so" | "yes")
                || message.word(at + 1) == "it" && message.word(at + 2) == "is")
    })?;
    let runs = line_runs(&message);
    let [run] = &runs[..] else { return None };
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1 && run.words.end <= condition)?)?;
    let before = Utterance::new(message.said(0..condition));
    let rest = if message.word(condition + 1) == "it" { condition + 3 } else { condition + 2 };
    let rest = text[bytes(&message, rest - 1..rest).end..].trim_start_matches([',', ' ', ':']);
    let asked = Utterance::new(rest);
    if !has(&before, &BAD) || !has(&asked, &ELSEWHERE) || has(&asked, &["avoid", "avoiding", "without"]) {
        return None;
    }
    let trip = ends_said(rest).or_else(|| ends_said(before.text()))?;
    (!has(&message, &CONDITIONS)).then(|| with_detour(&trip, line))
}

/// "I'm going from Stockwell to Euston. If the Victoria line is delayed, how else can I get there?"
fn way_after_condition(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let condition = (2..message.words().len()).find(|at| message.word(*at) == "if")?;
    let (line, _) = state_in(&message, condition)?;
    let trip = ends_said(message.said(0..condition))?;
    let rest = Utterance::new(message.said(condition..message.words().len()));
    let runs = line_runs(&rest);
    let is_line = |place: &Mention| {
        runs.iter().any(|run| run.words.start <= place.words.start && place.words.end <= run.words.end)
    };
    let names_place = gazetteer().find(&rest).iter().any(|place| !is_line(place));
    let is_other = has(&rest, &ELSEWHERE) && !names_place && line_runs(&message).len() == 1;
    (is_other && !has(&message, &CONDITIONS)).then(|| with_detour(&trip, line))
}

/// The word that asks for a way without a line, given by its number, if the line is disrupted.
const DETOUR: &str = "detour";
/// Words of other conditions, which a short question would drop.
const CONDITIONS: [&str; 19] = [
    "step",
    "stepfree",
    "wheelchair",
    "stairs",
    "lift",
    "lifts",
    "pram",
    "by",
    "before",
    "after",
    "tomorrow",
    "tonight",
    "without",
    "avoid",
    "avoiding",
    "changes",
    "changing",
    "direct",
    "buggy",
];

/// Asks for a trip, and for one without the line if the line is disrupted.
fn with_detour(trip: &str, line: &'static LineInfo) -> String {
    let number = LINES.iter().position(|known| known.id == line.id).unwrap_or_default();
    format!("How do I get {trip}, {DETOUR}{number}")
}

/// Finds the line without which a trip is wanted if it is disrupted.
pub(super) fn find_detours(message: &Utterance) -> Vec<Mention> {
    let line = |at: usize| LINES.get(message.word(at).strip_prefix(DETOUR)?.parse::<usize>().ok()?);
    let found = (0..message.words().len()).find_map(|at| Some((at, line(at)?)));
    let mention = |(at, line): (usize, &LineInfo)| Mention::new(at..at + 1, vec![Choice::new(line.id, line.name)]);
    found.map(mention).into_iter().collect()
}

/// Returns the line of a condition, and the position of its state: "if the Bakerloo is running ok".
fn state_in(message: &Utterance, condition: usize) -> Option<(&'static LineInfo, usize)> {
    const BETWEEN: [&str; 12] =
        ["is", "s", "has", "having", "still", "running", "any", "all", "really", "not", "isnt", "got"];
    let runs = line_runs(message);
    let near = condition..=condition + 2;
    let run = runs.iter().find(|run| run.lines.len() == 1 && near.contains(&run.words.start))?;
    let mut at = run.words.end;
    while BETWEEN.contains(&message.word(at)) {
        at += 1;
    }
    let is_state = |at: usize| GOOD.contains(&message.word(at)) || BAD.contains(&message.word(at));
    let state = if is_state(at) { at } else { at.checked_sub(1).filter(|at| is_state(*at) && *at >= run.words.end)? };
    Some((find_line(&run.lines[0])?, state))
}

/// "If the Bakerloo is running ok, when is the next train from Waterloo?"
fn condition_first(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let condition = (0..2).find(|at| message.word(*at) == "if")?;
    let (line, state) = state_in(&message, condition)?;
    let rest = text[bytes(&message, state..state + 1).end..].trim_start_matches([',', ' ', ':']);
    let rest_words = Utterance::new(rest);
    if rest_words.words().len() < 3 {
        return None;
    }
    let is_bad =
        BAD.contains(&message.word(state)) || has(&Utterance::new(message.said(condition..state)), &["not", "isnt"]);
    let avoiding = is_bad && has(&rest_words, &ELSEWHERE);
    if let Some(trip) = ends_said(rest).filter(|_| avoiding && !has(&message, &CONDITIONS)) {
        return Some(with_detour(&trip, line));
    }
    let avoiding = if avoiding { format!(", avoiding the {}", line.name) } else { String::new() };
    Some(format!("Is the {} ok? {rest}{avoiding}", line.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_depend_on_a_line_ask_for_its_state() {
        let victoria = LINES.iter().find(|line| line.id == "victoria").unwrap();
        let other = |trip: &str| with_detour(trip, victoria);
        for (said, meant) in [
            (
                "If the Bakerloo is running ok, when is the next train from Waterloo?",
                Some("Is the Bakerloo line ok? when is the next train from Waterloo?".to_owned()),
            ),
            (
                "if the Victoria line is delayed tell me another way from Oval to Euston",
                Some(other("from Oval to Euston")),
            ),
            (
                "Is the Victoria delayed? If so I need another way from Oval to Euston.",
                Some(other("from Oval to Euston")),
            ),
            (
                "Any problems on the Victoria line? If so, what else takes me from Oval to Euston",
                Some(other("from Oval to Euston")),
            ),
            (
                "I'm going from Oval to Euston. If the Victoria line is delayed, how else can I get there?",
                Some(other("from Oval to Euston")),
            ),
            (
                "if the Victoria line is delayed tell me another step-free way from Oval to Euston",
                Some(
                    "Is the Victoria line ok? tell me another step-free way from Oval to Euston, avoiding the Victoria line"
                        .to_owned(),
                ),
            ),
            ("Is the Victoria line delayed? If so, why?", None),
            ("is it ok if the Victoria line is late?", None),
            ("If the Victoria line is ok?", None),
        ] {
            assert_eq!(with_condition_asked(said), meant, "{said}");
        }
        let found = find_detours(&Utterance::new(other("from Oval to Euston")));
        assert_eq!(found[0].choices[0].value, "victoria");
    }
}
