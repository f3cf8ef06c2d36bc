//! One turn at a time: whoever answers in a conversation holds it until the answer is stored.

use axum::http::StatusCode;
use threadkeep::core::{DocumentState, PutDocument};
use threadkeep::memory::BatchBuilder;
use threadkeep::{Conflict, DocumentName, JsonText, MemoryError, Namespace, Scope, StoreError, ThreadId};

use crate::app::App;
use crate::error::ApiError;

/// How long a turn is given. Whoever takes longer loses the conversation to the next one, and its answer is not stored.
const HELD_MS: i64 = 10 * 60_000;

/// A conversation that is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// The version of the lease; `None` where the caller may write no documents of the thread (a user in a shared one).
    version: Option<u64>,
}

impl Lease {
    /// Takes the conversation.
    pub(super) async fn take(app: &App, scope: &Scope, thread: ThreadId) -> Result<Self, ApiError> {
        let memory = app.memory();
        let expires_at = Some(memory.now().plus_ms(HELD_MS));
        let put = PutDocument { name: name(), value: JsonText::of(&true)?, expires_at };
        let taken = memory.batch().require(name(), DocumentState::Absent).put(put).commit(scope, thread).await;
        match taken {
            Ok(taken) => Ok(Self { version: Some(taken.change) }),
            Err(MemoryError::Store(StoreError::Denied(_))) => Ok(Self { version: None }),
            Err(error) => Err(locked_or(error)),
        }
    }

    /// Adds to a batch that it holds the conversation, and gives it up.
    pub(super) fn give_up_with(self, batch: BatchBuilder) -> BatchBuilder {
        match self.version {
            Some(version) => batch.require(name(), DocumentState::Version(version)).delete(name()),
            None => batch,
        }
    }

    /// Whether documents of the thread can be written with it.
    pub(super) fn may_write_documents(self) -> bool {
        self.version.is_some()
    }

    /// Gives it up, where nothing is stored.
    pub(super) async fn give_up(self, app: &App, scope: &Scope, thread: ThreadId) {
        if self.version.is_some() {
            // What cannot be given up is over by itself later.
            drop(self.give_up_with(app.memory().batch()).commit(scope, thread).await);
        }
    }
}

/// What is told where another turn holds the conversation.
pub(super) fn locked_or(error: MemoryError) -> ApiError {
    if !matches!(error.conflict(), Some(Conflict::Document { .. })) {
        return error.into();
    }
    locked()
}

/// Another turn is on its way in the conversation.
pub(super) fn locked() -> ApiError {
    let message = "Another process is currently operating on this conversation. Please retry in a few seconds.";
    ApiError::new(StatusCode::BAD_REQUEST, "conversation_locked", message).param("conversation")
}

fn name() -> DocumentName {
    DocumentName { namespace: Namespace::System("server".to_owned()), key: "lease".to_owned() }
}
