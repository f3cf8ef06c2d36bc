//! What a run's journal says of its models, read without the graph that made it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use threadkeep_core::ChatAnswer;

use super::{ThreadAccess, RunRecord, TurnUsage};
use crate::{Memory, Result};

/// One thing that happened to a run, as far as it is read here.
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

/// What spoke last in a run, and what it took.
pub(super) async fn spoken(memory: &Memory, access: &ThreadAccess, record: &RunRecord) -> Result<(String, TurnUsage)> {
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
