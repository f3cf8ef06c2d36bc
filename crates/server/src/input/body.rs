use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use threadkeep::core::limits::{self, JSON_DEPTH};
use threadkeep_service::hex;

use crate::app::App;
use crate::error::ApiError;

/// A JSON body. An empty one is an empty object, so that a request may leave everything out.
#[derive(Debug)]
pub struct JsonBody<T> {
    /// What it says.
    pub value: T,
    /// The SHA-256 of the bytes, in hexadecimal: what tells the same body from another.
    pub digest: String,
}

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if !is_json(&request) {
            let message = "send the body as application/json";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
        let bytes = read_body(request.into_body(), app.options().body_bytes, app).await?;
        let digest = hex(&Sha256::digest(&bytes));
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid_json("it is not UTF-8"))?;
        let text = if text.trim().is_empty() { "{}" } else { text };
        // What nests deeper than a store keeps is refused before anything reads it.
        limits::check_json_depth(text)
            .map_err(|_| invalid_json(&format!("it nests deeper than {JSON_DEPTH} levels")))?;
        if !text.trim_start().starts_with('{') {
            // A list could be read as an object whose members come in order.
            return Err(ApiError::invalid("body", "the body is a JSON object"));
        }
        Ok(Self { value: parse(text)?, digest })
    }
}

/// A body as it came, within the bounds of size and time.
#[derive(Clone, Debug)]
pub struct RawBody(pub Bytes);

impl FromRequest<App> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        Ok(Self(read_body(request.into_body(), app.options().body_bytes, app).await?))
    }
}

/// A body that is a form, as `application/x-www-form-urlencoded`.
#[derive(Clone, Debug)]
pub struct FormBody {
    /// The fields, by name, in their order.
    pub fields: Vec<(String, String)>,
    /// The SHA-256 of the bytes, in hexadecimal: what tells the same body from another.
    pub digest: String,
}

impl FormBody {
    /// The first field of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

impl FromRequest<App> for FormBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if content_type(&request).is_none_or(|kind| !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")) {
            let message = "send the body as application/x-www-form-urlencoded";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
        let RawBody(bytes) = RawBody::from_request(request, app).await?;
        Ok(Self { fields: form_urlencoded::parse(&bytes).into_owned().collect(), digest: hex(&Sha256::digest(&bytes)) })
    }
}

/// Reads a body within the bounds of size and time.
pub(crate) async fn read_body(body: Body, most: usize, app: &App) -> Result<Bytes, ApiError> {
    let reading = Limited::new(body, most).collect();
    let Ok(read) = tokio::time::timeout(app.options().read_timeout, reading).await else {
        let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", "the body did not come in time");
        return Err(error);
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body is limited to {most} bytes");
            Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message))
        }
        Err(_) => Err(ApiError::new(StatusCode::BAD_REQUEST, "broken_body", "the body could not be read to its end")),
    }
}

/// Clients leave the header out where there is no body.
fn is_json(request: &Request) -> bool {
    let Some(kind) = content_type(request) else { return true };
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}

/// The type of a body, without its parameters.
fn content_type(request: &Request) -> Option<&str> {
    let kind = request.headers().get(header::CONTENT_TYPE)?;
    Some(kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim())
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|_| refused::<T>(text))
}

/// What is wrong with a body, and where. To keep track of the place would cost each good one half as much again.
fn refused<T: DeserializeOwned>(text: &str) -> ApiError {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => invalid_json(&deserializer.end().err().map_or_else(String::new, |error| error.to_string())),
        Err(error) if error.inner().is_data() => {
            let cause = error.inner();
            ApiError::invalid(param(error.path(), &cause.to_string()), format!("invalid body: {cause}"))
        }
        Err(error) => invalid_json(&error.inner().to_string()),
    }
}

/// What of the body was wrong. A member that is missing has no place of its own: it is named in its parent's.
fn param(path: &serde_path_to_error::Path, cause: &str) -> String {
    let parent = path.to_string();
    let missing = cause.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match (parent.as_str(), missing) {
        (".", None) => "body".to_owned(),
        (".", Some(missing)) => missing.to_owned(),
        (_, Some(missing)) => format!("{parent}.{missing}"),
        (_, None) => parent,
    }
}

fn invalid_json(why: &str) -> ApiError {
    let message = format!("Invalid body: failed to parse JSON value. {why}");
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", message)
}
