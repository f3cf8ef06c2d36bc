//! Intents about a station or a line.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots, Utterance};

use super::Speech;
use super::ends::BRANCHES;
use super::saved::{last_result_text, station, with_saved};
use crate::Resolution;

/// Returns the lines in a slot's value.
#[must_use]
pub fn lines_of(value: &Value) -> Vec<String> {
    match value {
        // The form in the arguments of calls.
        Value::String(lines) => lines.split(',').map(|line| line.trim().to_owned()).collect(),
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// Returns a slot for the station that a question is about.
#[must_use]
pub fn at_station(name: &str) -> Slot {
    let cues = [
        "at",
        "from",
        "in",
        "near",
        "leave",
        "leaves",
        "leaving",
        "to",
        "on",
        "close to",
        "closest to",
        "next to",
        "near to",
        "nearest to",
        "by",
    ];
    Slot::required(name, "station").after(cues).asks("At which station?").narrowed_by(on_lines).narrowing_assumed()
}

/// Returns the direction away from a station, or back towards it.
#[must_use]
pub fn away_from(towards: &Choice) -> Option<Choice> {
    let text = towards.value.as_str()?;
    let opposite = match text.strip_prefix("away from ") {
        Some(station) => station.to_owned(),
        None => format!("away from {text}"),
    };
    Some(Choice::new(opposite.as_str(), opposite.as_str()))
}

/// Whether a word stands for the trains to the station named before it: "does the Hainault one stop there", "only the
/// Wimbledon ones".
#[must_use]
pub fn is_train_to(message: &Utterance, at: usize) -> bool {
    const MAX_NAME_WORDS: usize = 3;
    if !matches!(message.word(at), "one" | "ones" | "train" | "trains") {
        return false;
    }
    let starts = |the: usize| {
        let before = the.checked_sub(1).map_or("", |before| message.word(before));
        matches!(message.word(the), "the" | "that" | "this")
            && matches!(before, "does" | "do" | "will" | "only" | "is" | "are" | "just" | "about" | "on")
    };
    (at.saturating_sub(MAX_NAME_WORDS + 1)..at.saturating_sub(1)).any(starts)
}

/// Narrows stations with the same name to those at which a mentioned line stops.
#[must_use]
pub fn on_lines(choices: &[Choice], slots: &Slots) -> Vec<Choice> {
    let lines = lines_of(&slots.value("lines"));
    let is_on = |choice: &&Choice| lines.iter().any(|line| choice.hints.contains(line));
    choices.iter().filter(is_on).cloned().collect()
}

/// Like [`on_lines`], but if no line stops at any of the stations, returns them as one choice: the answer is the same
/// for all of them.
fn on_lines_or_all(choices: &[Choice], slots: &Slots) -> Vec<Choice> {
    let on_lines = on_lines(choices, slots);
    match choices.first() {
        Some(first) if on_lines.is_empty() && choices.len() > 1 && !lines_of(&slots.value("lines")).is_empty() => {
            let name = first.label.split(" (").next().unwrap_or(&first.label);
            vec![Choice::new(name, name)]
        }
        _ => on_lines,
    }
}

impl Speech {
    /// Whether a place that a follow-up names is where the trains of a board go, rather than another station: trains of the lines
    /// end there, or the board is already for the trains to a place and they also go to this one.
    #[must_use]
    pub fn is_where_board_goes(&self, place: &Choice, board: &Slots, at: &str) -> bool {
        let goes_on = || {
            let has_end = board.get("towards").is_some_and(|towards| towards.label != place.label);
            has_end && board.get(at).is_some_and(|here| self.has_direct_ride(here, place, &board.value("lines")))
        };
        self.is_end_of_line(place, board, at) || goes_on()
    }

    /// Returns the station with the same name, near a board's station, at which the board's line stops if it does not stop at that
    /// station: "and the Q?" after a board for 86 St on the 6.
    #[must_use]
    pub fn on_named_line(&self, here: &Choice, board: &Slots) -> Option<Choice> {
        let lines = lines_of(&board.value("lines"));
        let name = here.value.as_str()?.split(" (").next()?;
        if lines.is_empty() || here.hints.is_empty() || lines.iter().any(|line| here.hints.contains(line)) {
            return None;
        }
        let choices = self.choices_of(name, &lines);
        let [choice] = &choices[..] else { return None };
        let is_on_lines = lines.iter().all(|line| choice.hints.contains(line));
        is_on_lines.then(|| self.nearest_to(&choices, here)).flatten()
    }

    /// Whether one of the lines, or any if none is given, goes from one place to another.
    pub(super) fn has_direct_ride(&self, from: &Choice, to: &Choice, lines: &Value) -> bool {
        let network = (self.system.network)();
        let ids = |choice: &Choice| -> Vec<String> {
            let place = choice.value.as_str().and_then(|text| self.system.places(text).into_iter().next());
            place.map(|place| place.stations).unwrap_or_default()
        };
        let (from, to, lines) = (ids(from), ids(to), lines_of(lines));
        let is_named = |line: &&crate::Line| lines.is_empty() || lines.contains(&line.name) || lines.contains(&line.id);
        network
            .lines()
            .iter()
            .filter(is_named)
            .any(|line| from.iter().any(|from| to.iter().any(|to| network.ride(&line.id, from, to).is_some())))
    }

    /// Whether trains of a board's lines end at a place, and the board is for another station of these lines.
    fn is_end_of_line(&self, place: &Choice, board: &Slots, at: &str) -> bool {
        let ids = |choice: &Choice| -> Vec<String> {
            let places = choice.value.as_str().map(|text| self.system.places(text)).unwrap_or_default();
            places.into_iter().flat_map(|place| place.stations).collect()
        };
        let lines = lines_of(&board.value("lines"));
        let Some(here) = board.get(at).filter(|_| !lines.is_empty()).map(ids) else { return false };
        let (network, ends) = ((self.system.network)(), ids(place));
        let is_named = |line: &&crate::Line| lines.iter().any(|named| *named == line.name || *named == line.id);
        let mut sequences = network.lines().iter().filter(is_named).flat_map(|line| &line.sequences);
        sequences.any(|sequence| {
            let mut stations = sequence.stations.iter().map(|index| &network.stations()[*index].id);
            let last = sequence.stations.last().map(|index| &network.stations()[*index].id);
            last.is_some_and(|last| ends.contains(last) && !here.contains(last)) && stations.any(|id| here.contains(id))
        })
    }
}

/// "Does the 4 stop at 96 St?"
#[must_use]
pub fn stops_at(speech: &'static Speech, example: &str) -> Intent {
    let intent = Intent::new("stops_at")
        .example(example)
        .slot(at_station("station").narrowed_by(on_lines_or_all))
        .slot(Slot::required("lines", "lines").asks("Which line?"))
        .decided_by("serves", |_, _| true)
        .excluded_by("ridetime")
        .slot(Slot::optional("every", "every").momentary());
    with_saved(intent, &["station"])
        .then_calls("get_station_info", |outcome| {
            let name = station(outcome, "station")?;
            let lines = lines_of(&outcome.slots().value("lines"));
            Some(json!({"station": speech.disambiguated(&name, &lines)}))
        })
        .says(move |outcome| speech.missing(outcome, &["station"]).unwrap_or_else(|| speech.whether_it_stops(outcome)))
}

impl Speech {
    /// Resolves a name with the given lines, and returns text that identifies the station; returns the name unchanged
    /// if the lines do not disambiguate it.
    fn disambiguated(&self, name: &str, lines: &[String]) -> String {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        match (self.system.names)().resolve_on(name, &lines) {
            Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => self.text_of(&place),
            _ => name.to_owned(),
        }
    }

    /// Returns the terminals of the trains of a line that do not stop at a place; `None` if all stop there.
    fn trains_elsewhere(&self, line: &str, places: &[crate::Place]) -> Option<String> {
        let network = (self.system.network)();
        let is_here = |index: &usize| {
            let id = &network.stations()[*index].id;
            places.iter().any(|place| place.stations.contains(id))
        };
        let name = self.system.line_name(line);
        let lines = network.lines().iter().filter(|known| known.name == name || known.id == line);
        let others = lines.flat_map(|line| &line.sequences).filter(|sequence| !sequence.stations.iter().any(is_here));
        let mut ends: Vec<String> = Vec::new();
        for index in others.filter_map(|sequence| sequence.stations.last()) {
            let end = network.stations()[*index].name.clone();
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        (!ends.is_empty()).then(|| crate::wording::join_with_and(&ends))
    }

    fn whether_it_stops(&self, outcome: &Outcome<'_>) -> String {
        let lines = lines_of(&outcome.slots().value("lines"));
        let found = self.system.places(&station(outcome, "station").unwrap_or_default());
        let info = last_result_text(outcome);
        if found.is_empty() {
            return info;
        }
        let info = if found.len() > 1 { String::new() } else { info };
        let usually = self.system.words.by_day;
        let verdicts = lines.iter().map(|line| {
            let name = self.system.line_name(line);
            let stop = found.iter().map(|place| self.system.view_of(place)).find(|view| view.lines.contains(line));
            let not_all = || outcome.slots().get("every").and_then(|_| self.trains_elsewhere(line, &found));
            match stop {
                Some(view) if not_all().is_some() => {
                    let elsewhere = not_all().unwrap_or_default();
                    format!("No, not every {name} stops at {}: some end at {elsewhere}.", view.name)
                }
                Some(view) => format!("Yes, {usually}the {name} stops at {}.", view.name),
                None => {
                    let here = found.first().map(|place| self.system.view_of(place).name).unwrap_or_default();
                    format!("No, {usually}the {name} does not stop at {here}.")
                }
            }
        });
        let verdicts: Vec<String> = verdicts.collect();
        format!("{}\n{info}", verdicts.join(" ")).trim_end().to_owned()
    }
}

/// "Which of the trains at Union Sq stop at DeKalb?"
#[must_use]
pub fn lines_to(speech: &'static Speech) -> Intent {
    let intent = Intent::new("lines_to")
        .slot(
            Slot::required("from", "station")
                .after(["at", "from", "of", "in"])
                .asks("From which station?")
                .carried_from("from_station")
                .carried_from("station_name")
                .narrowed_by(on_lines)
                .narrowing_assumed(),
        )
        .slot(
            Slot::required("to", "station")
                .fresh()
                .after([
                    "stop at",
                    "stops at",
                    "stopping at",
                    "to",
                    "call at",
                    "also stop at",
                    "serve",
                    "reach",
                    "get to",
                    "go to",
                ])
                .asks("To which station?")
                .narrowed_by(on_lines_or_same_name),
        )
        .slot(Slot::optional("lines", "lines"));
    with_saved(intent, &["from", "to"])
        .then_calls("get_station_info", |outcome| Some(json!({"station": station(outcome, "to")?})))
        .says(move |outcome| speech.missing(outcome, &["from", "to"]).unwrap_or_else(|| speech.lines_between(outcome)))
}

/// Like [`on_lines`], but returns several stations with the same name as one choice: the answer distinguishes them.
fn on_lines_or_same_name(choices: &[Choice], slots: &Slots) -> Vec<Choice> {
    let on_lines = on_lines(choices, slots);
    match choices.first() {
        Some(first) if on_lines.is_empty() && choices.len() > 1 => {
            let name = first.label.split(" (").next().unwrap_or(&first.label);
            vec![Choice::new(name, name)]
        }
        _ => on_lines,
    }
}

impl Speech {
    /// Says which lines run between two stations without a change, for each station with the name of the second one.
    fn lines_between(&self, outcome: &Outcome<'_>) -> String {
        let places = |slot: &str| self.system.places(&station(outcome, slot).unwrap_or_default());
        let Some(from) = places("from").into_iter().next() else { return last_result_text(outcome) };
        let network = (self.system.network)();
        let usually = self.system.words.usually;
        let here = self.system.view_of(&from);
        let rows = places("to").into_iter().map(|to| {
            let there = self.system.view_of(&to);
            let goes = |line: &&crate::Line| {
                let mut pairs = from.stations.iter().flat_map(|from| to.stations.iter().map(move |to| (from, to)));
                pairs.any(|(from, to)| network.ride(&line.id, from, to).is_some())
            };
            let mut names: Vec<String> = Vec::new();
            for line in network.lines().iter().filter(goes) {
                if !names.contains(&line.name) && here.lines.contains(&line.name) && there.lines.contains(&line.name) {
                    names.push(line.name.clone());
                }
            }
            let place = crate::wording::place(&self.system, &there);
            match names.is_empty() {
                true => format!("No train goes from {} to {place} without a change{usually}.", here.name),
                false => format!("From {} to {place}: the {}{usually}.", here.name, names.join(" and the ")),
            }
        });
        let rows: Vec<String> = rows.collect();
        if rows.is_empty() { last_result_text(outcome) } else { rows.join("\n") }
    }
}

/// A question about a station itself.
#[must_use]
pub fn station_info(speech: &'static Speech, example: &str) -> Intent {
    let intent = Intent::new("station_info")
        .excluded_by("ridetime")
        .example(example)
        .restored_from_calls()
        .answers_aspect("ask:accessible")
        .decided_by("access", |_, _| true)
        .slot(
            at_station("station")
                .narrowed_by(on_lines_or_asked_for)
                .carried_from("to_station")
                .carried_from("station_name"),
        )
        .slot(Slot::optional("every", "every").momentary())
        .slot(Slot::optional("step_free", "stepfree"))
        // After "Bedford Av on the L", "and Union Square?" is about all of its platforms.
        .slot(Slot::optional("lines", "lines").momentary());
    with_saved(intent, &["station"])
        .then_calls("get_station_info", |outcome| Some(json!({"station": station(outcome, "station")?})))
        .says(move |outcome| {
            let every = || outcome.slots().get("every").and_then(|_| speech.access_at_each(outcome));
            speech.missing(outcome, &["station"]).or_else(every).unwrap_or_else(|| {
                let lines = lines_of(&outcome.slots().value("lines"));
                let names: Vec<String> = lines.iter().map(|line| speech.system.line_name(line)).collect();
                only_platforms_of(&names, &last_result_text(outcome))
            })
        })
}

/// Like [`on_lines`], but returns several stations with the same name as one choice if the message asks about each of them.
fn on_lines_or_asked_for(choices: &[Choice], slots: &Slots) -> Vec<Choice> {
    if slots.get("every").is_some() { on_lines_or_same_name(choices, slots) } else { on_lines(choices, slots) }
}

impl Speech {
    /// Says which of several stations with the same name are step-free.
    fn access_at_each(&self, outcome: &Outcome<'_>) -> Option<String> {
        let places = self.system.places(&station(outcome, "station")?);
        let rows = places.iter().map(|place| {
            let view = self.system.view_of(place);
            let stations: Vec<&crate::Station> =
                view.stop_ids.iter().filter_map(|id| self.system.station(id)).collect();
            let access = match stations.iter().filter(|station| !station.accessible.is_empty()).count() {
                0 => "not step-free",
                _ if stations.iter().all(|station| station.accessible.len() >= station.towards.len()) => "step-free",
                _ => "step-free in part",
            };
            format!("{}: {access}.", crate::wording::place(&self.system, &view))
        });
        let rows: Vec<String> = rows.collect();
        (rows.len() > 1).then(|| rows.join("\n"))
    }
}

/// Removes the platforms of other lines from the text about a station: "is Union Sq accessible on the L".
fn only_platforms_of(lines: &[String], text: &str) -> String {
    let serves = |row: &str| {
        let listed = row.strip_prefix("- ")?.split_once(" (")?.1.split_once("): ")?.0;
        Some(listed.split(' ').any(|known| lines.iter().any(|line| line == known)))
    };
    if !text.lines().any(|row| serves(row) == Some(true)) {
        return text.to_owned();
    }
    text.lines().filter(|row| serves(row) != Some(false)).collect::<Vec<_>>().join("\n")
}

/// A question about where a line ends: "where does that one end up".
#[must_use]
pub fn line_ends(speech: &'static Speech) -> Intent {
    Intent::new("line_ends")
        .decided_by("ends", |_, _| true)
        .slot(Slot::required("lines", "lines").asks("Which line?"))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("ends", "ends").momentary())
        .slot(Slot::optional("place", "station").momentary())
        .says(move |outcome| {
            let lines = lines_of(&outcome.slots().value("lines"));
            let is_about_branches = outcome.slots().value("ends") == BRANCHES;
            let sentences = lines.iter().map(|line| match is_about_branches {
                true => speech.branches_of_line(line),
                false => speech.ends_of_line(line),
            });
            sentences.collect::<Vec<_>>().join("\n")
        })
}

impl Speech {
    /// Says between which stations the trains of a line run.
    pub(super) fn ends_of_line(&self, line: &str) -> String {
        const MAX_ENDS: usize = 8;
        let network = (self.system.network)();
        let name = self.system.line_name(line);
        let is_meant = |known: &&crate::Line| known.name == name || known.id == line;
        let mut ends: Vec<String> = Vec::new();
        for sequence in network.lines().iter().filter(is_meant).flat_map(|line| &line.sequences) {
            for station in [sequence.stations.first(), sequence.stations.last()].into_iter().flatten() {
                let name = network.stations()[*station].name.clone();
                if !ends.contains(&name) && ends.len() < MAX_ENDS {
                    ends.push(name);
                }
            }
        }
        match &ends[..] {
            [] => format!("I do not know where the {name} ends."),
            [one, other] => format!("The {name} runs between {one} and {other}."),
            _ => format!(
                "Trains of the {name} start and end at {}. Not every train goes to each of them: see the sign on the train.",
                crate::wording::join_with_and(&ends)
            ),
        }
    }
}
