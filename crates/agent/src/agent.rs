//! What doors call.

mod admit;
mod begin;
mod decide;
mod resume;

use std::fmt;
use std::sync::Arc;

use threadkeep_core::{Map, Scope, ThreadId};
use threadkeep_memory::Memory;
use threadkeep_memory::turns::{Place, TurnState, find_turn_state, record};

use crate::event::{EventSink, Events};
use crate::{Assistant, Result, Stop, Turn, TurnEvent};

pub use decide::Decision;

/// An assistant over a memory. Cheap to clone; all clones are the same one.
///
/// It holds nothing between calls: another agent over the same store, in this process or another, goes on where this one
/// stopped.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

struct Inner {
    memory: Memory,
    assistant: Arc<dyn Assistant>,
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The user's words.
    pub text: String,
    /// Who speaks, where several share a thread. Default: the scope's user, in a shared thread.
    pub author: Option<String>,
    /// Makes a request that comes again the same turn, for as long as the turn is kept (30 days).
    pub idempotency_key: Option<String>,
    /// What the door knows beside the words, such as where the user is.
    pub given: Map,
    /// Whether the thread was made for this question alone ([`threadkeep_core::EPHEMERAL`]): the turn's messages are marked
    /// so that they are recalled nowhere else.
    pub is_ephemeral: bool,
    /// Stops the turn from outside.
    pub stop: Stop,
}

impl Ask {
    /// Asks in words.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Agent {
    /// Makes an agent.
    #[must_use]
    pub fn new(memory: Memory, assistant: impl Assistant) -> Self {
        Self::with_assistant(memory, Arc::new(assistant))
    }

    /// Makes an agent of an assistant that others hold too.
    #[must_use]
    pub fn with_assistant(memory: Memory, assistant: Arc<dyn Assistant>) -> Self {
        Self { inner: Arc::new(Inner { memory, assistant }) }
    }

    /// The conversations.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// The assistant.
    #[must_use]
    pub fn assistant(&self) -> &Arc<dyn Assistant> {
        &self.inner.assistant
    }

    /// Answers what a user says in a thread.
    ///
    /// The user's message is stored before anything else happens; whatever fails then is told by the turn, and the
    /// conversation can go on. What the turn adds is stored by one commit at its end. Dropping the future leaves the turn
    /// as its journal has it: the next call on the thread goes on with it first.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach the thread, `Busy` while another turn is on its way there (by policy, or
    /// after waiting), those of the store where the user's message could not be stored.
    pub async fn chat(&self, scope: &Scope, thread: ThreadId, text: impl Into<String>) -> Result<Turn> {
        self.chat_with(scope, thread, Ask::new(text), &mut |_| {}).await
    }

    /// As [`Agent::chat`], telling what happens on the way.
    ///
    /// # Errors
    /// As [`Agent::chat`].
    pub async fn chat_with(&self, scope: &Scope, thread: ThreadId, ask: Ask, sink: EventSink<'_>) -> Result<Turn> {
        let (place, looked) = self.look(scope, thread).await?;
        let events = Events::new(sink);
        let begun = match self.begin(&place, looked, &ask).await? {
            begin::Begun::Now(begun) => begun,
            begin::Begun::Before(turn) => {
                events.send(TurnEvent::ended(&turn));
                return Ok(*turn);
            }
        };
        Box::pin(self.run_begun(&place, begun, &ask, &events)).await
    }

    /// Finds a turn that is over or waits, as it was answered. Its messages are read from the thread, so what was erased
    /// there is gone from it too. Turns are kept for 30 days. [`find_turn_state`] finds running ones, too.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach the thread.
    pub async fn find_turn(&self, scope: &Scope, thread: ThreadId, turn: &str) -> Result<Option<Turn>> {
        match find_turn_state(self.memory(), scope, thread, turn).await? {
            Some(TurnState::Settled(turn)) => Ok(Some(*turn)),
            _ => Ok(None),
        }
    }

    /// Whether a turn is on its way in a thread: another driver has it, or had it until it was cut off.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach the thread.
    pub async fn is_busy(&self, scope: &Scope, thread: ThreadId) -> Result<bool> {
        let place = Place::find(self.memory(), scope, thread).await?;
        Ok(self.memory().find_thread_document(&place.writer, place.thread, &record::active()).await?.is_some())
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("assistant", &self.inner.assistant).finish_non_exhaustive()
    }
}
