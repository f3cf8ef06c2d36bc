//! Background responses, which a client retrieves later and may cancel.
//!
//! The state of each response is a record in the store, so that any instance can return and cancel the response. A stored answer
//! takes precedence over the state: a cancellation has no effect if the answer was stored first.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use threadkeep::core::RecordWrite;
use threadkeep::memory::Watch;
use threadkeep::memory::turns::{Driver, LEASE_RENEWAL_INTERVAL, is_alive, lease_until, request_stop};
use threadkeep::{JsonText, Memory, MessageId, Namespace, RecordName, RecordOwner, Scope, Timestamp};
use threadkeep_service::in_current_span;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::{PendingResponse, Work};
use super::assistant::{self, ResponseIdentity};
use super::retrieve::{self, ResponseState};
use super::stream::{self, LiveResponse};
use super::text_deltas::TextDeltas;
use super::{body, text_message_id, thread_in_id};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, Result};
use crate::openai::response_store;
use crate::openai::turn::RETENTION_MS;
use crate::security::MayResume;

/// How often new deltas are written to the state.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum number of bytes of the deltas in the state. Later text is available only after the response has ended.
const MAX_DELTA_BYTES: usize = 256 * 1024;
/// How long a request waits for an assistant to store the question. Another turn of the thread may have to end first.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of attempts at a change that conflicts with other changes.
const MAX_ATTEMPTS: usize = 16;

/// The stored state of a background response.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BackgroundState {
    /// The digest of the request.
    digest: String,
    /// The response without its output.
    #[serde(rename = "shell")]
    envelope: Map<String, Value>,
    #[serde(rename = "state")]
    status: Status,
    /// When the lease of the server that generates the response expires. The server renews the lease periodically.
    #[serde(rename = "until")]
    lease_until: Timestamp,
    /// The id of the message that contains the first text.
    #[serde(rename = "words", default)]
    text_id: Option<MessageId>,
    /// The turn, if an assistant answers. A server that resumes the turn also completes the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    /// The name of the process that generates the response. Other processes on the same machine use the name to detect whether the
    /// process is still running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    /// The deltas of the first text so far, if the response is streamed.
    #[serde(rename = "heard", default, skip_serializing_if = "Vec::is_empty")]
    deltas: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    InProgress,
    Cancelled,
    /// The envelope contains the error.
    Failed,
}

/// Starts a response. If an assistant answers, waits until the question is stored, so that a response that is reported as in
/// progress survives a restart of the server.
pub(super) async fn start(mut pending: PendingResponse, connection: ConnectionGuard) -> Result<Response> {
    let (app, scope, id) = (pending.app.clone(), pending.scope.clone(), pending.id.clone());
    if let Some((state, _)) = read_state(&app, &scope, &id).await? {
        return respond_again(pending, state).await;
    }
    if matches!(pending.work, Work::Answered { .. }) {
        return if pending.is_streamed { stream::respond(pending).await } else { pending.respond().await };
    }
    pending.envelope.insert("background".to_owned(), true.into());
    let turn = match &mut pending.work {
        Work::RunAssistant(run) => Some(run.request.determine_turn_id(format!("response\n{id}"))),
        Work::CallModel(_) | Work::Answered { .. } => None,
    };
    let driver = Driver::begin(app.memory());
    let state = BackgroundState {
        digest: pending.request_identity.digest().to_owned(),
        envelope: pending.envelope.clone(),
        status: Status::InProgress,
        lease_until: lease_until(app.memory()),
        text_id: Some(pending.text_id),
        turn,
        driver: Some(driver.name().to_owned()),
        deltas: Vec::new(),
    };
    if let Err(error) = write_state(&app, &scope, &id, Some(&state), Some(0)).await {
        // Another attempt at the same request was stored first.
        if error.code == "changed_meanwhile"
            && let Some((state, _)) = read_state(&app, &scope, &id).await?
        {
            return respond_again(pending, state).await;
        }
        abandon_turn(&pending).await;
        return Err(error);
    }
    let mut started = None;
    if let Work::RunAssistant(run) = &mut pending.work {
        let (sender, receiver) = oneshot::channel();
        (run.started, started) = (Some(sender), Some(receiver));
    }
    let is_streamed = pending.is_streamed;
    let (live, events) = LiveResponse::start(&pending);
    tokio::spawn(in_current_span(async move {
        run(pending, live).await;
        drop((driver, connection));
    }));
    if let Some(started) = started {
        // A turn that fails before it starts drops the sender, which ends the wait.
        drop(tokio::time::timeout(START_TIMEOUT, started).await);
    }
    Ok(if is_streamed { stream::response(app, events) } else { json_response(body::with_output(&state.envelope, &[])) })
}

/// Responds with the response that an earlier attempt at the request started.
async fn respond_again(pending: PendingResponse, state: BackgroundState) -> Result<Response> {
    abandon_turn(&pending).await;
    pending.request_identity.check_same(&state.digest)?;
    let PendingResponse { app, scope, id, is_streamed, .. } = pending;
    match is_streamed {
        true => stream::subscribe(&app, &scope, &id, None, MayResume::Yes).await,
        false => Ok(json_response(to_response_state(&app, &scope, &id, state, MayResume::Yes).await?.to_json())),
    }
}

