//! Turns of conversations. In a turn, the model answers the new input, and input and output are stored either together or not at
//! all. A repeated request returns the stored answer.
//!
//! Content is stored only in the messages of the thread. The record of a turn refers to the messages by their ids, so that erased
//! messages also disappear from the answer, and the record is deleted with the thread.

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
use threadkeep_service::{RETRY_WINDOW_MS, RequestIdentity};

use crate::app::App;
use crate::error::ApiError;
use crate::openai::requests;
use crate::turns;

/// How long records are retained, in milliseconds: 30 days.
pub(super) const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The number of a thread's latest messages that a model receives verbatim. Older messages are summarised.
pub(super) const CONTEXT_MESSAGES: usize = 200;
/// How long a repeated request waits for the first attempt to end.
const RETRY_WAIT: Duration = Duration::from_mins(10);
const NAMESPACE: &str = "openai.turns";
/// The key of the record of the last turn.
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
    /// The JSON of the answer without its content.
    #[serde(rename = "shell")]
    pub(super) envelope: JsonText,
    /// The id with which the last item was streamed, if it differs from the id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<String>,
    /// The lengths in bytes of the deltas in which the text was streamed; empty if the text was not streamed.
    #[serde(rename = "cuts", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) delta_lengths: Vec<u32>,
}

/// The last turn of a thread, stored under [`LAST_KEY`] to recognise repeated requests.
#[derive(Debug, Serialize, Deserialize)]
struct LastTurn {
    id: String,
    digest: String,
    at: Timestamp,
}

/// A started turn, which locks its thread until the answer is stored.
#[derive(Clone, Debug)]
pub(super) struct ActiveTurn(Completion);

/// A started turn, and the data that was prefetched before its thread was locked, if the data is still current.
pub(super) struct StartedTurn {
    pub(super) turn: ActiveTurn,
    prefetched: Option<Box<Prefetched>>,
}

/// The result of starting a turn for a request.
pub(super) enum TurnStart {
    New(StartedTurn),
    /// An earlier attempt at the request was answered.
    Answered(TurnRecord),
}

impl ActiveTurn {
    /// Locks a conversation for a turn, unless this request was already answered. While another turn holds the lock, a repeated
    /// request waits and any other request fails. A turn that was interrupted by a crash is resumed first.
    pub(super) async fn start(
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        id: &str,
        identity: &RequestIdentity,
    ) -> Result<TurnStart, ApiError> {
        let (memory, started_at) = (app.memory(), Instant::now());
        let model = app.model().ok_or_else(no_model_error)?.name();
        let mut waiter: Option<TurnWaiter> = None;
        loop {
            // If prefetching fails, the data is read separately later, and any error is reported then.
            let prefetched = memory.prefetch(scope, thread, &context_policy(), &[record_name(id)], &[]).await.ok();
            let record = match &prefetched {
                Some(prefetched) => {
                    prefetched.records.iter().flatten().next().map(|found| found.value.read()).transpose()?
                }
                None => find_turn_record(app, scope, thread, id).await?,
            };
            if let Some(record) = check_answered(app, scope, thread, record, identity).await? {
                return Ok(TurnStart::Answered(record));
            }
            match Completion::acquire(memory, scope, thread, id, model).await? {
                LockResult::Acquired(completion) => {
                    let prefetched =
                        prefetched.and_then(|prefetched| prefetched.after(completion.acquired_at())).map(Box::new);
                    // If the thread has changed since the prefetch, the first attempt may have ended in the meantime.
                    if identity.may_be_retry()
                        && prefetched.is_none()
                        && let Some(record) = find_answered(app, scope, thread, id, identity).await.transpose()
                    {
                        completion.abandon().await;
                        return record.map(TurnStart::Answered);
                    }
                    return Ok(TurnStart::New(StartedTurn { turn: Self(completion), prefetched }));
                }
                LockResult::Interrupted(interrupted) => resume_interrupted(app, scope, thread, &interrupted).await?,
                // The first attempt may still be in progress, although its client has lost the connection.
                LockResult::Busy if identity.may_be_retry() && started_at.elapsed() < RETRY_WAIT => match &mut waiter {
                    // The loop reads the state again before it waits, so that no change before the subscription is missed.
                    None => waiter = Some(TurnWaiter::begin(memory, scope, thread).await),
                    Some(waiter) => waiter.wait(None).await,
                },
                LockResult::Busy => return Err(locked_error()),
            }
        }
    }

