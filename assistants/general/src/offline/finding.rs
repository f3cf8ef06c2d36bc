//! The intent that lists the messages in which the user mentioned something.

use serde_json::json;
use threadkeep::core::text::Language;
use threadkeep::dialogue::{Intent, Outcome, Slot, is_question};

use super::erasure::topic_of;
use super::quoting::origin;
use super::{NOT_FOUND, NOT_FOUND_IN_SPANISH, text};
use crate::evidence::heading::Heading;

/// The maximum number of listed messages.
const MAX_LISTED: usize = 5;

const CUES: [&str; 38] = [
    "where did i mention",
    "when did i mention",
    "where have i mentioned",
    "mencione a",
    "where i mentioned",
    "where i mention",
    "where i talked about",
    "where i talk about",
    "where i said something about",
    "in which i mentioned",
    "when i mentioned",
    "that mention",
    "mentioning",
    "containing",
    "messages about",
    "messages on",
    "messages with",
    "message about",
    "message with",
    "notes about",
    "notes on",
    "note about",
    "everything about",
    "everything on",
    "anything about",
    "all about",
    "what i said about",
    "what i told you about",
    "search for",
    "donde mencione",
    "en que mencione",
    "donde hable de",
    "mensajes sobre",
    "mensajes de",
    "mensajes con",
    "notas sobre",
    "lo que dije sobre",
    "lo que dije de",
];

pub(super) fn find_said() -> Intent {
    Intent::new("find_said")
        .slot(Slot::text("about").after(CUES))
        .then_calls("recall", |outcome| {
            let about = topic_of(outcome.slots().label("about"));
            (!about.is_empty()).then(|| json!({"question": about}))
        })
        .says(list)
}

const DOCUMENT_CUES: [&str; 14] = [
    "documents for",
    "documents about",
    "docs for",
    "docs about",
    "files for",
    "files about",
    "document for",
    "library for",
    "papers for",
    "manuals for",
    "documentos sobre",
    "documentos por",
    "documentos la",
    "documentos el",
];

/// The intent that searches the documents.
pub(super) fn find_in_documents() -> Intent {
    Intent::new("find_in_documents")
        .slot(Slot::text("about").after(DOCUMENT_CUES))
        .then_calls("search_documents", |outcome| {
            let about = topic_of(outcome.slots().label("about"));
            (!about.is_empty()).then(|| json!({"question": about}))
        })
        .says(|outcome| {
            let found = outcome.result("search_documents");
            let passages = found["found"].as_array().into_iter().flatten();
            let line = |passage: &threadkeep::Value| {
                format!("{}: “{}”", text(&passage["from"]), text(&passage["text"]).trim())
            };
            let lines: Vec<String> = passages.take(MAX_PASSAGES).map(line).collect();
            match (lines.is_empty(), outcome.language()) {
                (false, _) => lines.join("\n"),
                (true, Language::English) => NOT_FOUND.to_owned(),
                (true, Language::Spanish) => NOT_FOUND_IN_SPANISH.to_owned(),
            }
        })
}

/// The maximum number of quoted passages.
const MAX_PASSAGES: usize = 3;

fn list(outcome: &Outcome<'_>) -> String {
    let found = outcome.result("recall");
    let messages = found["found"].as_array().into_iter().flatten();
    let lines = messages.filter_map(|message| {
        let (heading, said) = (text(&message["from"]), text(&message["text"]));
        let is_by_user = Heading::parse(&heading).is_some_and(|heading| heading.is_by_user());
        (is_by_user && !is_question(&said))
            .then(|| format!("{} “{}”", origin(&heading, outcome.language(), true), said.trim()))
    });
    let lines: Vec<String> = lines.take(MAX_LISTED).collect();
    match (lines.is_empty(), outcome.language()) {
        (false, _) => lines.join("\n"),
        (true, Language::English) => NOT_FOUND.to_owned(),
        (true, Language::Spanish) => NOT_FOUND_IN_SPANISH.to_owned(),
    }
}
