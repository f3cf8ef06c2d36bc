//! One turn at a time: whoever answers in a conversation holds it until the answer is stored.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use threadkeep::agent::{Driving, is_driving};
use threadkeep::core::{DocumentState, PutDocument};
use threadkeep::memory::BatchBuilder;
use threadkeep::{Conflict, DocumentName, JsonText, MemoryError, Namespace, Scope, StoreError, ThreadId};

use crate::app::App;
use crate::error::ApiError;

/// How long a turn is given. Whoever takes longer loses the conversation to the next one, and its answer is not stored.
pub(super) const HELD: Duration = Duration::from_mins(10);

/// A conversation that is held, for as long as this lives or until it is given up.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The version of the lease; `None` where the caller may write no documents of the thread (a user in a shared one).
    version: Option<u64>,
    /// Others here, and on this machine, know by it that the holder is gone.
    _driving: Arc<Driving>,
}

impl Lease {
    /// Takes the conversation, also from a holder that is known to be gone.
    pub(super) async fn take(app: &App, scope: &Scope, thread: ThreadId) -> Result<Self, ApiError> {
        let driving = Arc::new(Driving::begin(app.memory()));
        let version = match take(app, scope, thread, &driving, DocumentState::Absent).await {
            Ok(version) => Some(version),
            Err(MemoryError::Store(StoreError::Denied(_))) => None,
            Err(error) if matches!(error.conflict(), Some(Conflict::Document { .. })) => {
                let left = left_behind(app, scope, thread).await?.ok_or_else(locked)?;
                Some(take(app, scope, thread, &driving, left).await.map_err(locked_or)?)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { version, _driving: driving })
    }

    /// Adds to a batch that it holds the conversation, and gives it up.
    pub(super) fn give_up_with(&self, batch: BatchBuilder) -> BatchBuilder {
        match self.version {
            Some(version) => batch.require(name(), DocumentState::Version(version)).delete(name()),
            None => batch,
        }
    }

    /// Whether documents of the thread can be written with it.
    pub(super) fn may_write_documents(&self) -> bool {
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

async fn take(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    driving: &Driving,
    state: DocumentState,
) -> Result<u64, MemoryError> {
    let memory = app.memory();
    let expires_at = Some(memory.now().plus_ms(i64::try_from(HELD.as_millis()).unwrap_or(i64::MAX)));
    let put = PutDocument { name: name(), value: JsonText::of(driving.name())?, expires_at };
    Ok(memory.batch().require(name(), state).put(put).commit(scope, thread).await?.change)
}

/// The lease of a holder that is known to be gone.
async fn left_behind(app: &App, scope: &Scope, thread: ThreadId) -> Result<Option<DocumentState>, ApiError> {
    let Some(document) = app.memory().find_thread_document(scope, thread, &name()).await? else {
        return Ok(Some(DocumentState::Absent));
    };
    let holder: Option<String> = document.value.read().ok();
    let is_gone = holder.is_some_and(|holder| is_driving(&holder) == Some(false));
    Ok(is_gone.then_some(DocumentState::Version(document.version)))
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
