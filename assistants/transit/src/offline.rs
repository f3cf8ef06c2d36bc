//! How riders speak: stations, lines, conditions and saved places in a message, and the intents that every system shares.
//!
//! An assistant declares a [`Speech`], and builds its offline model from these parts and its own.

mod adjacent;
mod asked;
mod boards;
mod boards_again;
mod conditions;
mod edges;
mod ends;
mod legs;
mod line_stops;
mod lines;
mod listing;
mod meetings;
mod outage;
mod personal;
mod saved;
mod skipped_stops;
mod spelling;
mod statements;
mod stations;
mod train_words;
mod trip_again;
mod trips;
mod words;

use std::borrow::Cow;

use threadkeep::dialogue::time::{Relation, Times};
use threadkeep::dialogue::{Choice, Extractor as _, Mention, Phrases, Utterance};

pub use asked::{ASPECT_PHRASES, find_access, find_back, find_legs, find_recall, find_ride_time};
pub use boards::{at_station, away_from, is_train_to, line_ends, lines_of, lines_to, on_lines, station_info, stops_at};
pub use boards_again::{BoardTool, compared_boards, decoded, encoded, find_compared_boards};
pub use conditions::{asks_arrival, asks_when, find_direct, find_now, find_own_arrival, find_step_free};
pub use ends::find_ends;
pub use legs::{Leg, legs_in};
pub use line_stops::stations_on_line;
pub use lines::{AVOIDING_IT, LineRun, group_lines};
pub use meetings::line_meeting;
pub use personal::{find_topics, personal_intents};
pub use saved::{last_result_text, station, with_saved};
pub use statements::{find_habits, find_statements, in_plain_words};
pub use stations::{find_saved, find_saved_keys, saved_key};
pub use train_words::{AFTER, FIRST_THERE, with_minutes_to_platform};
pub use trips::{ENDS, other_saved, route_intent, to_station, trip_arguments};
pub use words::UNITS;

use crate::System;

/// Example messages that all assistants for riders share: follow-ups, corrections, conditions.
pub const FOLLOW_UPS: &str = include_str!("offline/follow-ups.txt");

/// More example messages that all assistants for riders share, as different people type them.
pub const MESSAGES: &str = include_str!("offline/messages.txt");

/// The answer to a request to delete a saved place.
pub const NOT_DELETED: &str =
    "I cannot delete what you saved. A new value replaces the old one: “My home station is …”.";

/// How the riders of a system talk about it.
#[derive(Clone, Copy, Debug)]
pub struct Speech {
    /// The system.
    pub system: System,
    /// Finds the lines of a message, grouped into runs.
    pub line_runs: fn(&Utterance) -> Vec<LineRun>,
    /// Finds names of stations that are certain, before the rest of the message is searched.
    pub exact_names: fn(&Utterance) -> Vec<Mention>,
    /// Returns the full name for a short form: "125" is 125 St.
    pub whole_name: fn(&str) -> Cow<'_, str>,
    /// The words of lines' names, whose spelling is corrected.
    pub line_words: &'static [&'static str],
    /// Finds where trains go, as signs call it.
    pub directions: fn(&Utterance) -> Vec<Mention>,
    /// How the system lists the next trains.
    pub board: BoardTool,
    /// The name of a station, for examples.
    pub example_station: &'static str,
}

impl Speech {
    /// Finds times. "Until the 7" is about a line, not about a day.
    pub fn times(&'static self, relations: [Relation; 3]) -> impl Fn(&Utterance) -> Vec<Mention> {
        let times = Times::with(relations);
        let is_departure = relations.contains(&Relation::At);
        let earliest = Times::with([Relation::Before]);
        move |message| {
            let lines = self.find_lines(message);
            let ends_with_line = |mention: &Mention| lines.iter().any(|line| line.words.end == mention.words.end);
            let found = times.find(message).into_iter().filter(|mention| !is_not_before(message, mention));
            let found = found.filter(|mention| !is_departure || !is_of_event(message, mention));
            let of_events = Times::with([Relation::At]).find(message).into_iter();
            let of_events = of_events.filter(|mention| !is_departure && is_of_event(message, mention));
            let of_events = of_events.map(|mention| by_time(message, mention));
            let not_before = earliest.find(message).into_iter().filter(|mention| is_not_before(message, mention));
            let not_before = not_before.filter(|_| is_departure).map(|mention| at_time(message, mention));
            let found = found.chain(bare_hour(message)).chain(not_before).chain(of_events);
            found.filter(|mention| !ends_with_line(mention) && !is_where_the_user_is(message, mention)).collect()
        }
    }
}

