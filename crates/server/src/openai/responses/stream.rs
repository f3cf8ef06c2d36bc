//! Streams the events of a response while it is generated, and again for a client that resumes an interrupted stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::{Map, Value, json};
use threadkeep::core::ChatDelta;
use threadkeep::memory::Watch;
use threadkeep::{MessageId, Scope};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::{FinishedResponse, PendingResponse};
use super::event_writer::EventWriter;
use super::retrieve::{ResponseState, find_state};
use super::text_deltas::{TextDeltas, first_text, split};
use super::{background, body, not_found, thread_in_id};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::limits;
use crate::openai::{sse, stream_head};
use crate::security::MayResume;

/// How long to wait after a change to a response that another task generates, so that several changes in quick succession cause
/// only one read.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Streams the answer while the model generates it. A request that fails before the model sends anything gets an ordinary error
/// response.
pub(super) async fn respond(pending: PendingResponse) -> Result<Response> {
    let (mut head, held) = stream_head::hold();
    let app = pending.app.clone();
    let (mut live, events) = LiveResponse::start(&pending);
    // The answer is generated in its own task, so that it is finished even if the client disconnects.
    tokio::spawn(threadkeep_service::in_current_span(async move {
        let mut on_delta = |delta: ChatDelta| {
            if !matches!(delta, ChatDelta::Restarted) {
                head.release();
            }
            live.write_delta(&delta);
        };
        match pending.answer(&mut on_delta).await {
            Ok(finished) => {
                head.release();
                live.end(&Ok(finished));
            }
            Err((error, response)) => {
                if let Err(error) = head.fail(error) {
                    live.end(&Err((error, response)));
                }
            }
        }
    }));
    held.wait_until_released(&app).await?;
    Ok(response(app, events))
}

/// Returns a response that streams the events from a channel.
pub(super) fn response(app: App, events: mpsc::UnboundedReceiver<Bytes>) -> Response {
    sse::from_channel(app, events, stopping_event)
}

/// Returns the last event of a stream that ends because the server is stopping. `number` is the sequence number of the event. The
/// client can resume the stream.
fn stopping_event(number: u64) -> String {
    let error = limits::stopping_error();
    let event = json!({
        "type": "error", "code": error.code, "message": error.message, "param": null, "sequence_number": number
    });
    format!("event: error\ndata: {event}\n\n")
}

/// Streams the events of a response that another request started, beginning after the event with the number `after`.
pub(super) async fn subscribe(
    app: &App,
    scope: &Scope,
    id: &str,
    after: Option<u64>,
    may_resume: MayResume,
) -> Result<Response> {
    let watches = Watches::start(app, scope, id).await?;
    let state = find_state(app, scope, id, may_resume).await?.ok_or_else(|| not_found(id))?;
    let mut subscription = ResponseSubscription {
        app: app.clone(),
        scope: scope.clone(),
        id: id.to_owned(),
        may_resume,
        watches,
        writer: EventWriter::after(after),
        unsent: VecDeque::new(),
        written_deltas: None,
        is_ended: false,
    };
    subscription.write_events(state);
    Ok(sse::from_stream(stream::unfold(subscription, |mut subscription| async {
        let event = subscription.next().await?;
        Some((Ok(event), subscription))
    })))
}

/// A response that this process generates.
pub(super) struct LiveResponse {
    writer: EventWriter,
    events: mpsc::UnboundedSender<Bytes>,
    message_id: String,
    deltas: Arc<Mutex<TextDeltas>>,
}

impl LiveResponse {
    /// Writes the first events. Returns the receiver of all events.
    pub(super) fn start(pending: &PendingResponse) -> (Self, mpsc::UnboundedReceiver<Bytes>) {
        let (events, receiver) = mpsc::unbounded_channel::<Bytes>();
        let message_id = message_id(pending.text_id);
        let mut live = Self { writer: EventWriter::after(None), events, message_id, deltas: Arc::default() };
        live.writer.write_start(&pending.envelope);
        live.send();
        (live, receiver)
    }

    /// Returns the deltas so far. The shared value is updated with each new delta.
    pub(super) fn deltas(&self) -> Arc<Mutex<TextDeltas>> {
        Arc::clone(&self.deltas)
    }

    pub(super) fn write_delta(&mut self, delta: &ChatDelta) {
        self.deltas.lock().unwrap_or_else(PoisonError::into_inner).add(delta);
        // Deltas cannot be revoked if the model restarts its answer, but the finished item contains the final text.
        if let ChatDelta::Text(text) = delta {
            self.writer.write_delta(text, &self.message_id);
            self.send();
        }
    }

