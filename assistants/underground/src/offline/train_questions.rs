//! Recognises follow-ups to a departure board, and rewrites them: questions about one of its trains ("does that one go to Uxbridge?"),
//! and questions that ask for another board ("and the District to Upminster?").

use threadkeep::dialogue::{Mention, Utterance};
use threadkeep::{ChatMessage, Role, Value};
use threadkeep_transit::offline::AFTER;

use super::SPEECH;
use super::board_rows::{Row, rows};
use super::trains::{Asked, TrainQuestion};
use crate::lines::{find_line, line_runs};
use crate::network::network;

/// The tool that lists the next trains.
const BOARD: &str = "get_next_trains";
/// Words that add nothing to a question.
const AROUND: [&str; 32] = [
    "ok", "okay", "and", "so", "but", "then", "oh", "hmm", "well", "right", "please", "now", "what", "whats", "about",
    "how", "the", "instead", "a", "line", "train", "trains", "tube", "one", "ones", "is", "next", "s", "when", "whens",
    "there", "also",
];
/// Verbs that say where a train goes.
const GOING: [&str; 24] = [
    "go", "goes", "going", "stop", "stops", "stopping", "call", "calls", "calling", "take", "takes", "get", "gets",
    "run", "runs", "running", "reach", "reaches", "serve", "serves", "via", "through", "pass", "for",
];
/// Words of questions about something else than one train.
const OTHER: [&str; 21] = [
    "long", "many", "faster", "quicker", "first", "sooner", "change", "changes", "route", "line", "lines", "free",
    "lift", "lifts", "delay", "delays", "delayed", "avoid", "every", "all", "last",
];

/// The departure board of the last answer.
struct LastBoard {
    station: String,
    /// The id of its line, if it is for one.
    line: Option<String>,
    towards: Option<String>,
    rows: Vec<Row>,
    /// The train that the answer reports.
    reported: Option<Row>,
    /// The place of the last question about a train, and what it asked.
    goal: Option<String>,
    asked: Option<Asked>,
}

impl LastBoard {
    /// Returns the newest board of the last answer.
    fn of(earlier: &[ChatMessage]) -> Option<Self> {
        const MAX_TURNS: usize = 3;
        let mut end = earlier.len();
        for _ in 0..MAX_TURNS {
            let start = earlier[..end].iter().rposition(|message| message.role == Role::User)?;
            let turn = &earlier[start..end];
            // "Thanks" and an answer that asks something change no subject.
            if turn.iter().any(|message| message.tool_calls().next().is_some()) {
                return Self::of_turn(turn);
            }
            end = start;
        }
        None
    }

    /// Returns the newest board of the last answers, of which the later ones say how lines and stations are.
    fn recent(earlier: &[ChatMessage]) -> Option<Self> {
        const MAX_TURNS: usize = 3;
        let mut end = earlier.len();
        for _ in 0..MAX_TURNS {
            let start = earlier[..end].iter().rposition(|message| message.role == Role::User)?;
            let turn = &earlier[start..end];
            let mut calls = turn.iter().flat_map(ChatMessage::tool_calls).peekable();
            calls.peek()?;
            if let Some(board) = Self::of_turn(turn) {
                return Some(board);
            }
            if !calls
                .all(|call| matches!(call.name.as_str(), "get_line_status" | "get_station_info" | "get_preference"))
            {
                return None;
            }
            end = start;
        }
        None
    }

