//! A turn of a conversation: the model answers the new input, and input and output are stored together or not at all. A repeated
//! request gets the stored answer.
//!
//! Content is stored in the thread's messages only. The record of a turn refers to them by id, so that erased messages disappear
//! from the answer too, and the record is deleted with the thread.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use threadkeep::context::ContextPolicy;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatMessage, ChatRequest, ModelError, PutRecord};
use threadkeep::memory::turns::{
    Completion, Interrupted, LockResult, RunRecord, ThreadAccess, TurnWaiter, Versioned, interrupt,
};
use threadkeep::memory::{AssembledContext, CachedContext, ContextOptions};
use threadkeep::{
    BatchBuilder, Content, Draft, JsonText, MemoryError, Message, MessageId, MessageRef, Namespace, Part, Prefetched,
    RecordName, RecordOwner, Role, Scope, ThreadId, Timestamp,
};
use threadkeep_service::{Attempt, RETRY_WINDOW_MS};

use crate::app::App;
use crate::error::ApiError;
use crate::turns;

/// How long records are retained: 30 days.
pub(super) const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How many of the thread's latest messages a model gets verbatim; older ones are summarized.
pub(super) const CONTEXT_MESSAGES: usize = 200;
/// How long a repeated request waits for its first attempt to end.
const RETRY_WAIT: Duration = Duration::from_mins(10);
const NAMESPACE: &str = "openai.turns";
const LAST_KEY: &str = "last";

/// The data of a turn that is stored in addition to its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TurnRecord {
    /// The id of the response or completion.
    pub(super) id: String,
    /// The digest of the request.
    pub(super) digest: String,
    pub(super) input: Vec<MessageId>,
    pub(super) output: Vec<MessageId>,
    /// The answer's JSON without its content.
    #[serde(rename = "shell")]
    pub(super) envelope: JsonText,
    /// The id under which the last item was streamed, if it differs from its message's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<String>,
    /// The lengths in bytes of the deltas in which the answer's text was streamed; empty if it was not.
    #[serde(rename = "cuts", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) delta_lengths: Vec<u32>,
}

/// The thread's last turn, stored under [`LAST_KEY`] to recognise repeated requests.
#[derive(Debug, Serialize, Deserialize)]
struct LastTurn {
    id: String,
    digest: String,
    at: Timestamp,
}

/// A started turn, which locks its thread until the answer is stored.
#[derive(Clone, Debug)]
pub(super) struct ActiveTurn(Completion);

/// A started turn with the data that was prefetched before its thread was locked, if that is still current.
pub(super) struct StartedTurn {
    pub(super) turn: ActiveTurn,
    prefetched: Option<Box<Prefetched>>,
}

/// The result of starting a turn for a request.
pub(super) enum TurnStart {
    New(StartedTurn),
    /// An earlier attempt of the request was answered.
    Answered(TurnRecord),
}

impl ActiveTurn {
    /// Locks a conversation for a turn, unless this request was already answered. While another turn has the lock, a repeated
    /// request waits and any other fails. A turn that a crash interrupted is resumed first.
    pub(super) async fn start(
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        id: &str,
        attempt: &Attempt,
    ) -> Result<TurnStart, ApiError> {
        let (memory, started_at) = (app.memory(), Instant::now());
        let model = app.model().ok_or_else(no_model)?.name();
        let mut waiting: Option<TurnWaiter> = None;
        loop {
            // If prefetching fails, the data is read separately later, and the error is reported then.
            let prefetched = memory.prefetch(scope, thread, &policy(), &[name(id)], &[]).await.ok();
            let record = match &prefetched {
                Some(prefetched) => {
                    prefetched.records.iter().flatten().next().map(|found| found.value.read()).transpose()?
                }
                None => find_turn_record(app, scope, thread, id).await?,
            };
            if let Some(record) = check_answered(app, scope, thread, record, attempt).await? {
                return Ok(TurnStart::Answered(record));
            }
            match Completion::acquire(memory, scope, thread, id, model).await? {
                LockResult::Acquired(completion) => {
                    let prefetched =
                        prefetched.and_then(|prefetched| prefetched.after(completion.acquired_at())).map(Box::new);
                    // If the thread changed since the prefetch, the first attempt may have ended in between.
                    if attempt.may_be_retry()
                        && prefetched.is_none()
                        && let Some(record) = find_answered(app, scope, thread, id, attempt).await.transpose()
                    {
                        completion.abandon().await;
                        return record.map(TurnStart::Answered);
                    }
                    return Ok(TurnStart::New(StartedTurn { turn: Self(completion), prefetched }));
                }
                LockResult::Interrupted(interrupted) => resume_interrupted(app, scope, thread, &interrupted).await?,
                // The first attempt may still be in progress although its client lost the connection.
                LockResult::Busy if attempt.may_be_retry() && started_at.elapsed() < RETRY_WAIT => match &mut waiting {
                    // The loop reads again before waiting, so that no change before the subscription is missed.
                    None => waiting = Some(TurnWaiter::begin(memory, scope, thread).await),
                    Some(waiting) => waiting.wait(None).await,
                },
                LockResult::Busy => return Err(locked()),
            }
        }
    }

