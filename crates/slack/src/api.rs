//! The client of Slack's Web API.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Upgraded};
use serde_json::Value;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::{SlackError, SlackOptions};

/// The timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum number of attempts of a call that fails because of the network or a rate limit.
const ATTEMPTS: u32 = 8;
/// The maximum wait before a retry, even if Slack asks for a longer one.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// The maximum size of a response, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of channels whose next post time is stored.
const MAX_CHANNELS: usize = 10_000;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// Slack rejected the call.
    #[error("Slack refused {method}: {error}")]
    Refused {
        /// The method.
        method: &'static str,
        /// Slack's error code, such as `channel_not_found`.
        error: String,
    },
    /// Slack could not be reached.
    #[error("cannot reach Slack for {0}")]
    Unreachable(&'static str),
    /// Slack did not accept a WebSocket.
    #[error("Slack did not accept a WebSocket at the URL that it had returned")]
    NoSocket,
}

impl CallError {
    /// Whether Slack would reject every retry of the call: the bot cannot post there, or the message no longer exists.
    pub(crate) fn is_final(&self) -> bool {
        let Self::Refused { error, .. } = self else { return false };
        matches!(
            &**error,
            "channel_not_found"
                | "not_in_channel"
                | "is_archived"
                | "thread_not_found"
                | "message_not_found"
                | "cant_update_message"
        )
    }
}

/// A workspace's bot.
#[derive(Clone, Debug)]
pub(crate) struct Bot {
    pub(crate) team: String,
    pub(crate) user: String,
    token: String,
}

/// The client of the Web API.
#[derive(Debug)]
pub(crate) struct SlackApi {
    client: Client,
    url: String,
    interval: Duration,
    growth_interval: Duration,
    /// When an unfinished answer may next be changed, by workspace.
    next_growth: Mutex<HashMap<String, Instant>>,
    /// When the next message may be posted, by channel.
    next_post: Mutex<HashMap<String, Instant>>,
}

impl SlackApi {
    pub(crate) fn new(options: &SlackOptions) -> Result<Self, SlackError> {
        let tls = threadkeep::models::client_tls().map_err(|error| SlackError::Client(error.to_string()))?;
        let builder =
            Client::builder().tls_backend_preconfigured(tls).timeout(TIMEOUT).redirect(Policy::none()).no_proxy();
        let client = builder.build().map_err(|error| SlackError::Client(error.to_string()))?;
        let url = format!("{}/", options.api_url.trim_end_matches('/'));
        Ok(Self {
            client,
            url,
            interval: options.post_interval,
            growth_interval: options.growth_interval,
            next_growth: Mutex::default(),
            next_post: Mutex::default(),
        })
    }

    /// Signs in: returns the bot that a token belongs to.
    pub(crate) async fn sign_in(&self, token: &str) -> Result<Bot, CallError> {
        let answer = self.call_with(token, "auth.test", &Value::Object(threadkeep::Map::new())).await?;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Ok(Bot { team: text("team_id"), user: text("user_id"), token: token.to_owned() })
    }

    /// Opens a WebSocket for Socket Mode.
    pub(crate) async fn open_socket(&self, app_token: &str) -> Result<WebSocketStream<Upgraded>, CallError> {
        const METHOD: &str = "apps.connections.open";
        let answer = self.call_with(app_token, METHOD, &Value::Object(threadkeep::Map::new())).await?;
        // The HTTP client opens the connection, so its certificates and time limit apply.
        let url = answer["url"].as_str().and_then(|url| url.strip_prefix("ws")).ok_or(CallError::NoSocket)?;
        let key = generate_key();
        let request = self.client.get(format!("http{url}")).header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
        let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
        let response = request.send().await.map_err(|_| CallError::Unreachable(METHOD))?;
        let accepted =
            response.headers().get(SEC_WEBSOCKET_ACCEPT).is_some_and(|it| *it == *derive_accept_key(key.as_bytes()));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !accepted {
            return Err(CallError::NoSocket);
        }
        let upgraded = response.upgrade().await.map_err(|_| CallError::NoSocket)?;
        let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
    }

