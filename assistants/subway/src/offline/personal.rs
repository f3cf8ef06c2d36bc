//! Intents about preferences and common trips.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::saved::last_result_text;
use super::stations;

/// Maximum number of words in a preference's name; longer phrases are not names.
const MAX_KEY_WORDS: usize = 4;

pub(super) fn intents() -> [Intent; 4] {
    [save(), save_it(), get(), common_trips()]
}

fn save() -> Intent {
    Intent::new("save_preference")
        .example("My home station is Jay St.")
        .patterns([
            "remember [that] [my] {setting...}",
            "set [my|the] {setting...}",
            "save [my|the] {setting...}",
            "my {key} is|are {value...}",
        ])
        .unless("what|whats|which|where|wheres|show|tell|how|does|do|did|when|whens my")
        .unless("save|remember|set|keep it|that|this as")
        .slot(Slot::optional("name", "key"))
        .then_calls("save_preference", |outcome| {
            let slots = outcome.slots();
            let (key, value) = match slots.value("name").as_str() {
                Some(key) => (key.to_owned(), station_of(without_place_words(slots.label("value")))),
                None => parse(slots.label("setting"))?,
            };
            Some(json!({"key": key, "value": value}))
        })
        .says(|outcome| match outcome.exchanges().is_empty() {
            true => "I can save a preference if you say, for instance: “My home station is Jay St.”".to_owned(),
            false => last_result_text(outcome),
        })
}

/// "I live near Prospect Park, save it as my home station."
fn save_it() -> Intent {
    Intent::new("save_it")
        .pattern("save|remember|set|keep it|that|this as [my] {key...}")
        .slot(Slot::required("station", "station").asks("Which station?"))
        .then_calls("save_preference", |outcome| {
            let key = key_of(outcome.slots().label("key"))?;
            Some(json!({"key": key, "value": outcome.slots().label("station")}))
        })
        .says(last_result_text)
}

fn get() -> Intent {
    Intent::new("get_preference")
        .example("What is my home station?")
        .patterns([
            "what|whats|which|wheres|where is|are|line|station my {name...}",
            "what|whats|which|wheres|where my {name...}",
            "what|which {topic} is my favorite|favourite",
            "get|show|tell [me] my {name...}",
            "do you know|remember my {name...}",
        ])
        .unless("usual|common|frequent|often|trips|trip|transfer|connection|preferences")
        .slot(Slot::optional("topic", "topic"))
        .then_calls("get_preference", |outcome| Some(json!({"key": wanted(outcome)?})))
        .says(|outcome| match outcome.exchanges().is_empty() {
            true => "Each preference has a name, such as “home station”. Which one do you want?".to_owned(),
            false => last_result_text(outcome),
        })
        .yields(saved_station)
}

fn wanted(outcome: &Outcome<'_>) -> Option<String> {
    match outcome.slots().value("topic").as_str() {
        Some(topic) => Some(format!("favorite {topic}")),
        None => key_of(outcome.slots().label("name")),
    }
}

/// Makes a saved station available for references such as "how do I get there?".
fn saved_station(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let value = text.strip_prefix("Your ").and_then(|rest| rest.split_once(": ")).map(|(_, value)| value);
    let found = value.map(|value| stations::find(&Utterance::new(format!("at {value}")))).unwrap_or_default();
    let choices = found.into_iter().filter_map(|mention| mention.choices.into_iter().next());
    choices.map(|choice| ("station".to_owned(), choice)).take(1).collect()
}

fn common_trips() -> Intent {
    Intent::new("common_trips")
        .example("What are my usual trips?")
        .patterns([
            "usual|common|frequent|regular|favorite|favourite|recent trips|trip|routes|route|commute",
            "trips|routes|trip|where often|usually|most",
            "often|usually go|travel|ride",
        ])
        .unless("remember|save|set that|my")
        .calls_with("get_common_trips", |_| json!({}))
}

