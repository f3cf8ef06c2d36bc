//! The offline model: answers without a language model. It recognises intents in the message, calls tools, and replies with
//! their results.
//!
//! All facts come from tools. For messages that it does not understand, it replies with examples; requests that are not about
//! the subway it refuses with [`REFUSAL`], as every model of this assistant does.

mod boards;
mod comparing;
mod corridor;
mod lines;
mod personal;
mod saved;
mod stations;
mod trips;
mod words;

use threadkeep::ChatMessage;
use threadkeep::dialogue::{Choice, Mention, OfflineModel, Phrases, Turn, Utterance};

use crate::prompt::REFUSAL;

const ABOUT: &str = "I answer questions about the New York City subway: routes, next trains, local or express, stations and \
                     lines. Ask for example:";
const GREETING: &str = "Hello. Ask me about the New York City subway: “How do I get from Penn Station to Yankee Stadium?”, \
                        “Next 6 at Astor Place”, “Is Bleecker St accessible?”";
const WELCOME: &str = "You are welcome.";

/// Whole messages that are greetings.
const GREETINGS: [&str; 12] = [
    "hello",
    "hi",
    "hey",
    "hi there",
    "hello there",
    "good morning",
    "good evening",
    "good afternoon",
    "whats up",
    "sup",
    "yo",
    "hola",
];
/// Whole messages that are thanks or goodbyes.
const THANKS: [&str; 14] = [
    "thanks",
    "thank you",
    "thx",
    "ty",
    "thanks a lot",
    "thank you very much",
    "ok",
    "okay",
    "great",
    "cool",
    "bye",
    "goodbye",
    "perfect",
    "ok thanks",
];

/// Creates the model that answers for the subway assistant if there is no language model.
#[must_use]
pub fn offline_model() -> OfflineModel {
    let builder = OfflineModel::builder(ABOUT)
        .phrases(phrases())
        .kind("station", stations::find)
        .kind("saved", stations::find_saved)
        .kind("lines", lines::find)
        .kind("rivals", lines::find_rivals)
        .kind("now", now)
        .kind("elsewhere", elsewhere)
        .kind("topic", personal::topics)
        .kind("key", personal::keys)
        .pronoun("there", "station")
        .pronoun("here", "station")
        .pronoun("that station", "station")
        .pronoun("this station", "station")
        .otherwise(answer);
    let intents =
        trips::intents().into_iter().chain(boards::intents()).chain(comparing::intents()).chain(personal::intents());
    let model = intents.fold(builder, threadkeep::dialogue::OfflineModelBuilder::intent).build();
    model.expect("intents have unique names and use defined slot kinds: a test builds the model")
}

fn phrases() -> Phrases {
    let english = Phrases::english();
    let mut continuations = english.continuations.clone();
    continuations.extend(["no", "actually", "sorry", "on second thought", "also"].map(str::to_owned));
    let mut who_are_you = english.who_are_you.clone();
    who_are_you
        .extend(["what do you do", "what can i ask", "what do you know", "what can i ask you"].map(str::to_owned));
    Phrases { failed: "I could not look that up: {output}".to_owned(), continuations, who_are_you, ..english }
}

fn now(message: &Utterance) -> Vec<Mention> {
    words_matching(message, |at| {
        let word = message.word(at);
        word == "right" && message.word(at + 1) == "now" || words::NOW_WORDS.contains(&word)
    })
}

fn elsewhere(message: &Utterance) -> Vec<Mention> {
    words_matching(message, |at| words::OTHER_TRANSPORT.contains(&message.word(at)))
}

fn words_matching(message: &Utterance, is_match: impl Fn(usize) -> bool) -> Vec<Mention> {
    let matches = (0..message.words().len()).filter(|at| is_match(*at));
    matches.map(|at| Mention { words: at..at + 1, choices: vec![Choice::new(true, message.word(at))] }).collect()
}

/// Answers a message that matches no intent; `None` if it is about the subway but was not understood.
fn answer(turn: &Turn<'_>) -> Option<String> {
    let message = Utterance::new(turn.question());
    let folded: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    let whole = folded.join(" ");
    if GREETINGS.contains(&whole.as_str()) {
        return Some(GREETING.to_owned());
    }
    if THANKS.contains(&whole.as_str()) {
        return Some(WELCOME.to_owned());
    }
    if asks_whether_live(&folded) {
        return Some(whether_live(turn));
    }
    let is_about_the_subway =
        folded.iter().any(|word| words::SUBWAY_WORDS.contains(word)) || !lines::find(&message).is_empty();
    let is_only_a_place = folded.len() <= 4 && !stations::find(&message).is_empty();
    let is_cut_short = folded.len() <= 6
        && folded.last().is_some_and(|word| matches!(*word, "from" | "to" | "at"))
        && folded.iter().any(|word| words::TRAVEL_WORDS.contains(word));
    let is_a_follow_up =
        folded.len() <= 4 && folded.first().is_some_and(|word| matches!(*word, "and" | "or" | "but" | "no"));
    (!is_about_the_subway && !is_only_a_place && !is_cut_short && !is_a_follow_up).then(|| REFUSAL.to_owned())
}

fn asks_whether_live(words: &[&str]) -> bool {
    let begins = words.first().is_some_and(|word| matches!(*word, "is" | "are" | "was" | "were" | "and" | "so"));
    let asks = words.iter().any(|word| matches!(*word, "real" | "realtime" | "live" | "actual"));
    let points = words.iter().any(|word| matches!(*word, "that" | "this" | "it" | "those" | "these" | "they"));
    begins && asks && points && words.len() <= 8
}

/// Answers in one sentence where the times of the last answer came from, based on its tool results.
fn whether_live(turn: &Turn<'_>) -> String {
    let results = turn.earlier().iter().rev().flat_map(ChatMessage::tool_results);
    let last = results.map(|result| result.output.as_str()).next();
    match last {
        None => "I have not given you any times yet.".to_owned(),
        Some(text) if text.contains("Live times unavailable") => "No: live times were unavailable.".to_owned(),
        Some(text) if text.contains("(live") || text.contains("are live") => {
            "Yes: those times came live from the MTA's feeds when you asked.".to_owned()
        }
        Some(text) if text.contains("timetable") => "No: those times came from the timetable.".to_owned(),
        Some(text) if text.contains("estimates") || text.contains("2 min a stop") => {
            "No: those times were estimates of two minutes a stop.".to_owned()
        }
        Some(_) => "No: my last answer had no live times.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_model_is_complete() {
        assert!(format!("{:?}", super::offline_model()).contains("comparison"));
    }
}
