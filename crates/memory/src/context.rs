//! Contexts: the messages that a model reads. Loads the data; `threadkeep_context` selects and renders it.

mod cached;
mod model_summary;
mod prefetch;
mod recall;
mod report;
mod sources;
mod state;
mod token_counts;

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
use sources::{LoadedMessages, Sources, needs_context_state};
use token_counts::{CachingCounter, TokenCounts};

pub use cached::CachedContext;
pub use model_summary::SummaryRenewal;
pub use prefetch::Prefetched;
pub use recall::RecallOutcome;

pub(crate) use cached::ContextKey;
pub(crate) use state::{ContextState, RemovedMessages, is_context_state_conflict, writes_context_state};

/// Number of messages loaded in addition to the window, so that messages that have just left the window can be summarised
/// without a second read.
const MARGIN: usize = 4;
/// Maximum number of messages that one call adds to the summary.
const CATCH_UP_MESSAGES: u64 = 500;

/// Options for assembling a context.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Counts the tokens of the context. Default: [`ApproximateCounter`]. The counts of any other counter are stored with the
    /// thread, so that each message of a chat is counted only once. A transcript is a single text and is counted each time.
    pub counter: Arc<dyn TokenCounter>,
    /// Messages that the caller found for the question, best first. They precede the messages that the policy recalls.
    pub recalled: Vec<Recalled>,
    /// If set, recalled messages are also ranked by meaning ([`Memory::recall_with_embedder`]). Default: none.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Facts about the conversation that the application extracted.
    pub enrichment: Option<Enrichment>,
    /// Assembles the context as if this position were the thread's last. Default: the whole thread.
    pub through_seq: Option<u64>,
    /// The id of the turn (1 to 400 bytes) under which the report is stored for 30 days, so that [`Memory::context_report`] can
    /// read it. Failing to store it is not an error (see [`AssembledContext::is_report_stored`]). Default: not stored.
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

/// A context and the positions at which it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledContext {
    /// The messages for the model, and the report.
    pub context: Context,
    /// The positions of the thread when its messages were read.
    pub positions: Positions,
    /// The messages that cannot be decoded. The context does not include them.
    pub unreadable: Vec<CorruptRow>,
    /// The outcome of the search for messages that are relevant to the question.
    pub recall: RecallOutcome,
    /// Whether the report was stored for its turn.
    pub is_report_stored: bool,
}

