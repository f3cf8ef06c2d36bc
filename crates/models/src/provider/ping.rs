//! Whether a provider is there.

use serde_json::Value;

use super::ProviderConfig;
use super::http::Http;
use super::trouble::Trouble;

/// What came of asking a provider for its models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ping {
    /// It is there, takes the key and has the model.
    Ready,
    /// It is there and takes the key, but does not list the model.
    UnknownModel {
        /// Some that it lists, at most ten.
        known: Vec<String>,
    },
    /// It is there and takes the key; whether it has the model it does not tell.
    Answers,
    /// It does not take the key, or misses one.
    Unauthorized(String),
    /// It cannot be reached, or fails.
    Unreachable(String),
}

/// Models that are named where the one that was looked for is not there.
const NAMED: usize = 10;

pub(super) async fn ping(http: &Http, config: &ProviderConfig) -> Ping {
    let answer = async { http.read(http.send(http.get("models")).await?).await };
    let limit = config.http.total_timeout.min(config.http.connect_timeout * 2);
    match tokio::time::timeout(limit, answer).await.unwrap_or(Err(Trouble::TimedOut(limit))) {
        Ok(body) => listed(&body, &config.model),
        Err(Trouble::Status { status, body, .. }) => {
            let detail = super::trouble::detail(status, &body, config.key.as_ref());
            match status {
                401 | 403 => Ping::Unauthorized(detail),
                // It is a server that speaks HTTP and has no list of models.
                404 | 405 => Ping::Answers,
                _ => Ping::Unreachable(detail),
            }
        }
        Err(trouble) => Ping::Unreachable(trouble.into_error(&config.model, config.key.as_ref()).to_string()),
    }
}

fn listed(body: &str, model: &str) -> Ping {
    let body: Option<Value> = serde_json::from_str(body).ok();
    let Some(models) = body.as_ref().and_then(|body| body.get("data")?.as_array()) else { return Ping::Answers };
    let ids: Vec<&str> = models.iter().filter_map(|model| model.get("id")?.as_str()).collect();
    // Ollama lists `llama3.2:latest` for `llama3.2`.
    let is_it = |id: &&str| **id == *model || id.strip_suffix(":latest") == Some(model);
    if ids.iter().any(is_it) {
        return Ping::Ready;
    }
    Ping::UnknownModel { known: ids.into_iter().take(NAMED).map(str::to_owned).collect() }
}