    /// Calls the model while the thread is locked. Returns when the model has answered or the turn is stopped.
    pub(super) async fn call_model(
        &self,
        app: &App,
        request: &ChatRequest,
        param: &'static str,
        deltas: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<ChatAnswer, ApiError> {
        match self.0.run(call_model(app, request, param, deltas)).await {
            Ok(result) => result,
            Err(Interrupted::Stopped) => Err(ApiError::new(StatusCode::CONFLICT, "stopped", "the turn was stopped")),
            Err(Interrupted::LockLost) => Err(locked_error()),
        }
    }

    /// Stores the input, the output and the record of the turn in one commit.
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

/// Creates the error for a conversation in which another turn is in progress.
pub(super) fn locked_error() -> ApiError {
    let message = "Another process is currently operating on this conversation. Please retry in a few seconds.";
    ApiError::new(StatusCode::BAD_REQUEST, "conversation_locked", message).param("conversation")
}

/// Converts an error that occurred while storing an answer. Another turn may have acquired the lock after the lease of this turn
/// expired.
fn finish_error(error: MemoryError) -> ApiError {
    if Completion::is_lock_lost(&error) { locked_error() } else { error.into() }
}

/// Resumes a turn that a crash interrupted. If this server does not have the assistant of the turn, the turn is closed.
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

/// Rejects input that cannot be stored. This is checked before the model is called, because its answer would otherwise be lost.
pub(super) fn check_input(app: &App, input: &[Draft]) -> Result<(), ApiError> {
    let batch = input.iter().cloned().fold(app.memory().batch(), BatchBuilder::append);
    Ok(batch.check()?)
}

fn context_policy() -> ContextPolicy {
    ContextPolicy { window: Some(CONTEXT_MESSAGES), ..ContextPolicy::default() }
}

impl StartedTurn {
    /// Assembles the messages from the thread that precede the new input.
    pub(super) async fn assemble_context(
        &self,
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        input: &[Draft],
    ) -> Result<Vec<ChatMessage>, ApiError> {
        let Some(prefetched) = &self.prefetched else { return assemble_context(app, scope, thread, input).await };
        let context = app.memory().context_of(prefetched, None, &context_policy(), &ContextOptions::default()).await?;
        Ok(without_answered_calls(CachedContext::into_assembled(context), input))
    }
}

/// Assembles the messages from a thread that precede the new input.
pub(super) async fn assemble_context(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    input: &[Draft],
) -> Result<Vec<ChatMessage>, ApiError> {
    Ok(without_answered_calls(app.memory().context(scope, thread, None, &context_policy()).await?, input))
}

/// Removes the placeholder results of tool calls whose results are in the input.
fn without_answered_calls(assembled: AssembledContext, input: &[Draft]) -> Vec<ChatMessage> {
    let mut messages = assembled.context.messages;
    let answered_ids: Vec<&str> =
        input.iter().flat_map(|draft| &draft.content.parts).filter_map(result_call_id).collect();
    for message in &mut messages {
        message.parts.retain(|part| result_call_id(part).is_none_or(|id| !answered_ids.contains(&id)));
    }
    messages.retain(|message| !message.parts.is_empty());
    messages
}

fn record_writes(record: &TurnRecord, now: Timestamp) -> Result<[PutRecord; 2], ApiError> {
    let last = LastTurn { id: record.id.clone(), digest: record.digest.clone(), at: now };
    let expires_at = Some(now.plus_ms(RETENTION_MS));
    Ok([
        PutRecord { name: record_name(&record.id), value: JsonText::of(record)?, expires_at },
        PutRecord { name: record_name(LAST_KEY), value: JsonText::of(&last)?, expires_at },
    ])
}

/// Stores the record of a turn whose messages are already stored. The record is written in the scope of the tenant, because a user
/// may start a turn in a shared thread but may not write the thread's records.
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

/// Finds the record of an earlier attempt at this request.
pub(super) async fn find_answered(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    id: &str,
    identity: &RequestIdentity,
) -> Result<Option<TurnRecord>, ApiError> {
    let record = find_turn_record(app, scope, thread, id).await?;
    check_answered(app, scope, thread, record, identity).await
}

/// Like [`find_answered`], but `record` is the record with the id of this request, if there is one.
async fn check_answered(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: Option<TurnRecord>,
    identity: &RequestIdentity,
) -> Result<Option<TurnRecord>, ApiError> {
    if let Some(record) = record {
        identity.check_same(&record.digest)?;
        return Ok(Some(record));
    }
    if identity.is_retry() { find_repeated(app, scope, thread, identity).await } else { Ok(None) }
}

/// Returns the id of the call if a part is the result of a tool call.
fn result_call_id(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.call_id),
        _ => None,
    }
}

/// Rejects options and message content that the model would ignore. Only the new messages are checked. `param` is the parameter that contains
/// them.
pub(super) fn reject_ignored_options(
    app: &App,
    request: &mut ChatRequest,
    new: &[&Draft],
    param: &'static str,
) -> Result<(), ApiError> {
    let Some(model) = app.model() else { return Ok(()) };
    let is_media = |part: &Part| matches!(part, Part::Image(_) | Part::Raw { .. });
    let media = new.iter().filter(|draft| draft.content.parts.iter().any(is_media));
    request.messages = media.flat_map(|draft| requests::to_chat_messages(std::slice::from_ref(*draft))).collect();
    let ignored = model.ignored(request);
    request.messages = Vec::new();
    ignored.map_or(Ok(()), |name| Err(requests::ignored(name, param)))
}