    /// Calls the model while the thread is locked, until it answers or the turn is stopped.
    pub(super) async fn call_model(
        &self,
        app: &App,
        request: &ChatRequest,
        deltas: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<ChatAnswer, ApiError> {
        match self.0.run(call_model(app, request, deltas)).await {
            Ok(answered) => answered,
            Err(Interrupted::Stopped) => Err(ApiError::new(StatusCode::CONFLICT, "stopped", "the turn was stopped")),
            Err(Interrupted::LockLost) => Err(locked()),
        }
    }

    /// Stores input and output, with the turn's record.
    pub(super) async fn finish(self, app: &App, record: &TurnRecord, drafts: Vec<Draft>) -> Result<(), ApiError> {
        let memory = app.memory();
        let batch = drafts.into_iter().fold(memory.batch(), BatchBuilder::append);
        let batch = record_writes(record, memory.now())?.into_iter().fold(batch, BatchBuilder::put);
        let stored = self.0.finish(batch).await.map(drop).map_err(finish_error);
        if stored.is_err() {
            self.abandon().await;
        }
        stored
    }

    /// Ends the turn without storing anything.
    pub(super) async fn abandon(self) {
        self.0.abandon().await;
    }
}

/// The error for a conversation in which another turn is in progress.
pub(super) fn locked() -> ApiError {
    let message = "Another process is currently operating on this conversation. Please retry in a few seconds.";
    ApiError::new(StatusCode::BAD_REQUEST, "conversation_locked", message).param("conversation")
}

/// Converts an error of storing an answer; another turn may have taken the lock after this one's lease expired.
fn finish_error(error: MemoryError) -> ApiError {
    if Completion::is_lock_lost(&error) { locked() } else { error.into() }
}

/// Resumes the turn that a crash interrupted in a thread. The turn of an assistant that this server does not have is closed.
async fn resume_interrupted(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    interrupted: &Versioned<RunRecord>,
) -> Result<(), ApiError> {
    match app.assistants().find(&interrupted.value.assistant) {
        Some(agent) => Ok(turns::resume(app, &agent, scope, thread, &interrupted.value.turn).await?),
        None => {
            let access = ThreadAccess::find(app.memory(), scope, thread).await?;
            Ok(interrupt(app.memory(), &access, interrupted).await?)
        }
    }
}

/// Rejects input that cannot be stored, before the model is called: its answer would be lost.
pub(super) fn check(app: &App, input: &[Draft]) -> Result<(), ApiError> {
    let batch = input.iter().cloned().fold(app.memory().batch(), BatchBuilder::append);
    Ok(batch.check()?)
}

fn policy() -> ContextPolicy {
    ContextPolicy { window: Some(CONTEXT_MESSAGES), ..ContextPolicy::default() }
}

impl StartedTurn {
    /// Assembles the messages from the thread that precede the new input.
    pub(super) async fn context(
        &self,
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        input: &[Draft],
    ) -> Result<Vec<ChatMessage>, ApiError> {
        let Some(prefetched) = &self.prefetched else { return context(app, scope, thread, input).await };
        let context = app.memory().context_of(prefetched, None, &policy(), &ContextOptions::default()).await?;
        Ok(without_answered_calls(CachedContext::into_assembled(context), input))
    }
}

/// Assembles the messages from a thread that precede the new input.
pub(super) async fn context(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    input: &[Draft],
) -> Result<Vec<ChatMessage>, ApiError> {
    Ok(without_answered_calls(app.memory().context(scope, thread, None, &policy()).await?, input))
}

/// Removes the placeholder results of tool calls whose results are in the input.
fn without_answered_calls(assembled: AssembledContext, input: &[Draft]) -> Vec<ChatMessage> {
    let mut messages = assembled.context.messages;
    let answered: Vec<&str> = input.iter().flat_map(|draft| &draft.content.parts).filter_map(result_call_id).collect();
    for message in &mut messages {
        message.parts.retain(|part| result_call_id(part).is_none_or(|id| !answered.contains(&id)));
    }
    messages.retain(|message| !message.parts.is_empty());
    messages
}

fn record_writes(record: &TurnRecord, now: Timestamp) -> Result<[PutRecord; 2], ApiError> {
    let last = LastTurn { id: record.id.clone(), digest: record.digest.clone(), at: now };
    let expires_at = Some(now.plus_ms(RETENTION_MS));
    Ok([
        PutRecord { name: name(&record.id), value: JsonText::of(record)?, expires_at },
        PutRecord { name: name(LAST_KEY), value: JsonText::of(&last)?, expires_at },
    ])
}

/// Stores the record of a turn whose messages are already stored. It is written with the tenant's scope: a user may start a turn
/// in a shared thread, but may not write the thread's records.
pub(super) async fn save_turn_record(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: &TurnRecord,
) -> Result<(), ApiError> {
    let writes = record_writes(record, app.memory().now())?;
    let batch = writes.into_iter().fold(app.memory().batch(), BatchBuilder::put);
    batch.commit(&Scope::Tenant(scope.tenant_id().clone()), thread).await?;
    Ok(())
}

/// Finds the record of an earlier attempt of this request.
pub(super) async fn find_answered(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    id: &str,
    attempt: &Attempt,
) -> Result<Option<TurnRecord>, ApiError> {
    let record = find_turn_record(app, scope, thread, id).await?;
    check_answered(app, scope, thread, record, attempt).await
}

/// Like [`find_answered`], given the record with the request's own id, if there is one.
async fn check_answered(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: Option<TurnRecord>,
    attempt: &Attempt,
) -> Result<Option<TurnRecord>, ApiError> {
    if let Some(record) = record {
        attempt.check_same(&record.digest)?;
        return Ok(Some(record));
    }
    if attempt.is_retry() { find_repeated(app, scope, thread, attempt).await } else { Ok(None) }
}

/// Returns the id of the call whose result a part is.
fn result_call_id(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.call_id),
        _ => None,
    }
}

