//! The state of the connection to a server, shared by its tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use threadkeep::ToolOutput;
use threadkeep::core::ToolError;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::reader::ReadCount;
use crate::protocol::client::{CallError, Caller};

/// How long a call waits for a server that is starting.
const START_WAIT: Duration = Duration::from_secs(10);

/// The state of a connection.
#[derive(Clone)]
pub(crate) enum State {
    /// The server was not started yet.
    Idle,
    /// The server is starting.
    Starting,
    Ready(Connected),
    /// The server is not running.
    Down {
        reason: String,
        restarts_at: Instant,
    },
}

/// An open connection.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) caller: Caller,
    /// `None` for connections over HTTP.
    pub(crate) count: Option<Arc<ReadCount>>,
    /// Notified if a call found the connection lost.
    pub(crate) lost: Arc<Lost>,
}

/// Whether a call found a connection lost.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    is_lost: AtomicBool,
    noticed: Notify,
}

impl Lost {
    fn set(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        self.noticed.notify_one();
    }

    /// Waits until a call finds the connection lost.
    pub(crate) async fn wait(&self) {
        self.noticed.notified().await;
    }
}

impl Connected {
    /// Whether calls can be made: nothing shows yet that the connection is closed.
    fn is_usable(&self) -> bool {
        let is_exceeded = self.count.as_ref().is_some_and(|count| count.exceeded().is_some());
        !is_exceeded && !self.caller.is_closed() && !self.lost.is_lost.load(Ordering::Relaxed)
    }
}

/// The connection to one server, which changes when the server is restarted.
pub(crate) struct Link {
    /// The name of the server.
    pub(crate) server: String,
    pub(crate) state: watch::Sender<State>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), state: watch::Sender::new(State::Idle) }
    }

    /// Waits until the server is running or known to be unavailable, at most [`START_WAIT`].
    pub(crate) async fn wait_while_starting(&self) {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| matches!(state, State::Ready(_) | State::Down { .. }));
        drop(timeout(START_WAIT, settled).await);
    }

    /// Returns the open connection. If the server is about to start, waits for it.
    async fn connected(&self) -> Result<Connected, ToolError> {
        let mut state = self.state.subscribe();
        let will_be_ready = |state: &State| match state {
            State::Down { restarts_at, .. } => *restarts_at < Instant::now() + START_WAIT,
            _ => true,
        };
        let is_usable = |state: &State| matches!(state, State::Ready(connected) if connected.is_usable());
        let settled = state.wait_for(|state| is_usable(state) || !will_be_ready(state));
        drop(timeout(START_WAIT, settled).await.map(|settled| settled.map(drop)));
        match &*self.state.borrow() {
            State::Ready(connected) if connected.is_usable() => Ok(connected.clone()),
            State::Down { reason, .. } => {
                Err(ToolError::Unavailable(format!("the MCP server {} is not running: {reason}", self.server)))
            }
            _ => Err(ToolError::Unavailable(format!("the MCP server {} has not started yet", self.server))),
        }
    }

    /// Calls a tool. The call is made at most once.
    pub(crate) async fn call(&self, name: &str, arguments: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let Connected { caller, count, lost } = self.connected().await?;
        if let Some(count) = &count {
            count.start_call();
        }
        match caller.call(name.to_owned(), arguments).await {
            Ok(output) if output.is_error => Err(ToolError::Failed(output.text)),
            Ok(output) => {
                let value = output.structured.as_ref().map(threadkeep::JsonText::from);
                Ok(ToolOutput { value, ..ToolOutput::text(output.text) })
            }
            Err(CallError::Refused(reason)) => Err(ToolError::Failed(reason)),
            Err(CallError::Lost(reason)) => {
                lost.set();
                let reason = count.and_then(|count| count.exceeded()).unwrap_or(reason);
                Err(ToolError::Failed(format!(
                    "the connection to the MCP server {} was lost during the call ({reason}); the call may have taken effect and \
                     is not repeated",
                    self.server
                )))
            }
        }
    }
}
