//! The client half of the protocol: connections to external servers.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, JsonObject, PaginatedRequestParams, ProtocolVersion, ResourceContents, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RoleClient, RunningServiceCancellationToken,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

/// The maximum size of one message of a server, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of pages of a list of tools.
const MAX_PAGES: usize = 50;

/// A connection to a server. Dropping it closes the connection.
pub(crate) struct Session {
    peer: Peer<RoleClient>,
    cancel: Option<RunningServiceCancellationToken>,
    /// `None` once the connection was found closed.
    closed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Makes calls over a connection.
#[derive(Clone)]
pub(crate) struct Caller(Peer<RoleClient>);

/// A tool as the server lists it.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: JsonObject,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallOutput {
    /// The text, with a line for each part that is not text.
    pub(crate) text: String,
    pub(crate) structured: Option<Value>,
    pub(crate) is_error: bool,
}

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The server refused the call.
    Refused(String),
    /// The connection was lost. The call may have taken effect.
    Lost(String),
}

#[derive(Clone)]
struct Handler {
    /// Notified when the server's list of tools changes.
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // The client offers nothing to servers: no files, no model, no questions to the user.
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("threadkeep", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// The versions that a connection starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The `initialize` request, which all servers before protocol version 2026-07-28 require.
    Initialize,
    /// The `server/discover` request of later versions.
    Discover,
}

/// Connects over two streams.
///
/// # Errors
/// The reason, for the operator.
pub(crate) async fn connect_streams(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    handshake: Handshake,
    changed: Arc<Notify>,
) -> Result<Session, String> {
    connect((read, write), handshake, changed).await
}

/// Connects to an address.
///
/// # Errors
/// The reason, for the operator.
pub(crate) async fn connect_http(
    client: reqwest::Client,
    url: &str,
    headers: HashMap<HeaderName, HeaderValue>,
    handshake: Handshake,
    changed: Arc<Notify>,
) -> Result<Session, String> {
    let config =
        StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers).max_sse_event_size(MESSAGE_BYTES);
    connect(StreamableHttpClientTransport::with_client(client, config), handshake, changed).await
}

async fn connect<T, E, A>(transport: T, handshake: Handshake, changed: Arc<Notify>) -> Result<Session, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let lifecycle = match handshake {
        Handshake::Initialize => ClientLifecycleMode::Initialize,
        Handshake::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
    };
    let handler = Handler { changed: Arc::clone(&changed) };
    let running = serve_client_with_lifecycle(handler, transport, lifecycle).await.map_err(|error| reason(&error))?;
    let (peer, cancel) = (running.peer().clone(), running.cancellation_token());
    if handshake == Handshake::Discover {
        tokio::spawn(listen(peer.clone(), changed));
    }
    let closed = Box::pin(async move { drop(running.waiting().await) });
    Ok(Session { peer, cancel: Some(cancel), closed: Some(closed) })
}

/// Follows changes of the list of tools, which servers of later versions only send on request. Ends with the connection.
async fn listen(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    let Ok(mut subscription) = peer.listen(filter).await else { return };
    while let Ok(Some(notification)) = subscription.next().await {
        if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
            changed.notify_one();
        }
    }
}

