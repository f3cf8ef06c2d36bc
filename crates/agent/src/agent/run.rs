//! Runs: questions in conversations that are named by ids, with a flat result.
//!
//! A program that only has a question and two ids calls [`Agent::run`]. Programs that drive the turn themselves, such as servers,
//! call [`Agent::open_run`] before it and [`OpenRun::finish`] after it.

use serde::Serialize;
use threadkeep_core::{EPHEMERAL, Map, OpenThread, Scope, ThreadId, UserId, Value};
use threadkeep_memory::MemoryError;

use super::{Agent, TurnRequest};
use crate::event::EventSink;
use crate::{AgentError, Turn, TurnStatus};

/// The field of a graph's input with the maximum number of searches.
pub const MAX_ITERATIONS: &str = "max_iterations";
/// The longest question, in characters.
const QUERY_CHARACTERS: usize = 1_000;
/// The largest value of `max_iterations` that is accepted.
const LARGEST_ITERATIONS: u64 = 10;
/// The longest title of a conversation, in characters.
const TITLE_CHARACTERS: usize = 100;
/// The lifetime of a thread whose question is not to be stored, in case the thread cannot be deleted: an hour, in
/// milliseconds.
const EPHEMERAL_MS: i64 = 60 * 60 * 1000;
/// The notice for a run without ids.
const NOT_STORED: &str = "No conversation_id or user_id, skipping save";
/// The notice for a run with a conversation but without a user.
const NO_USER: &str = "user_id required for persistence";
/// The notice for a failed run.
const FAILED: &str = "the turn failed, so neither the question nor the answer was stored";

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The question, of 1 to 1,000 characters.
    pub user_query: String,
    /// The maximum number of searches, from 1 to 10. Default: that of the assistant.
    pub max_iterations: Option<u64>,
    /// The conversation to continue. Default: a new one.
    pub conversation_id: Option<ThreadId>,
    /// The user. Without a user, the question is answered without a conversation, and nothing is stored.
    pub user_id: Option<UserId>,
}

/// The result of a run. All fields are present, whether or not the run was stored; only `warning` may be missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The question.
    pub query: String,
    /// The conversation; `None` if nothing was stored.
    pub conversation_id: Option<String>,
    /// What was found, best first.
    pub results: Vec<Value>,
    /// The answer.
    pub final_response: String,
    /// The ids of the sources.
    pub sources_used: Vec<Value>,
    /// Facts about the conversation; at least `total_messages`, the number of its messages.
    pub metadata: Map,
    /// The number of searches.
    pub iterations: u64,
    /// Why the run ended.
    pub exit_reason: String,
    /// The model's reasons for its decisions during the run.
    pub llm_reasoning: String,
    /// The cost in US dollars, as far as prices are known.
    pub total_cost: f64,
    /// The number of embedder calls.
    pub embedding_calls: u64,
    /// The number of model calls.
    pub llm_calls: u64,
    /// A notice, such as that nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// An error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The request is invalid.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// The field of the request.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The user has no such conversation.
    #[error("conversation not found")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The agent failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// A run whose thread is open.
#[derive(Clone, Debug)]
pub struct OpenRun {
    /// The request.
    pub request: RunRequest,
    /// The scope of the run.
    pub scope: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// Whether the thread was created for this run.
    is_new: bool,
}

