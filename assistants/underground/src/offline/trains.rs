//! Questions about one train of the last departure board: whether it goes to a place, which one does, when it is there.
//!
//! [`super::train_questions`] recognises such a question, and rewrites it with the board and the train that it means. This intent
//! answers the rewritten question from a new board, because the times change.

use serde_json::{Value, json};
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::SPEECH;
use super::board_rows::{Row, clock, minutes_of, rows};
use crate::arrivals::{AnnouncedTrain, calls_at};
use crate::lines::find_line;
use crate::network::network;
use crate::services::TIMETABLE_DATE;

/// The tool that lists the next trains.
const BOARD: &str = "get_next_trains";
/// The words with which a rewritten question starts.
const START: &str = "Announced train; ";
/// The most minutes by which the time of an announced train changes between two boards.
const MAX_CHANGE: i64 = 3;

/// What a message asks about a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// When it leaves.
    Departure,
    /// Whether it goes to the place.
    Goes,
    /// Which train goes to the place.
    Which,
    /// When it is at the place.
    Arrival,
    /// Where it ends.
    End,
    /// From which platform it leaves.
    Platform,
    /// Which train the user can catch who needs some minutes to the platform.
    Catch,
    /// Which train leaves after the one that was reported, if none was announced with it.
    Later,
    /// Where the user gets off.
    GetOff,
}

const ASKED: [(Asked, &str); 9] = [
    (Asked::Departure, "departure"),
    (Asked::Goes, "goes"),
    (Asked::Which, "which"),
    (Asked::Arrival, "arrival"),
    (Asked::End, "end"),
    (Asked::Platform, "platform"),
    (Asked::Catch, "catch"),
    (Asked::Later, "later"),
    (Asked::GetOff, "get off"),
];

/// A question about a train of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrainQuestion {
    pub(super) asked: Asked,
    /// The station of the board.
    pub(super) station: String,
    /// The id of the line of the board, if it is for one.
    pub(super) line: Option<String>,
    /// The direction of the board.
    pub(super) towards: Option<String>,
    /// The name of the train, and when it leaves, in minutes after midnight.
    pub(super) train: Option<(String, i64)>,
    /// The place that the question names.
    pub(super) goal: Option<String>,
    /// The minutes that the user needs to the platform.
    pub(super) minutes: Option<i64>,
}

impl TrainQuestion {
    /// Returns the question as a message.
    pub(super) fn message(&self) -> String {
        let asked = ASKED.iter().find(|(asked, _)| *asked == self.asked).map_or("", |(_, name)| name);
        let field =
            |name: &str, value: Option<&str>| value.map(|value| format!("; {name}={value}")).unwrap_or_default();
        let line = self.line.as_deref().and_then(find_line).map(|line| line.name);
        let leaves = self.train.as_ref().map(|(_, at)| clock(*at));
        let minutes = self.minutes.map(|minutes| minutes.to_string());
        [
            format!("{START}asked={asked}"),
            field("line", line),
            field("train", self.train.as_ref().map(|(name, _)| name.as_str())),
            field("leaves", leaves.as_deref()),
            field("minutes", minutes.as_deref()),
            field("towards", self.towards.as_deref()),
            field("station", Some(&self.station)),
            field("goal", self.goal.as_deref()),
        ]
        .concat()
    }

    /// Parses a message that [`message`](Self::message) returned.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<(&str, &str)> =
            text.strip_prefix(START)?.split("; ").filter_map(|field| field.split_once('=')).collect();
        let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let asked = field("asked")?;
        Some(Self {
            asked: ASKED.iter().find(|(_, name)| *name == asked)?.0,
            station: field("station")?,
            line: field("line").and_then(|name| Some(find_line(&name)?.id.to_owned())),
            towards: field("towards"),
            train: field("train").zip(field("leaves").and_then(|leaves| minutes_of(&leaves))),
            goal: field("goal"),
            minutes: field("minutes").and_then(|minutes| minutes.parse().ok()),
        })
    }
}

/// Finds a rewritten question.
pub(super) fn find_announced(message: &Utterance) -> Vec<Mention> {
    match TrainQuestion::parse(message.text()) {
        Some(_) => {
            let text = message.text();
            vec![Mention::new(0..message.words().len(), vec![Choice::new(text, text)])]
        }
        None => Vec::new(),
    }
}