    /// Returns the newest board of a turn.
    fn of_turn(turn: &[ChatMessage]) -> Option<Self> {
        let output = |id: &str| {
            let mut results = turn.iter().flat_map(ChatMessage::tool_results);
            results.find(|result| result.call_id == id).map_or("", |result| result.output.as_str())
        };
        let answers = turn.iter().filter(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
        let answer = answers.rev().find(|text| !text.is_empty()).unwrap_or_default();
        let prose = answer.lines().next().unwrap_or_default();
        let calls: Vec<_> = turn.iter().flat_map(ChatMessage::tool_calls).collect();
        let calls: Vec<_> = calls.into_iter().filter(|call| call.name == BOARD).collect();
        let board = |call: &threadkeep::ToolCall| {
            let arguments: Value = call.arguments.read().ok()?;
            let text = |name: &str| arguments[name].as_str().map(str::to_owned);
            let rows = rows(output(&call.id));
            // The last train that the text names is the subject.
            let named = rows.iter().filter_map(|row| Some((prose.find(&row.text)?, row))).max_by_key(|(at, _)| *at);
            let reported = named.map(|(_, row)| row);
            Some((text("station")?, text("line"), text("towards"), reported.cloned(), rows))
        };
        let mut boards = calls.iter().rev().filter_map(|call| board(call));
        let is_reporting = |found: &(String, Option<String>, Option<String>, Option<Row>, Vec<Row>)| found.3.is_some();
        let (station, line, towards, reported, rows) = boards.clone().find(is_reporting).or_else(|| boards.next())?;
        let asked = TrainQuestion::parse(&turn[0].plain_text());
        Some(Self {
            station,
            line: line.and_then(|line| Some(find_line(&line)?.id.to_owned())),
            towards,
            reported: reported.or_else(|| rows.first().cloned()),
            rows,
            asked: asked.as_ref().map(|question| question.asked),
            goal: asked.and_then(|asked| asked.goal),
        })
    }

    fn question(&self, asked: Asked) -> TrainQuestion {
        let train = self.reported.as_ref();
        TrainQuestion {
            asked,
            station: self.station.clone(),
            line: self.line.clone(),
            towards: self.towards.clone(),
            train: train.map(|row| (row.name(), row.at)),
            goal: None,
            minutes: None,
        }
    }

    /// Returns the train to which a reference points; `None` if the board has none.
    fn train(&self, reference: Option<&Value>) -> Option<&Row> {
        let reported = self.reported.as_ref()?;
        match reference {
            None => Some(reported),
            Some(Value::String(after)) if after == AFTER => {
                let is_same_way = |row: &&Row| self.towards.is_some() || row.platform == reported.platform;
                let later = self.rows.iter().skip_while(|row| *row != reported).skip(1);
                later.into_iter().find(is_same_way)
            }
            Some(train) => match (train["nth"].as_u64(), train["in"].as_i64()) {
                (Some(nth), _) => self.rows.get(usize::try_from(nth).ok()?.checked_sub(1)?),
                (None, Some(minutes)) => {
                    let distance = |row: &&Row| (row.wait - minutes).abs();
                    self.rows.iter().filter(|row| distance(row) <= 1).min_by_key(distance)
                }
                _ => None,
            },
        }
    }

    /// Asks for the train after the reported one; if none is announced yet, for one that leaves later.
    fn after_reported(&self) -> Option<TrainQuestion> {
        let reported = self.reported.as_ref()?;
        Some(match self.train(Some(&Value::from(AFTER))) {
            Some(row) => TrainQuestion { train: Some((row.name(), row.at)), ..self.question(Asked::Departure) },
            None => TrainQuestion { minutes: Some(reported.wait + 1), train: None, ..self.question(Asked::Later) },
        })
    }

    /// Returns the name of a mentioned place, on the line of the board if several have the name.
    fn place(&self, mention: &Mention) -> Option<String> {
        let line = self.reported.as_ref().and_then(|row| find_line(&row.line)).map(|line| line.id);
        let is_on_line = |choice: &&threadkeep::dialogue::Choice| {
            line.is_some_and(|line| choice.hints.iter().any(|hint| hint == line))
        };
        let choice = mention.choices.iter().find(is_on_line).or_else(|| mention.choices.first())?;
        Some(choice.value.as_str()?.to_owned())
    }
}

fn has(message: &Utterance, words: &[&str]) -> bool {
    message.words().iter().any(|word| words.contains(&word.folded.as_str()))
}

fn utterance(text: &str) -> Utterance {
    Utterance::new(text).corrected(|message, at| SPEECH.correct(message, at))
}

/// Rewrites a question about a train of the last board.
pub(super) fn with_train(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const MAX_WORDS: usize = 18;
    let message = utterance(text);
    if message.words().len() > MAX_WORDS || TrainQuestion::parse(text).is_some() {
        return None;
    }
    let board = LastBoard::of(earlier).filter(|board| !board.rows.is_empty() || board.goal.is_some())?;
    if let Some(asked) = lines_to_goal(&message, &board) {
        return Some(asked);
    }
    let places = SPEECH.find_stations(&message);
    let found = which(&message, &places, &board)
        .or_else(|| goes(&message, &places, &board))
        .or_else(|| also_goes(&message, &places, &board))
        .or_else(|| end_or_platform(&message, &places, &board))
        .or_else(|| by_train_words(&message, &places, &board))
        .or_else(|| bare(&message, &board))?;
    Some(found.message())
}

/// "So which lines go there?", after "does that one stop at Piccadilly Circus?"
fn lines_to_goal(message: &Utterance, board: &LastBoard) -> Option<String> {
    const WORDS: [&str; 16] = [
        "so", "ok", "and", "then", "which", "what", "line", "lines", "go", "goes", "do", "does", "there", "stop",
        "stops", "run",
    ];
    let goal = board.goal.as_ref()?;
    let is_plain = message.words().iter().all(|word| WORDS.contains(&word.folded.as_str()));
    (is_plain
        && has(message, &["line", "lines"])
        && has(message, &["which", "what"])
        && has(message, &["there", "do", "does"]))
    .then(|| format!("which lines stop at {goal}?"))
}

/// "Which of them goes to Uxbridge?", "which one does then?"
fn which(message: &Utterance, places: &[Mention], board: &LastBoard) -> Option<TrainQuestion> {
    const PLAIN: [&str; 20] = [
        "which", "what", "one", "train", "does", "do", "goes", "go", "there", "stops", "of", "them", "those", "that",
        "will", "can", "would", "could", "me", "take",
    ];
    let count = message.words().len();
    let is_around = |at: usize| AROUND.contains(&message.word(at));
    let at = (0..count).find(|at| matches!(message.word(*at), "which" | "whichever"))?;
    let is_place = |at: usize| places.iter().any(|place| place.words.contains(&at));
    if !(0..at).all(|at| is_around(at) || is_place(at)) || has(message, &OTHER) || !line_runs(message).is_empty() {
        return None;
    }
    let noun = match message.word(at + 1) {
        "one" | "ones" | "train" | "trains" | "do" | "does" | "goes" | "would" | "will" | "can" => true,
        "of" => matches!(message.word(at + 2), "them" | "those" | "these" | "the"),
        _ => false,
    };
    let goal = match places {
        [place] if (at..place.words.start).any(|at| GOING.contains(&message.word(at))) => board.place(place),
        [place]
            if place.words.end <= at && (at..count).all(|at| PLAIN.contains(&message.word(at)) || is_around(at)) =>
        {
            board.place(place)
        }
        [] if (at..count).all(|at| PLAIN.contains(&message.word(at)) || is_around(at)) => board.goal.clone(),
        _ => None,
    };
    let goal = goal.filter(|_| noun)?;
    Some(TrainQuestion { goal: Some(goal), train: None, ..board.question(Asked::Which) })
}

/// "Does that one go to Uxbridge?", "would that take me to Bank?", "is it going via Bank?"
fn goes(message: &Utterance, places: &[Mention], board: &LastBoard) -> Option<TrainQuestion> {
    const AUXILIARIES: [&str; 12] =
        ["does", "do", "will", "would", "is", "can", "could", "doesnt", "isnt", "wont", "should", "did"];
    let [place] = places else { return None };
    let count = message.words().len();
    let start = (0..count).find(|at| AUXILIARIES.contains(&message.word(*at)))?;
    let is_open = has(message, &["when", "whens", "which", "how", "where", "why", "if", "from", "or"]);
    if is_open
        || has(message, &OTHER)
        || !(0..start).all(|at| AROUND.contains(&message.word(at)) || message.word(at) == "wait")
    {
        return None;
    }
    // "Can I take that one to Bank?"
    let mut at = start + 1;
    while matches!(message.word(at), "i" | "we" | "take" | "get" | "catch" | "use" | "ride") {
        at += 1;
    }
    let reference = SPEECH.train_reference_at(message, at);
    let (end, train) = match (message.word(at), reference) {
        (_, Some(found)) => found,
        ("that" | "this", None) => (at + 1, None),
        _ => return None,
    };
    let between = end..place.words.start;
    let goes = between.clone().any(|at| GOING.contains(&message.word(at)))
        || at > start + 1 && between.clone().any(|at| message.word(at) == "to");
    let is_close = !between.is_empty() && between.len() <= 6;
    let closes = (place.words.end..count).all(|at| {
        AROUND.contains(&message.word(at)) || matches!(message.word(at), "too" | "as" | "well" | "on" | "way")
    });
    if !goes || !is_close || !closes || !line_runs(message).is_empty() {
        return None;
    }
    let row = board.train(train.as_ref())?;
    let question = board.question(Asked::Goes);
    Some(TrainQuestion { goal: Some(board.place(place)?), train: Some((row.name(), row.at)), ..question })
}

/// "What about Turnham Green?" after "does that one go to Hammersmith?", and "is that one direct?"
fn also_goes(message: &Utterance, places: &[Mention], board: &LastBoard) -> Option<TrainQuestion> {
    let asked = board.asked.filter(|asked| matches!(asked, Asked::Goes | Asked::Which));
    let is_around = |at: usize| AROUND.contains(&message.word(at)) || message.word(at) == "too";
    let count = message.words().len();
    match (places, asked) {
        ([place], Some(asked)) if (0..count).all(|at| is_around(at) || place.words.contains(&at)) => {
            Some(TrainQuestion { goal: Some(board.place(place)?), ..board.question(asked) })
        }
        ([], _) => {
            let is_direct = |at: usize| matches!(message.word(at), "direct" | "straight" | "through" | "there");
            let start = (0..count).find(|at| matches!(message.word(*at), "is" | "does"))?;
            let (end, train) = SPEECH.train_reference_at(message, start + 1)?;
            let mut rest = end..count;
            let is_plain = (0..start).all(is_around)
                && rest.clone().any(|at| is_direct(at) && message.word(at) != "there")
                && rest.all(|at| is_direct(at) || is_around(at) || message.word(at) == "go");
            let goal =
                board.goal.clone().or_else(|| board.towards.clone().filter(|towards| !towards.ends_with("bound")))?;
            let row = board.train(train.as_ref()).filter(|_| is_plain)?;
            let question = board.question(Asked::Goes);
            Some(TrainQuestion { goal: Some(goal), train: Some((row.name(), row.at)), ..question })
        }
        _ => None,
    }
}

/// "Where does that one end?", "which platform is it?"
fn end_or_platform(message: &Utterance, places: &[Mention], board: &LastBoard) -> Option<TrainQuestion> {
    if !places.is_empty() || !line_runs(message).is_empty() {
        return None;
    }
    let count = message.words().len();
    let start = (0..count).find(|at| matches!(message.word(*at), "where" | "wheres" | "which" | "what" | "whats"))?;
    if !(0..start).all(|at| AROUND.contains(&message.word(at))) {
        return None;
    }
    let gets_off = (start..count).any(|at| {
        matches!((message.word(at), message.word(at + 1)), ("get" | "hop", "off") | ("alight", _) | ("get", "out"))
    });
    let is_own = has(message, &["i", "we"]) && !has(message, &["change", "before", "after"]);
    if let Some(towards) = board.towards.as_ref().filter(|_| gets_off && is_own) {
        let is_place = !towards.ends_with("bound") && !towards.starts_with("away from") && !towards.contains("via ");
        let question = TrainQuestion { goal: Some(towards.clone()), ..board.question(Asked::GetOff) };
        return is_place.then_some(question);
    }
    let is_platform = message.word(start + 1) == "platform";
    let is_way = matches!(message.word(start + 1), "way" | "direction");
    let reference = (start + 1..count).find_map(|at| {
        let found = SPEECH
            .train_reference_at(message, at)
            .or_else(|| matches!(message.word(at), "that" | "this").then_some((at + 1, None)))?;
        let end = found.0..count;
        let ends = end.into_iter().all(|at| {
            matches!(
                message.word(at),
                "go" | "going"
                    | "end"
                    | "ends"
                    | "terminate"
                    | "terminates"
                    | "to"
                    | "up"
                    | "from"
                    | "leave"
                    | "on"
                    | "at"
            ) || AROUND.contains(&message.word(at))
        });
        ends.then_some(found.1)
    });
    let goes = has(message, &["go", "going", "end", "terminate", "ends", "terminates"]);
    let asked = match message.word(start) {
        "where" | "wheres" if goes && reference.is_some() => Asked::End,
        "which" | "what" if is_way && goes && reference.is_some() => Asked::End,
        "which" | "what" if is_platform && (reference.is_some() || start + 2 == count) => Asked::Platform,
        _ => return None,
    };
    let row = board.train(reference.flatten().as_ref())?;
    Some(TrainQuestion { train: Some((row.name(), row.at)), ..board.question(asked) })
}

/// "When is the second one at Bank?", "if I miss it?", "I need 5 minutes to the platform"
fn by_train_words(message: &Utterance, places: &[Mention], board: &LastBoard) -> Option<TrainQuestion> {
    let asks = SPEECH.find_train_question(message).first()?.choices.first()?.value.as_bool()?;
    let goal = match places {
        [] => None,
        [place] => Some(board.place(place)?),
        _ => return None,
    };
    if has(message, &["from"]) && !places.is_empty() || !line_runs(message).is_empty() {
        return None;
    }
    let value = |found: Vec<Mention>| Some(found.first()?.choices.first()?.value.clone());
    let needed = value(SPEECH.find_needed(message)).and_then(|minutes| minutes.as_i64());
    if let Some(minutes) = needed.filter(|_| goal.is_none()) {
        return Some(TrainQuestion { minutes: Some(minutes), train: None, ..board.question(Asked::Catch) });
    }
    let train = value(SPEECH.find_train(message));
    if goal.is_none() && train.as_ref().is_some_and(|train| train == AFTER) {
        return board.after_reported();
    }
    let row = board.train(train.as_ref()).filter(|_| asks || train.is_some())?;
    let asked = if goal.is_some() { Asked::Arrival } else { Asked::Departure };
    Some(TrainQuestion { goal, train: Some((row.name(), row.at)), ..board.question(asked) })
}

/// "And the one after that?", "the following one"
fn bare(message: &Utterance, board: &LastBoard) -> Option<TrainQuestion> {
    const LEADING: [&str; 14] =
        ["and", "ok", "okay", "so", "what", "whats", "how", "about", "then", "if", "when", "whens", "is", "times"];
    let start = (0..message.words().len()).find(|at| !LEADING.contains(&message.word(*at)))?;
    let count = message.words().len();
    // "And after that one?"
    if message.word(start) == "after"
        && SPEECH.train_reference_at(message, start + 1).is_some_and(|(end, _)| end == count)
    {
        return board.after_reported();
    }
    let (end, train) = SPEECH.train_reference_at(message, start)?;
    let train = train.filter(|_| (end..count).all(|at| matches!(message.word(at), "please" | "then")))?;
    // "And the next one?" after an answer about one means the one after it.
    let train = if train["nth"] == 1 && message.word(end - 2) == "next" { Value::from(AFTER) } else { train };
    if train == AFTER {
        return board.after_reported();
    }
    let row = board.train(Some(&train))?;
    Some(TrainQuestion { train: Some((row.name(), row.at)), ..board.question(Asked::Departure) })
}

/// Rewrites a follow-up that asks for another board: another direction, line, start or place to which the trains go.
pub(super) fn with_other_board(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let message = utterance(text);
    if TrainQuestion::parse(text).is_some() {
        return None;
    }
    let board = LastBoard::recent(earlier)?;
    opposite(&message, &board).or_else(|| elsewhere(&message, &board))
}

/// "And going the other way?"
fn opposite(message: &Utterance, board: &LastBoard) -> Option<String> {
    const OPPOSITES: [(&str, &str); 4] = [
        ("northbound", "southbound"),
        ("southbound", "northbound"),
        ("eastbound", "westbound"),
        ("westbound", "eastbound"),
    ];
    const WORDS: [&str; 14] = [
        "going",
        "go",
        "heading",
        "in",
        "other",
        "opposite",
        "reverse",
        "way",
        "direction",
        "round",
        "around",
        "for",
        "to",
        "back",
    ];
    let at = (0..message.words().len()).find(|at| {
        matches!(message.word(*at), "other" | "opposite" | "reverse")
            && matches!(message.word(at + 1), "way" | "direction")
    })?;
    let is_plain = |at: usize| WORDS.contains(&message.word(at)) || AROUND.contains(&message.word(at));
    if !(0..message.words().len()).all(is_plain) || message.word(at).is_empty() {
        return None;
    }
    let platform = board.reported.as_ref()?.platform.to_lowercase();
    let (_, opposite) = OPPOSITES.iter().find(|(way, _)| platform.contains(way))?;
    let line = board.reported.as_ref().and_then(|row| find_line(&row.line)).map_or("", |line| line.name);
    Some(format!("next {opposite} {line} trains at {}", board.station))
}

/// "And the District to Ealing Broadway?", "ok, from Earl's Court then, to Upminster", "and to High Barnet?" after a question about a train
fn elsewhere(message: &Utterance, board: &LastBoard) -> Option<String> {
    let count = message.words().len();
    let (runs, places) = (line_runs(message), SPEECH.find_stations(message));
    let is_named = |at: usize| {
        runs.iter()
            .map(|run| &run.words)
            .chain(places.iter().map(|place| &place.words))
            .any(|words| words.contains(&at))
    };
    let is_way = |at: usize| matches!(message.word(at), "to" | "towards" | "toward" | "from" | "at" | "here");
    let mut rest = (0..count).filter(|at| !is_named(*at));
    if !rest.all(|at| is_way(at) || AROUND.contains(&message.word(at))) {
        return None;
    }
    let opens = matches!(message.word(0), "and" | "ok" | "okay" | "what" | "how" | "then" | "so" | "or")
        || has(message, &["then", "instead"]);
    let after = |words: &[&str]| {
        let is_after = |place: &&Mention| place.words.start > 0 && words.contains(&message.word(place.words.start - 1));
        places.iter().find(is_after)
    };
    let (to, from) = (after(&["to", "towards", "toward"])?, after(&["from", "at"]));
    let is_all = places.len() == 1 + usize::from(from.is_some());
    let named = match &runs[..] {
        [] => None,
        [run] => Some(find_line(run.lines.first().filter(|_| run.lines.len() == 1)?)?),
        _ => return None,
    };
    let name = |place: &Mention| Some(place.choices.first()?.value.as_str()?.to_owned());
    let place = match from {
        Some(from) => name(from)?,
        None => board.station.clone(),
    };
    let line = named.or_else(|| board.line.as_deref().and_then(find_line));
    // After a board alone, "and to Hainault?" changes its direction anyway.
    let is_meant = named.is_some() || from.is_some() || board.asked.is_some();
    let to = to.choices.iter().filter_map(|choice| choice.value.as_str());
    let to = to.into_iter().find(|to| line.is_none_or(|line| goes_between(line.id, &place, to)))?;
    let line = line.map_or("", |line| line.name);
    (opens && is_all && is_meant).then(|| format!("when is the next {line} train at {place} to {to}"))
}

/// Whether trains of a line go from one place to another.
fn goes_between(line: &str, from: &str, to: &str) -> bool {
    let ids =
        |name: &str| SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<String>>();
    let to = ids(to);
    ids(from).iter().any(|from| to.iter().any(|to| network().ride(line, from, to).is_some()))
}

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, ToolCall, ToolResult};

    use super::*;

    const BOARD_TEXT: &str = "Next trains of the Metropolitan line at Wembley Park (live, 09:00):\nNorthbound - Platform 1:\n\
                              - Metropolitan line to Uxbridge in 3 min (09:03)\n- Metropolitan line to Amersham in 9 min (09:09)";

    fn after_board() -> Vec<ChatMessage> {
        let arguments = serde_json::json!({"station": "Wembley Park", "line": "metropolitan"});
        let call = ToolCall { id: "1".to_owned(), name: BOARD.to_owned(), arguments: JsonText::from(&arguments) };
        let result = ToolResult { call_id: "1".to_owned(), output: BOARD_TEXT.to_owned(), is_error: false };
        let message = |role: Role, part: Part| ChatMessage { role, author: None, parts: vec![part], seq: None };
        vec![
            ChatMessage::text(Role::User, "next Met train at Wembley Park"),
            message(Role::Assistant, Part::ToolCall(call)),
            message(Role::Tool, Part::ToolResult(result)),
            ChatMessage::text(Role::Assistant, BOARD_TEXT),
        ]
    }

    #[test]
    fn questions_about_a_train_of_the_board_are_rewritten() {
        let (uxbridge, amersham) = (Some("Metropolitan line to Uxbridge"), Some("Metropolitan line to Amersham"));
        for (text, asked, train, goal) in [
            ("does that one call at Ruislip?", Asked::Goes, uxbridge, Some("Ruislip")),
            ("will the second one take me to Pinner", Asked::Goes, amersham, Some("Pinner")),
            ("could I catch that to Harrow-on-the-Hill?", Asked::Goes, uxbridge, Some("Harrow-on-the-Hill")),
            ("which of them stops at Chorleywood?", Asked::Which, None, Some("Chorleywood")),
            ("so when does it get to Pinner", Asked::Arrival, uxbridge, Some("Pinner")),
            ("and the following one?", Asked::Departure, amersham, None),
            ("what if I miss it?", Asked::Departure, amersham, None),
            ("where does the second one terminate?", Asked::End, amersham, None),
            ("and after that one?", Asked::Departure, amersham, None),
            ("which way is the second one going?", Asked::End, amersham, None),
            ("which way is that going?", Asked::End, uxbridge, None),
            ("it takes me 5 minutes to walk to the platform", Asked::Catch, None, None),
        ] {
            let found = with_train(text, &after_board()).and_then(|found| TrainQuestion::parse(&found));
            let found = found.unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.asked, found.goal.as_deref()), (asked, goal), "{text}");
            assert_eq!(found.train.as_ref().map(|(name, _)| name.as_str()), train, "{text}");
        }
        for text in [
            "does the Jubilee go to Stanmore?",
            "is that line ok?",
            "how long does it take to Pinner?",
            "how do I get to Bank",
        ] {
            assert_eq!(with_train(text, &after_board()), None, "{text}");
        }
        assert_eq!(with_train("does that one call at Ruislip?", &[]), None);
    }

    #[test]
    fn follow_ups_ask_for_other_boards() {
        for (text, expected) in [
            ("and going the other way?", Some("next southbound Metropolitan line trains at Wembley Park")),
            ("and the Jubilee to Stanmore?", Some("when is the next Jubilee line train at Wembley Park to Stanmore")),
            (
                "ok, from Finchley Road then, to Uxbridge",
                Some("when is the next Metropolitan line train at Finchley Road to Uxbridge"),
            ),
            ("from Finchley Road to Uxbridge", None),
            ("how do I get from Finchley Road to Uxbridge then", None),
        ] {
            assert_eq!(with_other_board(text, &after_board()).as_deref(), expected, "{text}");
        }
    }
}
