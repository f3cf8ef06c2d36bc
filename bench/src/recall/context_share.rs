//! The share of the evidence that a context of limited size contains, as history or recalled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use threadkeep_context::{ContextPolicy, Fate, RecallFrom, RecallPolicy, Report};
use threadkeep_core::{MessageQuery, ThreadId, TokenCount};
use threadkeep_memory::ContextOptions;
use threadkeep_tokens::Cl100k;

use super::{EvalQuestion, Library};

/// The mean share of the evidence, and the time of each context.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextScores {
    pub(super) share: f64,
    pub(super) seconds: Vec<f64>,
}

/// Assembles a context for every question, with the default policy plus a token budget and recall.
pub(super) async fn measure(library: &Library, questions: &[EvalQuestion], tokens: u64) -> Result<ContextScores> {
    let recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let policy = ContextPolicy { budget: Some(TokenCount(tokens)), recall, ..ContextPolicy::default() };
    let options = ContextOptions { counter: Arc::new(Cl100k), ..ContextOptions::default() };
    let (mut sum, mut seconds) = (0.0, Vec::with_capacity(questions.len()));
    let mut ids = BTreeMap::new();
    for EvalQuestion { thread, question, evidence, .. } in questions {
        if let std::collections::btree_map::Entry::Vacant(entry) = ids.entry(*thread) {
            entry.insert(external_ids(library, *thread).await?);
        }
        let question = Some(question.as_str());
        let began = Instant::now();
        let assembled = library.memory.context_with(&library.scope, *thread, question, &policy, &options).await?;
        seconds.push(began.elapsed().as_secs_f64());
        let included = included(&assembled.context.report);
        let included: BTreeSet<&String> = included.iter().filter_map(|seq| ids[thread].get(seq)).collect();
        let is_included = |id: &&String| {
            included.contains(id) || included.iter().any(|included| super::session_of(included) == id.as_str())
        };
        sum += evidence.iter().filter(is_included).count() as f64 / evidence.len() as f64;
    }
    Ok(ContextScores { share: sum / questions.len().max(1) as f64, seconds })
}

/// Returns the positions of messages whose text a context contains. Messages that are only summarised do not count.
fn included(report: &Report) -> Vec<u64> {
    let is_included = |fate| matches!(fate, Fate::Kept | Fate::Truncated | Fate::Recalled);
    let spans = report.messages.iter().filter(|span| is_included(span.fate));
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
