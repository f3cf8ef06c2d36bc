//! Rewrites messages that go on from the last departure board or trip in words that need it: "how many stops is it to there?", "how do I
//! get to Bank from there?", "just the route then".

use std::ops::Range;

use threadkeep::dialogue::{Mention, Utterance};
use threadkeep::{ChatMessage, Role, ToolCall, Value};

use super::Speech;

/// Words that add nothing to a question.
const AROUND: [&str; 14] =
    ["ok", "okay", "and", "so", "then", "now", "please", "fine", "well", "alright", "but", "oh", "n", "right"];
/// The tools that plan trips.
const ROUTES: [&str; 2] = ["get_route", "get_route_with_arrivals"];

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

fn is_all(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().all(|word| known.contains(&word.folded.as_str()) || AROUND.contains(&word.folded.as_str()))
}

fn arguments(call: &ToolCall) -> Value {
    call.arguments.read().unwrap_or_default()
}

/// Returns the messages of the last turn that called tools.
fn last_calling_turn(earlier: &[ChatMessage]) -> Option<&[ChatMessage]> {
    let mut end = earlier.len();
    while let Some(start) = earlier[..end].iter().rposition(|message| message.role == Role::User) {
        let turn = &earlier[start..end];
        if turn.iter().any(|message| message.tool_calls().next().is_some()) {
            return Some(turn);
        }
        end = start;
    }
    None
}

/// Returns the ends of the last trip, if it had no conditions.
fn last_trip(earlier: &[ChatMessage]) -> Option<(String, String, bool)> {
    let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls);
    let asked = arguments(calls.find(|call| ROUTES.contains(&call.name.as_str()))?);
    let end = |name: &str| asked[name].as_str().map(str::to_owned);
    let conditions = ["avoid_lines", "only_lines", "step_free", "leave_at", "arrive_by", "fewest_changes"];
    let is_plain = conditions.iter().all(|name| matches!(&asked[*name], Value::Null | Value::Bool(false)));
    Some((end("from_station")?, end("to_station")?, is_plain))
}

impl Speech {
    /// Rewrites a message that goes on from the last board or trip.
    #[must_use]
    pub fn with_last_trip(&self, text: &str, earlier: &[ChatMessage]) -> Option<String> {
        const MAX_WORDS: usize = 20;
        let message = Utterance::new(text).corrected(|message, at| self.correct(message, at));
        if message.words().is_empty() || message.words().len() > MAX_WORDS {
            return None;
        }
        let with_line = self.with_line_for_it(&message);
        with_line
            .or_else(|| self.ride_of_board(&message, earlier))
            .or_else(|| self.leaving_board(&message, earlier))
            .or_else(|| self.route_again(&message, earlier))
            .or_else(|| self.of_list(&message, earlier))
    }

    /// "4 works. What's the stop after Union Sq on it?": the line that the message names
    fn with_line_for_it(&self, message: &Utterance) -> Option<String> {
        let runs = (self.line_runs)(message);
        let [run] = &runs[..] else { return None };
        let count = message.words().len();
        let it = count
            .checked_sub(1)
            .filter(|at| message.word(*at) == "it" && message.word(at.saturating_sub(1)) == "on")?;
        let is_earlier = (run.words.end - 1..it - 1).any(|at| message.words()[at].ends_a_sentence());
        let asks = has(message, &["what", "whats", "which", "where", "next", "how"]);
        let line = self.system.line_name(run.lines.first().filter(|_| run.lines.len() == 1)?);
        let start = (run.words.end..it).find(|at| message.words()[at - 1].ends_a_sentence())?;
        (is_earlier && asks).then(|| format!("{} on the {line}", message.said(start..it - 1)))
    }