/// Splits "home station is jay st", "work station to union square" or "gym stop as 23rd st" into name and value.
fn parse(setting: &str) -> Option<(String, String)> {
    let borders = [" is at ", " is near ", " is ", " are ", " = ", ": ", " to ", " as my ", " as "];
    let lower = setting.to_lowercase();
    let found = borders.iter().filter_map(|border| Some((lower.find(border)?, *border)));
    let (at, border) = found.min_by_key(|(at, border)| (*at, std::cmp::Reverse(border.len())))?;
    let (before, after) = (setting.get(..at)?, setting.get(at + border.len()..)?);
    let (key, value) = if border == " as my " { (after, before) } else { (before, after) };
    let (key, value) = (key_of(key)?, value.trim().trim_end_matches(['.', '!']).to_owned());
    (!value.is_empty()).then(|| (key, station_of(&value)))
}

/// Removes a leading preposition: "at wtc" becomes "wtc".
fn without_place_words(value: &str) -> &str {
    let value = value.trim().trim_end_matches(['.', '!']);
    ["at ", "near ", "in "].iter().find_map(|word| value.strip_prefix(word)).unwrap_or(value)
}

/// Returns the canonical text of a station; any other value unchanged.
fn station_of(value: &str) -> String {
    let found = stations::find(&Utterance::new(format!("at {value}")));
    let is_known =
        |choice: &Choice| choice.label != choice.value.as_str().unwrap_or_default() || !choice.hints.is_empty();
    let choice = found.first().filter(|mention| mention.choices.len() == 1).and_then(|mention| mention.choices.first());
    let text = choice.filter(|choice| is_known(choice)).and_then(|choice| choice.value.as_str().map(str::to_owned));
    text.unwrap_or_else(|| value.to_owned())
}

/// Normalises a preference's name: "home" and "my home stop" become "home station".
fn key_of(name: &str) -> Option<String> {
    let words: Vec<String> = Utterance::new(name).words().iter().map(|word| word.folded.clone()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !matches!(*word, "my" | "the")).collect();
    match words[..] {
        ["home"] | ["home", "stop" | "station"] => Some("home station".to_owned()),
        ["work" | "office"] | ["work" | "office", "stop" | "station"] => Some("work station".to_owned()),
        [_, ..] if words.len() <= MAX_KEY_WORDS => Some(words.join(" ").replace("favourite", "favorite")),
        _ => None,
    }
}

/// Finds names of preferences that may be set without a word such as "remember": "my home station is …".
pub(super) fn keys(message: &Utterance) -> Vec<Mention> {
    const QUALIFIERS: [&str; 10] =
        ["home", "work", "office", "gym", "school", "favorite", "favourite", "preferred", "usual", "default"];
    const THINGS: [&str; 5] = ["station", "stop", "line", "train", "route"];
    let begins = (0..message.words().len()).filter(|at| QUALIFIERS.contains(&message.word(*at)));
    let found = begins.filter_map(|at| {
        let end = if THINGS.contains(&message.word(at + 1)) { at + 2 } else { at + 1 };
        let key = key_of(message.said(at..end))?;
        Some(Mention { words: at..end, choices: vec![Choice::new(key.clone(), key)] })
    });
    found.collect()
}

/// Finds things that a user may have a favourite of.
pub(super) fn topics(message: &Utterance) -> Vec<Mention> {
    let words = message.words().iter().enumerate();
    let is_topic = |word: &str| matches!(word, "line" | "station" | "stop" | "train" | "route");
    let mention =
        |at: usize, word: &str| Mention { words: at..at + 1, choices: vec![Choice::new(Value::from(word), word)] };
    words.filter(|(_, word)| is_topic(&word.folded)).map(|(at, word)| mention(at, &word.folded)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_splits_name_and_value() {
        for (setting, expected) in [
            ("home station is jay st", Some(("home station", "Jay St-MetroTech"))),
            ("work station to union square", Some(("work station", "14 St-Union Sq"))),
            ("work is at wtc", Some(("work station", "World Trade Center"))),
            ("favorite line is the Q", Some(("favorite line", "the Q"))),
            ("astor pl as my gym stop", Some(("gym stop", "Astor Pl"))),
            ("gym stop as 23rd st on the F", Some(("gym stop", "23 St (F M)"))),
            ("home station", None),
        ] {
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(parse(setting), expected, "{setting}");
        }
    }
}
