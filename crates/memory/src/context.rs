//! What a model sees of a thread: loaded here, chosen and written by `threadkeep_context`.

mod carried;
mod counts;
mod held;
mod prefetch;
mod recalling;
mod report;
mod sources;
mod writing;

use std::borrow::Cow;
use std::sync::Arc;

use threadkeep_context::enrichment::Enrichment;
use threadkeep_context::{
    Context, ContextInput, ContextPolicy, Recalled, Summary, SummaryItem, SummaryPolicy, assemble,
};
use threadkeep_core::{
    ApproximateCounter, CorruptRow, Embedder, Positions, Scope, ThreadId, Timestamp, TokenCounter, limits,
};

use crate::{Memory, Result};
use counts::{Counts, KnownCounter};
use sources::{Loaded, Sources, has_memory};

pub use held::CachedContext;
pub use prefetch::Prefetched;
pub use recalling::RecallOutcome;

pub use writing::SummaryRenewal;

pub(crate) use carried::{Carried, Gone, is_about_summary, touches_carried};
pub(crate) use held::MadeOf;

/// Messages loaded beyond the window, so that those which fell out lately need no second reading.
const MARGIN: usize = 4;
/// Messages that one call adds to a summary which is behind.
const CATCH_UP: u64 = 500;

/// How a context is loaded.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Counts its tokens. Default: [`ApproximateCounter`]. What a message counts by any other is kept with the thread, so
    /// that in chats a message is counted once; a transcript is one text, and counted as a whole.
    pub counter: Arc<dyn TokenCounter>,
    /// Messages found for the question by the caller, best first. They come before those that the policy has recalled.
    pub recalled: Vec<Recalled>,
    /// Joins the ranking of what the policy has recalled ([`Memory::recall_by_meaning`]). Default: none.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What the conversation is about, as an application sees it.
    pub enrichment: Option<Enrichment>,
    /// Looks at the thread as if this position were its last. Default: all of it.
    pub through_seq: Option<u64>,
    /// Keeps the report under this name (1 to 400 bytes), to be read with [`Memory::context_report`] for 30 days. Not being
    /// allowed or able to keep it is no error: the context says whether it is kept.
    pub turn: Option<String>,
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self {
            counter: Arc::new(ApproximateCounter),
            recalled: Vec::new(),
            embedder: None,
            enrichment: None,
            through_seq: None,
            turn: None,
        }
    }
}

/// A context and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledContext {
    /// What the model sees, with the report.
    pub context: Context,
    /// Where the thread stood when its messages were read.
    pub positions: Positions,
    /// Messages that do not decode, among those that were read. The others are there all the same.
    pub unreadable: Vec<CorruptRow>,
    /// What became of the search for messages that bear on the question.
    pub recall: RecallOutcome,
    /// Whether the report is kept for its turn.
    pub is_report_kept: bool,
}

