//! A turn of a conversation: read, answered by the model, stored whole or not at all, and told again when it is repeated.
//!
//! What was said lies in the thread's messages only. The record of a turn names them, so that what is erased from the
//! thread is gone from it too, and the record goes with the thread.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use threadkeep::context::ContextPolicy;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatMessage, ChatRequest, ModelError, PutDocument};
use threadkeep::memory::turns::{Completion, Interrupted, Place, RunRecord, Taking, Versioned, Waiting, interrupt};
use threadkeep::memory::{AssembledContext, ContextOptions, HeldContext};
use threadkeep::{
    BatchBuilder, Content, DocumentName, DocumentOwner, Draft, JsonText, MemoryError, Message, MessageId, MessageName,
    Namespace, Part, Prefetched, Role, Scope, ThreadId, Timestamp,
};
use threadkeep_service::{Attempt, WINDOW_MS};

use crate::app::App;
use crate::error::ApiError;
use crate::turns;

/// How long a record is kept: 30 days.
pub(super) const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Messages of the thread that a model is shown as they are; a summary stands in for older ones.
pub(super) const WINDOW: usize = 200;
/// How long a repeated request waits for its first try.
const PATIENCE: Duration = Duration::from_mins(10);
const NAMESPACE: &str = "openai.turns";
const LAST: &str = "last";

/// What is kept of a turn beside its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// What the turn is called.
    pub(super) id: String,
    /// Of the request that it answers.
    pub(super) digest: String,
    pub(super) input: Vec<MessageId>,
    pub(super) output: Vec<MessageId>,
    /// The answer without what was said.
    pub(super) shell: JsonText,
    /// What the last item was called while it was told, where its message is called otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<String>,
    /// The lengths of the pieces in which the answer's words were told, where they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) cuts: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Last {
    id: String,
    digest: String,
    at: Timestamp,
}

/// A turn that has begun, and holds its thread until the answer is stored.
#[derive(Clone, Debug)]
pub(super) struct Turn(Completion);

/// A turn that has begun, with its thread as it was read before that where nothing else happened in it since.
pub(super) struct Fresh {
    pub(super) turn: Turn,
    read: Option<Box<Prefetched>>,
}

/// What there is to do for a request.
pub(super) enum Begun {
    /// Answer it.
    Turn(Fresh),
    /// It was answered before.
    Before(Record),
}

impl Turn {
    /// Takes a conversation for a turn, unless this request had its turn already. Where another holds it, a request that may
    /// have been sent before waits. What a crash cut off in it is gone on with first.
    pub(super) async fn begin(
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        id: &str,
        attempt: &Attempt,
    ) -> Result<Begun, ApiError> {
        let (memory, began) = (app.memory(), Instant::now());
        let model = app.model().ok_or_else(no_model)?.name();
        let mut waiting: Option<Waiting> = None;
        loop {
            // What cannot be read together is read by itself later, and says then what is wrong.
            let read = memory.prefetch(scope, thread, &policy(), &[name(id)], &[]).await.ok();
            let record = match &read {
                Some(read) => read.documents.iter().flatten().next().map(|found| found.value.read()).transpose()?,
                None => find(app, scope, thread, id).await?,
            };
            if let Some(record) = earlier(app, scope, thread, record, attempt).await? {
                return Ok(Begun::Before(record));
            }
            match Completion::take(memory, scope, thread, id, model).await? {
                Taking::Taken(completion) => {
                    let read = read.and_then(|read| read.after(completion.taken_at())).map(Box::new);
                    // Its first try may have ended between the look and this, where anything happened.
                    if attempt.is_repeated()
                        && read.is_none()
                        && let Some(record) = before(app, scope, thread, id, attempt).await.transpose()
                    {
                        completion.abandon().await;
                        return record.map(Begun::Before);
                    }
                    return Ok(Begun::Turn(Fresh { turn: Self(completion), read }));
                }
                Taking::Cut(left) => go_on_with(app, scope, thread, &left).await?,
                // Its first try may still be on its way, although its client heard nothing: then that answer is its own.
                Taking::Busy if attempt.is_repeated() && began.elapsed() < PATIENCE => match &mut waiting {
                    // What happened before this moment is seen by another look.
                    None => waiting = Some(Waiting::begin(memory, scope, thread).await),
                    Some(waiting) => waiting.wait(None).await,
                },
                Taking::Busy => return Err(locked()),
            }
        }
    }

