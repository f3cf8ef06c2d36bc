//! `POST /api/chat`: queries in the format that clients of the transit assistant send.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use threadkeep::agent::{Failure, StoredMessage};
use threadkeep::{
    Agent, JsonText, Map, MessageQuery, OpenThread, Role, Scope, ThreadId, ThreadKey, Timestamp, Turn, TurnRequest,
    TurnStatus, Value,
};
use threadkeep_service::RequestIdentity;
use utoipa::ToSchema;

use super::{FailureJson, assistant, failure, parse_thread_id};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams};
use crate::output::{json, json_with};
use crate::security::Caller;
use crate::turns::{self, AskRequest, TurnTask};

/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 1000;
/// Maximum length of a thread's id, in characters.
const MAX_THREAD_ID: usize = 100;
/// The key of the user's context in the input of a turn and in the metadata of a thread.
const USER_CONTEXT: &str = "userContext";

/// A query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryJson {
    query: String,
    /// The thread of an earlier query. If it is missing or unknown, a thread is created.
    #[serde(default)]
    thread_id: Option<String>,
    /// Facts about the user, such as `latitude` and `longitude`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    user_context: Option<Map>,
}

/// The result of a query.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum QueryResultJson {
    Answered(AnsweredJson),
    Failed(FailedJson),
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredJson {
    success: bool,
    response: String,
    #[schema(value_type = String, format = Uuid)]
    thread_id: ThreadId,
    /// The agent that answered.
    agent: String,
    /// The confidence in the choice of the agent, from 0 to 1; null if the assistant has only one agent.
    confidence: Option<f64>,
    /// The data on which the answer is based.
    #[schema(value_type = Option<Value>)]
    tfl_data: Option<JsonText>,
    #[schema(value_type = String, format = DateTime)]
    timestamp: Timestamp,
}

/// An apology. The query is stored if `threadId` is set.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedJson {
    success: bool,
    response: String,
    #[schema(value_type = Option<String>, format = Uuid)]
    thread_id: Option<ThreadId>,
    error: String,
    #[schema(value_type = String, format = DateTime)]
    timestamp: Timestamp,
}

/// The body of an error response, for the OpenAPI document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "each variant is built on its own")]
pub(crate) enum QueryErrorJson<'a> {
    /// An apology.
    Failed(FailedJson),
    /// The query is invalid.
    Invalid(FailureJson),
    /// The request is rejected before the query is read.
    Rejected(ErrorEnvelope<'a>),
}