    /// Returns the last board, if the last turn shows no other, and its answer.
    fn last_board(&self, earlier: &[ChatMessage]) -> Option<(Value, String)> {
        let turn = last_calling_turn(earlier)?;
        let calls: Vec<&ToolCall> = turn.iter().flat_map(ChatMessage::tool_calls).collect();
        let last = calls.last().filter(|call| call.name == self.board.name)?;
        let board = arguments(last);
        let is_same = |call: &&ToolCall| {
            call.name != self.board.name || arguments(call)[self.board.station] == board[self.board.station]
        };
        let mut answers = turn.iter().filter(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
        let answer = answers.rfind(|text| !text.is_empty()).unwrap_or_default();
        let is_board = answer.starts_with("Next trains") || answer.starts_with("No train");
        calls.iter().all(is_same).then_some((board, answer)).filter(|_| is_board || calls.len() > 1)
    }

    /// "How many stops is it to there?", "how long is the ride?", after a board of trains to a place
    fn ride_of_board(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        const STOPS: [&str; 17] = [
            "how", "many", "stops", "stations", "is", "it", "that", "are", "to", "there", "get", "till", "until",
            "number", "of", "away", "total",
        ];
        const LONG: [&str; 15] = [
            "how", "long", "is", "the", "ride", "trip", "journey", "does", "it", "take", "to", "there", "will", "that",
            "in",
        ];
        let counts =
            has(message, &["stops", "stations"]) && has(message, &["many", "number"]) && is_all(message, &STOPS);
        let times = has(message, &["long"]) && has(message, &["ride", "trip", "journey"]) && is_all(message, &LONG);
        if !counts && !times {
            return None;
        }
        let (board, answer) = self.last_board(earlier)?;
        let here = board[self.board.station].as_str()?;
        let goal = self.goal_of(&board, &answer)?;
        let what = if counts { "how many stops" } else { "how long" };
        Some(format!("{what} is it from {here} to {goal}{}", self.on_line(&board)))
    }

    /// Returns the place to which the trains of a board go: the one for which the user asked, or the only one where they end.
    fn goal_of(&self, board: &Value, answer: &str) -> Option<String> {
        let complexes =
            |name: &str| self.system.places(name).into_iter().map(|place| place.complex).collect::<Vec<_>>();
        let here = complexes(board[self.board.station].as_str()?);
        let is_place = |name: &str| {
            let there = complexes(name);
            !name.ends_with("bound")
                && !name.starts_with("away from")
                && !name.contains("via ")
                && self.area_in(&Utterance::new(name)).is_none()
                && !there.is_empty()
                && !there.iter().any(|complex| here.contains(complex))
        };
        if let Some(goal) = board[self.board.direction].as_str() {
            return is_place(goal).then(|| goal.to_owned());
        }
        let end = |row: &str| Some(row.strip_prefix("- ")?.split_once(" to ")?.1.rsplit_once(" in ")?.0.to_owned());
        let mut ends: Vec<String> = answer.lines().filter_map(end).collect();
        ends.dedup();
        match &ends[..] {
            [end] if is_place(end) => Some(end.clone()),
            _ => None,
        }
    }

    fn on_line(&self, board: &Value) -> String {
        board["line"].as_str().map(|line| format!(" on the {}", self.system.line_name(line))).unwrap_or_default()
    }

    /// "How do I get to Bank from there?", after a board: from its station, not from where its trains go
    fn leaving_board(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        let from = (0..message.words().len()).find(|at| {
            matches!(message.word(*at), "from" | "leave" | "leaves" | "leaving") && message.word(at + 1) == "there"
        })?;
        // "From Bank to there" names another start.
        if (0..from).any(|at| message.word(at) == "from") {
            return None;
        }
        // "The other way from there" asks for the same board.
        if has(message, &["other", "opposite"]) {
            return None;
        }
        let (board, _) = self.last_board(earlier)?;
        let goes = board[self.board.direction].is_string();
        let here = board[self.board.station].as_str()?;
        let word = |at: usize| &message.words()[at].span;
        goes.then(|| {
            let text = message.text();
            let verb = if message.word(from) == "from" { "from" } else { "leaves" };
            let verb = if verb == "from" {
                text[word(from).clone()].to_owned()
            } else {
                format!("{} from", &text[word(from).clone()])
            };
            format!("{}{verb} {here}{}", &text[..word(from).start], &text[word(from + 1).end..])
        })
    }

    /// "Just the route then", after a question about something else; "ask the planner once more"
    fn route_again(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        const NOUNS: [&str; 6] = ["route", "planner", "journey", "directions", "trip", "way"];
        const WORDS: [&str; 24] = [
            "just",
            "the",
            "only",
            "give",
            "me",
            "tell",
            "show",
            "a",
            "route",
            "planner",
            "journey",
            "directions",
            "trip",
            "way",
            "ask",
            "try",
            "check",
            "plan",
            "again",
            "once",
            "more",
            "that",
            "get",
            "it",
        ];
        let is_plain = is_all(message, &WORDS) && has(message, &NOUNS);
        let repeats = has(message, &["again", "more"]) && has(message, &["ask", "try", "check", "plan", "planner"]);
        let is_only = has(message, &["just", "only"]) && !has(message, &["again"]);
        if !is_plain || !repeats && !is_only {
            return None;
        }
        if repeats {
            let (from, to, is_plain) = last_trip(earlier)?;
            return is_plain.then(|| format!("how do I get from {from} to {to}"));
        }
        let asked = earlier.iter().rev().filter(|message| message.role == Role::User);
        let (from, to) = asked.take(3).find_map(|asked| {
            let asked = Utterance::new(asked.plain_text());
            let places = self.find_stations(&asked);
            let after = |words: &[&str]| {
                let is_after =
                    |place: &&Mention| place.words.start > 0 && words.contains(&asked.word(place.words.start - 1));
                places.iter().find(is_after).map(|place| asked.said(place.words.clone()).to_owned())
            };
            after(&["from"]).zip(after(&["to"]))
        })?;
        Some(format!("how do I get from {from} to {to}"))
    }

    /// "88 St too?", after a list of a line's stops
    fn of_list(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        let places = self.find_stations(message);
        let [place] = &places[..] else { return None };
        let is_close = |at: usize| {
            let rest: Range<usize> = place.words.clone();
            rest.contains(&at)
                || AROUND.contains(&message.word(at))
                || matches!(message.word(at), "too" | "also" | "as" | "at" | "what" | "about")
        };
        let call = last_calling_turn(earlier)?.iter().flat_map(ChatMessage::tool_calls).last()?;
        let asked = arguments(call);
        let is_list = call.name == "find_stations_on_line" && asked["change_to"].is_null();
        let line = self.system.line_name(asked["line"].as_str()?);
        (is_list && (0..message.words().len()).all(is_close) && has(message, &["too", "also", "as", "what"]))
            .then(|| format!("does the {line} stop at {}?", message.said(place.words.clone())))
    }
}