    /// Asks the model while the thread is held, until somebody asks for the turn to stop.
    pub(super) async fn ask(
        &self,
        app: &App,
        request: &ChatRequest,
        deltas: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<ChatAnswer, ApiError> {
        match self.0.hold(ask(app, request, deltas)).await {
            Ok(answered) => answered,
            Err(Interrupted::Stopped) => Err(ApiError::new(StatusCode::CONFLICT, "stopped", "the turn was stopped")),
            Err(Interrupted::Overtaken) => Err(locked()),
        }
    }

    /// Stores what was said and answered, with the record of it.
    pub(super) async fn finish(self, app: &App, record: &Record, drafts: Vec<Draft>) -> Result<(), ApiError> {
        let memory = app.memory();
        let batch = drafts.into_iter().fold(memory.batch(), BatchBuilder::append);
        let batch = documents(record, memory.now())?.into_iter().fold(batch, BatchBuilder::put);
        let stored = self.0.finish(batch).await.map(drop).map_err(locked_or);
        if stored.is_err() {
            self.abandon().await;
        }
        stored
    }

    /// Ends it with nothing stored.
    pub(super) async fn abandon(self) {
        self.0.abandon().await;
    }
}

/// Another turn is on its way in the conversation.
pub(super) fn locked() -> ApiError {
    let message = "Another process is currently operating on this conversation. Please retry in a few seconds.";
    ApiError::new(StatusCode::BAD_REQUEST, "conversation_locked", message).param("conversation")
}

/// What is told where an answer comes too late, as another turn has the conversation.
fn locked_or(error: MemoryError) -> ApiError {
    if Completion::is_overtaken(&error) { locked() } else { error.into() }
}

/// Goes on with the turn that a crash cut off in a thread; one of an assistant that is not served here is closed.
async fn go_on_with(app: &App, scope: &Scope, thread: ThreadId, left: &Versioned<RunRecord>) -> Result<(), ApiError> {
    match app.assistants().find(&left.value.assistant) {
        Some(agent) => Ok(turns::resume(app, &agent, scope, thread, &left.value.turn).await?),
        None => {
            let place = Place::find(app.memory(), scope, thread).await?;
            Ok(interrupt(app.memory(), &place, left).await?)
        }
    }
}

/// Refuses what cannot be stored before the model is asked: its answer would be lost.
pub(super) fn check(app: &App, input: &[Draft]) -> Result<(), ApiError> {
    let batch = input.iter().cloned().fold(app.memory().batch(), BatchBuilder::append);
    Ok(batch.check()?)
}

fn policy() -> ContextPolicy {
    ContextPolicy { window: Some(WINDOW), ..ContextPolicy::default() }
}

impl Fresh {
    /// What the model is shown of its thread before what is new.
    pub(super) async fn context(
        &self,
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        input: &[Draft],
    ) -> Result<Vec<ChatMessage>, ApiError> {
        let Some(read) = &self.read else { return context(app, scope, thread, input).await };
        let held = app.memory().context_of(read, None, &policy(), &ContextOptions::default()).await?;
        Ok(shown_before(HeldContext::into_assembled(held), input))
    }
}

/// What the model is shown of a thread before what is new.
pub(super) async fn context(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    input: &[Draft],
) -> Result<Vec<ChatMessage>, ApiError> {
    Ok(shown_before(app.memory().context(scope, thread, None, &policy()).await?, input))
}

fn shown_before(assembled: AssembledContext, input: &[Draft]) -> Vec<ChatMessage> {
    let mut messages = assembled.context.messages;
    let answered: Vec<&str> = input.iter().flat_map(|draft| &draft.content.parts).filter_map(called).collect();
    // A call whose result is new is shown as waiting; now it waits no longer.
    for message in &mut messages {
        message.parts.retain(|part| called(part).is_none_or(|id| !answered.contains(&id)));
    }
    messages.retain(|message| !message.parts.is_empty());
    messages
}

/// What is kept of a turn.
fn documents(record: &Record, now: Timestamp) -> Result<[PutDocument; 2], ApiError> {
    let last = Last { id: record.id.clone(), digest: record.digest.clone(), at: now };
    let expires_at = Some(now.plus_ms(KEPT_MS));
    Ok([
        PutDocument { name: name(&record.id), value: JsonText::of(record)?, expires_at },
        PutDocument { name: name(LAST), value: JsonText::of(&last)?, expires_at },
    ])
}

/// Keeps the record of a turn whose messages are stored already. It is the application's own: a user may ask in a shared
/// thread, and may not write its documents.
pub(super) async fn note(app: &App, scope: &Scope, thread: ThreadId, record: &Record) -> Result<(), ApiError> {
    let batch = documents(record, app.memory().now())?;
    let batch = batch.into_iter().fold(app.memory().batch(), BatchBuilder::put);
    batch.commit(&Scope::Tenant(scope.tenant_id().clone()), thread).await?;
    Ok(())
}

/// The turn that this request had already.
pub(super) async fn before(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    id: &str,
    attempt: &Attempt,
) -> Result<Option<Record>, ApiError> {
    let record = find(app, scope, thread, id).await?;
    earlier(app, scope, thread, record, attempt).await
}

/// As [`before`], where the record under the request's own id was looked for already.
async fn earlier(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: Option<Record>,
    attempt: &Attempt,
) -> Result<Option<Record>, ApiError> {
    if let Some(record) = record {
        attempt.check_same(&record.digest)?;
        return Ok(Some(record));
    }
    if attempt.is_retry() { repeated(app, scope, thread, attempt).await } else { Ok(None) }
}

/// The call that a part is the result of.
fn called(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.call_id),
        _ => None,
    }
}