/// Answers a query with the server's assistant, if there is only one
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "query",
    tag = "compat",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = QueryJson,
    responses(
        (status = 200, description = "The answer, or an apology if the assistant failed.", body = QueryResultJson),
        (status = "4XX", body = QueryErrorJson<'_>),
        (status = "5XX", body = QueryErrorJson<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn query(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
    (method, uri, headers): (Method, Uri, HeaderMap),
    body: JsonBody<QueryJson>,
) -> Result {
    let agent = assistant::find(&app, &path_params, method, uri).await?;
    let JsonBody { value: body, digest } = body;
    if let Some(problem) = body.problem() {
        return Ok(failure(StatusCode::BAD_REQUEST, problem));
    }
    let identity = input::read_identity(&headers, "compat", &format!("query:{digest}"))?;
    let scope = assistant::scope(&caller, None)?;
    let thread = match body.open_thread(&agent, &scope, &identity).await {
        Ok(thread) => thread,
        Err(error) => return Ok(failed(&agent, None, &error)),
    };
    let extra_input = body.user_context.map(|context| (USER_CONTEXT.to_owned(), Value::Object(context)));
    let ask = TurnRequest { extra_input: extra_input.into_iter().collect(), ..TurnRequest::new(body.query) };
    let request = AskRequest {
        service: app.service().clone(),
        agent: agent.clone(),
        scope: scope.clone(),
        thread,
        ask,
        identity,
        is_ephemeral: false,
    };
    match turns::wait_for_result(turns::start(connection, TurnTask::Ask(request))).await {
        Ok(result) => {
            log_stored(&agent, &scope, &result.turn).await;
            Ok(json(&answered(result.turn, agent.memory().now())))
        }
        Err(error) => Ok(failed(&agent, Some(thread), &error.into())),
    }
}

/// Answers a query with an assistant
#[utoipa::path(
    post,
    path = "/{assistant}/api/chat",
    operation_id = "query_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = QueryJson,
    responses(
        (status = 200, description = "The answer, or an apology if the assistant failed.", body = QueryResultJson),
        (status = "4XX", body = QueryErrorJson<'_>),
        (status = "5XX", body = QueryErrorJson<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn query_with(
    state: State<App>,
    caller: Caller,
    connection: Extension<ConnectionGuard>,
    path_params: PathParams,
    head: (Method, Uri, HeaderMap),
    body: JsonBody<QueryJson>,
) -> Result {
    query(state, caller, connection, path_params, head, body).await
}

impl QueryJson {
    /// Returns what is wrong with the query, if anything.
    fn problem(&self) -> Option<&'static str> {
        if self.query.trim().is_empty() {
            return Some("Query is required");
        }
        if self.query.chars().count() > MAX_QUERY {
            return Some("Query must have at most 1000 characters");
        }
        let is_long = self.thread_id.as_ref().is_some_and(|id| id.chars().count() > MAX_THREAD_ID);
        is_long.then_some("Thread ID must have at most 100 characters")
    }

    /// Finds the thread of the query, or creates one.
    async fn open_thread(&self, agent: &Agent, scope: &Scope, identity: &RequestIdentity) -> Result<ThreadId> {
        let memory = agent.memory();
        if let Some(thread) = self.thread_id.as_deref().and_then(parse_thread_id)
            && memory.find_thread(scope, thread).await?.is_some()
        {
            return Ok(thread);
        }
        let definition = agent.assistant().definition();
        // A repeated request finds the thread that the first one created.
        let key = identity.key().map(|key| ThreadKey::new(format!("query:{}:{key}", definition.name))).transpose()?;
        let open = OpenThread {
            key,
            metadata: self.metadata(&definition.thread_metadata, memory.now()),
            ..OpenThread::new(scope, memory.generate_thread_id())
        };
        let opened = memory.open_thread(scope, open).await?;
        if opened.created {
            tracing::info!("🆕 Created TFL thread: {}", opened.thread.id);
        }
        Ok(opened.thread.id)
    }

    /// Returns the metadata of a thread that begins with the query.
    fn metadata(&self, assistant_metadata: &Map, now: Timestamp) -> Map {
        let context = self.user_context.clone().unwrap_or_default();
        let mut metadata = Map::from_iter([
            (USER_CONTEXT.to_owned(), Value::Object(context)),
            ("startTime".to_owned(), now.to_string().into()),
            ("initialQuery".to_owned(), self.query.clone().into()),
        ]);
        metadata.extend(assistant_metadata.clone());
        metadata.insert("created".to_owned(), now.to_string().into());
        metadata
    }
}

fn answered(turn: Turn, timestamp: Timestamp) -> QueryResultJson {
    if turn.status == TurnStatus::Failed {
        let error = turn.error.map_or_else(|| "the turn failed".to_owned(), |error| error.message);
        let (response, thread_id) = (turn.reply, Some(turn.thread));
        return QueryResultJson::Failed(FailedJson { success: false, response, thread_id, error, timestamp });
    }
    QueryResultJson::Answered(AnsweredJson {
        success: true,
        response: turn.reply,
        thread_id: turn.thread,
        agent: turn.routed_agent.unwrap_or(turn.agent),
        confidence: turn.confidence,
        tfl_data: turn.data,
        timestamp,
    })
}

/// Returns the assistant's apology for an error outside a turn.
fn failed(agent: &Agent, thread_id: Option<ThreadId>, error: &ApiError) -> Response {
    let reply = agent.assistant().failure_reply(&Failure::new(error.code, error.message.clone()));
    if error.status.is_server_error() {
        tracing::error!("failed to answer a query: {}", error.internal.as_deref().unwrap_or(&error.message));
    }
    let (error, status, timestamp) = (error.message.clone(), error.status, agent.memory().now());
    json_with(status, &FailedJson { success: false, response: reply, thread_id, error, timestamp })
}

/// Logs the messages that a turn stored.
async fn log_stored(agent: &Agent, scope: &Scope, turn: &Turn) {
    let is_stored = |seq: u64| turn.stored.iter().any(|StoredMessage { seq: stored, .. }| *stored == seq);
    let query = MessageQuery::newest(turn.stored.len().max(1));
    let Ok(page) = agent.memory().messages(scope, turn.thread, &query).await else { return };
    for message in page.messages.iter().filter(|message| is_stored(message.seq)) {
        let role = match message.content.role {
            Role::User => "human",
            Role::Assistant => "assistant",
            _ => continue,
        };
        let by = message.content.agent.as_deref().unwrap_or("no agent");
        tracing::info!("💾 Saved {role} message ({by}): {}", message.id);
    }
    if turn.status != TurnStatus::Failed {
        tracing::info!("💾 Saved response from {} agent", turn.routed_agent.as_ref().unwrap_or(&turn.agent));
    }
}
