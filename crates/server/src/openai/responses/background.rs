//! Responses in the background: the client asks for them later, and may cancel them.
//!
//! Where one stands lies in the store, so any instance tells it and cancels it. What is stored of an answer wins over that: a
//! response is cancelled, or it was faster.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use threadkeep::core::DocumentWrite;
use threadkeep::memory::Watch;
use threadkeep::memory::turns::{Driving, SIGN_OF_LIFE, ask_to_stop, is_alive, lease_until};
use threadkeep::{DocumentName, DocumentOwner, JsonText, MessageId, Namespace, Scope, Timestamp};
use threadkeep_service::carried;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::{Answering, Work};
use super::assistant::{self, Named};
use super::pieces::Heard;
use super::retrieve::{self, Found};
use super::stream::{self, Live};
use super::{body, thread_of, words_of};
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, Result};
use crate::openai::shelf;
use crate::openai::turn::KEPT_MS;
use crate::security::MayDrive;

/// How often what was told is written down, while it grows.
const MOMENT: Duration = Duration::from_millis(250);
/// Bytes of what was told that are kept while it is; the rest is told when it is over.
const HEARD_BYTES: usize = 256 * 1024;
/// How long it is waited until an assistant has stored what it is asked; another turn of the thread may have to end first.
const BEGINNING: Duration = Duration::from_secs(2);
/// How often a change is tried that others get first.
const ATTEMPTS: usize = 16;

/// Where a response in the background stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standing {
    /// Of the request that it answers.
    digest: String,
    /// The response but for its output.
    shell: Map<String, Value>,
    state: State,
    /// Until when whoever answers is believed to be there.
    until: Timestamp,
    /// The id of the message that the first words become.
    #[serde(default)]
    words: Option<MessageId>,
    /// The assistant's turn that it is, where it is one: whoever goes on with that makes the response too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    /// Whoever answers, as others on this machine know whether it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    /// What was told of them so far, where that is told piece by piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    heard: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    InProgress,
    Cancelled,
    /// The shell says how.
    Failed,
}

/// Begins, and tells so once an assistant's question is stored: what was told to be in progress is not lost with the server.
pub(super) async fn begin(mut answering: Answering, held: Held) -> Result<Response> {
    let (app, scope, id) = (answering.app.clone(), answering.scope.clone(), answering.id.clone());
    if let Some((standing, _)) = find(&app, &scope, &id).await? {
        return tell_again(answering, standing).await;
    }
    if matches!(answering.work, Work::Told { .. }) {
        return if answering.is_streamed { Ok(stream::respond(answering)) } else { answering.respond().await };
    }
    answering.shell.insert("background".to_owned(), true.into());
    let turn = match &mut answering.work {
        Work::Run(run) => Some(run.asking.name_turn(format!("response\n{id}"))),
        Work::Ask(_) | Work::Told { .. } => None,
    };
    let driving = Driving::begin(app.memory());
    let standing = Standing {
        digest: answering.attempt.digest().to_owned(),
        shell: answering.shell.clone(),
        state: State::InProgress,
        until: lease_until(app.memory()),
        words: Some(answering.words),
        turn,
        driver: Some(driving.name().to_owned()),
        heard: Vec::new(),
    };
    if let Err(error) = write(&app, &scope, &id, Some(&standing), Some(0)).await {
        // The same request was quicker elsewhere.
        if error.code == "changed_meanwhile"
            && let Some((standing, _)) = find(&app, &scope, &id).await?
        {
            return tell_again(answering, standing).await;
        }
        abandon(&answering).await;
        return Err(error);
    }
    let mut begun = None;
    if let Work::Run(run) = &mut answering.work {
        let (sender, receiver) = oneshot::channel();
        (run.begun, begun) = (Some(sender), Some(receiver));
    }
    let is_streamed = answering.is_streamed;
    let (live, told) = Live::begin(&answering);
    tokio::spawn(carried(async move {
        drive(answering, live).await;
        drop((driving, held));
    }));
    if let Some(begun) = begun {
        // A turn that failed before it began tells nothing, and lets go of the other end.
        drop(tokio::time::timeout(BEGINNING, begun).await);
    }
    Ok(if is_streamed { stream::response(app, told) } else { written(body::with_output(&standing.shell, &[])) })
}