/// Whether "at" ends "where I am at" before the day: "the stop I'm at today".
fn is_where_the_user_is(message: &Utterance, mention: &Mention) -> bool {
    let start = mention.words.start;
    let before = start.checked_sub(1).map_or("", |at| message.word(at));
    message.word(start) == "at"
        && matches!(before, "im" | "am" | "were" | "are" | "is" | "be")
        && matches!(message.word(start + 1), "today" | "now" | "tonight" | "tomorrow")
}

/// Whether a time is that of an event for which the user must be on time: "the 7:05 game", "my flight at 6".
fn is_of_event(message: &Utterance, mention: &Mention) -> bool {
    const EVENTS: [&str; 28] = [
        "flight",
        "flights",
        "game",
        "match",
        "show",
        "concert",
        "meeting",
        "interview",
        "appointment",
        "reservation",
        "class",
        "lecture",
        "exam",
        "kickoff",
        "kick",
        "movie",
        "film",
        "play",
        "gig",
        "wedding",
        "funeral",
        "checkin",
        "dinner",
        "booking",
        "dentist",
        "doctor",
        "doctors",
        "audition",
    ];
    const AWAY: [&str; 8] = ["after", "from", "leaving", "leave", "home", "back", "ends", "finishes"];
    let words = &mention.words;
    let is_event = |at: usize| EVENTS.contains(&message.word(at));
    let is_named = is_event(words.end) || (words.start.saturating_sub(3)..words.start).any(is_event);
    is_named && !(0..words.end).any(|at| AWAY.contains(&message.word(at)))
}

/// Returns a time as the latest time to arrive.
fn by_time(message: &Utterance, mention: Mention) -> Mention {
    let said = message.said(mention.words.clone());
    let time = ["at ", "for ", "around ", "about "].iter().find_map(|word| said.strip_prefix(word)).unwrap_or(said);
    let choice = Choice::new(format!("by {time}"), time);
    Mention::new(mention.words, vec![choice])
}

/// Whether the time is the earliest time to leave: "I can't leave before 3".
fn is_not_before(message: &Utterance, mention: &Mention) -> bool {
    const NEGATIONS: [&str; 7] = ["cant", "cannot", "not", "wont", "dont", "couldnt", "never"];
    let start = mention.words.start;
    let at = if message.word(start) == "before" { Some(start) } else { start.checked_sub(1) };
    let Some(before) = at.filter(|at| message.word(*at) == "before") else { return false };
    let is_negated = |at: usize| NEGATIONS.contains(&message.word(at));
    (before.saturating_sub(4)..before).any(is_negated)
}

/// Returns a time that follows "before" as a time to leave.
fn at_time(message: &Utterance, mention: Mention) -> Mention {
    let said = message.said(mention.words.clone());
    let time = said.strip_prefix("before ").unwrap_or(said);
    let choice = Choice::new(format!("at {time}"), time);
    Mention::new(mention.words, vec![choice])
}

/// Finds the hour in "make it 7", which replaces the time to leave or to arrive.
fn bare_hour(message: &Utterance) -> Option<Mention> {
    const NUMBERS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let count = message.words().len();
    // "Make it 7", "push it to six"
    let starts = |at: usize| {
        let moves = matches!(
            message.word(at),
            "make" | "push" | "pushed" | "move" | "moved" | "shift" | "shifted" | "put" | "delay"
        ) && matches!(message.word(at + 1), "it" | "that");
        let is_to = matches!(message.word(at + 2), "to" | "till" | "until");
        moves.then_some(if is_to { at + 3 } else { at + 2 })
    };
    let (start, at) = (0..count).find_map(|at| Some((at, starts(at)?)))?;
    let word = message.word(at);
    let number = NUMBERS.iter().position(|known| *known == word).map(|index| index + 1);
    let hour = number.or_else(|| word.parse().ok())?;
    let is_last = at + 1 == count || matches!(message.word(at + 1), "instead" | "please" | "then");
    let choice = || Choice::new(format!("at {hour}"), message.said(at..at + 1));
    (is_last && (1..=NUMBERS.len()).contains(&hour)).then(|| Mention::new(start..at + 1, vec![choice()]))
}

/// Returns the phrases of an assistant for riders.
#[must_use]
pub fn trip_phrases(greeting: &str, welcome: &str) -> Phrases {
    let english = Phrases::english();
    let mut continuations = english.continuations.clone();
    continuations.extend(["no", "actually", "sorry", "on second thought", "also"].map(str::to_owned));
    let mut conjunctions = english.conjunctions.clone();
    conjunctions.push("plus".to_owned());
    Phrases {
        conjunctions,
        failed: "I could not look that up: {output}".to_owned(),
        greeting: greeting.to_owned(),
        welcome: welcome.to_owned(),
        continuations,
        ..english
    }
}