/// Finds the state of a background response for which no answer is stored.
pub(super) async fn find_state(
    app: &App,
    scope: &Scope,
    id: &str,
    may_resume: MayResume,
) -> Result<Option<ResponseState>> {
    match read_state(app, scope, id).await? {
        Some((state, _)) => to_response_state(app, scope, id, state, may_resume).await.map(Some),
        None => Ok(None),
    }
}

/// Cancels a response that is in progress. Has no effect on a response that has ended.
pub(super) async fn cancel(app: &App, scope: &Scope, id: &str) -> Result<()> {
    for _ in 0..MAX_ATTEMPTS {
        let Some((state, version)) = read_state(app, scope, id).await? else { return Ok(()) };
        if state.status != Status::InProgress {
            return Ok(());
        }
        let is_orphaned = state.is_orphaned(app.memory());
        let cancelled = BackgroundState { status: Status::Cancelled, ..state };
        match write_state(app, scope, id, Some(&cancelled), Some(version)).await {
            // A server that resumes the turn of an orphaned response does not read the state, so the turn has to be stopped.
            Ok(()) => match (thread_in_id(id)?, &cancelled.turn) {
                (Some(thread), Some(turn)) if is_orphaned => {
                    return Ok(request_stop(app.memory(), scope, thread, turn).await?);
                }
                _ => return Ok(()),
            },
            // The server that generates the response has updated the state in the meantime.
            Err(error) if error.code == "changed_meanwhile" => {}
            Err(error) => return Err(error),
        }
    }
    Err(threadkeep::MemoryError::Contended { what: "the response", attempts: MAX_ATTEMPTS }.into())
}

/// Deletes the state of a response.
pub(super) async fn delete(app: &App, scope: &Scope, id: &str) -> Result<()> {
    write_state(app, scope, id, None, None).await
}

/// Generates a response until it ends or is cancelled.
async fn run(pending: PendingResponse, mut live: LiveResponse) {
    let (app, scope, id) = (pending.app.clone(), pending.scope.clone(), pending.id.clone());
    let deltas = pending.is_streamed.then(|| live.deltas());
    let (turn, stop) = match &pending.work {
        Work::CallModel(call) => (call.turn.clone(), None),
        Work::RunAssistant(run) => (None, Some(run.request.ask.stop.clone())),
        Work::Answered { .. } => (None, None),
    };
    let mut on_delta = |delta| live.write_delta(&delta);
    let mut answer = Box::pin(pending.answer(&mut on_delta));
    let result = tokio::select! {
        biased;
        result = &mut answer => Some(result),
        () = wait_for_cancellation(&app, &scope, &id, deltas.as_deref()) => match stop {
            Some(stop) => {
                stop.stop();
                Some((&mut answer).await)
            }
            None => None,
        },
    };
    // Dropping the future closes the connection to the model.
    drop(answer);
    let stored = match &result {
        None => {
            if let Some(turn) = turn {
                turn.abandon().await;
            }
            Ok(())
        }
        Some(Ok(_)) => delete(&app, &scope, &id).await,
        Some(Err((error, response))) => store_failure(&app, &scope, &id, error, response).await,
    };
    match result {
        Some(result) => live.end(&result),
        None => match retrieve::find_json(&app, &scope, &id, MayResume::Yes).await {
            Ok(Some(response)) => live.cancel(&response),
            // The response was deleted, so the stream ends without a final event.
            _ => drop(live),
        },
    }
    if let Err(error) = stored {
        tracing::error!(
            code = error.code,
            internal = error.internal,
            "failed to store the outcome of a background response"
        );
    }
}

/// Watches the state of a background response.
pub(super) async fn watch(app: &App, scope: &Scope, id: &str) -> Watch {
    app.memory().watch_record(scope, &record_name(id)).await
}

/// Waits until the response is cancelled or deleted. Meanwhile, renews the lease and writes new deltas to the state.
async fn wait_for_cancellation(app: &App, scope: &Scope, id: &str, deltas: Option<&Mutex<TextDeltas>>) {
    let mut watch = watch(app, scope, id).await;
    let (mut renewed_at, mut written) = (Instant::now(), 0);
    loop {
        // The writes below wake the watch too, so the state is read once for each change.
        match read_state(app, scope, id).await {
            // The response was deleted.
            Ok(None) => return,
            Ok(Some((state, _))) if state.status == Status::Cancelled => return,
            // A read error does not end the response, because the store may become available again.
            Ok(Some(_)) | Err(_) => {}
        }
        loop {
            let is_renewal_due = renewed_at.elapsed() >= LEASE_RENEWAL_INTERVAL;
            let unwritten = deltas.map(deltas_to_store).filter(|deltas| is_renewal_due || deltas.len() > written);
            if is_renewal_due || unwritten.is_some() {
                let deltas = unwritten.unwrap_or_default();
                (renewed_at, written) = (if is_renewal_due { Instant::now() } else { renewed_at }, deltas.len());
                renew(app, scope, id, deltas).await;
            }
            // Checking for new deltas does not access the store.
            let next = if deltas.is_some() {
                WRITE_INTERVAL
            } else {
                LEASE_RENEWAL_INTERVAL.saturating_sub(renewed_at.elapsed())
            };
            tokio::select! {
                () = watch.changed() => break,
                () = tokio::time::sleep(next) => {}
            }
        }
    }
}

