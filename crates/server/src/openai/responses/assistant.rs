//! Responses by assistants. Such a response is a turn in the conversation of the request, or in a new thread that later responses
//! continue.

use serde_json::{Map, Value, json};
use threadkeep::agent::{RunningTurn, TurnState, find_turn_state};
use threadkeep::core::{ChatDelta, Finish};
use threadkeep::{Agent, MessageId, MessageRef, Role, Scope, ThreadId, Turn as AgentTurn, TurnEvent, TurnStatus};
use threadkeep_service::{RequestIdentity, in_current_span};
use tokio::sync::oneshot;

use super::answer::{FinishedResponse, PendingResponse, Work, chat_request, failed_response, read_answered};
use super::conversation_name::ConversationName;
use super::create::CreateResponseJson;
use super::retrieve::ResponseState;
use super::text_deltas::TextDeltas;
use super::{body, chain, create_id, text_message_id, thread_in_id};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, Result};
use crate::openai::assistant;
use crate::openai::conversations::check_metadata;
use crate::openai::items::{Item, items_of};
use crate::openai::members::{Members, json_string};
use crate::openai::turn::{self, TurnRecord};
use crate::openai::{ids, references, requests};
use crate::security::MayResume;
use crate::turns::{self, AskRequest, TurnUpdate};

/// An assistant's turn that is ready to be started.
pub(super) struct AssistantRun {
    app: App,
    pub(super) request: AskRequest,
    connection: ConnectionGuard,
    /// Notified when the question is stored, after which the turn survives a restart of the server.
    pub(super) started: Option<oneshot::Sender<()>>,
}

/// Checks a request to an assistant, and finds or creates its thread.
pub(super) async fn prepare(
    app: App,
    scope: Scope,
    connection: ConnectionGuard,
    agent: Agent,
    request: CreateResponseJson,
    request_identity: RequestIdentity,
) -> Result<PendingResponse> {
    assistant::reject_options(&chat_request(&request)?, "input")?;
    if request.instructions.as_ref().is_some_and(|instructions| !instructions.is_empty()) {
        let message = "Invalid 'instructions': an assistant has its own instructions and accepts no others.";
        return Err(ApiError::invalid("instructions", message).code("unsupported_option"));
    }
    let conversation = ConversationName::read(&request)?;
    check_metadata(request.metadata.clone())?;
    let input = references::resolve_new(&app, &scope, None, requests::read_input(request.input.as_deref())?).await?;
    let (earlier, ask) = assistant::split_question(input, "input")?;
    let is_stored = request.store != Some(false);
    let is_ephemeral = !is_stored && conversation.is_none() && request.previous_response_id.is_none();
    let thread = match existing_thread(&app, &scope, &request, conversation.as_ref()).await? {
        Some(thread) => thread,
        None => assistant::new_thread(&app, &agent, &scope, &request_identity, earlier, is_ephemeral).await?,
    };
    let memory = app.memory();
    let id = create_id(memory, request_identity.named_id(&scope), Some(thread));
    if let Some(record) = turn::find_answered(&app, &scope, thread, &id, &request_identity).await? {
        return read_answered(app, scope, request_identity, thread, record).await;
    }
    let created_at = memory.now().as_millis().div_euclid(1000);
    // An ephemeral thread is deleted after the answer, so the response does not contain its id.
    let conversation_id = (!is_ephemeral).then(|| ids::conversation_id(thread));
    let envelope = body::envelope(&id, created_at, &request, conversation_id.as_deref());
    let text_id = text_message_id(&id);
    let ask_request = AskRequest {
        service: app.service().clone(),
        agent,
        scope: scope.clone(),
        thread,
        ask,
        identity: request_identity.clone(),
        is_ephemeral,
    };
    let work = Work::RunAssistant(Box::new(AssistantRun {
        app: app.clone(),
        request: ask_request,
        connection,
        started: None,
    }));
    Ok(PendingResponse { app, scope, request_identity, id, envelope, text_id, is_streamed: false, work })
}

