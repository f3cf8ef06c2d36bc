use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use threadkeep::core::limits::{self, JSON_DEPTH};
use threadkeep::core::plain_json_error;
use threadkeep_service::hex;

use crate::app::App;
use crate::error::ApiError;

/// A JSON body, which must be an object. An empty body is read as an empty object.
#[derive(Debug)]
pub struct JsonBody<T> {
    /// The deserialised body.
    pub value: T,
    /// The SHA-256 of the bytes in hexadecimal. Identifies repetitions of the request.
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
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid_json("not UTF-8"))?;
        let text = if text.trim().is_empty() { "{}" } else { text };
        // Stores also reject deeper nesting. It is checked here to protect the parsers.
        limits::check_json_depth(text).map_err(|_| invalid_json(&format!("nested deeper than {JSON_DEPTH} levels")))?;
        if !text.trim_start().starts_with('{') {
            // Serde would read an array as a struct whose fields are in this order.
            return Err(ApiError::invalid("body", "the body must be a JSON object"));
        }
        Ok(Self { value: parse(text)?, digest })
    }
}

/// The bytes of a body that was received within the limits on size and time.
#[derive(Clone, Debug)]
pub struct RawBody(pub Bytes);

impl FromRequest<App> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        Ok(Self(read_body(request.into_body(), app.options().body_bytes, app).await?))
    }
}

/// A form, sent as `application/x-www-form-urlencoded`.
#[derive(Clone, Debug)]
pub struct FormBody {
    /// Names and values of the fields, in the order of the body.
    pub fields: Vec<(String, String)>,
    /// The SHA-256 of the bytes in hexadecimal. Identifies repetitions of the request.
    pub digest: String,
}

impl FormBody {
    /// Returns the value of the first field with this name.
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

/// Reads a body.
///
/// # Errors
/// `slow_body` after the server's read timeout, `body_too_large` for more than `max_bytes`, `broken_body` if the connection ends.
pub(crate) async fn read_body(body: Body, max_bytes: usize, app: &App) -> Result<Bytes, ApiError> {
    let reading = Limited::new(body, max_bytes).collect();
    let Ok(read) = tokio::time::timeout(app.options().read_timeout, reading).await else {
        let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", "timed out receiving the body");
        return Err(error);
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body exceeds {max_bytes} bytes");
            Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message))
        }
        Err(_) => Err(ApiError::new(StatusCode::BAD_REQUEST, "broken_body", "the body is incomplete")),
    }
}

/// Whether the content type is JSON. A missing header is accepted, because clients omit it if there is no body.
fn is_json(request: &Request) -> bool {
    let Some(content_type) = content_type(request) else { return true };
    content_type.eq_ignore_ascii_case("application/json") || content_type.to_ascii_lowercase().ends_with("+json")
}

/// Returns the content type of a body, without parameters such as the character set.
fn content_type(request: &Request) -> Option<&str> {
    let value = request.headers().get(header::CONTENT_TYPE)?;
    Some(value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim())
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|_| locate_error::<T>(text))
}

/// Parses an invalid body again to locate the error. Tracking the path would slow down the parsing of valid bodies by half.
fn locate_error<T: DeserializeOwned>(text: &str) -> ApiError {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => invalid_json(&deserializer.end().err().map_or_else(String::new, |error| syntax_error(&error))),
        Err(error) if error.inner().is_data() => {
            let cause = error.inner().to_string();
            let field = invalid_field(error.path(), &cause);
            ApiError::invalid(field, format!("invalid body: {}", plain_json_error(&cause)))
        }
        Err(error) => invalid_json(&syntax_error(error.inner())),
    }
}

/// Describes a syntax error with its position in the text.
fn syntax_error(error: &serde_json::Error) -> String {
    let reason = plain_json_error(&error.to_string());
    format!("{reason} (line {}, column {})", error.line(), error.column())
}

/// Returns the path of the invalid field. For a missing field, `path` is that of its parent, so its name is appended.
fn invalid_field(path: &serde_path_to_error::Path, cause: &str) -> String {
    let parent = path.to_string();
    let missing = cause.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match (parent.as_str(), missing) {
        (".", None) => "body".to_owned(),
        (".", Some(missing)) => missing.to_owned(),
        (_, Some(missing)) => format!("{parent}.{missing}"),
        (_, None) => parent,
    }
}

fn invalid_json(reason: &str) -> ApiError {
    let message = format!("invalid JSON body: {reason}");
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", message)
}
