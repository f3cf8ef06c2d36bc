//! Runs a program in a container, over a WebSocket on which each message begins with its channel number.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::client::{ApiError, KubeClient, Result};

/// The protocol. The last message on its error channel is a status.
const PROTOCOL: &str = "v4.channel.k8s.io";
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// The maximum size of the output that is kept, in bytes.
const MAX_OUTPUT: usize = 64 << 10;
/// The maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// How long a program may run.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executed {
    /// The output, cut at [`MAX_OUTPUT`].
    pub(crate) output: String,
    pub(crate) exit_code: i64,
}

impl KubeClient {
    /// Runs a program, and waits until it ends.
    pub(crate) async fn exec(&self, path: &str, query: &[(&str, &str)]) -> Result<Executed> {
        let key = generate_key();
        let request = self.request(Method::GET, path, query);
        let request = request.header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
        let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
        let response =
            request.header(SEC_WEBSOCKET_PROTOCOL, PROTOCOL).send().await.map_err(super::client::unreachable_error)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(super::client::read_error(response).await);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let is_accepted = header(SEC_WEBSOCKET_ACCEPT) == Some(derive_accept_key(key.as_bytes()));
        if !is_accepted || header(SEC_WEBSOCKET_PROTOCOL).as_deref() != Some(PROTOCOL) {
            return Err(ApiError::Other("the API server does not support exec over WebSockets".to_owned()));
        }
        let upgraded = response.upgrade().await.map_err(super::client::unreachable_error)?;
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        match timeout(TIMEOUT, read(socket)).await {
            Ok(executed) => executed,
            Err(_) => Err(ApiError::Other(format!(
                "the program did not end within {} seconds; it may still be running",
                TIMEOUT.as_secs()
            ))),
        }
    }
}

async fn read(mut socket: WebSocketStream<reqwest::Upgraded>) -> Result<Executed> {
    let (mut output, mut status) = (Vec::new(), None);
    while let Some(message) = socket.next().await {
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Close(_)) | Err(_) => break,
            Ok(_) => continue,
        };
        match bytes.split_first() {
            Some((&(STDOUT | STDERR), text)) => {
                let rest = MAX_OUTPUT.saturating_sub(output.len());
                output.extend_from_slice(&text[..text.len().min(rest)]);
            }
            Some((&STATUS, text)) => status = serde_json::from_slice::<Value>(text).ok(),
            _ => {}
        }
    }
    let status = status
        .ok_or_else(|| ApiError::Other("the connection was lost; it is unknown how the program ended".to_owned()))?;
    let exit_code = exit_code(&status)?;
    Ok(Executed { output: String::from_utf8_lossy(&output).into_owned(), exit_code })
}

/// Reads the exit code from a status. A program that could not be started has none.
fn exit_code(status: &Value) -> Result<i64> {
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let code =
        causes.filter(|cause| cause["reason"] == "ExitCode").find_map(|cause| cause["message"].as_str()?.parse().ok());
    code.ok_or_else(|| {
        let message = status["message"].as_str().unwrap_or("the program could not be started");
        ApiError::Other(super::text::cut(message, 300))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exit_code_is_read_from_the_status() {
        assert_eq!(exit_code(&json!({ "status": "Success" })), Ok(0));
        let ended = json!({ "status": "Failure", "reason": "NonZeroExitCode", "details": { "causes": [{ "reason": "ExitCode", "message": "2" }] } });
        assert_eq!(exit_code(&ended), Ok(2));
        let failed = json!({ "status": "Failure", "message": "exec: \"nope\": executable file not found in $PATH" });
        assert!(exit_code(&failed).unwrap_err().to_string().contains("executable file not found"));
    }
}