/// Returns the thread of the conversation or the previous response in a request; `None` if the request has neither.
async fn existing_thread(
    app: &App,
    scope: &Scope,
    request: &CreateResponseJson,
    conversation: Option<&ConversationName>,
) -> Result<Option<ThreadId>> {
    if let Some(conversation) = conversation {
        let thread = conversation.find_thread(app, scope).await?;
        let found = app.memory().get_thread(scope, thread).await;
        return Ok(Some(found.map_err(|error| ids::not_found_as(conversation.text())(error.into()))?.id));
    }
    let Some(previous) = &request.previous_response_id else { return Ok(None) };
    let not_found = || chain::not_found(previous);
    let thread = thread_in_id(previous).ok().flatten().ok_or_else(not_found)?;
    let record = turn::find_turn_record(app, scope, thread, previous).await?.ok_or_else(not_found)?;
    let last: Vec<_> = record.output.last().copied().into_iter().collect();
    let last_seq = turn::stored_messages(app, scope, thread, &last).await?.pop().map(|message| message.seq);
    let seq = app.memory().get_thread(scope, thread).await?.positions.seq;
    if last_seq != Some(seq) {
        let message =
            "An assistant can only continue its last response: the conversation has newer messages than this one.";
        return Err(ApiError::invalid("previous_response_id", message).code("previous_response_not_last"));
    }
    Ok(Some(thread))
}

/// Runs the turn of an assistant, and stores the record that allows the response to be retrieved.
pub(super) async fn run(
    run: AssistantRun,
    id: &str,
    mut envelope: Map<String, Value>,
    text_id: MessageId,
    is_streamed: bool,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<FinishedResponse, (ApiError, String)> {
    let AssistantRun { app, request, connection, started } = run;
    let (scope, digest, is_ephemeral) =
        (request.scope.clone(), request.identity.digest().to_owned(), request.is_ephemeral);
    let updates = turns::start(connection, turns::TurnTask::Ask(request));
    let mut text_deltas = TextDeltas::default();
    let mut on_delta = |delta: ChatDelta| {
        if is_streamed {
            text_deltas.add(&delta);
        }
        deltas(delta);
    };
    let turn = match wait_for_end(updates, started, &mut on_delta).await {
        Ok(turn) => turn,
        Err(error) => return Err(failed_response(&mut envelope, error)),
    };
    let identity = ResponseIdentity { id, digest: &digest, text_id, is_ephemeral };
    let response = build_response(&app, &scope, identity, &mut envelope, &turn, &text_deltas, MayResume::Yes).await;
    response.map_err(|error| failed_response(&mut envelope, error))
}

/// Identifies the response of an assistant.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseIdentity<'a> {
    pub(super) id: &'a str,
    /// The digest of the request.
    pub(super) digest: &'a str,
    /// The id of the message that contains the text.
    pub(super) text_id: MessageId,
    /// Whether the response is not retained.
    pub(super) is_ephemeral: bool,
}

/// Returns the state of a response whose server has stopped. The state is derived from the turn, which any server can resume.
/// Returns `None` if the turn was never started.
pub(super) async fn recover(
    app: &App,
    scope: &Scope,
    identity: ResponseIdentity<'_>,
    mut envelope: Map<String, Value>,
    turn: &str,
    may_resume: MayResume,
) -> Result<Option<ResponseState>> {
    let Some(thread) = thread_in_id(identity.id)? else { return Ok(None) };
    match find_turn_state(app.memory(), scope, thread, turn).await? {
        Some(TurnState::Running(running)) => {
            if may_resume == MayResume::Yes {
                resume(app, scope, thread, running);
            }
            Ok(Some(ResponseState::InProgress { envelope, text_id: None, deltas: Vec::new() }))
        }
        Some(TurnState::NotRunning(turn)) => {
            let deltas = TextDeltas::default();
            let finished = build_response(app, scope, identity, &mut envelope, &turn, &deltas, may_resume).await?;
            Ok(Some(ResponseState::Ended { envelope, output: finished.output, delta_lengths: Vec::new() }))
        }
        _ => Ok(None),
    }
}

/// Resumes a turn in the background, unless this server resumes turns automatically.
fn resume(app: &App, scope: &Scope, thread: ThreadId, running: RunningTurn) {
    if app.options().resume_turns {
        return;
    }
    let (app, scope) = (app.clone(), scope.clone());
    let Some(agent) = app.assistants().find(&running.assistant) else { return };
    tokio::spawn(in_current_span(async move {
        if let Err(error) = turns::resume(&app, &agent, &scope, thread, &running.turn).await {
            tracing::warn!(%error, "failed to resume a turn");
        }
    }));
}

