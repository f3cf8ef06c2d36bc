//! Where two lines meet: "where do I switch from the 3 to the Q", "4 to the J".

use serde_json::json;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::saved::last_result_text;
use super::{LineRun, Speech};

/// Words for changing from one train to another.
const CHANGING: [&str; 15] = [
    "change",
    "changing",
    "switch",
    "switching",
    "transfer",
    "transferring",
    "swap",
    "connect",
    "connects",
    "connection",
    "interchange",
    "meet",
    "meets",
    "intersect",
    "cross",
];
/// Words that ask for a place, or whether something is possible.
const ASKING: [&str; 12] =
    ["where", "wheres", "which", "what", "whats", "can", "could", "is", "do", "does", "need", "want"];
/// Words of questions about a trip, a time or a comparison, which are not about where lines meet.
const OTHER: [&str; 26] = [
    "stay", "should", "faster", "quicker", "better", "worth", "or", "vs", "versus", "compare", "time", "long", "when",
    "whens", "next", "instead", "avoid", "without", "not", "many", "much", "local", "express", "than", "minutes",
    "wait",
];
/// Words that a message may contain beside the line that a follow-up names.
const FOLLOWING: [&str; 17] = [
    "and", "n", "or", "ok", "what", "how", "about", "to", "for", "onto", "the", "train", "line", "then", "so", "also",
    "please",
];

impl Speech {
    /// Finds the words that ask where two lines meet. The value is whether the message only follows up on such a question.
    #[must_use]
    pub fn find_meetings(&self, message: &Utterance) -> Vec<Mention> {
        let runs = (self.line_runs)(message);
        let mention = |at: usize, follows: bool| {
            Mention::incidental(at..at + 1, vec![Choice::new(json!({ "follows": follows }), message.said(at..at + 1))])
        };
        if runs.is_empty() || (0..message.words().len()).any(|at| OTHER.contains(&message.word(at))) {
            return Vec::new();
        }
        let found = changing(message, &runs).or_else(|| between_lines(message, &runs)).map(|at| mention(at, false));
        found.or_else(|| only_line(message, &runs).map(|at| mention(at, true))).into_iter().collect()
    }

    /// Finds each line by itself.
    #[must_use]
    pub fn find_each_line(&self, message: &Utterance) -> Vec<Mention> {
        let runs = (self.line_runs)(message).into_iter();
        let each = runs.flat_map(|run| {
            let mention = |line: &String, words: std::ops::Range<usize>| {
                Mention::new(words.clone(), vec![Choice::new(line.as_str(), message.said(words))])
            };
            match &run.lines[..] {
                [line] => vec![mention(line, run.words.clone())],
                [first, .., last] => {
                    let (start, end) = (run.words.start, run.words.end);
                    vec![mention(first, start..start + 1), mention(last, end - 1..end)]
                }
                [] => Vec::new(),
            }
        });
        each.collect()
    }
}

/// Returns the position of a word for changing, if the message asks where one changes to or from a line.
fn changing(message: &Utterance, runs: &[LineRun]) -> Option<usize> {
    let count = message.words().len();
    let at = (0..count).find(|at| CHANGING.contains(&message.word(*at)))?;
    let asks = (0..count).any(|at| ASKING.contains(&message.word(at)));
    let names_two = runs.iter().map(|run| run.lines.len()).sum::<usize>() > 1;
    let is_target =
        |run: &LineRun| run.words.start > at && matches!(before(message, run), "to" | "for" | "onto" | "into");
    (names_two || asks && runs.iter().any(is_target)).then_some(at)
}

/// Returns the position of "to" or "off" between two lines: "4 to the J", "the F off the J"; or of "off" in "get the 2 off it".
fn between_lines(message: &Utterance, runs: &[LineRun]) -> Option<usize> {
    let joins = runs.iter().zip(runs.iter().skip(1)).find_map(|(one, other)| {
        let mut gap = one.words.end..other.words.start;
        let at = gap.clone().find(|at| matches!(message.word(*at), "to" | "onto" | "off"))?;
        let is_joining =
            |at: usize| matches!(message.word(at), "to" | "onto" | "off" | "of" | "the" | "train" | "line");
        gap.all(is_joining).then_some(at)
    });
    let off_it = || {
        let at = (0..message.words().len()).find(|at| message.word(*at) == "off" && message.word(at + 1) == "it")?;
        runs.iter().any(|run| run.words.end <= at).then_some(at)
    };
    joins.or_else(off_it)
}

/// Returns the position of the preposition in a message that names only a line to change to: "and to the A?"
fn only_line(message: &Utterance, runs: &[LineRun]) -> Option<usize> {
    let [run] = runs else { return None };
    let is_known = |at: usize| run.words.contains(&at) || FOLLOWING.contains(&message.word(at));
    if run.lines.len() != 1 || !(0..message.words().len()).all(is_known) {
        return None;
    }
    (0..run.words.start).rfind(|at| matches!(message.word(*at), "to" | "for" | "onto"))
}

