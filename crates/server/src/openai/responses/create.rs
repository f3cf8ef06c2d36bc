use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::{Map, Value};
use utoipa::ToSchema;

use super::answer::{Mode, PendingResponse};
use super::{background, stream, strict_tools};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, optional_whole_number};
use crate::openai::requests;
use crate::security::Caller;
use crate::thread_names;

/// The request. Fields that this server does not support are accepted and returned in the response.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateResponseJson {
    #[serde(default)]
    pub(super) model: Option<String>,
    /// A string or an array of items.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) instructions: Option<String>,
    /// The id of a conversation, or an object with the id.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) conversation: Option<Value>,
    #[serde(default)]
    pub(super) previous_response_id: Option<String>,
    /// The thread in the header `Threadkeep-Thread`.
    #[serde(skip)]
    pub(super) thread_name: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(super) tools: Option<Vec<Value>>,
    /// The tools with `strict` set (see `strict_tools`).
    #[serde(skip)]
    pub(super) raw_tools: Vec<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) tool_choice: Option<Value>,
    #[serde(default)]
    pub(super) parallel_tool_calls: Option<bool>,
    #[serde(default)]
    pub(super) store: Option<bool>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    #[serde(default)]
    pub(super) background: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Map>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    pub(super) max_output_tokens: Option<u64>,
    #[serde(default)]
    pub(super) temperature: Option<f64>,
    #[serde(default)]
    pub(super) top_p: Option<f64>,
    #[serde(default)]
    pub(super) truncation: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) text: Option<Map>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) reasoning: Option<Map>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) max_tool_calls: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) prompt_cache_key: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) safety_identifier: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) service_tier: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) top_logprobs: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) user: Option<Value>,
    /// Additional fields of the response. Everything that this server has is always included.
    #[serde(default)]
    pub(super) include: Option<Vec<String>>,
    /// Not supported: this server does not store prompts.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) prompt: Option<Value>,
}

/// Creates a response
///
/// In a conversation, input and output are stored together when the model has answered. A repeated request returns the first answer
/// if it has the same Idempotency-Key, or if the client marks it as a retry and the conversation ends with that answer.
///
/// Instead of `conversation`, the header `Threadkeep-Thread` can select the conversation by the id or key of its thread; an unknown key
/// creates a thread.
///
/// With `background`, the response is returned immediately with the status `in_progress`, and can be retrieved and cancelled. With
/// `stream`, the events of the response are sent immediately, and can be received again by retrieving the response.
///
/// The model `threadkeep/NAME` is an assistant, which answers with a turn in the conversation, or in a new conversation that later
/// responses continue.
#[utoipa::path(
    post,
    path = "/v1/responses",
    operation_id = "create_response",
    tag = "openai",
    params(("Threadkeep-Thread" = Option<String>, Header), ("Idempotency-Key" = Option<String>, Header)),
    request_body = CreateResponseJson,
    responses((status = 200, description = "The response, or a stream of events.", content((Object = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    headers: HeaderMap,
    JsonBody { value: mut body, digest }: JsonBody<CreateResponseJson>,
) -> Result<Response> {
    if body.prompt.as_ref().is_some_and(|prompt| !prompt.is_null()) {
        return Err(ApiError::invalid("prompt", "Invalid 'prompt': stored prompts are not supported."));
    }
    reject_unsupported(&body)?;
    body.thread_name = thread_names::in_header(&headers).map(str::to_owned);
    let digest = body.thread_name.as_ref().map_or(digest.clone(), |name| format!("{name}:{digest}"));
    let request_identity = input::read_identity(&headers, "responses", &digest)?;
    body.raw_tools = body.tools.iter().flatten().map(strict_tools::with_strictness).collect();
    let mode = read_mode(&body)?;
    let mut pending = PendingResponse::prepare(app, caller.scope, connection.clone(), body, request_identity).await?;
    pending.is_streamed = matches!(mode, Mode::Streamed | Mode::BackgroundStreamed);
    match mode {
        Mode::Streamed => stream::respond(pending).await,
        Mode::Whole => pending.respond().await,
        Mode::Background | Mode::BackgroundStreamed => background::start(pending, connection).await,
    }
}

/// Rejects options that would change the answer but cannot be passed to the model.
fn reject_unsupported(body: &CreateResponseJson) -> Result<()> {
    if body.top_logprobs.as_ref().is_some_and(requests::is_set) {
        return Err(requests::unsupported("top_logprobs"));
    }
    if body.include.iter().flatten().any(|member| member == "message.output_text.logprobs") {
        return Err(requests::unsupported("include"));
    }
    Ok(())
}

fn read_mode(body: &CreateResponseJson) -> Result<Mode> {
    match (body.background == Some(true), body.stream == Some(true)) {
        (true, _) if body.store == Some(false) => {
            Err(ApiError::invalid("store", "Invalid 'store': a background response is always stored."))
        }
        (true, false) => Ok(Mode::Background),
        (true, true) => Ok(Mode::BackgroundStreamed),
        (false, true) => Ok(Mode::Streamed),
        (false, false) => Ok(Mode::Whole),
    }
}
