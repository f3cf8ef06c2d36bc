//! `beam`: questions about long conversations between a user and an assistant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use anyhow::Result;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use threadkeep_core::{Content, Role};
use threadkeep_memory::Draft;

use crate::recall::{EvalQuestion, Library, RecallArgs, files, instant, report};

#[derive(Debug, Deserialize)]
struct Chat {
    messages: Vec<MessageRecord>,
    probing_questions: BTreeMap<String, Vec<QuestionRecord>>,
}

#[derive(Debug, Deserialize)]
struct MessageRecord {
    id: u64,
    role: Role,
    content: String,
    time_anchor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct QuestionRecord {
    question: String,
    /// A list of ids, or an object of such lists.
    #[serde(default)]
    source_chat_ids: Value,
}

pub(crate) async fn run(args: &RecallArgs) -> Result<()> {
    let library = Library::open()?;
    let mut eval_questions = Vec::new();
    for path in files(args.path(), ".json.gz")? {
        let chat: Chat = serde_json::from_reader(GzDecoder::new(File::open(path)?))?;
        let thread = library.add_thread(drafts(chat.messages)).await?;
        for (kind, questions) in chat.probing_questions {
            for QuestionRecord { question, source_chat_ids } in questions {
                let mut evidence = BTreeSet::new();
                collect_ids(&source_chat_ids, &mut evidence);
                if !evidence.is_empty() {
                    eval_questions.push(EvalQuestion { thread, question, evidence, kind: kind.clone() });
                }
            }
        }
    }
    report(&library, &eval_questions, args).await
}

/// Converts messages to drafts. A message without a date gets the date of the previous message.
fn drafts(messages: Vec<MessageRecord>) -> Vec<Draft> {
    let mut at = None;
    let drafts = messages.into_iter().map(|MessageRecord { id, role, content, time_anchor }| {
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
    fn ids_are_collected_from_nested_lists_and_objects() {
        let mut ids = BTreeSet::new();
        collect_ids(&serde_json::json!({ "first": [1, [2]], "second": { "third": 3 }, "none": null }), &mut ids);
        assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["1", "2", "3"]);
    }
}
