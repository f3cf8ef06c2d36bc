//! Intents about preferences and common trips.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::Speech;
use super::boards::on_lines;
use super::saved::last_result_text;
use super::statements::{state_habit, state_place};
use super::stations::saved_key;
use crate::Resolution;

/// The words that precede a preference's name and value.
const SETTING_CUES: [&str; 32] = [
    "set",
    "make",
    "put",
    "keep",
    "store",
    "note",
    "use",
    "remember that my",
    "remember my",
    "remember that",
    "remember",
    "save that my",
    "save my",
    "save",
    "set my",
    "change my",
    "update my",
    "switch my",
    "note that my",
    "keep my",
    "my",
    "and my",
    "btw my",
    "so my",
    "no my",
    "actually my",
    "make my",
    "put my",
    "use my",
    "our",
    "set our",
    "save our",
];

/// Maximum number of words in a preference's name; longer phrases are not names.
const MAX_KEY_WORDS: usize = 4;

/// Returns the intents about preferences and common trips.
#[must_use]
pub fn personal_intents(speech: &'static Speech) -> [Intent; 9] {
    [
        saved_places(),
        save(speech),
        save_place(speech),
        save_it(speech),
        state_place(speech),
        state_habit(speech),
        change_it(speech),
        get(speech),
        common_trips(),
    ]
}

fn save(speech: &'static Speech) -> Intent {
    Intent::new("save_preference")
        .example(format!("My home station is {}.", speech.example_station))
        .about_user()
        .slot(Slot::text("setting").after(SETTING_CUES).accepting(Speech::may_be_preference))
        .then_calls("save_preference", move |outcome| {
            let (key, value) = speech.parse_preference(outcome.slots().label("setting"))?;
            Some(json!({"key": key, "value": value}))
        })
        .says(move |outcome| saved_or_asks(speech, "save a preference", outcome))
}

/// "Home is Jay St", "set work to 168 St".
fn save_place(speech: &'static Speech) -> Intent {
    Intent::new("save_place")
        .about_user()
        .slot(Slot::required("place", "savedplace").asks("Is that your home or your work station?"))
        .slot(
            Slot::required("station", "station")
                .after(["is", "to", "at", "now", "as"])
                .asks("Which station?")
                .narrowed_by(on_lines),
        )
        .slot(Slot::optional("lines", "lines"))
        .then_calls("save_preference", move |outcome| {
            let slots = outcome.slots();
            // A saved place is not a station.
            let station = slots.value("station").as_str().map(str::to_owned)?;
            Some(json!({"key": slots.value("place"), "value": station}))
        })
        .says(move |outcome| saved_or_asks(speech, "save a station", outcome))
}

/// Returns the result of saving; if nothing was saved, an example of what to say.
pub(super) fn saved_or_asks(speech: &Speech, ability: &str, outcome: &Outcome<'_>) -> String {
    let example = speech.example_station;
    match outcome.exchanges().is_empty() {
        true => format!("I can {ability} if you say, for instance: “My home station is {example}.”"),
        false => last_result_text(outcome),
    }
}

/// "I live near Prospect Park, save it as my home station."
fn save_it(speech: &'static Speech) -> Intent {
    Intent::new("save_it")
        .about_user()
        .slot(Slot::required("station", "station").asks("Which station?"))
        .slot(Slot::text("key").after(["as my", "my"]))
        .then_calls("save_preference", move |outcome| {
            let key = key_of(outcome.slots().label("key"))?;
            Some(json!({"key": key, "value": outcome.slots().label("station")}))
        })
        .says(move |outcome| saved_or_asks(speech, "save a station", outcome))
}

/// "Change it to Court Square", after a preference.
fn change_it(speech: &'static Speech) -> Intent {
    let nothing = || Choice::new(Value::Null, "");
    Intent::new("change_it")
        .follows(["save_preference", "save_it", "state_place", "get_preference", "change_it"])
        .slot(Slot::required("station", "station").fresh().after(["to", "is", "at"]).asks("To which station?"))
        .slot(Slot::required("setting", "setting").or(nothing()))
        .slot(Slot::required("name", "setting").carried_from("key").or(nothing()))
        .then_calls("save_preference", move |outcome| {
            let slots = outcome.slots();
            let of_setting = || speech.parse_preference(slots.label("setting")).map(|(key, _)| key);
            let key = key_of(slots.label("name")).or_else(of_setting)?;
            Some(json!({"key": key, "value": slots.value("station")}))
        })
        .says(move |outcome| saved_or_asks(speech, "change a preference", outcome))
}

fn get(speech: &'static Speech) -> Intent {
    Intent::new("get_preference")
        .example("What is my home station?")
        .slot(Slot::text("name").after([
            "what is my",
            "where is my",
            "which is my",
            "what are my",
            "which are my",
            "whats my",
            "wheres my",
            "know my",
            "remember my",
            "my",
        ]))
        .slot(Slot::optional("topic", "topic"))
        .slot(Slot::optional("place", "savedplace"))
        .slot(Slot::optional("saved", "saved"))
        .decided_by("recall", |_, _| true)
        .slot(Slot::optional("recall", "recall").momentary())
        .then_calls("get_preference", |outcome| Some(json!({"key": wanted(outcome)?})))
        .then_calls("get_preference", |outcome| Some(json!({"key": recalled(outcome, 1)?})))
        .says(|outcome| match outcome.exchanges().is_empty() {
            true => "Each preference has a name, such as “home station”. Which one do you want?".to_owned(),
            false => all_texts(outcome).join("\n"),
        })
        .yields(move |outcome| saved_station(speech, outcome))
}

