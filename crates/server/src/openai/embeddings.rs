use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json as value};
use threadkeep::core::{EmbedderError, Embedding, ModelError};
use utoipa::ToSchema;

use super::models;
use super::turn::no_model_error;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, optional_whole_number};
use crate::output::json;

/// The maximum number of texts in one request.
const MAX_TEXTS: usize = 2_048;

/// The texts to embed.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct EmbeddingsJson {
    /// A string or an array of strings.
    #[schema(value_type = Value)]
    input: Value,
    /// The model. Unless the setting `strict_models` is on, any name selects the server's embedder.
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    encoding_format: Option<String>,
    /// Must be the number of dimensions of the embedding model.
    #[serde(default, deserialize_with = "optional_whole_number")]
    dimensions: Option<usize>,
}

/// Creates embeddings
#[utoipa::path(
    post,
    path = "/v1/embeddings",
    operation_id = "create_embeddings",
    tag = "openai",
    request_body = EmbeddingsJson,
    responses((status = 200, description = "One embedding per text.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn embeddings(
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<EmbeddingsJson>,
) -> Result {
    let text = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
    let texts = match body.input {
        Value::Array(texts) => texts.into_iter().map(text).collect::<Option<Vec<_>>>(),
        single => text(single).map(|text| vec![text]),
    };
    let texts = texts.ok_or_else(|| {
        let message =
            "Invalid 'input': expected a string or an array of strings, not tokens. For LangChain, set check_embedding_ctx_length=False.";
        ApiError::invalid("input", message)
    })?;
    if texts.is_empty() || texts.len() > MAX_TEXTS || texts.iter().any(String::is_empty) {
        return Err(ApiError::invalid(
            "input",
            format!("Invalid 'input': expected 1 to {MAX_TEXTS} non-empty strings."),
        ));
    }
    let is_base64 = match body.encoding_format.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => {
            return Err(ApiError::invalid(
                "encoding_format",
                "Invalid 'encoding_format': expected 'float' or 'base64'.",
            ));
        }
    };
    let embedder = app.embedder().ok_or_else(no_model_error)?;
    models::check_name(&app, body.model.as_deref(), embedder.model())?;
    let embeddings = embedder.embed(&texts).await?;
    if let Some((requested, available)) =
        body.dimensions.zip(embeddings.first().map(|embedding| embedding.vector.len()))
        && requested != available
    {
        let message = format!("Invalid 'dimensions': the embedding model of this server has {available} dimensions.");
        return Err(ApiError::invalid("dimensions", message));
    }
    let encode = |vector: &[f32]| {
        if !is_base64 {
            return value!(vector);
        }
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        Value::String(BASE64_STANDARD.encode(bytes))
    };
    let to_json = |(index, embedding): (usize, &Embedding)| value!({ "object": "embedding", "index": index, "embedding": encode(&embedding.vector) });
    let data: Vec<Value> = embeddings.iter().enumerate().map(to_json).collect();

    let tokens: usize = texts.iter().map(|text| text.len().div_ceil(4)).sum();
    let usage = value!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(json(&value!({ "object": "list", "data": data, "model": embedder.model(), "usage": usage })))
}

impl From<EmbedderError> for ApiError {
    fn from(error: EmbedderError) -> Self {
        if let EmbedderError::Unavailable(Some(source)) = &error
            && let Some(ModelError::RateLimited { model, detail, retry_after }) = source.downcast_ref()
        {
            // The provider's rate limit: the same status as for a chat model.
            let (model, detail, retry_after) = (model.clone(), detail.clone(), *retry_after);
            return ModelError::RateLimited { model, detail, retry_after }.into();
        }
        let (status, code) = match &error {
            EmbedderError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "embedder_unavailable"),
            EmbedderError::Refused(_) => (StatusCode::BAD_REQUEST, "embedder_refused"),
            _ => (StatusCode::BAD_GATEWAY, "embedder_failed"),
        };
        let internal = Some("the response contains the embedder's error message".to_owned());
        Self { internal, ..Self::new(status, code, error.to_string()) }
    }
}