/// Calls the model without locking a thread.
pub(super) async fn call_model(
    app: &App,
    request: &ChatRequest,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<ChatAnswer, ApiError> {
    let model = app.model().ok_or_else(no_model)?;
    let has_content = |part: &Part| !matches!(part, Part::Text(text) if text.is_empty());
    if !request.messages.iter().flat_map(|message| &message.parts).any(has_content) {
        // Empty messages are not sent to a model, and a request without messages would fail.
        return Err(ApiError::invalid("input", "Invalid 'input': all messages are empty."));
    }
    model.answer(request, deltas).await.map_err(|error| {
        let is_too_long = matches!(error, ModelError::ContextTooLong { .. });
        let error = ApiError::from(error);
        // The code that clients of OpenAI check for.
        if is_too_long { error.code("context_length_exceeded") } else { error }
    })
}

pub(super) fn no_model() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", "no model is configured on this server").param("model")
}

/// How many of an id's last digits distinguish the items of one answer.
const ITEM_DIGITS: usize = 4;

/// Replaces the digits that distinguish the items of one answer by zeros. The other digits are the same in the ids of all items
/// and in the id of their response.
pub(super) fn id_family(id: impl ToString) -> String {
    let digits = id.to_string();
    format!("{}{}", &digits[..digits.len() - ITEM_DIGITS], "0".repeat(ITEM_DIGITS))
}

