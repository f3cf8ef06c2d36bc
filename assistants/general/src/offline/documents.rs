//! The intent that lists the documents.

use serde_json::json;
use threadkeep::core::text::Language;
use threadkeep::dialogue::{Intent, Outcome};

use super::text;

pub(super) fn list_documents() -> Intent {
    Intent::new("list_documents")
        .example("Which documents do you have?")
        .calls_with("list_documents", |_| json!({}))
        .says(documents)
}

fn documents(outcome: &Outcome<'_>) -> String {
    let found = outcome.result("list_documents");
    let titles = found["documents"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = titles.map(|document| format!("- {}", text(&document["title"]))).collect();
    if lines.is_empty() {
        return match outcome.language() {
            Language::English => "I have no documents. To add one, run `threadkeep docs add FILE`.",
            Language::Spanish => "No tengo documentos. Para añadir uno, ejecuta `threadkeep docs add ARCHIVO`.",
        }
        .to_owned();
    }
    if let Some(more) = found["more"].as_u64().filter(|more| *more > 0) {
        lines.push(match outcome.language() {
            Language::English => format!("- and {more} more"),
            Language::Spanish => format!("- y {more} más"),
        });
    }
    match outcome.language() {
        Language::English => format!("I have these documents:\n{}", lines.join("\n")),
        Language::Spanish => format!("Tengo estos documentos:\n{}", lines.join("\n")),
    }
}
