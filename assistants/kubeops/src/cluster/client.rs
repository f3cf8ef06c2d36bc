//! Requests to the API server.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;

use super::kubeconfig::Connection;

/// The maximum size of a response, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The maximum size of a log, in bytes.
const MAX_LOG_BYTES: usize = 256 << 10;
/// The maximum number of objects in a list.
pub(crate) const MAX_ITEMS: usize = 500;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// The API server could not be reached, or did not respond in time.
    #[error("unable to connect to the cluster: {0}")]
    Unreachable(String),
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// RBAC does not allow the request.
    #[error("{0}")]
    Forbidden(String),
    /// The object was changed by someone else.
    #[error("{0}")]
    Conflict(String),
    /// Any other error of the API server.
    #[error("{0}")]
    Other(String),
}

pub(crate) type Result<T> = std::result::Result<T, ApiError>;

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    Strategic,
    Merge,
    Json,
    Apply,
}

impl Patch {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// A client of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct KubeClient {
    client: Client,
    connection: Connection,
}

impl KubeClient {
    pub(crate) fn new(connection: Connection) -> std::result::Result<Self, String> {
        let mut builder = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).no_proxy();
        if let Some(tls) = connection.tls.clone() {
            builder = builder.tls_backend_preconfigured(tls);
        } else {
            super::install_provider();
        }
        let client = builder.build().map_err(|error| format!("cannot set up a connection: {error}"))?;
        Ok(Self { client, connection })
    }

    /// Returns the namespace for commands that name none.
    pub(crate) fn namespace(&self) -> &str {
        &self.connection.namespace
    }

    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.json(Method::GET, path, query, None).await
    }

    /// Returns the text of a log, cut at [`MAX_LOG_BYTES`].
    pub(crate) async fn log(&self, path: &str, query: &[(&str, &str)]) -> Result<String> {
        let limit = MAX_LOG_BYTES.to_string();
        let query: Vec<(&str, &str)> = query.iter().copied().chain([("limitBytes", &*limit)]).collect();
        let bytes = self.send(Method::GET, path, &query, None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) async fn patch(&self, path: &str, patch: Patch, body: &Value, is_dry_run: bool) -> Result<Value> {
        let mut query = vec![("fieldManager", "threadkeep")];
        query.extend(dry_run(is_dry_run));
        self.json(Method::PATCH, path, &query, Some((patch.content_type(), body))).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value, is_dry_run: bool) -> Result<Value> {
        self.json(Method::PUT, path, &dry_run(is_dry_run), Some(("application/json", body))).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value, is_dry_run: bool) -> Result<Value> {
        self.json(Method::POST, path, &dry_run(is_dry_run), Some(("application/json", body))).await
    }

    pub(crate) async fn delete(&self, path: &str, body: &Value, is_dry_run: bool) -> Result<Value> {
        self.json(Method::DELETE, path, &dry_run(is_dry_run), Some(("application/json", body))).await
    }

    async fn json(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<(&str, &Value)>,
    ) -> Result<Value> {
        let bytes = self.send(method, path, query, body).await?;
        serde_json::from_slice(&bytes).map_err(|_| ApiError::Other("the API server's response is not JSON".to_owned()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<(&str, &Value)>,
    ) -> Result<Vec<u8>> {
        let mut request = self.request(method, path, query);
        if let Some((content_type, body)) = body {
            let content_type =
                HeaderValue::from_str(content_type).map_err(|error| ApiError::Other(error.to_string()))?;
            request = request.header(CONTENT_TYPE, content_type).body(body.to_string());
        }
        let response = request.send().await.map_err(unreachable_error)?;
        let (status, bytes) = read_body(response).await?;
        if (200..300).contains(&status) { Ok(bytes) } else { Err(error_of(status, &bytes)) }
    }

    /// Creates a request with the credentials.
    pub(super) fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = format!("{}{path}", self.connection.server);
        for (index, (name, value)) in query.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            url.push(separator);
            url.push_str(name);
            url.push('=');
            url.push_str(&escape(value));
        }
        let mut request = self.client.request(method, url);
        if let Some(token) = self.connection.token.as_ref().and_then(super::kubeconfig::Token::get) {
            request = request.bearer_auth(token);
        }
        request
    }
}

/// Reads the status and the body of a response.
async fn read_body(mut response: Response) -> Result<(u16, Vec<u8>)> {
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable_error)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            return Err(ApiError::Other(format!(
                "the answer exceeds {MAX_BYTES} bytes; name an object or a namespace"
            )));
        }
    }
    Ok((status, bytes))
}

/// Reads the error in a response.
pub(super) async fn read_error(response: Response) -> ApiError {
    match read_body(response).await {
        Ok((status, bytes)) => error_of(status, &bytes),
        Err(error) => error,
    }
}

fn dry_run(is_dry_run: bool) -> Vec<(&'static str, &'static str)> {
    if is_dry_run { vec![("dryRun", "All")] } else { Vec::new() }
}

/// Escapes the value of a query parameter.
fn escape(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped =
        value.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    escaped.collect()
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(super) fn unreachable_error(error: reqwest::Error) -> ApiError {
    ApiError::Unreachable(match &error {
        error if error.is_timeout() => format!("timeout: no answer within {} seconds", TIMEOUT.as_secs()),
        error if error.is_connect() => "the API server refuses connections or its address is wrong".to_owned(),
        _ => "the connection was lost".to_owned(),
    })
}

/// Returns the error for a failed response, with the API server's message if there is one.
fn error_of(status: u16, bytes: &[u8]) -> ApiError {
    let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let message = answer["message"].as_str().filter(|message| !message.is_empty());
    let message = message.map_or_else(|| format!("the API server responded with status {status}"), str::to_owned);
    match status {
        401 => ApiError::Forbidden("the cluster rejected the credentials in the kubeconfig".to_owned()),
        403 => ApiError::Forbidden(message),
        404 => ApiError::NotFound(message),
        409 => ApiError::Conflict(message),
        503 => ApiError::Unreachable(message),
        _ => ApiError::Other(message),
    }
}