impl Memory {
    /// Assembles the context in which a model answers `question`, or the newest message if there is no question.
    ///
    /// The question appears once, whether or not it is already stored. The context includes the preferences of the scope's
    /// user. The thread's summary, the anchor of a stable prefix and the token counts of messages are derived data: they are
    /// loaded with the context and stored when they change. Storing them does not change the thread. A failure to store them,
    /// or another instance storing them first, is not an error.
    ///
    /// If the policy recalls messages ([`threadkeep_context::RecallPolicy::from`]), this searches for messages that are relevant
    /// to the question or, without one, to the newest user message. If the search fails, the context is assembled without
    /// recalled messages (see [`AssembledContext::recall`]). The cost does not depend on the length of the thread: a summary that
    /// lacks many messages is completed over several calls.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Context` for an invalid policy or a budget that is too small, `LimitExceeded` for a
    /// window of more than [`limits::PAGE`] messages.
    pub async fn context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
    ) -> Result<AssembledContext> {
        self.context_with(scope, thread, question, policy, &ContextOptions::default()).await
    }

    /// Assembles a context as [`Memory::context`] does, with options.
    ///
    /// # Errors
    /// The same as for [`Memory::context`].
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

    /// Assembles a context as [`Memory::context_with`] does, or returns it from the cache without copying it.
    ///
    /// A context is cached if it depends only on the thread's newest messages, the policy and the counter.
    ///
    /// # Errors
    /// The same as for [`Memory::context`].
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

    /// Assembles a context from `sources`, or returns it from the cache.
    async fn context_from(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
        sources: Sources,
    ) -> Result<Arc<CachedContext>> {
        let Sources { loaded, state, preferences, removals } = sources;
        let key = match question.is_none() && preferences.is_empty() {
            true => ContextKey::of(&loaded, &state, policy, options),
            false => None,
        };
        if let Some(cached) = key.as_ref().and_then(|key| self.cached_context(scope, thread, key)) {
            return Ok(cached);
        }
        // Futures that a cache hit does not need are boxed, which keeps this one small.
        let summary = match policy.summary {
            Some(summary_policy) => {
                Box::pin(self.catch_up_summary(scope, thread, &loaded, &state, summary_policy)).await?
            }
            None => None,
        };
        let (found, recall) = Box::pin(self.recall_for(scope, thread, question, &loaded, policy, options)).await;
        let recalled = without_own_thread(thread, options.recalled.iter().chain(&found));
        let input = ContextInput {
            thread: loaded.range,
            history: loaded.messages(),
            unreadable: &loaded.unreadable,
            question,
            summary: summary.as_deref(),
            recalled: &recalled,
            preferences: &preferences,
            enrichment: options.enrichment.as_ref(),
            anchor: state.anchor,
        };
        let (context, counts) = assemble_counted(&input, policy, options, &state.counts, &loaded)?;
        let updated = if needs_context_state(policy, options) { state.updated(policy, &context, counts) } else { None };
        // The next context is looked up with the updated state, so a context assembled from the old state is not cached.
        let key = key.filter(|_| updated.is_none());
        if let Some(updated) = updated {
            Box::pin(self.store_context_state(scope, thread, updated, loaded.positions)).await;
        }
        let is_report_stored = match &options.turn {
            Some(turn) => Box::pin(self.store_report(scope, thread, turn, &context.report)).await.is_ok(),
            None => false,
        };
        let shared = Arc::new(CachedContext::new(AssembledContext {
            context,
            positions: loaded.positions,
            unreadable: loaded.unreadable.clone(),
            recall,
            is_report_stored,
        }));
        if let Some(key) = key {
            self.cache_context(scope, thread, key, &shared, removals);
        }
        Ok(shared)
    }

    /// Adds messages that precede the loaded ones to the stored summary, at most [`CATCH_UP_MESSAGES`].
    async fn catch_up_summary<'a>(
        &self,
        scope: &Scope,
        thread: ThreadId,
        loaded: &LoadedMessages,
        state: &'a ContextState,
        policy: SummaryPolicy,
    ) -> Result<Option<Cow<'a, Summary>>> {
        let first_seq = loaded.range.first_seq;
        let is_trimmed =
            |created_at: Timestamp, seq| seq < first_seq || loaded.cutoff.is_some_and(|cutoff| created_at < cutoff);
        let summary = state.summary.as_ref().map(|summary| {
            let is_trimmed_item = |item: &SummaryItem| is_trimmed(item.created_at, item.seq);
            let has_trimmed = summary.items.iter().any(is_trimmed_item);
            let kept = if has_trimmed { Cow::Owned(summary.without(is_trimmed_item)) } else { Cow::Borrowed(summary) };
            let is_outdated = summary.written.as_ref().is_some_and(|text| is_trimmed(text.oldest_at, text.first_seq));
            if is_outdated { Cow::Owned(kept.without_written()) } else { kept }
        });
        let covered = summary.as_deref().map_or(0, |summary| summary.through_seq).max(first_seq.saturating_sub(1));
        let missing = (loaded.from() - 1).saturating_sub(covered);
        if missing == 0 {
            return Ok(summary);
        }
        let limit = missing.min(CATCH_UP_MESSAGES);
        let step = self.page_after(scope, thread, covered, usize::try_from(limit).unwrap_or(limits::PAGE)).await?;
        let through = step.next.unwrap_or(loaded.from() - 1).min(loaded.from() - 1);
        let mut messages = step.page.messages;
        messages.retain(|message| !is_trimmed(message.created_at, message.seq));
        let extended = Summary::extend(summary.as_deref(), &messages, first_seq, through, policy.characters);
        Ok(Some(Cow::Owned(extended)))
    }
}

/// Clears the thread id of recalled messages that are in `thread` itself, because a context names only other threads.
fn without_own_thread<'a>(thread: ThreadId, recalled: impl Iterator<Item = &'a Recalled>) -> Vec<Recalled> {
    let other_thread = |found: &Recalled| found.thread.filter(|other| *other != thread);
    recalled.map(|found| Recalled { thread: other_thread(found), ..found.clone() }).collect()
}

/// Assembles a context. Also returns the token counts of the loaded messages if counts are stored for this counter.
fn assemble_counted(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    options: &ContextOptions,
    known: &TokenCounts,
    loaded: &LoadedMessages,
) -> Result<(Context, Option<TokenCounts>)> {
    if !TokenCounts::are_stored_for(&*options.counter) {
        return Ok((assemble(input, policy, &*options.counter)?, None));
    }
    let counter = CachingCounter::new(Arc::clone(&options.counter), known, loaded.messages());
    let context = assemble(input, policy, &counter)?;
    Ok((context, Some(counter.counts(loaded.messages()))))
}
