//! Intents that erase messages: they list the messages first, and erase them when the user confirms.

use serde_json::json;
use threadkeep::Value;
use threadkeep::core::text::{Language, content_terms, indexed_terms};
use threadkeep::dialogue::{Intent, Slot, Utterance};

use super::{quoting, text};
use crate::erase_tools::{ERASE, EVERYTHING, FIND};
use crate::evidence::sentences;

/// The maximum number of messages that are displayed before the user confirms an erasure.
const MAX_DISPLAYED: usize = 10;

/// Phrases that precede the topic of messages to forget.
const ABOUT_CUES: [&str; 28] = [
    "about",
    "regarding",
    "concerning",
    "mentioning",
    "on the subject of",
    "forget that",
    "forget the",
    "forget",
    "erase the",
    "erase",
    "delete the",
    "delete",
    "remove the",
    "remove",
    "le dije del",
    "le dije de",
    "dije del",
    "olvidate de lo que dije de",
    "olvidate de lo que dije sobre",
    "olvidate de",
    "sobre",
    "acerca de",
    "dije de",
    "conte de",
    "olvida que",
    "olvida",
    "borra",
    "elimina",
];

/// Returns a topic without surrounding words: "theatre seat preference, please".
pub(super) fn topic_of(name: &str) -> &str {
    // What follows a comma is a reason.
    let mut name = name.split(", ").next().unwrap_or(name).trim();
    // "what I said about the alarm code", "lo que dije sobre el catering"
    let lower = name.to_lowercase();
    let says = ["said", "told", "mentioned", "wrote", "dije", "conte", "conté", "mencione", "mencioné"];
    if lower.split_whitespace().any(|word| says.contains(&word)) {
        let cues = [" about ", " regarding ", " on ", " sobre ", " acerca de ", " de "];
        let found = cues.iter().find_map(|cue| Some(lower.find(cue)? + cue.len()));
        name = found.and_then(|at| name.get(at..)).unwrap_or(name).trim();
    }
    // "the message about the safe pin"
    let lower = name.to_lowercase();
    let notes = [
        "message about ",
        "messages about ",
        "note about ",
        "notes about ",
        "message with ",
        "bit about ",
        "part about ",
        "thing about ",
        "stuff about ",
        "mensaje sobre ",
        "mensajes sobre ",
        "mensaje de ",
        "nota sobre ",
        "nota de ",
        "lo de ",
        "lo del ",
    ];
    if let Some(start) =
        notes.iter().find_map(|note| lower.find(note).filter(|at| *at <= MAX_ARTICLE).map(|at| at + note.len()))
    {
        name = name.get(start..).unwrap_or(name).trim();
    }
    for ending in ["please", "por favor", "preference", "setting"] {
        name = name.trim_end_matches([',', '.', '!', ' ']).strip_suffix(ending).unwrap_or(name).trim();
    }
    name.trim_end_matches([',', '.', '!', ' '])
}

/// The maximum length of an article before "message about".
const MAX_ARTICLE: usize = 5;

pub(super) fn forget_messages() -> Intent {
    Intent::new("forget_messages")
        .example("Forget what I said about Berlin.")
        .slot(Slot::text("about").after(ABOUT_CUES))
        .confirmed_by("erase_messages")
        .calls_with(FIND, |slots| match slots.label("about") {
            "" | "it" | "that" | "this" | "eso" | "esto" => json!({}),
            about if names_everything(about) => json!({"about": EVERYTHING}),
            about => json!({"about": topic_of(about)}),
        })
        .says(|outcome| list_to_erase(&outcome.result(FIND), outcome.language()))
}

/// Whether words name everything that the user said: "everything you know about me".
fn names_everything(about: &str) -> bool {
    const WORDS: [&str; 22] = [
        "everything",
        "all",
        "me",
        "you",
        "know",
        "about",
        "i",
        "ive",
        "told",
        "said",
        "have",
        "ever",
        "that",
        "of",
        "it",
        "please",
        "todo",
        "lo",
        "que",
        "sabes",
        "de",
        "mi",
    ];
    let utterance = Utterance::new(about);
    let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&&*word.folded));
    // "Forget all of it" is about what was discussed.
    let is_all = has(&["everything", "me", "todo", "mi"]) || has(&["all"]) && has(&["know", "said"]);
    is_all && utterance.words().iter().all(|word| WORDS.contains(&&*word.folded))
}