fn reason(error: &ClientInitializeError) -> String {
    let is_broken_pipe = |error: &(dyn std::error::Error + Send + Sync + 'static)| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match error {
        ClientInitializeError::TransportError { error, .. } if is_broken_pipe(&*error.error) => {
            "the server closed the connection during the handshake".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "the server closed the connection during the handshake".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => with_sources(&*error.error),
        ClientInitializeError::JsonRpcError(error) => format!("the server refused the connection: {}", error.message),
        other => format!("the server does not follow the protocol: {}", first_line(&other.to_string())),
    }
}

/// Returns an error with its causes, without repetitions.
fn with_sources(error: &(dyn std::error::Error + 'static)) -> String {
    // The error of an HTTP request is not a source of the error that contains it. Its own text is the address, which may be secret.
    if let Some(StreamableHttpError::Client(request)) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        let cause = std::error::Error::source(request);
        return cause.map_or_else(|| "the request failed".to_owned(), with_sources);
    }
    let mut text = first_line(&error.to_string());
    let mut source = error.source();
    while let Some(error) = source {
        let cause = first_line(&error.to_string());
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

impl Session {
    pub(crate) fn caller(&self) -> Caller {
        Caller(self.peer.clone())
    }

    /// Waits until the connection is closed.
    pub(crate) async fn closed(&mut self) {
        if let Some(closed) = &mut self.closed {
            closed.await;
            self.closed = None;
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
            self.closed().await;
        }
    }
}

impl Caller {
    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_transport_closed()
    }

    /// Lists the tools, at most `max`, and whether there are more.
    ///
    /// # Errors
    /// The reason, for the operator.
    pub(crate) async fn list_tools(&self, max: usize) -> Result<(Vec<ListedTool>, bool), String> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let mut request = PaginatedRequestParams::default();
            request.cursor = cursor;
            let page = self.0.list_tools(Some(request)).await.map_err(|error| service_reason(&error))?;
            for tool in page.tools {
                if tools.len() == max {
                    return Ok((tools, true));
                }
                let description = tool.description.unwrap_or_default().into_owned();
                let schema = Arc::unwrap_or_clone(tool.input_schema);
                tools.push(ListedTool { name: tool.name.into_owned(), description, schema });
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok((tools, false));
            }
        }
        Ok((tools, true))
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, name: String, arguments: JsonObject) -> Result<CallOutput, CallError> {
        let mut request = CallToolRequestParams::new(name);
        request.arguments = Some(arguments);
        match self.0.call_tool_once(request).await {
            Ok(CallToolResponse::Complete(result)) => Ok(output(result)),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(CallError::Refused("the server asks for further input, which is not supported".to_owned()))
            }
            Ok(_) => Err(CallError::Refused("the server started a task, which is not supported".to_owned())),
            Err(ServiceError::McpError(error)) => Err(CallError::Refused(error.message.into_owned())),
            Err(error @ (ServiceError::TransportSend(_) | ServiceError::TransportClosed)) => {
                Err(CallError::Lost(service_reason(&error)))
            }
            Err(error) => Err(CallError::Refused(service_reason(&error))),
        }
    }
}

fn service_reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.clone().into_owned(),
        ServiceError::TransportClosed => "the connection was closed".to_owned(),
        ServiceError::TransportSend(error) => with_sources(&*error.error),
        other => first_line(&other.to_string()),
    }
}

/// Converts a result. Parts that are not text are named, so that the model knows of them.
fn output(result: CallToolResult) -> CallOutput {
    let parts: Vec<String> = result.content.iter().map(part_text).collect();
    let text = match (&result.structured_content, parts.is_empty()) {
        (Some(structured), true) => structured.to_string(),
        _ => parts.join("\n"),
    };
    CallOutput { text, structured: result.structured_content, is_error: result.is_error.unwrap_or_default() }
}

fn part_text(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => not_shown("image", None, Some(&image.mime_type), image.data.len()),
        ContentBlock::Audio(audio) => not_shown("audio", None, Some(&audio.mime_type), audio.data.len()),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let mime_type = mime_type.as_ref().map_or_else(String::new, |mime_type| format!(", {mime_type}"));
                format!("[resource {uri}{mime_type}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                not_shown("resource", Some(uri), mime_type.as_deref(), blob.len())
            }
            _ => "[a resource of an unknown type, not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link to the resource {}: {}]", link.name, link.uri),
        _ => "[a part of an unknown type, not shown]".to_owned(),
    }
}

/// Names a part with binary data, given the length of the data in Base64.
fn not_shown(kind: &str, uri: Option<&str>, mime_type: Option<&str>, base64_length: usize) -> String {
    let uri = uri.map_or_else(String::new, |uri| format!(" {uri}"));
    let mime_type = mime_type.map_or_else(String::new, |mime_type| format!("{mime_type}, "));
    format!("[{kind}{uri}: {mime_type}{} bytes, not shown]", base64_length / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_not_text_are_named() {
        let result: CallToolResult = serde_json::from_value(serde_json::json!({
            "content": [
                { "type": "text", "text": "two" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                { "type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav" },
                { "type": "resource", "resource": { "uri": "file:///a.txt", "mimeType": "text/plain", "text": "one" } },
                { "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "AAAA" } },
                { "type": "resource_link", "uri": "file:///b.txt", "name": "b" },
            ],
        }))
        .unwrap();
        let expected = "two\n[image: image/png, 3 bytes, not shown]\n[audio: audio/wav, 6 bytes, not shown]\n[resource \
                        file:///a.txt, text/plain]\none\n[resource file:///a.bin: 3 bytes, not shown]\n[link to the resource b: \
                        file:///b.txt]";
        assert_eq!(output(result).text, expected);
        let result = serde_json::from_value(serde_json::json!({ "content": [], "structuredContent": { "n": 1 } }));
        assert_eq!(output(result.unwrap()).text, r#"{"n":1}"#);
    }
}
