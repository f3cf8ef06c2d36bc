//! Runs. A run answers a question in a conversation, which is identified by a conversation id and a user id, and
//! returns a flat result.

mod stream;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use threadkeep::agent::{OpenRun, RunError, RunRequest, RunResult};
use threadkeep::{Agent, Map, Scope, UserId, Value};
use threadkeep_service::RequestIdentity;
use utoipa::ToSchema;

use super::ask::accepts_events;
use super::find_agent;
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams, optional_whole_number};
use crate::output::{json, with_replay};
use crate::security::{Caller, KeyRole};
use crate::thread_names;
use crate::turns::{self, AskRequest, TurnTask};

/// A question in a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunJson {
    /// The question.
    #[schema(min_length = 1, max_length = 1000)]
    user_query: String,
    /// The maximum number of searches. Default: that of the assistant.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 10)]
    max_iterations: Option<u64>,
    /// The conversation to continue. Default: a new one.
    #[serde(default)]
    #[schema(format = Uuid)]
    conversation_id: Option<String>,
    /// The user. Without a user, the question is answered without a conversation, and nothing is stored.
    #[serde(default)]
    user_id: Option<String>,
    /// Whether to stream the run as server-sent events.
    #[serde(default)]
    stream: bool,
}

/// The result of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunResultJson {
    /// The question.
    query: String,
    /// The conversation; null if nothing was stored.
    #[schema(format = Uuid)]
    conversation_id: Option<String>,
    /// What was found, best first. The fields of each result depend on the assistant.
    #[schema(value_type = Vec<Object>)]
    results: Vec<Value>,
    /// The answer.
    final_response: String,
    /// The ids of the sources of the answer.
    #[schema(value_type = Vec<Value>)]
    sources_used: Vec<Value>,
    /// Facts about the conversation: `total_messages`, and those that the assistant adds.
    #[schema(value_type = Object)]
    metadata: Map,
    /// The number of searches.
    iterations: u64,
    /// Why the run ended. The values depend on the assistant.
    exit_reason: String,
    /// The model's reasons for its decisions during the run.
    llm_reasoning: String,
    /// The cost in US dollars of the calls whose prices are known.
    total_cost: f64,
    /// The number of embedder calls.
    embedding_calls: u64,
    /// The number of model calls.
    llm_calls: u64,
    /// A notice, for example that nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Answers a question in a user's conversation