/// Tells what an earlier request with the same key began.
async fn tell_again(answering: Answering, standing: Standing) -> Result<Response> {
    abandon(&answering).await;
    answering.attempt.check_same(&standing.digest)?;
    let Answering { app, scope, id, is_streamed, .. } = answering;
    match is_streamed {
        true => stream::follow(&app, &scope, &id, None, MayDrive::Yes).await,
        false => Ok(written(found(&app, &scope, &id, standing, MayDrive::Yes).await?.text())),
    }
}

/// The response as it stands, where it is or was in the background and nothing else is stored of it.
pub(super) async fn look(app: &App, scope: &Scope, id: &str, may_drive: MayDrive) -> Result<Option<Found>> {
    match find(app, scope, id).await? {
        Some((standing, _)) => found(app, scope, id, standing, may_drive).await.map(Some),
        None => Ok(None),
    }
}

/// Cancels what is in progress; what is over stays as it is.
pub(super) async fn cancel(app: &App, scope: &Scope, id: &str) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let Some((standing, version)) = find(app, scope, id).await? else { return Ok(()) };
        if standing.state != State::InProgress {
            return Ok(());
        }
        let is_left = standing.is_left(app.memory().now());
        let cancelled = Standing { state: State::Cancelled, ..standing };
        match write(app, scope, id, Some(&cancelled), Some(version)).await {
            // Whoever goes on with its turn does not look here.
            Ok(()) => match (thread_of(id)?, &cancelled.turn) {
                (Some(thread), Some(turn)) if is_left => {
                    return Ok(ask_to_stop(app.memory(), scope, thread, turn).await?);
                }
                _ => return Ok(()),
            },
            // Whoever answers gave a sign meanwhile.
            Err(error) if error.code == "changed_meanwhile" => {}
            Err(error) => return Err(error),
        }
    }
    Err(threadkeep::MemoryError::Contended { what: "the response", attempts: ATTEMPTS }.into())
}

/// Forgets where a response stood.
pub(super) async fn forget(app: &App, scope: &Scope, id: &str) -> Result<()> {
    write(app, scope, id, None, None).await
}

async fn drive(answering: Answering, mut live: Live) {
    let (app, scope, id) = (answering.app.clone(), answering.scope.clone(), answering.id.clone());
    let heard = answering.is_streamed.then(|| live.heard());
    let (turn, stop) = match &answering.work {
        Work::Ask(ask) => (ask.turn.clone(), None),
        Work::Run(run) => (None, Some(run.asking.ask.stop.clone())),
        Work::Told { .. } => (None, None),
    };
    let mut hear = |delta| live.hear(&delta);
    let mut answer = Box::pin(answering.answer(&mut hear));
    let answered = tokio::select! {
        biased;
        answered = &mut answer => Some(answered),
        () = cancelled(&app, &scope, &id, heard.as_deref()) => match stop {
            Some(stop) => {
                stop.stop();
                Some((&mut answer).await)
            }
            None => None,
        },
    };
    // With it goes the connection to the model.
    drop(answer);
    let ended = match &answered {
        None => {
            if let Some(turn) = turn {
                turn.abandon().await;
            }
            Ok(())
        }
        Some(Ok(_)) => forget(&app, &scope, &id).await,
        Some(Err((error, response))) => fail(&app, &scope, &id, error, response).await,
    };
    match answered {
        Some(answered) => live.end(&answered),
        None => match retrieve::find(&app, &scope, &id, MayDrive::Yes).await {
            Ok(Some(response)) => live.cancel(&response),
            // It was deleted, and nobody is told more.
            _ => drop(live),
        },
    }
    if let Err(error) = ended {
        tracing::error!(code = error.code, internal = error.internal, "the end of a response could not be told");
    }
}

/// Hears of it when a response in the background changes.
pub(super) async fn watch(app: &App, scope: &Scope, id: &str) -> Watch {
    app.memory().watch_document(scope, &name(id)).await
}

/// Waits until the response is cancelled or deleted, giving signs of life.
async fn cancelled(app: &App, scope: &Scope, id: &str, heard: Option<&Mutex<Heard>>) {
    let mut watch = watch(app, scope, id).await;
    let (mut signed_at, mut written) = (Instant::now(), 0);
    loop {
        // What is written here is a hint too, so each change is looked at once.
        match find(app, scope, id).await {
            // It was deleted.
            Ok(None) => return,
            Ok(Some((standing, _))) if standing.state == State::Cancelled => return,
            // A store that cannot be asked now is no reason to end.
            Ok(Some(_)) | Err(_) => {}
        }
        loop {
            let is_sign_due = signed_at.elapsed() >= SIGN_OF_LIFE;
            let told = heard.map(first_of).filter(|told| is_sign_due || told.len() > written);
            if is_sign_due || told.is_some() {
                let told = told.unwrap_or_default();
                (signed_at, written) = (if is_sign_due { Instant::now() } else { signed_at }, told.len());
                give_sign(app, scope, id, told).await;
            }
            // Whether there is more to write is asked without the store.
            let next = if heard.is_some() { MOMENT } else { SIGN_OF_LIFE.saturating_sub(signed_at.elapsed()) };
            tokio::select! {
                () = watch.changed() => break,
                () = tokio::time::sleep(next) => {}
            }
        }
    }
}

