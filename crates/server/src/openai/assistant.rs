//! Assistants, which clients of this API call as models with the names `threadkeep/NAME`.

use axum::http::StatusCode;
use serde_json::{Value, json};
use threadkeep::agent::TurnUsage;
use threadkeep::core::limits::COMMIT_MESSAGES;
use threadkeep::core::{ChatRequest, EPHEMERAL};
use threadkeep::{
    Agent, AppendOptions, Draft, Map, OpenThread, Role, Scope, ThreadId, Turn, TurnRequest, TurnStatus, Usage,
};
use threadkeep_service::RequestIdentity;

use crate::app::App;
use crate::error::ApiError;
use crate::openai::requests::option_param;

/// The prefix of the model names of assistants.
pub(super) const MODEL_PREFIX: &str = "threadkeep/";
/// How long an ephemeral thread is retained if it is not deleted after its answer, for example because the turn waits for an
/// approval. In milliseconds.
const EPHEMERAL_MS: i64 = 60 * 60 * 1000;

/// Finds the assistant with this model name. Returns `None` if the name does not have the prefix of assistants.
///
/// # Errors
/// `model_not_found` if there is no such assistant.
pub(super) fn find(app: &App, model: Option<&str>) -> Result<Option<Agent>, ApiError> {
    let Some((model, name)) = model.and_then(|model| Some((model, model.strip_prefix(MODEL_PREFIX)?))) else {
        return Ok(None);
    };
    app.assistants().find(name).map(Some).ok_or_else(|| model_not_found(model))
}

pub(super) fn model_not_found(name: &str) -> ApiError {
    let name: String = name.chars().take(100).collect();
    let message = format!("The model '{name}' does not exist");
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message).param("model")
}

/// Rejects tools in a request to an assistant, because assistants use only their own tools.
pub(super) fn reject_tools(count: usize) -> Result<(), ApiError> {
    if count == 0 {
        return Ok(());
    }
    Err(ApiError::invalid("tools", "Invalid 'tools': an assistant uses its own tools and accepts no others."))
}

/// Rejects options that an assistant would ignore, because its own configuration determines how its model is called. `param` is the
/// parameter that contains the messages.
pub(super) fn reject_options(request: &ChatRequest, param: &'static str) -> Result<(), ApiError> {
    reject_tools(request.tools.len())?;
    let Some(name) = request.required_options().next() else { return Ok(()) };
    let name = option_param(name, param);
    let message = format!("Invalid '{name}': an assistant does not support this option.");
    Err(ApiError::invalid(name, message).code("unsupported_option"))
}

/// Splits off the last message, which must be a question from the user. Returns the earlier messages and the question.
pub(super) fn split_question(mut messages: Vec<Draft>, param: &str) -> Result<(Vec<Draft>, TurnRequest), ApiError> {
    // The messages are checked before a thread is created for them, because an invalid message must not leave an empty thread
    // behind.
    messages.iter().try_for_each(|draft| draft.content.check())?;
    let last = messages.pop().filter(|draft| draft.content.role == Role::User);
    if last.as_ref().is_some_and(|draft| draft.content.parts.iter().any(|part| part.text().is_none())) {
        let message = format!("Invalid '{param}': an assistant accepts only text, not images or files.");
        return Err(ApiError::invalid(param, message).code("unsupported_option"));
    }
    let text = last.map(|draft| draft.content.plain_text().into_owned()).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| {
        ApiError::invalid(param, format!("Invalid '{param}': the last message must be a user's message with text."))
    })?;
    Ok((messages, TurnRequest::new(text)))
}

/// Creates a thread that contains the messages before a question.
pub(super) async fn new_thread(
    app: &App,
    agent: &Agent,
    scope: &Scope,
    identity: &RequestIdentity,
    mut earlier: Vec<Draft>,
    is_ephemeral: bool,
) -> Result<ThreadId, ApiError> {
    let (memory, id) = (agent.memory(), identity.thread_id(app, scope));
    let expires_at = is_ephemeral.then(|| memory.now().plus_ms(EPHEMERAL_MS));
    let metadata = if is_ephemeral { ephemeral_metadata() } else { Map::new() };
    memory.open_thread(scope, OpenThread { expires_at, metadata, ..OpenThread::new(scope, id) }).await?;
    identity.record_creation(app, scope, id).await?;
    let mut earlier = earlier.split_off(earlier.len().saturating_sub(COMMIT_MESSAGES));
    if !earlier.is_empty() {
        if is_ephemeral {
            earlier.iter_mut().for_each(|draft| draft.content.metadata.extend(ephemeral_metadata()));
        }
        let options = AppendOptions { idempotency_key: Some("http:said".to_owned()), ..AppendOptions::default() };
        memory.append_all(scope, id, earlier, &options).await?;
    }
    Ok(id)
}

/// Returns the metadata that marks an ephemeral thread and its messages.
fn ephemeral_metadata() -> Map {
    Map::from_iter([(EPHEMERAL.to_owned(), true.into())])
}

/// Returns the thread of a turn; `None` if it is deleted after the turn. An ephemeral thread is retained only while its turn waits for an
/// approval.
pub(super) fn retained_thread(turn: &Turn, is_ephemeral: bool) -> Option<ThreadId> {
    (!is_ephemeral || turn.status == TurnStatus::WaitingForApproval).then_some(turn.thread)
}

/// Converts the usage of a turn into the usage of a single model answer.
pub(super) fn answer_usage(turn: &Turn) -> Usage {
    let TurnUsage { input_tokens, output_tokens, details, .. } = turn.usage;
    Usage { input_tokens, output_tokens, details, ..Usage::default() }
}

/// Returns the JSON of the extension field `threadkeep`, which contains data of a turn for which OpenAI's API has no field.
///
/// `thread` is null if the turn's thread is not retained.
pub(super) fn extension_json(turn: &Turn, thread: Option<ThreadId>) -> Value {
    let status = match turn.status {
        TurnStatus::Completed => "completed",
        TurnStatus::WaitingForApproval => "waiting_for_approval",
        TurnStatus::Failed => "failed",
    };
    let approvals: Vec<&str> = turn.approvals.iter().map(|approval| approval.id.as_str()).collect();
    json!({ "thread": thread, "turn": turn.turn, "status": status, "approvals": approvals })
}
