//! Looking for what bears on the question, for a context.

use threadkeep_context::{ContextPolicy, RecallFrom, Recalled, Trimming};
use threadkeep_core::{Message, Owner, Role, Scope, ThreadId, UnindexedThread, limits};

use super::ContextOptions;
use super::sources::Loaded;
use crate::{Meaning, Memory, RecallOptions, RecallResults, Result, ThreadTail};

/// What became of the search for messages that bear on the question of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecallOutcome {
    /// The policy recalls from nowhere, or there is no question.
    #[default]
    NotAsked,
    /// It was looked for.
    Searched {
        /// Threads whose newest messages could not be searched within bounds.
        unsearched: Vec<UnindexedThread>,
        /// Whether meaning had a part in the ranking.
        meaning: Meaning,
    },
    /// The search failed; the context was assembled without.
    Failed {
        /// Why.
        reason: String,
        /// Whether it may succeed later.
        is_retryable: bool,
    },
}

impl Memory {
    /// Recalls as the policy says. A failure is told and keeps nothing else from being shown.
    pub(super) async fn recall_for(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        loaded: &Loaded,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> (Vec<Recalled>, RecallOutcome) {
        let newest = loaded.messages().iter().rev().find(|message| message.content.role == Role::User);
        let question = question.map(str::to_owned).or_else(|| newest.map(|newest| newest.plain_text().into_owned()));
        let Some(question) = question.filter(|_| policy.recall.from != RecallFrom::Nowhere) else {
            return (Vec::new(), RecallOutcome::NotAsked);
        };
        match self.search_for(scope, thread, &question, loaded, policy, options).await {
            Ok(results) => {
                let is_kept = |message: &Message, other: ThreadId| {
                    // Of a fork's messages, those that it shares stand in other threads too.
                    let is_shown = || loaded.messages().iter().any(|own| own.id == message.id);
                    loaded.cutoff.is_none_or(|cutoff| message.created_at >= cutoff)
                        && (if other == thread { message.seq >= loaded.range.first_seq } else { !is_shown() })
                };
                let kept = results.turns.into_iter().filter(|turn| is_kept(&turn.message, turn.thread));
                let found =
                    kept.map(|turn| Recalled { thread: Some(turn.thread), message: turn.message, score: turn.score });
                let outcome = RecallOutcome::Searched { unsearched: results.unsearched, meaning: results.meaning };
                (found.collect(), outcome)
            }
            Err(error) => {
                let outcome = RecallOutcome::Failed { reason: error.to_string(), is_retryable: error.is_retryable() };
                (Vec::new(), outcome)
            }
        }
    }

    async fn search_for(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: &str,
        loaded: &Loaded,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<RecallResults> {
        let (scope, only) = match policy.recall.from {
            RecallFrom::Nowhere | RecallFrom::Thread => (scope.clone(), Some(thread)),
            RecallFrom::User => self.owner_scope(scope, thread).await?,
        };
        let shown = shown_from(loaded, policy);
        let except = ThreadTail { thread, from_seq: shown.surely };
        // Of what may turn out to be shown, as many more, so that it takes nothing's place.
        let limit = policy.recall.messages.saturating_add(shown.perhaps).min(limits::PAGE);
        let recall = RecallOptions { thread: only, except: Some(except), limit, ..RecallOptions::default() };
        match &options.embedder {
            Some(embedder) => self.recall_by_meaning(&scope, question, &recall, &**embedder).await,
            None => self.recall(&scope, question, &recall).await,
        }
    }

    /// The scope of the user whom a thread belongs to; where it belongs to none, nothing but the thread.
    async fn owner_scope(&self, scope: &Scope, thread: ThreadId) -> Result<(Scope, Option<ThreadId>)> {
        let found = self.get_thread(scope, thread).await?;
        Ok(match found.owner {
            Owner::User(user) => (Scope::User(scope.tenant_id().clone(), user), None),
            Owner::Tenant => (scope.clone(), Some(thread)),
        })
    }
}

/// What a context shows of its thread without any search.
struct Shown {
    /// From this position on everything.
    surely: u64,
    /// How many messages before that it shows if there is room.
    perhaps: usize,
}

/// With a bound of tokens, an anchor or a choice by relevance only the newest message is sure to be shown.
fn shown_from(loaded: &Loaded, policy: &ContextPolicy) -> Shown {
    let window = policy.window.unwrap_or(loaded.messages().len()).min(loaded.messages().len());
    let is_whole = policy.budget.is_none() && policy.pruning.is_none() && policy.trimming == Trimming::Sliding;
    let surely = if is_whole { window } else { window.min(1) };
    let from = loaded.messages().len() - surely;
    Shown {
        surely: loaded.messages().get(from).map_or(loaded.range.last_seq + 1, |message| message.seq),
        perhaps: window - surely,
    }
}
