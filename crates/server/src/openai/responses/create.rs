use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::{Map, Value};
use utoipa::ToSchema;

use super::answer::{Answering, Mode};
use super::stream;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::repeats::Attempt;
use crate::security::Caller;

/// What is asked. Members that this server has no use for are taken and told back.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateResponseJson {
    #[serde(default)]
    pub(super) model: Option<String>,
    /// A text or a list of items.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) instructions: Option<String>,
    /// The id of a conversation, or an object that holds it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) conversation: Option<Value>,
    #[serde(default)]
    pub(super) previous_response_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(super) tools: Option<Vec<Value>>,
    /// The same, as they were given.
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
    #[serde(default)]
    pub(super) max_output_tokens: Option<u64>,
    #[serde(default)]
    pub(super) temperature: Option<f64>,
    #[serde(default)]
    pub(super) top_p: Option<f64>,
    #[serde(default)]
    pub(super) truncation: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) text: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub(super) reasoning: Option<Value>,
}

/// Asks the model
///
/// In a conversation, what was said and answered is stored together once the model has answered. A repeated request gets
/// the answer of the first by its Idempotency-Key, or where the client says that it repeats itself and the conversation ends with that answer.
#[utoipa::path(
    post,
    path = "/v1/responses",
    tag = "openai",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = CreateResponseJson,
    responses((status = 200, description = "The response, or a stream of events.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody { value: mut body, digest }: JsonBody<CreateResponseJson>,
) -> Result<Response> {
    let attempt = Attempt::read(&headers, "responses", &digest)?;
    if body.background == Some(true) {
        return Err(ApiError::invalid("background", "this server answers while the client waits"));
    }
    body.raw_tools = body.tools.clone().unwrap_or_default();
    let mode = if body.stream == Some(true) { Mode::Streamed } else { Mode::Whole };
    let answering = Answering::prepare(app, caller.scope, body, attempt).await?;
    match mode {
        Mode::Streamed => Ok(stream::respond(answering)),
        Mode::Whole => answering.respond().await,
    }
}
