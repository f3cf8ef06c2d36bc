//! Recalling messages for a context.

use threadkeep_context::{ContextPolicy, RecallFrom, Recalled, Trimming};
use threadkeep_core::{Message, Owner, Role, Scope, ThreadId, UnindexedThread, limits};

use super::ContextOptions;
use super::sources::LoadedMessages;
use crate::{EmbedderOutcome, Memory, RecallOptions, RecallResults, Result, ThreadTail};

/// The outcome of searching for messages that are relevant to the question of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecallOutcome {
    /// The policy does not recall messages, or there is no question.
    #[default]
    NotRequested,
    /// The search succeeded.
    Searched {
        /// Threads whose newest messages were not searched, because too many messages are not indexed yet.
        unsearched: Vec<UnindexedThread>,
        /// Whether messages were also ranked by an embedder.
        embedder_outcome: EmbedderOutcome,
    },
    /// The search failed, and the context was assembled without recalled messages.
    Failed {
        /// The error message.
        reason: String,
        /// Whether the search may succeed later.
        is_retryable: bool,
    },
}

impl Memory {
    /// Recalls messages as the policy requires. Reports a failure in the outcome, so that the context is assembled anyway.
    pub(super) async fn recall_for(
        &self,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
        loaded: &LoadedMessages,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> (Vec<Recalled>, RecallOutcome) {
        let newest = loaded.messages().iter().rev().find(|message| message.content.role == Role::User);
        let question = question.map(str::to_owned).or_else(|| newest.map(|newest| newest.plain_text().into_owned()));
        let Some(question) = question.filter(|_| policy.recall.from != RecallFrom::Nowhere) else {
            return (Vec::new(), RecallOutcome::NotRequested);
        };
        match self.search_for(scope, thread, &question, loaded, policy, options).await {
            Ok(results) => {
                let is_usable = |message: &Message, other: ThreadId| {
                    // Other forks of the conversation contain copies of this thread's messages.
                    let is_loaded = || loaded.messages().iter().any(|loaded| loaded.id == message.id);
                    loaded.cutoff.is_none_or(|cutoff| message.created_at >= cutoff)
                        && (if other == thread { message.seq >= loaded.range.first_seq } else { !is_loaded() })
                };
                let usable = results.messages.into_iter().filter(|found| is_usable(&found.message, found.thread));
                let recalled = usable.map(|found| Recalled {
                    thread: Some(found.thread),
                    message: found.message,
                    score: found.score,
                });
                let outcome = RecallOutcome::Searched {
                    unsearched: results.unsearched,
                    embedder_outcome: results.embedder_outcome,
                };
                (recalled.collect(), outcome)
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
        loaded: &LoadedMessages,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<RecallResults> {
        let (scope, only) = match policy.recall.from {
            RecallFrom::Nowhere | RecallFrom::Thread => (scope.clone(), Some(thread)),
            RecallFrom::User => self.owner_scope(scope, thread).await?,
        };
        let history = expected_history(loaded, policy);
        let except = ThreadTail { thread, from_seq: history.certain_from_seq };
        // Results that the history includes are dropped later, so this requests as many more.
        let limit = policy.recall.messages.saturating_add(history.possible).min(limits::PAGE);
        let recall = RecallOptions { thread: only, except: Some(except), limit, ..RecallOptions::default() };
        match &options.embedder {
            Some(embedder) => self.recall_with_embedder(&scope, question, &recall, &**embedder).await,
            None => self.recall(&scope, question, &recall).await,
        }
    }

    /// The scope of the user who owns the thread. If the tenant owns it, only the thread itself is searched.
    async fn owner_scope(&self, scope: &Scope, thread: ThreadId) -> Result<(Scope, Option<ThreadId>)> {
        let found = self.get_thread(scope, thread).await?;
        Ok(match found.owner {
            Owner::User(user) => (Scope::User(scope.tenant_id().clone(), user), None),
            Owner::Tenant => (scope.clone(), Some(thread)),
        })
    }
}

/// The messages that the context will include as history.
struct ExpectedHistory {
    /// The context includes every message from this position on.
    certain_from_seq: u64,
    /// The number of messages before `certain_from_seq` that the context may include.
    possible: usize,
}

/// Returns which messages a context will include. With a token budget, an anchor or pruning, only the newest is certain.
fn expected_history(loaded: &LoadedMessages, policy: &ContextPolicy) -> ExpectedHistory {
    let window = policy.window.unwrap_or(loaded.messages().len()).min(loaded.messages().len());
    let is_whole = policy.budget.is_none() && policy.pruning.is_none() && policy.trimming == Trimming::Sliding;
    let certain = if is_whole { window } else { window.min(1) };
    let from = loaded.messages().len() - certain;
    ExpectedHistory {
        certain_from_seq: loaded.messages().get(from).map_or(loaded.range.last_seq + 1, |message| message.seq),
        possible: window - certain,
    }
}