/// Returns the id of an answer's first text message, which a stream reports before the rest of the answer is known.
pub(super) fn text_message_id(of: MessageId) -> MessageId {
    item_id(of, u16::MAX)
}

fn item_id(of: MessageId, number: u16) -> MessageId {
    let digits = of.0.simple().to_string();
    let id = format!("{}{number:04x}", &digits[..digits.len() - ITEM_DIGITS]);
    id.parse().expect("32 hexadecimal digits are a UUID")
}

/// Splits an answer into the messages that are stored: text, reasoning and each call are separate items. The first text gets the
/// id that a stream has already reported.
pub(super) fn output_drafts(answer: &ChatAnswer, text_id: MessageId) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut unused_text_id = Some(text_id);
    let mut numbers = 1..u16::MAX;
    for part in &answer.parts {
        let last = drafts.last_mut().map(|draft| &mut draft.content.parts);
        match (part, last) {
            (Part::Text(text), Some(parts)) if matches!(parts.as_slice(), [Part::Text(_)]) => {
                if let [Part::Text(merged)] = parts.as_mut_slice() {
                    merged.push_str(text);
                }
            }
            _ => {
                let content = Content { parts: vec![part.clone()], ..Content::empty(Role::Assistant) };
                let reported = if matches!(part, Part::Text(_)) { unused_text_id.take() } else { None };
                let id = reported.or_else(|| numbers.next().map(|number| item_id(text_id, number)));
                drafts.push(Draft { id, ..Draft::new(content) });
            }
        }
    }
    if let Some(last) = drafts.last_mut() {
        last.content.usage.clone_from(&answer.usage);
    }
    drafts
}

/// Finds the record of a turn.
pub(super) async fn find_turn_record(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    id: &str,
) -> Result<Option<TurnRecord>, ApiError> {
    let RecordName { namespace, key } = name(id);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let found = store.find_record(scope, &RecordOwner::Thread(thread), &namespace, &key, now).await?;
    Ok(found.map(|record| record.value.read()).transpose()?)
}

/// Deletes the record of a turn; its messages remain in the conversation.
pub(super) async fn delete_record(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<(), ApiError> {
    app.memory().batch().delete(name(id)).commit(scope, thread).await?;
    Ok(())
}

/// Returns the messages with these ids that still exist, in order.
pub(super) async fn stored_messages(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    ids: &[MessageId],
) -> Result<Vec<Message>, ApiError> {
    let names: Vec<_> = ids.iter().copied().map(MessageRef::Id).collect();
    Ok(app.memory().find_messages(scope, thread, &names).await?)
}

/// Finds the record of an earlier attempt of this request without a common key: the thread's last turn, if it has the same
/// digest, is recent, and nothing was added since.
async fn find_repeated(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    attempt: &Attempt,
) -> Result<Option<TurnRecord>, ApiError> {
    let RecordName { namespace, key } = name(LAST_KEY);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let owner = RecordOwner::Thread(thread);
    let Some(record) = store.find_record(scope, &owner, &namespace, &key, now).await? else { return Ok(None) };
    let last: LastTurn = record.value.read()?;
    if last.digest != attempt.digest() || last.at.plus_ms(RETRY_WINDOW_MS) < now {
        return Ok(None);
    }
    let Some(record) = find_turn_record(app, scope, thread, &last.id).await? else { return Ok(None) };
    let last = record.output.last().copied().into_iter().collect::<Vec<_>>();
    let last_seq = stored_messages(app, scope, thread, &last).await?.pop().map(|message| message.seq);
    let seq = app.memory().get_thread(scope, thread).await?.positions.seq;
    Ok((last_seq == Some(seq)).then_some(record))
}

fn name(key: &str) -> RecordName {
    RecordName { namespace: Namespace::System(NAMESPACE.to_owned()), key: key.to_owned() }
}