/// Asks the model where no thread is held.
pub(super) async fn ask(
    app: &App,
    request: &ChatRequest,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<ChatAnswer, ApiError> {
    let model = app.model().ok_or_else(no_model)?;
    let says_something = |part: &Part| !matches!(part, Part::Text(text) if text.is_empty());
    if !request.messages.iter().flat_map(|message| &message.parts).any(says_something) {
        // Messages that say nothing are not shown to a model, and it can be asked nothing.
        return Err(ApiError::invalid("input", "There is nothing to ask the model: all messages are empty."));
    }
    model.answer(request, deltas).await.map_err(|error| {
        let is_too_long = matches!(error, ModelError::ContextTooLong { .. });
        let error = ApiError::from(error);
        // By this name clients know it.
        if is_too_long { error.code("context_length_exceeded") } else { error }
    })
}

pub(super) fn no_model() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", "this server has no model").param("model")
}

/// Digits of an id that tell the items of one answer from each other.
const OWN_DIGITS: usize = 4;

/// The digits that are the same in the ids of all items of an answer, and in the id of the response that it is.
pub(super) fn family(id: impl ToString) -> String {
    let digits = id.to_string();
    format!("{}{}", &digits[..digits.len() - OWN_DIGITS], "0".repeat(OWN_DIGITS))
}

/// The id of an answer's first words, which a stream tells before anything else of it is known.
pub(super) fn words_id(of: MessageId) -> MessageId {
    item_id(of, u16::MAX)
}

fn item_id(of: MessageId, number: u16) -> MessageId {
    let digits = of.0.simple().to_string();
    let id = format!("{}{number:04x}", &digits[..digits.len() - OWN_DIGITS]);
    id.parse().expect("32 hexadecimal digits are a UUID")
}

/// The messages that an answer is stored as: words, thoughts and each call are an item of their own. The first words get
/// the id that a stream has told already.
pub(super) fn output(answer: &ChatAnswer, words: MessageId) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let (first, mut words) = (words, Some(words));
    let mut numbers = 1..u16::MAX;
    for part in &answer.parts {
        let last = drafts.last_mut().map(|draft| &mut draft.content.parts);
        match (part, last) {
            (Part::Text(text), Some(parts)) if matches!(parts.as_slice(), [Part::Text(_)]) => {
                if let [Part::Text(said)] = parts.as_mut_slice() {
                    said.push_str(text);
                }
            }
            _ => {
                let content = Content { parts: vec![part.clone()], ..Content::empty(Role::Assistant) };
                let told = if matches!(part, Part::Text(_)) { words.take() } else { None };
                let id = told.or_else(|| numbers.next().map(|number| item_id(first, number)));
                drafts.push(Draft { id, ..Draft::new(content) });
            }
        }
    }
    if let Some(last) = drafts.last_mut() {
        last.content.usage.clone_from(&answer.usage);
    }
    drafts
}

/// The record of a turn.
pub(super) async fn find(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<Option<Record>, ApiError> {
    let DocumentName { namespace, key } = name(id);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let found = store.find_document(scope, &DocumentOwner::Thread(thread), &namespace, &key, now).await?;
    Ok(found.map(|document| document.value.read()).transpose()?)
}

/// Deletes the record of a turn; what was said stays in its conversation.
pub(super) async fn forget(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<(), ApiError> {
    app.memory().batch().delete(name(id)).commit(scope, thread).await?;
    Ok(())
}

/// Messages of a turn that are still there, in order.
pub(super) async fn said(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    ids: &[MessageId],
) -> Result<Vec<Message>, ApiError> {
    let names: Vec<_> = ids.iter().copied().map(MessageName::Id).collect();
    Ok(app.memory().find_messages(scope, thread, &names).await?)
}

/// The turn that this request had already, where nothing has happened in the thread since.
async fn repeated(app: &App, scope: &Scope, thread: ThreadId, attempt: &Attempt) -> Result<Option<Record>, ApiError> {
    let DocumentName { namespace, key } = name(LAST);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let owner = DocumentOwner::Thread(thread);
    let Some(document) = store.find_document(scope, &owner, &namespace, &key, now).await? else { return Ok(None) };
    let last: Last = document.value.read()?;
    if last.digest != attempt.digest() || last.at.plus_ms(WINDOW_MS) < now {
        return Ok(None);
    }
    let Some(record) = find(app, scope, thread, &last.id).await? else { return Ok(None) };
    let tail = record.output.last().copied().into_iter().collect::<Vec<_>>();
    let tail = said(app, scope, thread, &tail).await?.pop().map(|message| message.seq);
    let seq = app.memory().get_thread(scope, thread).await?.positions.seq;
    Ok((tail == Some(seq)).then_some(record))
}

fn name(key: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System(NAMESPACE.to_owned()), key: key.to_owned() }
}
