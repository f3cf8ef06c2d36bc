use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json as value};
use threadkeep::core::EmbedderError;
use utoipa::ToSchema;

use super::turn::no_model;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;

/// Texts of one request at most.
const TEXTS: usize = 2_048;

/// What to embed.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct EmbeddingsJson {
    /// One text or several.
    #[schema(value_type = Value)]
    input: Value,
    #[serde(default)]
    encoding_format: Option<String>,
    /// What the embedder gives: it is not asked for another number.
    #[serde(default)]
    dimensions: Option<usize>,
}

/// Turns texts into points
#[utoipa::path(
    post,
    path = "/v1/embeddings",
    tag = "openai",
    request_body = EmbeddingsJson,
    responses((status = 200, description = "One point per text.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn embeddings(
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<EmbeddingsJson>,
) -> Result {
    let text = |given: Value| if let Value::String(text) = given { Some(text) } else { None };
    let texts = match body.input {
        Value::Array(texts) => texts.into_iter().map(text).collect::<Option<Vec<_>>>(),
        one => text(one).map(|text| vec![text]),
    };
    let texts = texts.ok_or_else(|| {
        let message =
            "Invalid 'input': texts are taken, no tokens. LangChain sends texts with check_embedding_ctx_length=False.";
        ApiError::invalid("input", message)
    })?;
    if texts.is_empty() || texts.len() > TEXTS || texts.iter().any(String::is_empty) {
        return Err(ApiError::invalid("input", format!("Invalid 'input': 1 to {TEXTS} texts, none of them empty.")));
    }
    let is_base64 = match body.encoding_format.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(ApiError::invalid("encoding_format", "Invalid 'encoding_format': float or base64.")),
    };
    let embedder = app.embedder().ok_or_else(no_model)?;
    let points = embedder.embed(&texts).await?;
    if let Some((asked, given)) = body.dimensions.zip(points.first().map(|point| point.vector.len()))
        && asked != given
    {
        let message = format!("Invalid 'dimensions': this server's embedder gives {given}, no other number.");
        return Err(ApiError::invalid("dimensions", message));
    }
    let shown = |vector: &[f32]| {
        if !is_base64 {
            return value!(vector);
        }
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        Value::String(BASE64_STANDARD.encode(bytes))
    };
    let data: Vec<Value> = points
        .iter()
        .enumerate()
        .map(|(index, point)| value!({ "object": "embedding", "index": index, "embedding": shown(&point.vector) }))
        .collect();
    let tokens: usize = texts.iter().map(|text| text.len().div_ceil(4)).sum();
    let usage = value!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(json(&value!({ "object": "list", "data": data, "model": embedder.model(), "usage": usage })))
}

impl From<EmbedderError> for ApiError {
    fn from(error: EmbedderError) -> Self {
        let (status, code) = match &error {
            EmbedderError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "embedder_unavailable"),
            EmbedderError::Refused(_) => (StatusCode::BAD_REQUEST, "embedder_refused"),
            _ => (StatusCode::BAD_GATEWAY, "embedder_failed"),
        };
        let internal = Some("the embedder's own words are with the answer".to_owned());
        Self { internal, ..Self::new(status, code, error.to_string()) }
    }
}
