use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use serde::Deserialize;
use threadkeep::{Content, OpenThread, Role, TurnRequest};
use threadkeep_api::turn::TurnJson;
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams};
use crate::output::{json, with_replay};
use crate::security::Caller;
use crate::turns::{self, AskRequest, TurnTask};

/// A message of a user.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ChatJson {
    message: String,
    /// The user. Each user has one conversation.
    #[serde(default)]
    user_id: Option<String>,
}

/// Sends a message to the server's assistant, if there is only one
#[utoipa::path(
    post,
    path = "/chat",
    operation_id = "chat",
    tag = "compat",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = ChatJson,
    responses((status = 200, description = "The turn. `reply` is the text for the user.", body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn chat(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
    (method, uri, headers): (Method, Uri, HeaderMap),
    body: JsonBody<ChatJson>,
) -> Result {
    let agent = assistant::find(&app, &path_params, method, uri).await?;
    let JsonBody { value: body, digest } = body;
    if body.message.trim().is_empty() {
        return Err(ApiError::invalid("message", "`message` must not be empty"));
    }
    // The message is checked before the thread is created, so that an invalid message does not leave an empty thread behind.
    Content::text(Role::User, body.message.clone()).check()?;
    let scope = assistant::scope(&caller, body.user_id.as_deref())?;
    let (key, memory) = (assistant::thread_key(&agent)?, agent.memory());
    let identity = input::read_identity(&headers, "compat", &format!("{key}:{digest}"))?;
    let open = OpenThread { key: Some(key), ..OpenThread::new(&scope, memory.generate_thread_id()) };
    let thread = memory.open_thread(&scope, open).await?.thread.id;
    let ask = TurnRequest::new(body.message);
    let request =
        AskRequest { service: app.service().clone(), agent, scope, thread, ask, identity, is_ephemeral: false };
    let result = turns::wait_for_result(turns::start(connection, TurnTask::Ask(request))).await?;
    Ok(with_replay(json(&TurnJson::from(result.turn)), result.replayed))
}

/// Sends a message to an assistant
#[utoipa::path(
    post,
    path = "/{assistant}/chat",
    operation_id = "chat_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = ChatJson,
    responses((status = 200, description = "The turn. `reply` is the text for the user.", body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn chat_with(
    state: State<App>,
    caller: Caller,
    connection: Extension<ConnectionGuard>,
    path_params: PathParams,
    head: (Method, Uri, HeaderMap),
    body: JsonBody<ChatJson>,
) -> Result {
    chat(state, caller, connection, path_params, head, body).await
}
