//! A response as a stream of events: as it is made, and again for whoever lost the stream.

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

use super::answer::{Answered, Answering};
use super::pieces::{Heard, pieces, words_of};
use super::retrieve::{Found, look};
use super::teller::Teller;
use super::{background, body, thread_of, unknown};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::limits;
use crate::openai::streamed::{event_stream, streamed};
use crate::security::MayDrive;

/// Between two looks at a response that is made elsewhere: what changes meanwhile is one look.
const MOMENT: Duration = Duration::from_millis(100);

/// Answers while the model speaks.
pub(super) fn respond(answering: Answering) -> Response {
    let app = answering.app.clone();
    let (mut live, told) = Live::begin(&answering);
    // A client that goes away does not undo what it asked for.
    tokio::spawn(threadkeep_service::carried(async move {
        let answered = answering.answer(&mut |delta| live.hear(&delta)).await;
        live.end(&answered);
    }));
    response(app, told)
}

/// A response that is being made here.
pub(super) fn response(app: App, told: mpsc::UnboundedReceiver<Bytes>) -> Response {
    streamed(app, told, stopped)
}

/// What is told last where the answer is not waited for, as so many events were told before. The stream can be taken up again.
fn stopped(number: u64) -> String {
    let error = limits::stopping();
    let event = json!({
        "type": "error", "code": error.code, "message": error.message, "param": null, "sequence_number": number
    });
    format!("event: error\ndata: {event}\n\n")
}

/// Tells a response that was begun by another request, from behind an event on.
pub(super) async fn follow(
    app: &App,
    scope: &Scope,
    id: &str,
    after: Option<u64>,
    may_drive: MayDrive,
) -> Result<Response> {
    let watches = Watches::begin(app, scope, id).await?;
    let found = look(app, scope, id, may_drive).await?.ok_or_else(|| unknown(id))?;
    let mut following = Following {
        app: app.clone(),
        scope: scope.clone(),
        id: id.to_owned(),
        may_drive,
        watches,
        teller: Teller::after(after),
        told: VecDeque::new(),
        heard: None,
        is_over: false,
    };
    following.tell(found);
    Ok(event_stream(stream::unfold(following, |mut following| async {
        let event = following.next().await?;
        Some((Ok(event), following))
    })))
}

/// A response that is being made here.
pub(super) struct Live {
    teller: Teller,
    events: mpsc::UnboundedSender<Bytes>,
    message_id: String,
    heard: Arc<Mutex<Heard>>,
}

impl Live {
    /// Begins to tell; whoever listens gets the events.
    pub(super) fn begin(answering: &Answering) -> (Self, mpsc::UnboundedReceiver<Bytes>) {
        let (events, told) = mpsc::unbounded_channel::<Bytes>();
        let message_id = message_id(answering.words);
        let mut live = Self { teller: Teller::after(None), events, message_id, heard: Arc::default() };
        live.teller.begin(&answering.shell);
        live.send();
        (live, told)
    }

    /// What was told, also while it is being told.
    pub(super) fn heard(&self) -> Arc<Mutex<Heard>> {
        Arc::clone(&self.heard)
    }

    pub(super) fn hear(&mut self, delta: &ChatDelta) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).note(delta);
        // Told words cannot be taken back: the finished item says what holds.
        if let ChatDelta::Text(text) = delta {
            self.teller.hear(text, &self.message_id);
            self.send();
        }
    }

    pub(super) fn end(mut self, answered: &Result<Answered, (ApiError, String)>) {
        match answered {
            Ok(answered) => self.teller.finish(answered),
            Err((error, response)) => {
                tracing::error!(code = error.code, internal = error.internal, "a response failed");
                self.teller.end("failed", response);
            }
        }
        self.send();
    }

    /// Tells that nobody makes it any more.
    pub(super) fn cancel(mut self, response: &str) {
        self.teller.end("cancelled", response);
        self.send();
    }

    fn send(&mut self) {
        for event in self.teller.take() {
            // A client that is gone hears nothing.
            drop(self.events.send(event));
        }
    }
}

/// A response that was begun by another request.
struct Following {
    app: App,
    scope: Scope,
    id: String,
    may_drive: MayDrive,
    watches: Watches,
    teller: Teller,
    told: VecDeque<Bytes>,
    /// How many pieces were told; `None` before the beginning.
    heard: Option<usize>,
    is_over: bool,
}

/// What changes when a response does: where it stands, and the thread where it is stored at its end.
struct Watches {
    standing: Watch,
    thread: Option<Watch>,
}

impl Watches {
    async fn begin(app: &App, scope: &Scope, id: &str) -> Result<Self> {
        let thread = match thread_of(id)? {
            Some(thread) => Some(app.memory().watch_thread(scope, thread).await),
            None => None,
        };
        Ok(Self { standing: background::watch(app, scope, id).await, thread })
    }

    async fn changed(&mut self) {
        let thread = async {
            match &mut self.thread {
                Some(thread) => thread.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.standing.changed() => {}
            () = thread => {}
        }
    }
}

impl Following {
    async fn next(&mut self) -> Option<Bytes> {
        let silent_since = Instant::now();
        loop {
            if let Some(event) = self.told.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                () = self.app.stopped() => {
                    self.is_over = true;
                    return Some(stopped(self.teller.number()).into());
                }
                () = self.watches.changed() => {}
                () = tokio::time::sleep_until(silent_since + self.app.options().heartbeat) => {
                    return Some(Bytes::from_static(b": heartbeat\n\n"));
                }
            }
            tokio::time::sleep(MOMENT).await;
            match look(&self.app, &self.scope, &self.id, self.may_drive).await {
                Ok(Some(found)) => self.tell(found),
                // It was deleted.
                Ok(None) => return None,
                // A store that cannot be asked now may be asked later.
                Err(error) => tracing::debug!(code = error.code, "a response cannot be looked at"),
            }
        }
    }

    /// Tells what is new.
    fn tell(&mut self, found: Found) {
        match found {
            Found::Going { shell, words, heard } => {
                let told = self.begin(&shell);
                if let Some(id) = words.map(message_id) {
                    heard.iter().skip(told).for_each(|piece| self.teller.hear(piece, &id));
                    self.heard = Some(told.max(heard.len()));
                }
            }
            Found::Over { shell, output, cuts } => {
                let told = self.begin(&begun(&shell));
                if let Some((id, text)) = words_of(&output) {
                    pieces(&text, &cuts).into_iter().skip(told).for_each(|piece| self.teller.hear(piece, id));
                }
                let response = body::with_output(&shell, &output);
                let status = match shell.get("status").and_then(Value::as_str) {
                    Some("incomplete") => "incomplete",
                    Some("failed") => "failed",
                    Some("cancelled") => "cancelled",
                    _ => "completed",
                };
                self.teller.finish(&Answered { response, output, status });
                self.is_over = true;
            }
        }
        self.told.extend(self.teller.take());
    }

    /// Tells the beginning, where that is to be done. Gives how many pieces were told.
    fn begin(&mut self, shell: &Map<String, Value>) -> usize {
        if self.heard.is_none() {
            self.teller.begin(shell);
        }
        *self.heard.get_or_insert(0)
    }
}

/// A response as it was when it began.
fn begun(shell: &Map<String, Value>) -> Map<String, Value> {
    let mut shell = shell.clone();
    shell.shift_remove("threadkeep");
    for member in ["usage", "error", "incomplete_details"] {
        shell.insert(member.to_owned(), Value::Null);
    }
    shell.insert("status".to_owned(), "in_progress".into());
    shell
}

fn message_id(words: MessageId) -> String {
    format!("msg_{}", words.0.simple())
}