/// Returns one of the saved places that the message asks for.
fn recalled(outcome: &Outcome<'_>, number: usize) -> Option<String> {
    outcome.slots().value("recall").get(number).and_then(Value::as_str).map(str::to_owned)
}

fn all_texts(outcome: &Outcome<'_>) -> Vec<String> {
    outcome.exchanges().iter().filter_map(|exchange| exchange.value().as_str().map(str::to_owned)).collect()
}

fn wanted(outcome: &Outcome<'_>) -> Option<String> {
    if let Some(key) = recalled(outcome, 0) {
        return Some(key);
    }
    if let Some(key) = outcome.slots().value("place").as_str() {
        return Some(key.to_owned());
    }
    if let Some(key) = saved_key(&outcome.slots().value("saved")) {
        return Some(key.to_owned());
    }
    match outcome.slots().value("topic").as_str() {
        Some(topic) => Some(format!("favorite {topic}")),
        None => key_of(outcome.slots().label("name")),
    }
}

/// Makes a saved station available for references such as "how do I get there?".
fn saved_station(speech: &Speech, outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let value = text.strip_prefix("Your ").and_then(|rest| rest.split_once(": ")).map(|(_, value)| value);
    let found = value.map(|value| speech.find_stations(&Utterance::new(format!("at {value}")))).unwrap_or_default();
    let choices = found.into_iter().filter_map(|mention| mention.choices.into_iter().next());
    choices.map(|choice| ("station".to_owned(), choice)).take(1).collect()
}

/// "What did you save?"
fn saved_places() -> Intent {
    let intent =
        ["home station", "work station", "usual line"].into_iter().fold(Intent::new("saved_places"), |intent, key| {
            intent.calls_with("get_preference", move |_| json!({"key": key}))
        });
    intent.says(|outcome| {
        let known: Vec<String> = all_texts(outcome).into_iter().filter(|text| text.starts_with("Your ")).collect();
        match known.is_empty() {
            true => "I have saved none of your home station, your work station and your usual line.".to_owned(),
            false => known.join("\n"),
        }
    })
}

fn common_trips() -> Intent {
    Intent::new("common_trips").example("What are my usual trips?").calls_with("get_common_trips", |_| json!({}))
}

impl Speech {
    /// Whether words can be a name and a value. What another person said is no preference: "my neighbor says …".
    fn may_be_preference(text: &str) -> bool {
        const SAYING: [&str; 8] = ["told", "says", "said", "thinks", "claims", "heard", "asked", "wants"];
        !Utterance::new(text).words().iter().any(|word| SAYING.contains(&word.folded.as_str()))
    }

    /// Splits "home station is jay st", "work station to union square" or "gym stop as 23rd st" into name and value.
    #[must_use]
    pub fn parse_preference(&self, setting: &str) -> Option<(String, String)> {
        let borders = [
            " is at ",
            " is near ",
            " is ",
            " its ",
            " it's ",
            " it is ",
            " are ",
            " = ",
            ": ",
            " to ",
            " as my ",
            " as ",
        ];
        let lower = setting.to_lowercase();
        let found = borders.iter().filter_map(|border| Some((lower.find(border)?, *border)));
        let found = found.min_by_key(|(at, border)| (*at, std::cmp::Reverse(border.len())));
        // "my usual line the Elizabeth"
        let after_noun =
            || ["line ", "station ", "stop "].iter().find_map(|noun| Some((lower.find(noun)? + noun.len() - 1, " ")));
        let (at, border) = found.or_else(after_noun)?;
        let (before, after) = (setting.get(..at)?, setting.get(at + border.len()..)?);
        let is_key = |text: &str| matches!(key_of(text).as_deref(), Some("home station" | "work station"));
        let is_swapped = border == " as my " || border == " as " && is_key(without_courtesy(after));
        let (key, value) = if is_swapped { (after, before) } else { (before, after) };
        let (key, value) = (key_of(key)?, without_courtesy(value));
        // A pronoun is not a value.
        (!value.is_empty() && !matches!(value, "it" | "that" | "this")).then(|| {
            let value = self.line_of(&key, value).unwrap_or_else(|| self.station_of(value));
            (key, value)
        })
    }

    /// Returns the line that a value names if the preference is about a line: "the Q train" is "Q".
    fn line_of(&self, key: &str, value: &str) -> Option<String> {
        if !key.ends_with("line") && !key.ends_with("train") {
            return None;
        }
        let utterance = Utterance::new(value);
        let words = utterance.words().iter().map(|word| word.folded.as_str());
        let mut names = words.filter(|word| !matches!(*word, "the" | "train" | "line" | "of" | "course"));
        let name = names.next().filter(|_| names.next().is_none())?;
        (self.system.network)()
            .lines()
            .iter()
            .find(|line| line.name.eq_ignore_ascii_case(name))
            .map(|line| line.name.clone())
    }