    /// Calls a method. Waits as long as `Retry-After` says, and retries calls that fail because of the network.
    pub(crate) async fn call(&self, bot: &Bot, method: &'static str, arguments: &Value) -> Result<Value, CallError> {
        if method == "chat.postMessage" {
            self.wait_for_turn(arguments["channel"].as_str().unwrap_or_default()).await;
        }
        self.call_with(&bot.token, method, arguments).await
    }

    async fn call_with(&self, token: &str, method: &'static str, arguments: &Value) -> Result<Value, CallError> {
        let is_read = method.starts_with("conversations.")
            || method.starts_with("users.")
            || method == "files.getUploadURLExternal"
            || matches!(method, "auth.test" | "apps.connections.open");
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut request =
                self.client.post(format!("{}{method}", self.url)).header(AUTHORIZATION, format!("Bearer {token}"));
            // Methods that only read accept forms; the others also accept JSON.
            request = if is_read {
                request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form(arguments))
            } else {
                request.header(CONTENT_TYPE, "application/json; charset=utf-8").body(arguments.to_string())
            };
            let wait = match self.answer(request).await {
                Ok(answer) if answer["ok"] == true => return Ok(answer),
                Ok(answer) => {
                    let error = answer["error"].as_str().unwrap_or("unknown_error").to_owned();
                    return Err(CallError::Refused { method, error });
                }
                Err(wait) => wait.unwrap_or_else(|| Duration::from_millis(250) * 2_u32.pow(attempt.min(6))),
            };
            if attempt == ATTEMPTS {
                return Err(CallError::Unreachable(method));
            }
            tokio::time::sleep(wait.min(MAX_WAIT)).await;
        }
    }

    /// Sends a request once. The error is how long Slack asks to wait before a retry; `None` if it does not ask.
    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Value, Option<Duration>> {
        let mut response = request.send().await.map_err(|_| None)?;
        if response.status().as_u16() == 429 {
            let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            return Err(Some(Duration::from_secs(seconds.unwrap_or(1))));
        }
        if response.status().is_server_error() {
            return Err(None);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| None)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                return Err(None);
            }
        }
        serde_json::from_slice(&bytes).map_err(|_| None)
    }

    /// Uploads a file to the URL that Slack returned for it.
    pub(crate) async fn upload(&self, url: &str, text: &str) -> Result<(), CallError> {
        const METHOD: &str = "a file upload";
        let request = self.client.post(url).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(text.to_owned());
        let response = request.send().await.map_err(|_| CallError::Unreachable(METHOD))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(CallError::Unreachable(METHOD))
            }
            status => Err(CallError::Refused { method: METHOD, error: status.to_string() }),
        }
    }

    /// Whether an unfinished answer may be changed in a workspace. If not, returns when to try again.
    pub(crate) fn try_growth(&self, bot: &Bot) -> Result<(), Instant> {
        let mut next_growth = self.next_growth.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match next_growth.get(&bot.team) {
            Some(at) if *at > now => Err(*at),
            _ => {
                next_growth.insert(bot.team.clone(), now + self.growth_interval);
                Ok(())
            }
        }
    }

    /// Waits until a message may be posted in a channel: Slack allows about one a second.
    async fn wait_for_turn(&self, channel: &str) {
        let at = {
            let mut next_post = self.next_post.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if next_post.len() > MAX_CHANNELS {
                next_post.retain(|_, at| *at > now);
            }
            let at = next_post.get(channel).copied().unwrap_or(now).max(now);
            next_post.insert(channel.to_owned(), at + self.interval);
            at
        };
        tokio::time::sleep_until(at).await;
    }
}

fn form(arguments: &Value) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in arguments.as_object().into_iter().flatten() {
        match value {
            Value::String(text) => form.append_pair(name, text),
            other => form.append_pair(name, &other.to_string()),
        };
    }
    form.finish()
}