///
/// This is a shorter form of `POST /v1/agents/{name}/turns`: the conversation is identified by `conversation_id` and
/// `user_id`, and the result is flat. With `user_id` alone, a conversation is created; its title is the question's
/// first 100 characters. Without `user_id`, nothing is stored, `conversation_id` is null and `warning` is set; an
/// Idempotency-Key then has no effect. With a user's key, `user_id` must be that user's id.
///
/// A failed run is returned with status 200; its `exit_reason` is the code of the error, and `final_response` explains it.
///
/// With `stream`, or if the client accepts `text/event-stream`, the events are `start` (`conversation_id`, `query`), `token`
/// (`text`), `sources` (`sources`), `metadata` (the fields of the result except `query`, `results` and `final_response`, together with the
/// fields of its `metadata`) and `done` (the result). `restart` means that the tokens so far are not part of the answer. If there is no
/// result, the stream ends with `error` (the turn failed) or `end` (the server is shutting down) instead of `done`.
#[utoipa::path(
    post,
    path = "/v1/agents/{name}/run",
    operation_id = "run_agent",
    tag = "agents",
    params(("name" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = RunJson,
    responses((status = 200, description = "The result, or a stream of events.", content((RunResultJson = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn run(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<RunJson>,
) -> Result<Response> {
    let name = path_params.get("name");
    let agent = find_agent(&app, name)?;
    let identity = input::read_identity(&headers, "run", &format!("{name}:{digest}"))?;
    let is_streamed = body.stream || accepts_events(&headers);
    let request = body.into_request()?;
    // Without a user nothing is stored, not even to recognise a repeated request.
    let identity = if request.is_stored() { identity } else { RequestIdentity::new("run", None, &digest, 0) };
    let opened_run = open(&app, &caller, &agent, request, &identity).await?;
    let task = AskRequest {
        service: app.service().clone(),
        agent: agent.clone(),
        scope: opened_run.scope.clone(),
        thread: opened_run.thread,
        ask: opened_run.request.turn_request(),
        identity,
        is_ephemeral: !opened_run.request.is_stored(),
    };
    let updates = turns::start(connection, TurnTask::Ask(task));
    if is_streamed {
        return stream::respond(&app, agent, opened_run, updates).await;
    }
    match turns::wait_for_result(updates).await {
        Ok(result) => {
            let replayed = result.replayed;
            let result = opened_run.finish(&agent, &result.turn).await.map_err(api_error)?;
            Ok(with_replay(json(&RunResultJson::from(result)), replayed))
        }
        Err(error) => {
            opened_run.remove_new_thread(&agent).await;
            Err(error.into())
        }
    }
}

impl RunJson {
    fn into_request(self) -> Result<RunRequest> {
        let conversation_id = self.conversation_id.as_deref().map(|name| thread_names::parse_id(name).ok_or(()));
        let conversation_id = conversation_id.transpose();
        let user_id = self.user_id.map(UserId::new).transpose();
        let request = RunRequest {
            user_query: self.user_query,
            max_iterations: self.max_iterations,
            conversation_id: conversation_id.map_err(|_| {
                ApiError::invalid("conversation_id", "`conversation_id` must be the UUID of a conversation")
            })?,
            user_id: user_id.map_err(|error| ApiError::from(error).param("user_id"))?,
        };
        request.check().map_err(api_error)?;
        Ok(request)
    }
}

/// Opens the conversation of a run.
async fn open(
    app: &App,
    caller: &Caller,
    agent: &Agent,
    request: RunRequest,
    identity: &RequestIdentity,
) -> Result<OpenRun> {
    let scope = match (&caller.scope, &request.user_id) {
        (Scope::User(_, own), Some(user)) if user != own => {
            // A local caller of a server without keys may act for every user of its tenant.
            if caller.key_id().is_some() || !caller.has(KeyRole::Admin) {
                return Err(ApiError::forbidden("other_user", "this key can act only for its own user"));
            }
            Scope::Tenant(caller.scope.tenant_id().clone())
        }
        (scope, _) => scope.clone(),
    };
    let user_scope = match &request.user_id {
        Some(user) => Scope::User(scope.tenant_id().clone(), user.clone()),
        None => scope.clone(),
    };
    let is_new_conversation = request.conversation_id.is_none();
    let id = identity.thread_id(app, &user_scope);
    let opened_run = agent.open_run(&scope, request, id).await.map_err(api_error)?;
    if identity.key().is_none() || !is_new_conversation {
        return Ok(opened_run);
    }
    identity.record_creation(app, &opened_run.scope, opened_run.thread).await?;
    Ok(opened_run.keep_thread())
}

fn api_error(error: RunError) -> ApiError {
    match error {
        RunError::Invalid { field, reason } => ApiError::invalid(field, reason),
        RunError::NotFound => ApiError::new(StatusCode::NOT_FOUND, "not_found", "conversation not found"),
        RunError::Memory(error) => error.into(),
        RunError::Agent(error) => error.into(),
        error => ApiError::internal(error.to_string()),
    }
}

impl From<RunResult> for RunResultJson {
    fn from(result: RunResult) -> Self {
        let RunResult { query, conversation_id, results, final_response, sources_used, metadata, iterations, .. } =
            result;
        let RunResult { exit_reason, llm_reasoning, total_cost, embedding_calls, llm_calls, warning, .. } = result;
        Self {
            query,
            conversation_id,
            results,
            final_response,
            sources_used,
            metadata,
            iterations,
            exit_reason,
            llm_reasoning,
            total_cost,
            embedding_calls,
            llm_calls,
            warning,
        }
    }
}
