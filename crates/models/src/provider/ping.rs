//! Checks whether a provider is reachable.

use serde_json::Value;

use super::ProviderConfig;
use super::failure::ProviderFailure;
use super::http::Http;

/// The result of requesting a provider's list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ping {
    /// The provider accepts the key and has the model.
    Ready,
    /// The provider accepts the key, but does not list the model.
    UnknownModel {
        /// Up to ten of the listed models.
        known: Vec<String>,
    },
    /// The provider responds, but offers no list of models.
    NoModelList,
    /// The key is missing or rejected.
    Unauthorized(String),
    /// The provider is unreachable or failed.
    Unreachable(String),
}

/// The maximum number of models in [`Ping::UnknownModel`].
const MAX_LISTED_MODELS: usize = 10;

pub(super) async fn ping(http: &Http, config: &ProviderConfig) -> Ping {
    let answer = async { http.read(http.send(http.get("models")).await?).await };
    let limit = config.http.total_timeout.min(config.http.connect_timeout * 2);
    match tokio::time::timeout(limit, answer).await.unwrap_or(Err(ProviderFailure::TimedOut(limit))) {
        Ok(body) => listed(&body, &config.model),
        Err(ProviderFailure::Status { status, body, .. }) => {
            let detail = super::failure::detail(status, &body, config.key.as_ref());
            match status {
                401 | 403 => Ping::Unauthorized(detail),
                // The server has no such endpoint.
                404 | 405 => Ping::NoModelList,
                _ => Ping::Unreachable(detail),
            }
        }
        Err(failure) => Ping::Unreachable(failure.into_error(&config.model, config.key.as_ref()).to_string()),
    }
}

fn listed(body: &str, model: &str) -> Ping {
    let body: Option<Value> = serde_json::from_str(body).ok();
    let Some(models) = body.as_ref().and_then(|body| body.get("data")?.as_array()) else { return Ping::NoModelList };
    let ids: Vec<&str> = models.iter().filter_map(|model| model.get("id")?.as_str()).collect();
    // Ollama lists `llama3.2` as `llama3.2:latest`.
    let is_model = |id: &&str| **id == *model || id.strip_suffix(":latest") == Some(model);
    if ids.iter().any(is_model) {
        return Ping::Ready;
    }
    Ping::UnknownModel { known: ids.into_iter().take(MAX_LISTED_MODELS).map(str::to_owned).collect() }
}
