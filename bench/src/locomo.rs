//! `locomo`: questions about very long conversations between two people.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use threadkeep_core::ThreadKey;
use threadkeep_core::exchange::ImportItem;
use threadkeep_formats::Format;
use threadkeep_memory::{ImportOptions, ImportReport};

use crate::recall::{EvalQuestion, Library, RecallArgs, files, report};

#[derive(Debug, Deserialize)]
struct Record {
    #[serde(default)]
    qa: Vec<QuestionRecord>,
}

#[derive(Debug, Deserialize)]
struct QuestionRecord {
    question: String,
    #[serde(default)]
    evidence: Vec<serde_json::Value>,
    #[serde(default)]
    category: serde_json::Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum File {
    Many(Vec<Record>),
    One(Record),
}

pub(crate) async fn run(args: &RecallArgs) -> Result<()> {
    let library = Library::open()?;
    let mut questions = Vec::new();
    for path in files(args.path(), ".json")? {
        let records = match serde_json::from_slice(&std::fs::read(&path)?)? {
            File::Many(records) => records,
            File::One(record) => vec![record],
        };
        let keys = import(&library, &path).await?;
        ensure!(keys.len() == records.len(), "only {} of {} conversations were read", keys.len(), records.len());
        for (key, record) in keys.into_iter().zip(records) {
            let found = library.memory.find_thread_by_key(&library.scope, key.as_str()).await?;
            let thread = found.context("an imported conversation was not found")?.id;
            questions.extend(record.qa.into_iter().filter_map(|question| {
                let evidence: BTreeSet<String> =
                    question.evidence.iter().filter_map(|entry| entry.as_str()).flat_map(turn_ids).collect();
                let kind = question.category.to_string();
                (!evidence.is_empty()).then_some(EvalQuestion { thread, question: question.question, evidence, kind })
            }));
        }
    }
    report(&library, &questions, args).await
}

/// Imports a file. Returns the keys of its conversations, in order.
async fn import(library: &Library, path: &std::path::Path) -> Result<Vec<ThreadKey>> {
    let items: Vec<ImportItem> = threadkeep_formats::open(path, Some(Format::Locomo))?.collect::<Result<_, _>>()?;
    let keys = items.iter().filter_map(|item| match item {
        ImportItem::Thread(thread) => thread.key.clone(),
        _ => None,
    });
    let keys = keys.collect();
    let report: ImportReport = library.memory.import(&library.scope, items, ImportOptions::default(), |_| {}).await?;
    for problem in report.problems {
        eprintln!("skipped {}: {}", problem.name.unwrap_or_default(), problem.error);
    }
    Ok(keys)
}

/// Returns the ids of turns (`D8:6`) in the text, in normal form (`D30:05` is `D30:5`).
fn turn_ids(text: &str) -> Vec<String> {
    let pieces = text.split(|character: char| !(character.is_ascii_alphanumeric() || character == ':'));
    let ids = pieces.filter_map(|piece| {
        let (session, turn) = piece.strip_prefix('D')?.split_once(':')?;
        Some(format!("D{}:{}", session.parse::<u64>().ok()?, turn.parse::<u64>().ok()?))
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_ids_are_parsed_from_text() {
        assert_eq!(turn_ids("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(turn_ids("D9:1 D4:4 D4:6"), ["D9:1", "D4:4", "D4:6"]);
        assert_eq!(turn_ids("D30:05"), ["D30:5"]);
        for none in ["D", "D:11:26", "", "8:6", "D8:"] {
            assert_eq!(turn_ids(none), [] as [&str; 0], "{none}");
        }
    }
}