/// Answers a rewritten question.
pub(super) fn announced_train() -> Intent {
    Intent::new("announced_train")
        .decided_by("announced", |_, _| true)
        .slot(Slot::required("announced", "announced").fresh())
        .then_calls(BOARD, |outcome| {
            let question = question(outcome).filter(|question| question.asked != Asked::GetOff)?;
            let goal = question.goal.clone().filter(|_| question.asked == Asked::Which);
            Some(board(&question, goal.or_else(|| question.towards.clone())))
        })
        .then_calls(BOARD, |outcome| {
            let question = question(outcome).filter(|question| question.asked == Asked::Goes)?;
            let goes = goes_to(&question, &meant(&question, &board_rows(outcome, 0))?);
            (!goes).then(|| board(&question, question.goal.clone()))
        })
        .says(answer)
        .yields(|outcome| {
            let Some(question) = question(outcome) else { return Vec::new() };
            let here = ("station".to_owned(), Choice::new(question.station.as_str(), question.station.as_str()));
            let train = meant(&question, &board_rows(outcome, 0));
            let line = train.and_then(|row| Some(find_line(&row.line)?.id));
            let line = line.map(|line| ("lines".to_owned(), Choice::new(json!([line]), "the line of the train")));
            [here].into_iter().chain(line).collect()
        })
}

fn question(outcome: &Outcome<'_>) -> Option<TrainQuestion> {
    TrainQuestion::parse(outcome.slots().value("announced").as_str()?)
}

fn board(question: &TrainQuestion, towards: Option<String>) -> Value {
    let mut arguments = json!({"station": question.station});
    if let Some(line) = &question.line {
        arguments["line"] = json!(line);
    }
    if let Some(towards) = towards {
        arguments["towards"] = json!(towards);
    }
    arguments
}

fn board_text(outcome: &Outcome<'_>, number: usize) -> String {
    let mut boards = outcome.exchanges().iter().filter(|exchange| exchange.call.name == BOARD);
    boards.nth(number).and_then(|exchange| exchange.value().as_str().map(str::to_owned)).unwrap_or_default()
}

fn board_rows(outcome: &Outcome<'_>, number: usize) -> Vec<Row> {
    rows(&board_text(outcome, number))
}

/// Returns the train that a question means, as the new board announces it.
fn meant(question: &TrainQuestion, rows: &[Row]) -> Option<Row> {
    let Some((name, at)) = &question.train else { return rows.first().cloned() };
    let change = |row: &&Row| (row.at - at + 12 * 60).rem_euclid(24 * 60) - 12 * 60;
    let same = rows.iter().filter(|row| row.name() == *name && change(row).abs() <= MAX_CHANGE);
    same.min_by_key(|row| change(row).abs()).cloned()
}

/// Whether a train goes to the place of the question.
fn goes_to(question: &TrainQuestion, row: &Row) -> bool {
    let ids = |name: &str| -> Vec<String> {
        SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect()
    };
    let Some(line) = find_line(&row.line) else { return false };
    let goal = ids(question.goal.as_deref().unwrap_or_default());
    let (destination, via) =
        row.end.split_once(" via ").map_or((row.end.as_str(), None), |(end, via)| (end, Some(via)));
    ids(&question.station)
        .iter()
        .any(|stop| goal.iter().any(|goal| calls_at(&AnnouncedTrain { line: line.id, stop, destination, via }, goal)))
}

/// Returns the minutes of the ride of a train to the place of the question, from the timetables.
fn ride_minutes(question: &TrainQuestion, row: &Row) -> Option<i64> {
    let ids = |name: &str| -> Vec<String> {
        SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect()
    };
    let line = find_line(&row.line)?.id;
    let (from, to) = (ids(&question.station), ids(question.goal.as_deref()?));
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    let seconds = pairs.filter_map(|(from, to)| Some(network().ride(line, from, to)?.seconds())).min()?;
    Some((i64::from(seconds) + 30) / 60)
}