/// Builds the response of a finished turn. Also stores the record of the response if the caller has write access.
async fn build_response(
    app: &App,
    scope: &Scope,
    ResponseIdentity { id, digest, text_id, is_ephemeral }: ResponseIdentity<'_>,
    envelope: &mut Map<String, Value>,
    turn: &AgentTurn,
    deltas: &TextDeltas,
    may_resume: MayResume,
) -> Result<FinishedResponse> {
    let status = set_outcome(envelope, turn, is_ephemeral);
    let alias = format!("msg_{}", text_id.0.simple());
    let stored = if is_ephemeral { None } else { find_stored_reply(app, scope, turn).await? };
    let (item, message) = match stored {
        Some((item, message)) => (with_id(item, &alias), Some(message)),
        None => (message_item(&alias, &turn.reply), None),
    };
    let output = vec![item];
    if let Some(message) = message.filter(|_| may_resume == MayResume::Yes) {
        let record = TurnRecord {
            id: id.to_owned(),
            digest: digest.to_owned(),
            input: find_question(app, scope, turn).await.unwrap_or_default(),
            output: vec![message],
            envelope: threadkeep::JsonText::from(&Value::Object(envelope.clone())),
            alias: Some(alias),
            delta_lengths: deltas.lengths(&output),
        };
        // The turn itself is stored already. Without the record, the response cannot be retrieved, but nothing else is lost.
        if let Err(error) = turn::save_turn_record(app, scope, turn.thread, &record).await {
            tracing::warn!(code = error.code, "failed to store the record of a response");
        }
    }
    Ok(FinishedResponse { response: body::with_output(envelope, &output), output, status })
}

/// Waits until a turn ends and returns it. Meanwhile, forwards the deltas of the turn.
async fn wait_for_end(
    mut updates: turns::TurnUpdates,
    mut started: Option<oneshot::Sender<()>>,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<AgentTurn> {
    while let Some(update) = updates.recv().await {
        match update {
            TurnUpdate::Event(TurnEvent::Token { text }) => deltas(ChatDelta::Text(text)),
            TurnUpdate::Event(TurnEvent::Restarted) => deltas(ChatDelta::Restarted),
            TurnUpdate::Event(TurnEvent::Started { .. }) => {
                // Sending fails if the receiver has timed out.
                started.take().map(|started| started.send(()));
            }
            TurnUpdate::Event(_) => {}
            TurnUpdate::End(result) => return Ok(result?.turn),
        }
    }
    Err(ApiError::internal("the turn ended without a result"))
}

/// Sets the fields that describe how the turn ended. Returns the status of the response.
fn set_outcome(envelope: &mut Map<String, Value>, turn: &AgentTurn, is_ephemeral: bool) -> &'static str {
    body::set_finished(envelope, Finish::Stop, Some(&assistant::answer_usage(turn)));
    let thread = assistant::retained_thread(turn, is_ephemeral);
    envelope.insert("threadkeep".to_owned(), assistant::extension_json(turn, thread));
    let conversation = thread.map(|thread| json!({ "id": ids::conversation_id(thread) }));
    envelope.insert("conversation".to_owned(), conversation.unwrap_or_default());
    let status = match (turn.status, &turn.error) {
        (TurnStatus::Failed, Some(error)) if error.code == "stopped" => "cancelled",
        (TurnStatus::Failed, Some(error)) => {
            body::set_failed(envelope, &error.code, &error.message);
            "failed"
        }
        _ => "completed",
    };
    envelope.insert("status".to_owned(), status.into());
    status
}

/// Reads the reply of a turn from the thread. Returns the item and the id of the message; `None` if the message no longer exists.
async fn find_stored_reply(app: &App, scope: &Scope, turn: &AgentTurn) -> Result<Option<(Item, MessageId)>> {
    let is_answer = |stored: &&threadkeep::agent::StoredMessage| stored.role == Role::Assistant;
    let Some(stored) = turn.stored.iter().rfind(is_answer) else { return Ok(None) };
    let found = app.memory().find_messages(scope, turn.thread, &[MessageRef::Seq(stored.seq)]).await?;
    let Some(message) = found.first() else { return Ok(None) };
    Ok(items_of(message).pop().map(|item| (item, message.id)))
}

/// Returns the id of the first message of a turn, which is the question. Returns no id if the message no longer exists.
async fn find_question(app: &App, scope: &Scope, turn: &AgentTurn) -> Result<Vec<MessageId>> {
    let first = turn.stored.first().map(|stored| MessageRef::Seq(stored.seq));
    let found = app.memory().find_messages(scope, turn.thread, first.as_slice()).await?;
    Ok(found.iter().map(|message| message.id).collect())
}

/// Replaces the id of an item with `alias`, which a stream has already reported.
pub(super) fn with_id(item: Item, alias: &str) -> Item {
    let Ok(mut members) = Members::read(&item.json) else { return item };
    members.set("id", json_string(alias));
    Item { id: alias.to_owned(), json: members.to_json() }
}

fn message_item(id: &str, text: &str) -> Item {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }]);
    let item = json!({ "id": id, "type": "message", "status": "completed", "role": "assistant", "content": content });
    Item { id: id.to_owned(), json: item.to_string() }
}