/// Writes how far the response has come, and that whoever answers is there. One that changed meanwhile is looked at anyway.
async fn give_sign(app: &App, scope: &Scope, id: &str, heard: Vec<String>) {
    if let Ok(Some((standing, version))) = find(app, scope, id).await
        && standing.state == State::InProgress
    {
        let standing = Standing { until: lease_until(app.memory()), heard, ..standing };
        drop(write(app, scope, id, Some(&standing), Some(version)).await);
    }
}

fn first_of(heard: &Mutex<Heard>) -> Vec<String> {
    heard.lock().unwrap_or_else(PoisonError::into_inner).first(HEARD_BYTES)
}

async fn fail(app: &App, scope: &Scope, id: &str, error: &ApiError, response: &str) -> Result<()> {
    tracing::error!(code = error.code, internal = error.internal, "a response in the background failed");
    let Some((standing, version)) = find(app, scope, id).await? else { return Ok(()) };
    if standing.state != State::InProgress {
        return Ok(());
    }
    let shell = serde_json::from_str(response).unwrap_or(standing.shell);
    let standing = Standing { shell, state: State::Failed, ..standing };
    write(app, scope, id, Some(&standing), Some(version)).await
}

/// Gives up what was taken for an answer that nobody will make.
async fn abandon(answering: &Answering) {
    if let Work::Ask(ask) = &answering.work
        && let Some(turn) = ask.turn.clone()
    {
        turn.abandon().await;
    }
}

impl Standing {
    /// Whether whoever answered is gone before the end.
    fn is_left(&self, now: Timestamp) -> bool {
        let is_there = self.driver.as_deref().map_or(now < self.until, |driver| is_alive(driver, self.until, now));
        self.state == State::InProgress && !is_there
    }
}

/// A response as it stands. What an assistant's turn became that others went on with, the response became too.
async fn found(app: &App, scope: &Scope, id: &str, standing: Standing, may_drive: MayDrive) -> Result<Found> {
    let is_left = standing.is_left(app.memory().now());
    let Standing { digest, mut shell, state, words, turn, heard, .. } = standing;
    match state {
        State::Cancelled => {
            shell.insert("status".to_owned(), "cancelled".into());
        }
        State::InProgress if is_left => {
            let named = Named { id, digest: &digest, words: words_of(id), is_passing: false };
            if let Some(turn) = &turn
                && let Some(found) = assistant::taken_up(app, scope, named, shell.clone(), turn, may_drive).await?
            {
                return Ok(found);
            }
            body::failed(&mut shell, "server_error", "The server stopped before this was answered.");
        }
        State::InProgress => return Ok(Found::Going { shell, words, heard }),
        State::Failed => {}
    }
    Ok(Found::Over { shell, output: Vec::new(), cuts: Vec::new() })
}

fn written(response: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], response).into_response()
}

async fn find(app: &App, scope: &Scope, id: &str) -> Result<Option<(Standing, u64)>> {
    let (memory, DocumentName { namespace, key }) = (app.memory(), name(id));
    let found = memory.backend().store.find_document(scope, &owner(scope), &namespace, &key, memory.now()).await?;
    Ok(found.map(|document| document.value.read().map(|standing| (standing, document.version))).transpose()?)
}

async fn write(app: &App, scope: &Scope, id: &str, standing: Option<&Standing>, expected: Option<u64>) -> Result<()> {
    let (memory, DocumentName { namespace, key }) = (app.memory(), name(id));
    let write = DocumentWrite {
        owner: owner(scope),
        namespace,
        key,
        expected,
        value: standing.map(JsonText::of).transpose()?,
        expires_at: Some(memory.now().plus_ms(KEPT_MS)),
    };
    memory.backend().store.write_document(scope, write, memory.now()).await?;
    Ok(())
}

fn owner(scope: &Scope) -> DocumentOwner {
    shelf::owner(scope)
}

fn name(id: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System("openai.background".to_owned()), key: id.to_owned() }
}
