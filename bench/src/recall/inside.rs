//! How much of the evidence stands inside a context of so many tokens, shown or recalled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use threadkeep_context::{ContextPolicy, Fate, RecallFrom, RecallPolicy, Report};
use threadkeep_core::{MessageQuery, ThreadId, TokenCount};
use threadkeep_memory::ContextOptions;
use threadkeep_tokens::Cl100k;

use super::{Asked, Library};

/// The share of the evidence, and how long a context took.
#[derive(Clone, Debug, Default)]
pub(super) struct Inside {
    pub(super) share: f64,
    pub(super) seconds: Vec<f64>,
}

/// Assembles a context for every question, with the policy that an application has by default, a budget, and recall.
pub(super) async fn ask_all(library: &Library, asked: &[Asked], tokens: u64) -> Result<Inside> {
    let recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let policy = ContextPolicy { budget: Some(TokenCount(tokens)), recall, ..ContextPolicy::default() };
    let options = ContextOptions { counter: Arc::new(Cl100k), ..ContextOptions::default() };
    let (mut sum, mut seconds) = (0.0, Vec::with_capacity(asked.len()));
    let mut ids = BTreeMap::new();
    for asked in asked {
        if let std::collections::btree_map::Entry::Vacant(place) = ids.entry(asked.thread) {
            place.insert(external_ids(library, asked.thread).await?);
        }
        let question = Some(asked.question.as_str());
        let began = Instant::now();
        let assembled = library.memory.context_with(&library.scope, asked.thread, question, &policy, &options).await?;
        seconds.push(began.elapsed().as_secs_f64());
        let shown = shown(&assembled.context.report);
        let shown: BTreeSet<&String> = shown.iter().filter_map(|seq| ids[&asked.thread].get(seq)).collect();
        let found = asked
            .evidence
            .iter()
            .filter(|id| shown.contains(id) || shown.iter().any(|shown| super::session_of(shown) == id.as_str()));
        sum += found.count() as f64 / asked.evidence.len() as f64;
    }
    Ok(Inside { share: sum / asked.len().max(1) as f64, seconds })
}

/// The positions whose words stand in a context. What only the summary tells of does not count.
fn shown(report: &Report) -> Vec<u64> {
    let is_shown = |fate| matches!(fate, Fate::Kept | Fate::Truncated | Fate::Recalled);
    let spans = report.messages.iter().filter(|span| is_shown(span.fate));
    spans.flat_map(|span| span.first_seq..=span.last_seq).collect()
}

async fn external_ids(library: &Library, thread: ThreadId) -> Result<BTreeMap<u64, String>> {
    let (mut ids, mut after) = (BTreeMap::new(), 0);
    loop {
        let page = library.memory.messages(&library.scope, thread, &MessageQuery::following(after, 1_000)).await?;
        for message in page.messages {
            after = message.seq;
            ids.extend(message.external_id.map(|id| (message.seq, id)));
        }
        if !page.more {
            return Ok(ids);
        }
    }
}