impl RunRequest {
    /// Checks the limits.
    ///
    /// # Errors
    /// [`RunError::Invalid`].
    pub fn check(&self) -> Result<(), RunError> {
        let invalid = |field, reason: String| Err(RunError::Invalid { field, reason });
        let characters = self.user_query.chars().count();
        if self.user_query.trim().is_empty() {
            return invalid("user_query", "the question is empty".to_owned());
        }
        if characters > QUERY_CHARACTERS {
            return invalid("user_query", format!("{characters} characters, at most {QUERY_CHARACTERS}"));
        }
        match self.max_iterations {
            Some(iterations) if !(1..=LARGEST_ITERATIONS).contains(&iterations) => {
                invalid(MAX_ITERATIONS, format!("{iterations}; expected 1 to {LARGEST_ITERATIONS}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the question and the answer are stored.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.user_id.is_some()
    }

    /// Returns the request for the turn.
    #[must_use]
    pub fn turn_request(&self) -> TurnRequest {
        let extra_input = self.max_iterations.map(|iterations| (MAX_ITERATIONS.to_owned(), Value::from(iterations)));
        TurnRequest {
            extra_input: extra_input.into_iter().collect(),
            is_ephemeral: !self.is_stored(),
            ..TurnRequest::new(&self.user_query)
        }
    }
}

impl Agent {
    /// Answers a question in a user's conversation, in a new conversation, or without storing anything. `scope` is the user's or
    /// the tenant's.
    ///
    /// # Errors
    /// The request is invalid, the conversation is not the user's, or the store fails. A failed turn is not an error.
    pub async fn run(&self, scope: &Scope, request: RunRequest, sink: EventSink<'_>) -> Result<RunResult, RunError> {
        let opened_run = self.open_run(scope, request, self.memory().generate_thread_id()).await?;
        match Box::pin(self.chat_with(&opened_run.scope, opened_run.thread, opened_run.request.turn_request(), sink))
            .await
        {
            Ok(turn) => opened_run.finish(self, &turn).await,
            Err(error) => {
                opened_run.remove_new_thread(self).await;
                Err(error.into())
            }
        }
    }

    /// Checks a request and opens its thread. A new thread gets the id `new_thread`.
    ///
    /// # Errors
    /// The request is invalid, the conversation is not the user's, or the store fails.
    pub async fn open_run(
        &self,
        scope: &Scope,
        request: RunRequest,
        new_thread: ThreadId,
    ) -> Result<OpenRun, RunError> {
        request.check()?;
        let memory = self.memory();
        let scope = match (&request.user_id, scope) {
            (Some(user), Scope::User(_, own)) if user != own => {
                let reason = "not the user of the scope".to_owned();
                return Err(RunError::Invalid { field: "user_id", reason });
            }
            (Some(user), scope) => Scope::User(scope.tenant_id().clone(), user.clone()),
            (None, scope) => scope.clone(),
        };
        if let Some(thread) = request.conversation_id.filter(|_| request.is_stored()) {
            memory.find_thread(&scope, thread).await?.ok_or(RunError::NotFound)?;
            return Ok(OpenRun { request, scope, thread, is_new: false });
        }
        let definition = self.assistant().definition();
        let new = OpenThread::new(&scope, new_thread);
        let open = match request.is_stored() {
            true => {
                let mut metadata = definition.thread_metadata.clone();
                metadata.insert("model".to_owned(), definition.model.name().into());
                let title = request.user_query.chars().take(TITLE_CHARACTERS).collect();
                OpenThread { title: Some(title), metadata, ..new }
            }
            false => OpenThread {
                metadata: Map::from_iter([(EPHEMERAL.to_owned(), true.into())]),
                expires_at: Some(memory.now().plus_ms(EPHEMERAL_MS)),
                ..new
            },
        };
        let opened = memory.open_thread(&scope, open).await?;
        Ok(OpenRun { request, scope, thread: opened.thread.id, is_new: opened.created })
    }
}

impl OpenRun {
    /// Keeps the thread even if it stays empty, because a repeated request will look for it.
    #[must_use]
    pub fn keep_thread(self) -> Self {
        Self { is_new: false, ..self }
    }

    /// Returns the id of the conversation; `None` if nothing is stored.
    #[must_use]
    pub fn conversation_id(&self) -> Option<String> {
        self.request.is_stored().then(|| self.thread.to_string())
    }

    /// Returns the result of the run. A thread that stays empty is deleted.
    ///
    /// # Errors
    /// The store fails.
    pub async fn finish(self, agent: &Agent, turn: &Turn) -> Result<RunResult, RunError> {
        let has_failed = turn.status == TurnStatus::Failed;
        let is_empty = turn.stored.is_empty() && self.is_new;
        let is_stored = self.request.is_stored() && !is_empty;
        let total_messages = match is_stored {
            true => agent.memory().get_thread(&self.scope, self.thread).await?.message_count,
            false => 0,
        };
        if !is_stored && turn.status != TurnStatus::WaitingForApproval {
            self.remove_new_thread(agent).await;
        }
        let report = agent.assistant().report(&self.request.user_query, turn);
        let mut metadata = report.metadata;
        metadata.insert("total_messages".to_owned(), total_messages.into());
        let warning = match (&self.request.user_id, self.request.conversation_id) {
            (None, Some(_)) => Some(NO_USER),
            (None, None) => Some(NOT_STORED),
            (Some(_), _) => (has_failed && turn.stored.is_empty()).then_some(FAILED),
        };
        Ok(RunResult {
            query: self.request.user_query,
            conversation_id: is_stored.then(|| self.thread.to_string()),
            results: report.results,
            final_response: turn.reply.clone(),
            sources_used: report.sources_used,
            metadata,
            iterations: report.iterations,
            exit_reason: report.exit_reason,
            llm_reasoning: report.reasoning,
            total_cost: turn.usage.cost_usd.unwrap_or(0.0) + report.other_cost_usd,
            embedding_calls: turn.usage.embedding_calls,
            llm_calls: turn.usage.model_calls,
            warning: warning.map(str::to_owned),
        })
    }

    /// Deletes the thread if it was created for this run. If this fails, an empty conversation remains, or a thread
    /// that expires.
    pub async fn remove_new_thread(&self, agent: &Agent) {
        if self.is_new
            && let Err(error) = agent.memory().delete_thread(&self.scope, self.thread).await
            && !error.is_not_found()
        {
            tracing::warn!(%error, "cannot delete the thread of a run that stored nothing");
        }
    }
}
