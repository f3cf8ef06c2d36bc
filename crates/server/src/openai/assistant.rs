//! Assistants on this wire: a model that is called `threadkeep/NAME`.

use axum::http::StatusCode;
use serde_json::{Value, json};
use threadkeep::agent::TurnUsage;
use threadkeep::core::EPHEMERAL;
use threadkeep::core::limits::COMMIT_MESSAGES;
use threadkeep::{Agent, AppendOptions, Ask, Draft, Map, OpenThread, Role, Scope, ThreadId, Turn, TurnStatus, Usage};
use threadkeep_service::Attempt;

use crate::app::App;
use crate::error::ApiError;

/// What the model is called begins so.
pub(super) const PREFIX: &str = "threadkeep/";
/// How long a thread stays that holds one answer only, where something still needs it.
const PASSING_MS: i64 = 60 * 60 * 1000;

/// The assistant that a model's name says; `None` for any other model.
pub(super) fn find(app: &App, model: Option<&str>) -> Result<Option<Agent>, ApiError> {
    let Some((model, name)) = model.and_then(|model| Some((model, model.strip_prefix(PREFIX)?))) else {
        return Ok(None);
    };
    app.assistants().find(name).map(Some).ok_or_else(|| no_model(model))
}

/// What is told where no model is called so.
pub(super) fn no_model(name: &str) -> ApiError {
    let name: String = name.chars().take(100).collect();
    let message = format!("The model '{name}' does not exist");
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message).param("model")
}

/// An assistant brings the tools that it calls.
pub(super) fn refuse_tools(count: usize) -> Result<(), ApiError> {
    if count == 0 {
        return Ok(());
    }
    Err(ApiError::invalid("tools", "Invalid 'tools': an assistant has tools of its own and calls them itself."))
}

/// What was said before, and the question: the last message, which has to be a user's.
pub(super) fn question(mut said: Vec<Draft>, param: &str) -> Result<(Vec<Draft>, Ask), ApiError> {
    // Before a thread is made for them: a bad message must not leave an empty one behind.
    said.iter().try_for_each(|draft| draft.content.check())?;
    let last = said.pop().filter(|draft| draft.content.role == Role::User);
    let text = last.map(|draft| draft.content.plain_text().into_owned()).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| {
        ApiError::invalid(param, format!("Invalid '{param}': an assistant answers a user's message, which comes last."))
    })?;
    Ok((said, Ask::new(text)))
}

/// Makes a thread that holds what was said before a question.
pub(super) async fn new_thread(
    app: &App,
    agent: &Agent,
    scope: &Scope,
    attempt: &Attempt,
    mut said: Vec<Draft>,
    is_passing: bool,
) -> Result<ThreadId, ApiError> {
    let (memory, id) = (agent.memory(), attempt.thread_id(app, scope));
    let expires_at = is_passing.then(|| memory.now().plus_ms(PASSING_MS));
    let metadata = if is_passing { ephemeral() } else { Map::new() };
    memory.open_thread(scope, OpenThread { expires_at, metadata, ..OpenThread::new(scope, id) }).await?;
    attempt.note_creation(app, scope, id).await?;
    let mut said = said.split_off(said.len().saturating_sub(COMMIT_MESSAGES));
    if !said.is_empty() {
        if is_passing {
            said.iter_mut().for_each(|draft| draft.content.metadata.extend(ephemeral()));
        }
        let options = AppendOptions { idempotency_key: Some("http:said".to_owned()), ..AppendOptions::default() };
        memory.append_all(scope, id, said, &options).await?;
    }
    Ok(id)
}

/// What marks a thread that holds one answer only, and its messages.
fn ephemeral() -> Map {
    Map::from_iter([(EPHEMERAL.to_owned(), true.into())])
}

/// What a turn took, as one answer of a model tells it.
pub(super) fn usage(turn: &Turn) -> Usage {
    let TurnUsage { input_tokens, output_tokens, details, .. } = turn.usage;
    Usage { input_tokens, output_tokens, details, ..Usage::default() }
}

/// What this wire has no member for.
pub(super) fn beside(turn: &Turn) -> Value {
    let status = match turn.status {
        TurnStatus::Completed => "completed",
        TurnStatus::WaitingForApproval => "waiting_for_approval",
        TurnStatus::Failed => "failed",
    };
    let approvals: Vec<&str> = turn.approvals.iter().map(|approval| approval.id.as_str()).collect();
    json!({ "thread": turn.thread, "turn": turn.turn, "status": status, "approvals": approvals })
}
