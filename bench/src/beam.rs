//! `beam`: questions about long conversations of a user with an assistant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use anyhow::Result;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use threadkeep_core::{Content, Role};
use threadkeep_memory::Draft;

use crate::recall::{Asked, Library, RecallArgs, files, instant, report};

#[derive(Debug, Deserialize)]
struct Chat {
    messages: Vec<Said>,
    probing_questions: BTreeMap<String, Vec<Question>>,
}

#[derive(Debug, Deserialize)]
struct Said {
    id: u64,
    role: Role,
    content: String,
    time_anchor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Question {
    question: String,
    /// A list of ids, or such lists under names.
    #[serde(default)]
    source_chat_ids: Value,
}

pub(crate) async fn run(args: &RecallArgs) -> Result<()> {
    let library = Library::open()?;
    let mut asked = Vec::new();
    for path in files(args.path(), ".json.gz")? {
        let chat: Chat = serde_json::from_reader(GzDecoder::new(File::open(path)?))?;
        let thread = library.add_thread(drafts(chat.messages)).await?;
        for (kind, questions) in chat.probing_questions {
            for Question { question, source_chat_ids } in questions {
                let mut evidence = BTreeSet::new();
                collect_ids(&source_chat_ids, &mut evidence);
                if !evidence.is_empty() {
                    asked.push(Asked { thread, question, evidence, kind: kind.clone() });
                }
            }
        }
    }
    report(&library, &asked, args).await
}

/// The messages; a date holds until the next one is told.
fn drafts(said: Vec<Said>) -> Vec<Draft> {
    let mut at = None;
    let drafts = said.into_iter().map(|Said { id, role, content, time_anchor }| {
        at = time_anchor.and_then(|anchor| instant("%B-%d-%Y", &anchor)).or(at);
        let draft = Draft::new(Content::text(role, content)).with_external_id(id.to_string());
        Draft { created_at: at, ..draft }
    });
    drafts.collect()
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Number(id) => {
            ids.insert(id.to_string());
        }
        Value::Array(values) => values.iter().for_each(|value| collect_ids(value, ids)),
        Value::Object(values) => values.values().for_each(|value| collect_ids(value, ids)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_lists_and_groups_of_lists() {
        let mut ids = BTreeSet::new();
        collect_ids(&serde_json::json!({ "first": [1, [2]], "second": { "third": 3 }, "none": null }), &mut ids);
        assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["1", "2", "3"]);
    }
}
