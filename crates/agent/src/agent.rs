//! The agent, through which the server and the command line run turns.

mod admit;
mod decide;
mod resume;
mod run;
mod start;

use std::fmt;
use std::sync::Arc;

use threadkeep_core::{Map, Scope, ThreadId};
use threadkeep_memory::Memory;
use threadkeep_memory::turns::{ThreadAccess, TurnState, find_turn_state, record};

use crate::event::{EventSink, Events};
use crate::{Assistant, Result, Stop, Turn, TurnEvent};

pub use decide::Decision;
pub use run::{MAX_ITERATIONS, OpenRun, RunError, RunRequest, RunResult};

/// Runs the turns of an assistant in the threads of a memory. Cheap to clone.
///
/// An agent keeps no state between calls: another agent with the same store, in this process or another, can continue its turns.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

struct Inner {
    memory: Memory,
    assistant: Arc<dyn Assistant>,
}

/// A user's message, with the options of its turn.
#[derive(Clone, Debug, Default)]
pub struct TurnRequest {
    /// The text of the user's message.
    pub text: String,
    /// The author, in a thread that several users share. Default: the scope's user, in a shared thread.
    pub author: Option<String>,
    /// Repeated requests with the same key return the same turn, for as long as the turn is stored (30 days).
    pub idempotency_key: Option<String>,
    /// Further input from the caller, such as the user's location.
    pub extra_input: Map,
    /// Whether the thread was created only for this question ([`threadkeep_core::EPHEMERAL`]). The turn's messages are then marked, so
    /// that they are not recalled in other threads.
    pub is_ephemeral: bool,
    /// A handle that stops the turn from outside.
    pub stop: Stop,
}

impl TurnRequest {
    /// Creates a request with default options.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Agent {
    /// Creates an agent.
    #[must_use]
    pub fn new(memory: Memory, assistant: impl Assistant) -> Self {
        Self::with_assistant(memory, Arc::new(assistant))
    }

    /// Creates an agent for a shared assistant.
    #[must_use]
    pub fn with_assistant(memory: Memory, assistant: Arc<dyn Assistant>) -> Self {
        Self { inner: Arc::new(Inner { memory, assistant }) }
    }

    /// Returns the memory, which stores the conversations.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// Returns the assistant.
    #[must_use]
    pub fn assistant(&self) -> &Arc<dyn Assistant> {
        &self.inner.assistant
    }

    /// Answers a user's message in a thread.
    ///
    /// The user's message is stored first, unless [`StoreUserMessage`](crate::StoreUserMessage) says otherwise; a later
    /// failure is reported by the turn, and the conversation can continue after it. The turn's other messages are stored by
    /// one commit at its end. If the future is dropped, the turn is interrupted, and the next call on the thread first
    /// resumes it from its journal.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread; `Busy` while another turn is running there, immediately or after
    /// waiting, depending on [`BusyPolicy`](crate::BusyPolicy); errors from the store if the user's message could not be stored.
    pub async fn chat(&self, scope: &Scope, thread: ThreadId, text: impl Into<String>) -> Result<Turn> {
        self.chat_with(scope, thread, TurnRequest::new(text), &mut |_| {}).await
    }

    /// Like [`Agent::chat`], with options, and with a sink for the turn's events.
    ///
    /// # Errors
    /// The same as [`Agent::chat`].
    pub async fn chat_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        request: TurnRequest,
        sink: EventSink<'_>,
    ) -> Result<Turn> {
        let (access, snapshot) = self.read_thread(scope, thread).await?;
        let events = Events::new(sink);
        let started = match Box::pin(self.start(&access, snapshot, &request)).await? {
            start::TurnStart::Started(run) => run,
            start::TurnStart::Existing(turn) => {
                events.send(TurnEvent::of_ended_turn(&turn));
                return Ok(*turn);
            }
        };
        Box::pin(self.run_started(&access, started, &request, &events)).await
    }

    /// Returns a turn that has ended or is waiting for approval, as [`Agent::chat`] returned it. Its messages are read from the thread, so
    /// the turn lacks messages that have been erased. Turns are stored for 30 days. [`find_turn_state`] also finds running turns.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread.
    pub async fn find_turn(&self, scope: &Scope, thread: ThreadId, turn: &str) -> Result<Option<Turn>> {
        match find_turn_state(self.memory(), scope, thread, turn).await? {
            Some(TurnState::NotRunning(turn)) => Ok(Some(*turn)),
            _ => Ok(None),
        }
    }

    /// Whether a turn is running in a thread, or was interrupted and has not been resumed.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread.
    pub async fn is_busy(&self, scope: &Scope, thread: ThreadId) -> Result<bool> {
        let access = ThreadAccess::find(self.memory(), scope, thread).await?;
        Ok(self.memory().find_thread_record(&access.writer, access.thread, &record::active_name()).await?.is_some())
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("assistant", &self.inner.assistant).finish_non_exhaustive()
    }
}
