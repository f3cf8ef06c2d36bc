use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use serde::Deserialize;
use threadkeep::{Content, OpenThread, Role, TurnRequest};
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, Names};
use crate::output::{json, with_replay};
use crate::rest::json::turn::TurnJson;
use crate::security::Caller;
use crate::turns::{self, AskRequest, Work};

/// What a user says.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ChatJson {
    message: String,
    /// Who says it; each user has one conversation.
    #[serde(default)]
    user_id: Option<String>,
}

/// Says something to the only assistant that is served
#[utoipa::path(
    post,
    path = "/chat",
    tag = "compat",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = ChatJson,
    responses((status = 200, description = "The turn; `reply` is what the user reads.", body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn chat(
    State(app): State<App>,
    caller: Caller,
    Extension(held): Extension<Held>,
    names: Names,
    (method, uri, headers): (Method, Uri, HeaderMap),
    body: JsonBody<ChatJson>,
) -> Result {
    let agent = assistant::find(&app, &names, method, uri).await?;
    let JsonBody { value: body, digest } = body;
    if body.message.trim().is_empty() {
        return Err(ApiError::invalid("message", "the message is empty"));
    }
    // Before a thread is made: a bad message must not leave an empty one behind.
    Content::text(Role::User, body.message.clone()).check()?;
    let scope = assistant::scope(&caller, body.user_id.as_deref())?;
    let (key, memory) = (assistant::key(&agent)?, agent.memory());
    let attempt = input::attempt(&headers, "compat", &format!("{key}:{digest}"))?;
    let open = OpenThread { key: Some(key), ..OpenThread::new(&scope, memory.mint_thread_id()) };
    let thread = memory.open_thread(&scope, open).await?.thread.id;
    let ask = TurnRequest::new(body.message);
    let asking = AskRequest { service: app.service().clone(), agent, scope, thread, ask, attempt, is_passing: false };
    let answered = turns::whole(turns::start(held, Work::Ask(asking))).await?;
    Ok(with_replay(json(&TurnJson::from(answered.turn)), answered.replayed))
}

/// Says something to an assistant
#[utoipa::path(
    post,
    path = "/{assistant}/chat",
    tag = "compat",
    params(("assistant" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = ChatJson,
    responses((status = 200, description = "The turn; `reply` is what the user reads.", body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn chat_with(
    state: State<App>,
    caller: Caller,
    held: Extension<Held>,
    names: Names,
    head: (Method, Uri, HeaderMap),
    body: JsonBody<ChatJson>,
) -> Result {
    chat(state, caller, held, names, head, body).await
}