/// The word before a run of lines, without articles.
fn before<'a>(message: &'a Utterance, run: &LineRun) -> &'a str {
    let mut at = run.words.start;
    while at > 0 && message.word(at - 1) == "the" {
        at -= 1;
    }
    at.checked_sub(1).map_or("", |at| message.word(at))
}

/// "Where do I switch from the G to the L?"
#[must_use]
pub fn line_meeting(speech: &'static Speech) -> Intent {
    Intent::new("line_meeting")
        .decided_by("meeting", |choice, follows| follows || choice.value["follows"] == false)
        .slot(
            Slot::required("from_line", "line")
                .after(["from", "off", "off of", "on", "im on", "leaving", "taking"])
                .asks("From which line?"),
        )
        .slot(
            Slot::required("to_line", "line")
                .fresh()
                .after([
                    "to",
                    "for",
                    "onto",
                    "into",
                    "want",
                    "need",
                    "get",
                    "catch",
                    "with",
                    "reach",
                    "get on",
                    "hop on",
                    "on to",
                    "take",
                    "change to",
                    "switch to",
                    "transfer to",
                ])
                .asks("To which line?"),
        )
        .slot(Slot::optional("meeting", "meeting"))
        .slot(Slot::optional("on", "lines").momentary())
        .slot(Slot::optional("at", "station").after(["at", "in", "near", "by"]))
        .slot(Slot::optional("near", "station").after(["coming from"]).inherited_by(|earlier, _| {
            let ends = ["from_station", "station_name", "station", "at"];
            ends.iter().find_map(|slot| earlier.get(slot)).filter(|place| place.value.is_string()).cloned()
        }))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("step_free", "stepfree"))
        .then_calls("find_stations_on_line", |outcome| {
            let slots = outcome.slots();
            if is_one_line(outcome) {
                return None;
            }
            let mut arguments = json!({"line": slots.value("from_line"), "change_to": slots.value("to_line")});
            let near = ["at", "near"].iter().find_map(|slot| slots.get(slot)).filter(|near| near.value.is_string());
            if let Some(near) = near {
                arguments["near"] = near.value.clone();
            }
            Some(arguments)
        })
        .says(move |outcome| speech.where_lines_meet(outcome))
}

/// Whether both lines of the question are the same one.
fn is_one_line(outcome: &Outcome<'_>) -> bool {
    let slots = outcome.slots();
    slots.get("from_line").is_some() && slots.value("from_line") == slots.value("to_line")
}

impl Speech {
    fn where_lines_meet(&self, outcome: &Outcome<'_>) -> String {
        let slots = outcome.slots();
        if is_one_line(outcome) {
            return format!("From the {} to which other line?", slots.label("to_line"));
        }
        let text = last_result_text(outcome);
        let name = |slot: &str| slots.value(slot).as_str().map(str::to_owned).unwrap_or_default();
        let Ok(meeting) = crate::meeting(&self.system, &name("from_line"), &name("to_line"), None) else { return text };
        let mut answer = text;
        if let Some(at) = slots.get("at") {
            let here = self.system.places(at.value.as_str().unwrap_or_default());
            let is_here = |change: &&crate::Change| {
                let ids = change.from.stop_ids.iter().chain(&change.to.stop_ids);
                let mut complexes = ids.filter_map(|id| self.system.station(id)).map(|station| &station.complex);
                complexes.any(|complex| here.iter().any(|place| place.complex == *complex))
            };
            let verdict = match meeting.changes.iter().find(is_here) {
                Some(change) if change.from.name == change.to.name => format!("Yes, at {}.", change.from.name),
                Some(change) => format!("Yes: {} and {} are one complex.", change.from.name, change.to.name),
                None => format!("No, not at {}.", at.label),
            };
            answer = format!("{verdict}\n{answer}");
        }
        if slots.get("step_free").is_some() {
            let step_free: Vec<&str> = meeting
                .changes
                .iter()
                .filter(|change| change.step_free)
                .map(|change| change.from.name.as_str())
                .collect();
            let note = match step_free.is_empty() {
                true => "None of these changes is step-free.".to_owned(),
                false => format!("Step-free there: {}.", crate::wording::join_with_and(&step_free)),
            };
            answer = format!("{answer}\n{note}");
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str, lines: &[usize]) -> Option<usize> {
        let message = Utterance::new(text);
        let runs: Vec<LineRun> = lines
            .iter()
            .map(|at| LineRun {
                words: *at..at + 1,
                lines: vec![message.word(*at).to_owned()],
                are_alternatives: false,
            })
            .collect();
        changing(&message, &runs).or_else(|| between_lines(&message, &runs)).or_else(|| only_line(&message, &runs))
    }

    #[test]
    fn questions_about_where_lines_meet_are_found() {
        for (text, lines, expected) in [
            ("4 to the J", &[0, 3][..], Some(1)),
            ("where do i switch to the g", &[6], Some(3)),
            ("i need the f off the j", &[3, 6], Some(4)),
            ("to the A?", &[2], Some(0)),
            ("switch me to the q", &[4], None),
            ("is the 4 late", &[2], None),
        ] {
            assert_eq!(position(text, lines), expected, "{text}");
        }
    }
}
