//! Reads the models' answers from a run's journal, without the graph that wrote the journal.

use serde::Deserialize;
use serde::de::IgnoredAny;
use threadkeep_core::ChatAnswer;

use super::{RunRecord, ThreadAccess, TurnUsage};
use crate::{Memory, Result};

/// The part of a journal entry that this module reads.
#[derive(Deserialize)]
struct Entry {
    event: Event,
    #[serde(default)]
    embedding_calls: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Finished { outcome: Outcome },
    Stopped {},
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Answer(Box<ChatAnswer>),
    Tool(IgnoredAny),
    Activity(IgnoredAny),
    Decision(IgnoredAny),
    Failed(IgnoredAny),
}

/// Returns the model of a run's last answer, and the run's usage. Without answers, the model is that of the run record.
pub(super) async fn model_and_usage(
    memory: &Memory,
    access: &ThreadAccess,
    record: &RunRecord,
) -> Result<(String, TurnUsage)> {
    let entries: Vec<Entry> = access.journal(memory, &record.turn).await?;
    let embedding_calls = entries.iter().map(|entry| entry.embedding_calls).sum::<u64>();
    let answers: Vec<&ChatAnswer> = entries.iter().filter_map(Entry::answer).collect();
    let model = answers.last().map_or_else(|| record.model.clone(), |answer| answer.model.clone());
    Ok((model, TurnUsage::of(answers, record.embedding_calls + embedding_calls)))
}

impl Entry {
    fn answer(&self) -> Option<&ChatAnswer> {
        match &self.event {
            Event::Finished { outcome: Outcome::Answer(answer) } => Some(answer),
            Event::Finished { .. } | Event::Stopped {} => None,
        }
    }
}