impl Memory {
    /// Assembles what a model sees of a thread when it is asked `question`, or when it is to answer the newest message.
    ///
    /// Read it before the question is stored, or after: it is shown once either way. Preferences of the scope's user, the
    /// summary of what fell out, the anchor of a stable prefix and what messages count are loaded with it. These are derived:
    /// they are stored as they change, which is no change of the thread, and it is no error when that fails or others were first.
    /// Where the policy recalls ([`threadkeep_context::RecallPolicy::from`]), what bears on the question is looked for
    /// too: on the newest user message where there is no question. Should that fail, the context is assembled without,
    /// and says so. The cost does not depend on the length of the thread; a summary that is far behind catches up over
    /// several calls.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Context` for a policy that makes no sense or a budget that is too small,
    /// `LimitExceeded` for a window over [`limits::PAGE`].
    pub async fn context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
    ) -> Result<AssembledContext> {
        self.context_with(scope, thread, question, policy, &ContextOptions::default()).await
    }

    /// Assembles a context with a counter, recalled messages and extractors of the caller's.
    ///
    /// # Errors
    /// As [`Memory::context`].
    pub async fn context_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<AssembledContext> {
        Ok(CachedContext::into_assembled(self.shared_context(scope, thread, question, policy, options).await?))
    }

    /// As [`Memory::context_with`], without a copy where it is held in memory: the newest messages by a policy, asked for again
    /// while nothing changed that they are made of.
    ///
    /// # Errors
    /// As [`Memory::context`].
    pub async fn shared_context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Arc<CachedContext>> {
        policy.check()?;
        let sources = self.read_sources(scope, thread, policy, options).await?;
        self.context_from(scope, thread, question, policy, options, sources).await
    }

    /// Makes a context of what was read.
    async fn context_from(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
        sources: Sources,
    ) -> Result<Arc<CachedContext>> {
        let Sources { loaded, stored, preferences, removals } = sources;
        let made_of = match question.is_none() && preferences.is_empty() {
            true => MadeOf::of(&loaded, &stored, policy, options),
            false => None,
        };
        if let Some(held) = made_of.as_ref().and_then(|made_of| self.held_context(scope, thread, made_of)) {
            return Ok(held);
        }
        // What is not done for a context that is held takes no room in the call, which is moved about several times.
        let summary = match policy.summary {
            Some(summary_policy) => {
                Box::pin(self.catch_up_summary(scope, thread, &loaded, &stored, summary_policy)).await?
            }
            None => None,
        };
        let (found, recall) = Box::pin(self.recall_for(scope, thread, question, &loaded, policy, options)).await;
        let recalled = recalled_in(thread, options.recalled.iter().chain(&found));
        let input = ContextInput {
            thread: loaded.range,
            history: loaded.messages(),
            unreadable: &loaded.unreadable,
            question,
            summary: summary.as_deref(),
            recalled: &recalled,
            preferences: &preferences,
            enrichment: options.enrichment.as_ref(),
            anchor: stored.anchor,
        };
        let (context, counts) = assemble_counted(&input, policy, options, &stored.counts, &loaded)?;
        let renewed = if has_memory(policy, options) { stored.renewed(policy, &context, counts) } else { None };
        // What is carried on from now on is not what it was made of.
        let made_of = made_of.filter(|_| renewed.is_none());
        if let Some(renewed) = renewed {
            Box::pin(self.store_carried(scope, thread, renewed, loaded.positions)).await;
        }
        let is_report_kept = match &options.turn {
            Some(turn) => Box::pin(self.store_report(scope, thread, turn, &context.report)).await.is_ok(),
            None => false,
        };
        let held = Arc::new(CachedContext::new(AssembledContext {
            context,
            positions: loaded.positions,
            unreadable: loaded.unreadable.clone(),
            recall,
            is_report_kept,
        }));
        if let Some(made_of) = made_of {
            self.hold_context(scope, thread, made_of, &held, removals);
        }
        Ok(held)
    }

    /// The stored summary, continued up to the loaded messages as far as one call goes.
    async fn catch_up_summary<'a>(
        &self,
        scope: &Scope,
        thread: ThreadId,
        loaded: &Loaded,
        stored: &'a Carried,
        policy: SummaryPolicy,
    ) -> Result<Option<Cow<'a, Summary>>> {
        let first_seq = loaded.range.first_seq;
        let is_gone =
            |created_at: Timestamp, seq| seq < first_seq || loaded.cutoff.is_some_and(|cutoff| created_at < cutoff);
        let summary = stored.summary.as_ref().map(|summary| {
            let is_gone_item = |item: &SummaryItem| is_gone(item.created_at, item.seq);
            let has_gone = summary.items.iter().any(is_gone_item);
            let kept = if has_gone { Cow::Owned(summary.without(is_gone_item)) } else { Cow::Borrowed(summary) };
            let is_outdated = summary.written.as_ref().is_some_and(|text| is_gone(text.oldest_at, text.first_seq));
            if is_outdated { Cow::Owned(kept.without_written()) } else { kept }
        });
        let covered = summary.as_deref().map_or(0, |summary| summary.through_seq).max(first_seq.saturating_sub(1));
        let missing = (loaded.from() - 1).saturating_sub(covered);
        if missing == 0 {
            return Ok(summary);
        }
        let limit = missing.min(CATCH_UP);
        let page = self.page_after(scope, thread, covered, usize::try_from(limit).unwrap_or(limits::PAGE)).await?;
        let through = page.next.unwrap_or(loaded.from() - 1).min(loaded.from() - 1);
        let mut fallen = page.page.messages;
        fallen.retain(|message| !is_gone(message.created_at, message.seq));
        let extended = Summary::extend(summary.as_deref(), &fallen, first_seq, through, policy.characters);
        Ok(Some(Cow::Owned(extended)))
    }
}

/// What was recalled, as a context of `thread` tells it: where it was said only if that is another thread.
fn recalled_in<'a>(thread: ThreadId, recalled: impl Iterator<Item = &'a Recalled>) -> Vec<Recalled> {
    let elsewhere = |found: &Recalled| found.thread.filter(|other| *other != thread);
    recalled.map(|found| Recalled { thread: elsewhere(found), ..found.clone() }).collect()
}

/// Assembles a context, and says what its messages count where such counts are kept.
fn assemble_counted(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    options: &ContextOptions,
    known: &Counts,
    loaded: &Loaded,
) -> Result<(Context, Option<Counts>)> {
    if !Counts::are_kept_of(&*options.counter) {
        return Ok((assemble(input, policy, &*options.counter)?, None));
    }
    let counter = KnownCounter::new(Arc::clone(&options.counter), known, loaded.messages());
    let context = assemble(input, policy, &counter)?;
    Ok((context, Some(counter.counts(loaded.messages()))))
}