fn answer(outcome: &Outcome<'_>) -> String {
    let Some(question) = question(outcome) else { return String::new() };
    let (text, rows) = (board_text(outcome, 0), board_rows(outcome, 0));
    let goal = question.goal.as_deref().unwrap_or_default();
    if question.asked == Asked::GetOff {
        return format!("You get off at {goal}, to which you asked for the trains.");
    }
    if question.asked == Asked::Which {
        let Some(row) = rows.first() else { return text };
        return format!("The {} is the first one announced that goes to {goal}.\n{text}", row.text);
    }
    if question.asked == Asked::Later {
        let minutes = question.minutes.unwrap_or_default();
        return match rows.iter().find(|row| row.wait >= minutes) {
            Some(row) => format!("That is the {}.\n{text}", row.text),
            None => format!("No later train is announced there yet.\n{text}"),
        };
    }
    if question.asked == Asked::Catch {
        return which_to_catch(&question, &rows, &text);
    }
    let Some(row) = meant(&question, &rows) else {
        let name = question.train.as_ref().map(|(name, at)| format!(" to which you refer ({name}, {})", clock(*at)));
        return format!("The train{} is not announced there any more.\n{text}", name.unwrap_or_default());
    };
    match question.asked {
        Asked::Goes if goes_to(&question, &row) => format!("Yes, the {} goes to {goal}.", row.text),
        Asked::Goes => {
            let other = board_rows(outcome, 1);
            let next = match other.first() {
                Some(next) => format!("The next one that does: the {}.", next.text),
                None => format!("No train that goes to {goal} is announced there now."),
            };
            format!("No, the {} does not go to {goal}. {next}", row.text)
        }
        Asked::End => format!("It ends at {}: the {}.", row.end, row.text),
        Asked::Platform if row.platform.is_empty() => format!("The platform of the {} is not announced.", row.text),
        Asked::Platform => format!("{}: the {}.", row.platform, row.text),
        Asked::Arrival if !goes_to(&question, &row) => {
            format!("The {} does not go to {goal}, so I cannot say when it is there.", row.text)
        }
        Asked::Arrival => match ride_minutes(&question, &row) {
            Some(minutes) => format!(
                "The {} is at {goal} at about {}, {} min from now: the ride takes about {minutes} min by the timetables of \
                 {TIMETABLE_DATE}.",
                row.text,
                clock(row.at + minutes),
                row.wait + minutes
            ),
            None => format!("I do not know how long the {} takes to {goal}.", row.text),
        },
        _ => format!("That is the {}.\n{text}", row.text),
    }
}

/// Says which train the user can catch.
fn which_to_catch(question: &TrainQuestion, rows: &[Row], text: &str) -> String {
    let minutes = question.minutes.unwrap_or_default();
    match (rows.iter().find(|row| row.wait >= minutes), rows.last()) {
        (Some(row), _) => format!("If you need {minutes} min, you can catch the {}.\n{text}", row.text),
        (None, Some(last)) => {
            format!(
                "No train in {minutes} min or later is announced there yet. The last one announced is the {}.",
                last.text
            )
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(goal: &str, train: &str, at: i64) -> TrainQuestion {
        TrainQuestion {
            asked: Asked::Goes,
            station: "Camden Town".to_owned(),
            line: Some("northern".to_owned()),
            towards: None,
            train: Some((train.to_owned(), at)),
            goal: Some(goal.to_owned()),
            minutes: None,
        }
    }

    #[test]
    fn the_branch_of_the_train_decides_where_it_goes() {
        let text = "Next trains (live, 10:00):\nPlatform 4:\n- Northern line to Morden via Bank in 2 min (10:02)\n\
                    - Northern line to Battersea Power Station via Charing Cross in 5 min (10:05)";
        for (goal, at, expected) in [
            ("Waterloo", 602, false),
            ("London Bridge", 602, true),
            ("Waterloo", 605, true),
            ("Morden", 605, false),
            ("Highgate", 602, false),
        ] {
            let names =
                ["Northern line to Morden via Bank", "Northern line to Battersea Power Station via Charing Cross"];
            let asked = question(goal, names[usize::from(at == 605)], at + 1);
            let row = meant(&asked, &rows(text)).unwrap();
            assert_eq!(goes_to(&asked, &row), expected, "{goal} {at}");
        }
        assert_eq!(meant(&question("Angel", "Northern line to Morden via Bank", 620), &rows(text)), None);
    }

    #[test]
    fn a_question_is_parsed_from_its_message() {
        let asked = question("Harrow & Wealdstone", "Northern line to Edgware via Bank", 725);
        assert_eq!(TrainQuestion::parse(&asked.message()), Some(asked));
        assert_eq!(TrainQuestion::parse("an announced train"), None);
    }
}