/// Writes the deltas so far and renews the lease. Errors are ignored, because a conflicting change wakes the watch, and other
/// failures are retried with the next write.
async fn renew(app: &App, scope: &Scope, id: &str, deltas: Vec<String>) {
    if let Ok(Some((state, version))) = read_state(app, scope, id).await
        && state.status == Status::InProgress
    {
        let state = BackgroundState { lease_until: lease_until(app.memory()), deltas, ..state };
        drop(write_state(app, scope, id, Some(&state), Some(version)).await);
    }
}

fn deltas_to_store(deltas: &Mutex<TextDeltas>) -> Vec<String> {
    deltas.lock().unwrap_or_else(PoisonError::into_inner).first(MAX_DELTA_BYTES)
}

/// Stores the failure of a response, unless the response has been cancelled or deleted.
async fn store_failure(app: &App, scope: &Scope, id: &str, error: &ApiError, response: &str) -> Result<()> {
    error.log("a background response failed");
    let Some((state, version)) = read_state(app, scope, id).await? else { return Ok(()) };
    if state.status != Status::InProgress {
        return Ok(());
    }
    let envelope = serde_json::from_str(response).unwrap_or(state.envelope);
    let state = BackgroundState { envelope, status: Status::Failed, ..state };
    write_state(app, scope, id, Some(&state), Some(version)).await
}

/// Unlocks the conversation of a response that will not be generated.
async fn abandon_turn(pending: &PendingResponse) {
    if let Work::CallModel(call) = &pending.work
        && let Some(turn) = call.turn.clone()
    {
        turn.abandon().await;
    }
}

impl BackgroundState {
    /// Whether the server that generated the response stopped before the response ended.
    fn is_orphaned(&self, memory: &Memory) -> bool {
        let is_running = match &self.driver {
            Some(driver) => is_alive(memory, driver, self.lease_until),
            None => memory.now() < self.lease_until,
        };
        self.status == Status::InProgress && !is_running
    }
}

/// Converts the stored state. The response of an assistant whose server has stopped is recovered from its turn.
async fn to_response_state(
    app: &App,
    scope: &Scope,
    id: &str,
    state: BackgroundState,
    may_resume: MayResume,
) -> Result<ResponseState> {
    let is_orphaned = state.is_orphaned(app.memory());
    let BackgroundState { digest, mut envelope, status, text_id, turn, deltas, .. } = state;
    match status {
        Status::Cancelled => {
            envelope.insert("status".to_owned(), "cancelled".into());
        }
        Status::InProgress if is_orphaned => {
            let text_id = text_message_id(id);
            let identity = ResponseIdentity { id, digest: &digest, text_id, is_ephemeral: false };
            if let Some(turn) = &turn
                && let Some(recovered) =
                    assistant::recover(app, scope, identity, envelope.clone(), turn, may_resume).await?
            {
                return Ok(recovered);
            }
            body::set_failed(&mut envelope, "server_error", "The server stopped before the response was finished.");
        }
        Status::InProgress => return Ok(ResponseState::InProgress { envelope, text_id, deltas }),
        Status::Failed => {}
    }
    Ok(ResponseState::Ended { envelope, output: Vec::new(), delta_lengths: Vec::new() })
}

fn json_response(response: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], response).into_response()
}

async fn read_state(app: &App, scope: &Scope, id: &str) -> Result<Option<(BackgroundState, u64)>> {
    let (memory, RecordName { namespace, key }) = (app.memory(), record_name(id));
    let found = memory.backend().store.find_record(scope, &owner(scope), &namespace, &key, memory.now()).await?;
    Ok(found.map(|record| record.value.read().map(|state| (state, record.version))).transpose()?)
}

async fn write_state(
    app: &App,
    scope: &Scope,
    id: &str,
    state: Option<&BackgroundState>,
    expected: Option<u64>,
) -> Result<()> {
    let (memory, RecordName { namespace, key }) = (app.memory(), record_name(id));
    let write = RecordWrite {
        owner: owner(scope),
        namespace,
        key,
        expected,
        value: state.map(JsonText::of).transpose()?,
        expires_at: Some(memory.now().plus_ms(RETENTION_MS)),
    };
    memory.backend().store.write_record(scope, write, memory.now()).await?;
    Ok(())
}

fn owner(scope: &Scope) -> RecordOwner {
    response_store::owner(scope)
}

fn record_name(id: &str) -> RecordName {
    RecordName { namespace: Namespace::System("openai.background".to_owned()), key: id.to_owned() }
}
