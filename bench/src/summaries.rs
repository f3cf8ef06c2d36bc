//! Counts the facts of a conversation that its context contains, with and without a summary.

pub(crate) mod k8s;
pub(crate) mod sgd;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use threadkeep_context::{ContextPolicy, SummaryPolicy};
use threadkeep_core::{Part, Scope, ThreadId};
use threadkeep_memory::{Draft, Memory};
use threadkeep_store_memory::MemoryStore;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// JSON Lines file of records, optionally compressed with gzip
    path: PathBuf,
    /// Number of messages in the window
    #[arg(long, default_value_t = 6)]
    window: usize,
    /// Maximum number of characters of the summary
    #[arg(long, default_value_t = SummaryPolicy::default().characters)]
    characters: usize,
    /// Print the missing facts
    #[arg(long)]
    missing: bool,
}

impl Args {
    fn plain(&self) -> ContextPolicy {
        ContextPolicy::window(self.window)
    }

    fn summarising(&self) -> ContextPolicy {
        let summary = SummaryPolicy { characters: self.characters, ..SummaryPolicy::default() };
        ContextPolicy { summary: Some(summary), ..self.plain() }
    }
}

/// An in-memory store of conversations.
struct Conversations {
    memory: Memory,
    scope: Scope,
}

impl Conversations {
    fn new() -> Result<Self> {
        Ok(Self { memory: Memory::new(MemoryStore::open()), scope: Scope::user("bench", "summaries")? })
    }

    async fn open_thread(&self) -> Result<ThreadId> {
        Ok(self.memory.open(&self.scope).await?.thread.id)
    }

    async fn append(&self, thread: ThreadId, draft: Draft) -> Result<()> {
        self.memory.append(&self.scope, thread, draft).await?;
        Ok(())
    }

    /// Returns the text of the context that a model gets, in lower case.
    async fn model_text(&self, thread: ThreadId, policy: &ContextPolicy) -> Result<String> {
        let assembled = self.memory.context(&self.scope, thread, None, policy).await?;
        let parts = assembled.context.messages.iter().flat_map(|message| &message.parts);
        let texts = parts.map(|part| match part {
            Part::ToolResult(result) => result.output.clone(),
            Part::ToolCall(call) => call.arguments.as_str().to_owned(),
            part => part.text().unwrap_or_default().to_owned(),
        });
        Ok(texts.collect::<Vec<_>>().join("\n").to_lowercase())
    }
}

fn records<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let reader: Box<dyn BufRead> = match path.extension() {
        Some(ending) if ending == "gz" => Box::new(BufReader::new(GzDecoder::new(file))),
        _ => Box::new(BufReader::new(file)),
    };
    reader.lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// The number of facts, and how many of them were found with and without a summary.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    facts: usize,
    with_summary: usize,
    without_summary: usize,
}

impl Tally {
    fn add(&mut self, with_summary: bool, without_summary: bool) {
        self.facts += 1;
        self.with_summary += usize::from(with_summary);
        self.without_summary += usize::from(without_summary);
    }

    fn json(self) -> serde_json::Value {
        let share = |count: usize| (count as f64 / self.facts.max(1) as f64 * 1e4).round() / 1e4;
        serde_json::json!({
            "facts": self.facts,
            "with_summary": share(self.with_summary),
            "without": share(self.without_summary),
        })
    }
}