/// Calls the model without locking a thread. `param` is the parameter that contains the messages.
pub(super) async fn call_model(
    app: &App,
    request: &ChatRequest,
    param: &'static str,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<ChatAnswer, ApiError> {
    let model = app.model().ok_or_else(no_model_error)?;
    let has_content = |part: &Part| !matches!(part, Part::Text(text) if text.is_empty());
    if !request.messages.iter().flat_map(|message| &message.parts).any(has_content) {
        // Empty messages are not sent to a model, so the model request would have no messages and fail.
        return Err(ApiError::invalid(param, format!("Invalid '{param}': all messages are empty.")));
    }
    model.answer(request, deltas).await.map_err(|error| {
        let is_too_long = matches!(error, ModelError::ContextTooLong { .. });
        let error = ApiError::from(error);
        // OpenAI clients check for this code.
        if is_too_long { error.code("context_length_exceeded") } else { error }
    })
}

pub(super) fn no_model_error() -> ApiError {
    let message = "no language model is configured on this server; use an assistant as the model, such as \
                   `threadkeep/general` (GET /v1/models lists the assistants)";
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message).param("model")
}

/// The number of digits at the end of an id that distinguish the items of one answer.
const ITEM_DIGITS: usize = 4;

/// Replaces the digits that distinguish the items of one answer with zeros. The other digits are the same in the ids of all items
/// and in the id of the response.
pub(super) fn id_family(id: impl ToString) -> String {
    let digits = id.to_string();
    format!("{}{}", &digits[..digits.len() - ITEM_DIGITS], "0".repeat(ITEM_DIGITS))
}

/// Returns the id of the first text message of an answer. A stream reports the id before the rest of the answer is known. It can
/// be derived from any id of the answer.
pub(super) fn text_message_id(family: MessageId) -> MessageId {
    item_id(family, u16::MAX)
}

fn item_id(family: MessageId, number: u16) -> MessageId {
    let digits = family.0.simple().to_string();
    let id = format!("{}{number:04x}", &digits[..digits.len() - ITEM_DIGITS]);
    id.parse().expect("32 hexadecimal digits are a UUID")
}

/// Splits an answer into the messages to store. Texts, reasoning and each tool call become separate messages. The message with the
/// first text gets the id `text_id`, which a stream may have reported already.
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
    let RecordName { namespace, key } = record_name(id);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let found = store.find_record(scope, &RecordOwner::Thread(thread), &namespace, &key, now).await?;
    Ok(found.map(|record| record.value.read()).transpose()?)
}

/// Deletes the record of a turn; its messages remain in the conversation.
pub(super) async fn delete_record(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<(), ApiError> {
    app.memory().batch().delete(record_name(id)).commit(scope, thread).await?;
    Ok(())
}

/// Returns the messages with these ids that still exist, in order.
pub(super) async fn stored_messages(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    ids: &[MessageId],
) -> Result<Vec<Message>, ApiError> {
    let references: Vec<_> = ids.iter().copied().map(MessageRef::Id).collect();
    Ok(app.memory().find_messages(scope, thread, &references).await?)
}

/// Finds the record of an earlier attempt at this request if the attempts share no key. It is the record of the thread's last
/// turn, provided that the turn has the same digest and is recent, and that nothing has been added to the thread since.
async fn find_repeated(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    identity: &RequestIdentity,
) -> Result<Option<TurnRecord>, ApiError> {
    let RecordName { namespace, key } = record_name(LAST_KEY);
    let (store, now) = (&app.memory().backend().store, app.memory().now());
    let owner = RecordOwner::Thread(thread);
    let Some(record) = store.find_record(scope, &owner, &namespace, &key, now).await? else { return Ok(None) };
    let last: LastTurn = record.value.read()?;
    if last.digest != identity.digest() || last.at.plus_ms(RETRY_WINDOW_MS) < now {
        return Ok(None);
    }
    let Some(record) = find_turn_record(app, scope, thread, &last.id).await? else { return Ok(None) };
    let last = record.output.last().copied().into_iter().collect::<Vec<_>>();
    let last_seq = stored_messages(app, scope, thread, &last).await?.pop().map(|message| message.seq);
    let seq = app.memory().get_thread(scope, thread).await?.positions.seq;
    Ok((last_seq == Some(seq)).then_some(record))
}

fn record_name(key: &str) -> RecordName {
    RecordName { namespace: Namespace::System(NAMESPACE.to_owned()), key: key.to_owned() }
}