    pub(super) fn end(mut self, result: &Result<FinishedResponse, (ApiError, String)>) {
        match result {
            Ok(finished) => self.writer.write_finished(finished),
            Err((error, response)) => {
                error.log("a response failed");
                self.writer.write_end("failed", response);
            }
        }
        self.send();
    }

    /// Writes the final event of a cancelled response.
    pub(super) fn cancel(mut self, response: &str) {
        self.writer.write_end("cancelled", response);
        self.send();
    }

    fn send(&mut self) {
        for event in self.writer.take() {
            // Sending fails after the client has disconnected.
            drop(self.events.send(event));
        }
    }
}

/// A client's subscription to a response that another request started.
struct ResponseSubscription {
    app: App,
    scope: Scope,
    id: String,
    may_resume: MayResume,
    watches: Watches,
    writer: EventWriter,
    unsent: VecDeque<Bytes>,
    /// The number of deltas that were written; `None` before the first event.
    written_deltas: Option<usize>,
    is_ended: bool,
}

/// Watches for changes to a response: to its background state, and to the thread in which the answer is stored.
struct Watches {
    state: Watch,
    thread: Option<Watch>,
}

impl Watches {
    async fn start(app: &App, scope: &Scope, id: &str) -> Result<Self> {
        let thread = match thread_in_id(id)? {
            Some(thread) => Some(app.memory().watch_thread(scope, thread).await),
            None => None,
        };
        Ok(Self { state: background::watch(app, scope, id).await, thread })
    }

    async fn changed(&mut self) {
        let thread = async {
            match &mut self.thread {
                Some(thread) => thread.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.state.changed() => {}
            () = thread => {}
        }
    }
}

impl ResponseSubscription {
    async fn next(&mut self) -> Option<Bytes> {
        let silent_since = Instant::now();
        loop {
            if let Some(event) = self.unsent.pop_front() {
                return Some(event);
            }
            if self.is_ended {
                return None;
            }
            tokio::select! {
                () = self.app.stopped() => {
                    self.is_ended = true;
                    return Some(stopping_event(self.writer.next_number()).into());
                }
                () = self.watches.changed() => {}
                () = tokio::time::sleep_until(silent_since + self.app.options().heartbeat) => {
                    return Some(Bytes::from_static(b": heartbeat\n\n"));
                }
            }
            tokio::time::sleep(DEBOUNCE).await;
            match find_state(&self.app, &self.scope, &self.id, self.may_resume).await {
                Ok(Some(state)) => self.write_events(state),
                // The response was deleted.
                Ok(None) => return None,
                // The error is not returned, because the store may become available again.
                Err(error) => tracing::debug!(code = error.code, "failed to read a response; will retry"),
            }
        }
    }

    /// Writes those events of the state that were not written yet.
    fn write_events(&mut self, state: ResponseState) {
        match state {
            ResponseState::InProgress { envelope, text_id, deltas } => {
                let written = self.write_start(&envelope);
                if let Some(id) = text_id.map(message_id) {
                    deltas.iter().skip(written).for_each(|delta| self.writer.write_delta(delta, &id));
                    self.written_deltas = Some(written.max(deltas.len()));
                }
            }
            ResponseState::Ended { envelope, output, delta_lengths } => {
                let written = self.write_start(&initial_envelope(&envelope));
                if let Some((id, text)) = first_text(&output) {
                    split(&text, &delta_lengths)
                        .into_iter()
                        .skip(written)
                        .for_each(|delta| self.writer.write_delta(delta, id));
                }
                let response = body::with_output(&envelope, &output);
                let status = match envelope.get("status").and_then(Value::as_str) {
                    Some("incomplete") => "incomplete",
                    Some("failed") => "failed",
                    Some("cancelled") => "cancelled",
                    _ => "completed",
                };
                self.writer.write_finished(&FinishedResponse { response, output, status });
                self.is_ended = true;
            }
        }
        self.unsent.extend(self.writer.take());
    }

    /// Writes the first events if they were not written yet. Returns the number of deltas that were already written.
    fn write_start(&mut self, envelope: &Map<String, Value>) -> usize {
        if self.written_deltas.is_none() {
            self.writer.write_start(envelope);
        }
        *self.written_deltas.get_or_insert(0)
    }
}

/// Returns the envelope as it was when the response started.
fn initial_envelope(envelope: &Map<String, Value>) -> Map<String, Value> {
    let mut envelope = envelope.clone();
    envelope.shift_remove("threadkeep");
    for member in ["usage", "error", "incomplete_details"] {
        envelope.insert(member.to_owned(), Value::Null);
    }
    envelope.insert("status".to_owned(), "in_progress".into());
    envelope
}

fn message_id(text_id: MessageId) -> String {
    format!("msg_{}", text_id.0.simple())
}