    /// Returns the canonical text if the value is a station; returns any other value unchanged.
    fn station_of(&self, value: &str) -> String {
        let found = self.find_stations(&Utterance::new(format!("at {value}")));
        let is_known =
            |choice: &Choice| choice.label != choice.value.as_str().unwrap_or_default() || !choice.hints.is_empty();
        let choice =
            found.first().filter(|mention| mention.choices.len() == 1).and_then(|mention| mention.choices.first());
        let text = choice.filter(|choice| is_known(choice)).and_then(|choice| choice.value.as_str().map(str::to_owned));
        text.unwrap_or_else(|| self.on_named_lines(value).unwrap_or_else(|| value.to_owned()))
    }

    /// Resolves a station by the lines that the text names: "the 86th Street station on the Lexington line, the 4 5 6".
    fn on_named_lines(&self, value: &str) -> Option<String> {
        let utterance = Utterance::new(value);
        let runs = (self.line_runs)(&utterance);
        let lines: Vec<&str> = runs.iter().flat_map(|run| &run.lines).map(String::as_str).collect();
        let name = value.split([',', '(']).next().unwrap_or(value);
        let name = name.split(" station").next().unwrap_or(name).trim();
        let name = name.split(" on the ").next().unwrap_or(name).trim();
        match (self.system.names)().resolve_on(name, &lines) {
            Resolution::Certain(place) => Some(self.text_of(&place)),
            _ => None,
        }
    }
}

/// Words after a value that do not belong to it.
const COURTESIES: [&str; 22] = [
    "btw",
    "please",
    "pls",
    "plz",
    "thanks",
    "thx",
    "ty",
    "now",
    "again",
    "by the way",
    "ok",
    "for me",
    "lol",
    "tho",
    "keep that in mind",
    "keep it in mind",
    "remember that",
    "remember it",
    "save that",
    "note that",
    "dont forget",
    "don't forget",
];

/// Removes punctuation and courtesies from the end of a value.
fn without_courtesy(value: &str) -> &str {
    let mut value = value.trim();
    loop {
        let trimmed = value.trim_end_matches(['.', '!', '?', ',', ' ']);
        let lower = trimmed.to_lowercase();
        let courtesy = COURTESIES.iter().find(|word| lower.ends_with(&format!(" {word}")));
        let shorter = courtesy.and_then(|word| trimmed.get(..trimmed.len() - word.len())).unwrap_or(trimmed);
        if shorter.len() == value.len() {
            return value;
        }
        value = shorter;
    }
}

/// Corrects the spelling of words in common names of preferences: "home staton".
fn spelled(word: &str) -> &str {
    let known = ["station", "office", "favorite", "favourite", "apartment"];
    let is_close = |known: &&&str| word.len() >= 5 && strsim::osa_distance(known, word) == 1;
    known.iter().find(is_close).copied().unwrap_or(word)
}

/// Normalises a preference's name: "home" and "my home stop" become "home station".
fn key_of(name: &str) -> Option<String> {
    let words: Vec<String> = Utterance::new(name).words().iter().map(|word| word.folded.clone()).collect();
    let is_filler = |word: &str| {
        matches!(
            word,
            "my" | "the" | "again" | "please" | "now" | "btw" | "saved" | "currently" | "current" | "new" | "actually"
        )
    };
    let words: Vec<&str> = words.iter().map(|word| spelled(word)).filter(|word| !is_filler(word)).collect();
    match words[..] {
        // "home station, it is where my hotel is"
        ["home", "stop" | "station" | "one", ..] => Some("home station".to_owned()),
        ["work" | "office" | "job", "stop" | "station" | "one", ..] => Some("work station".to_owned()),
        ["home" | "house" | "apartment"] => Some("home station".to_owned()),
        ["work" | "office"] => Some("work station".to_owned()),
        ["fav", ref rest @ ..] if rest.len() < MAX_KEY_WORDS => Some(format!("favorite {}", rest.join(" "))),
        [_, ..] if words.len() <= MAX_KEY_WORDS => Some(words.join(" ").replace("favourite", "favorite")),
        _ => None,
    }
}

/// Finds things that a user may have a favourite of.
#[must_use]
pub fn find_topics(message: &Utterance) -> Vec<Mention> {
    let words = message.words().iter().enumerate();
    let is_topic = |word: &str| matches!(word, "line" | "station" | "stop" | "train" | "route");
    let mention = |at: usize, word: &str| Mention::new(at..at + 1, vec![Choice::new(Value::from(word), word)]);
    let is_favorite = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| message.word(before));
        matches!(before, "favorite" | "favourite" | "preferred" | "usual")
    };
    words
        .filter(|(at, word)| is_topic(&word.folded) && is_favorite(*at))
        .map(|(at, word)| mention(at, &word.folded))
        .collect()
}
