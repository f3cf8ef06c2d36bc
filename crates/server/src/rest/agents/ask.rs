use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Deserialize;
use threadkeep::{Agent, Content, Map, OpenThread, Role, Scope, ThreadId, TurnRequest};
use threadkeep_api::turn::TurnJson;
use threadkeep_service::RequestIdentity;
use utoipa::ToSchema;

use super::find_agent;
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams};
use crate::output::{json, with_replay};
use crate::security::Caller;
use crate::thread_names;
use crate::turns::{self, AskRequest, TurnTask};

/// A question to an assistant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskJson {
    /// The user's message.
    #[schema(min_length = 1)]
    text: String,
    /// The thread's id, conversation id or key. If no thread has the key, a thread is created. Default: a new thread.
    #[serde(default)]
    thread: Option<String>,
    /// The author of the message. Only allowed with a key of a whole tenant.
    #[serde(default)]
    author: Option<String>,
    /// Additional data from the client, such as the user's location.
    #[serde(default)]
    #[schema(value_type = Object)]
    given: Map,
    /// Whether to stream the turn's events as server-sent events.
    #[serde(default)]
    stream: bool,
}

/// Asks an assistant, and returns or streams the turn
///
/// The user's message is stored before the model is called, and a started turn is finished even if the client disconnects. A
/// failed turn is returned with status 200; its `status` and `error` describe the failure. A repeated request with the same
/// Idempotency-Key returns the turn of the first request. So does a repeated request without a key if the client marks it as a
/// retry (`X-Stainless-Retry-Count`), the question is the same, and the thread ends with its answer, which is less than 120 s
/// old.
///
/// With `stream`, or if the client accepts `text/event-stream`, the events are `turn.started`, `token`, `token.restarted`,
/// `tool.started`, `tool.finished`, `approval.requested`, and finally `turn.completed` or `turn.failed` with the turn, or `end`
/// if the server stops earlier.
#[utoipa::path(
    post,
    path = "/v1/agents/{name}/turns",
    operation_id = "ask_agent",
    tag = "agents",
    params(("name" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = AskJson,
    responses((status = 200, description = "The turn, or a stream of events.", content((TurnJson = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn ask(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<AskJson>,
) -> Result<Response> {
    let name = path_params.get("name");
    let agent = find_agent(&app, name)?;
    let identity = input::read_identity(&headers, "turns", &format!("{name}:{digest}"))?;
    if body.text.trim().is_empty() {
        return Err(ApiError::invalid("text", "the question is empty"));
    }
    if body.author.is_some() && matches!(caller.scope, Scope::User(..)) {
        return Err(ApiError::invalid("author", "a user cannot set the author of a message"));
    }
    let is_streamed = body.stream || accepts_events(&headers);
    // The question is checked before a thread is created, because an invalid question must not leave an empty thread behind.
    Content { author: body.author.clone(), ..Content::text(Role::User, body.text.clone()) }.check()?;
    let thread = open_thread(&app, &caller.scope, &agent, body.thread.as_deref(), &identity).await?;
    let ask = TurnRequest { author: body.author, extra_input: body.given, ..TurnRequest::new(body.text) };
    let request = AskRequest {
        service: app.service().clone(),
        agent,
        scope: caller.scope,
        thread,
        ask,
        identity,
        is_ephemeral: false,
    };
    let updates = turns::start(connection, TurnTask::Ask(request));
    if is_streamed {
        return turns::respond(&app, updates).await;
    }
    let result = turns::wait_for_result(updates).await?;
    Ok(with_replay(json(&TurnJson::from(result.turn)), result.replayed))
}

/// Whether a client accepts server-sent events.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// Returns the thread with the id or key `name`. Creates a thread if no thread has the key, or if `name` is `None`.
pub(crate) async fn open_thread(
    app: &App,
    scope: &Scope,
    agent: &Agent,
    name: Option<&str>,
    identity: &RequestIdentity,
) -> Result<ThreadId> {
    let memory = agent.memory();
    let Some(name) = name else {
        let id = identity.thread_id(app, scope);
        memory.open_thread(scope, OpenThread::new(scope, id)).await?;
        identity.record_creation(app, scope, id).await?;
        return Ok(id);
    };
    let id = thread_names::resolve_or_open(app, scope, name).await?;
    Ok(memory.get_thread(scope, id).await?.id)
}