/// The intent that "yes" expresses after a list of messages to erase.
pub(super) fn erase_messages() -> Intent {
    Intent::new("erase_messages")
        .follows(["forget_messages", "forget_preference"])
        .calls_with(ERASE, |_| json!({}))
        .says(|outcome| {
            let result = outcome.result(ERASE);
            let erased = result["erased"].as_u64().unwrap_or(0);
            let said = match (outcome.language(), erased) {
                (Language::English, 0) => "There is nothing to erase.".to_owned(),
                (Language::Spanish, 0) => "No hay nada que borrar.".to_owned(),
                (Language::English, 1) => "I have erased that message and your request.".to_owned(),
                (Language::English, _) => format!("I have erased these {erased} messages and your request."),
                (Language::Spanish, 1) => "He borrado ese mensaje y tu petición.".to_owned(),
                (Language::Spanish, _) => format!("He borrado esos {erased} mensajes y tu petición."),
            };
            match (outcome.language(), result["preferences"].as_u64().unwrap_or(0)) {
                (_, 0) => said,
                (Language::English, _) => format!("{said} Your preferences are forgotten too."),
                (Language::Spanish, _) => format!("{said} También he olvidado tus preferencias."),
            }
        })
}

/// Lists the messages that would be erased, and asks whether to erase them.
pub(super) fn list_to_erase(found: &Value, language: Language) -> String {
    let messages = found["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let preferences = found["preferences"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() && preferences.is_empty() {
        return match language {
            Language::English => "I found nothing about that in what you told me, so there is nothing to erase.",
            Language::Spanish => "No encontré nada sobre eso en lo que me contaste, así que no hay nada que borrar.",
        }
        .to_owned();
    }
    let line = |message: &Value| {
        let day = quoting::formatted_day(&text(&message["day"]), language);
        format!("- {day}: “{}”", text(&message["text"]).replace('\n', " "))
    };
    let mut lines: Vec<String> = messages.iter().take(MAX_DISPLAYED).map(line).collect();
    let (count, more) = (messages.len(), messages.len().saturating_sub(MAX_DISPLAYED));
    let (introduction, others, question) = match (language, count) {
        (Language::English, 1) => ("You said this:", format!("- and {more} more"), "Shall I erase it for good?"),
        (Language::English, _) => {
            ("You said this:", format!("- and {more} more"), "Shall I erase all of these for good?")
        }
        (Language::Spanish, 1) => ("Dijiste esto:", format!("- y {more} más"), "¿Lo borro para siempre?"),
        (Language::Spanish, _) => ("Dijiste esto:", format!("- y {more} más"), "¿Borro todo esto para siempre?"),
    };
    if more > 0 {
        lines.push(others);
    }
    lines.extend((found["has_more"] == true).then(|| match language {
        Language::English => "- not yet older messages: ask again after these".to_owned(),
        Language::Spanish => "- todavía no los mensajes más antiguos: vuelve a pedirlo después".to_owned(),
    }));
    let about = text(&found["about"]);
    let says_more = messages.iter().any(|message| says_more(&text(&message["text"]), &about));
    lines.extend(says_more.then(|| match language {
        Language::English => "A message is erased as a whole, with what else it says.".to_owned(),
        Language::Spanish => "Un mensaje se borra entero, con lo demás que dice.".to_owned(),
    }));
    let names: Vec<String> = preferences.iter().map(text).collect();
    lines.extend((!names.is_empty()).then(|| match language {
        Language::English => format!("- your preferences: {}", names.join(", ")),
        Language::Spanish => format!("- tus preferencias: {}", names.join(", ")),
    }));
    format!("{introduction}\n{}\n{question}", lines.join("\n"))
}

/// Whether a message has a sentence about the topic, and another one that does not mention it.
fn says_more(message: &str, about: &str) -> bool {
    let topic: Vec<String> = content_terms(about).into_iter().flat_map(|(_, stems)| stems).collect();
    let mentions = |sentence: &&str| indexed_terms(sentence).iter().any(|term| topic.contains(term));
    let (about, others): (Vec<&str>, Vec<&str>) = sentences(message).partition(mentions);
    !about.is_empty() && others.iter().any(|sentence| content_terms(sentence).len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_say_more_are_known() {
        assert!(says_more("gym pin: 5528. library card: 90417", "my gym pin"));
        assert!(!says_more("the gym pin is 5528", "my gym pin"));
        assert!(!says_more("the gym pin is 5528. thanks!", "my gym pin"));
        assert!(!says_more("library card: 90417. The dog is ill", "everything"));
    }
}
