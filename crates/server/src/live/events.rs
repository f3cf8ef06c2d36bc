use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use threadkeep::{Start, SubscribeOptions};
use tokio::sync::mpsc;

use super::encoding::EncodedUpdate;
use super::json::UpdateJson;
use super::notices::Notices;
use super::subscription::Subscription;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::security::Caller;
use crate::security::authenticate::TOKEN_PARAM;

/// The maximum number of events that are buffered for a client.
const BUFFERED_EVENTS: usize = 16;

/// Streams the changes of a thread as server-sent events
///
/// The id of an event consists of the number of its change and a tag (`17-a1b2c3d4`). The tag distinguishes the change
/// from a change with the same number in another history of the thread, such as the history before a backup was
/// restored. With `Last-Event-ID` or `after`, the stream starts with all later changes, erasures included. Otherwise it
/// starts with the next change, or, with `last`, with that many of the latest messages. The stream ends with an `end`
/// event, which contains a reason, or with a `deleted` event.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/events",
    operation_id = "stream_thread_events",
    tag = "live",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query, description = "The id of an event, or the number of a change"),
        ("last" = Option<u32>, Query, description = "Start with this many of the latest messages"),
        ("role" = Option<Vec<String>>, Query, description = "Only messages of these roles"),
        ("assistant" = Option<String>, Query, description = "Also send the notices of this assistant"),
        ("topic" = Option<Vec<String>>, Query, description = "Only these topics of the assistant"),
        ("token" = Option<String>, Query, description = "A token from `POST /v1/tokens`, instead of a header"),
        ("Last-Event-ID" = Option<String>, Header)
    ),
    responses(
        (status = 200, description = "Events `history`, `commit`, `reset`, `deleted`, `notice` and `end`.", content_type = "text/event-stream", body = UpdateJson),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    mut params: QueryParams,
) -> Result<Response> {
    // The token was checked when the caller was authenticated.
    params.take_all(TOKEN_PARAM);
    let start = read_start(&headers, &mut params)?;
    let roles = params.take_roles()?;
    let (assistant, topics) = (params.take("assistant")?, params.take_all("topic"));
    params.finish()?;
    let options = SubscribeOptions { start, roles };
    let thread = path_params.thread(&app, &caller.scope).await?;
    let notices = Notices::subscribe(&app, assistant.as_deref(), topics)?;
    let updates = app.memory().subscribe(&caller.scope, thread, options).await?;
    let (outgoing, receiver) = mpsc::channel(BUFFERED_EVENTS);
    let write = |update: &EncodedUpdate, _| update.event();
    let heartbeat = Some(Bytes::from_static(b": heartbeat\n\n"));
    let subscription = Subscription { app, caller: Arc::new(caller), thread, outgoing, write, heartbeat, notices };
    tokio::spawn(subscription.run(updates));
    let events = stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(event), receiver))
    });
    // This comment is sent immediately, so that the client knows that its subscription is active.
    let opening = stream::iter([Ok(Bytes::from_static(b": listening\n\n"))]);
    let mut response = Body::from_stream(futures::StreamExt::chain(opening, events)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Makes buffering proxies, such as nginx, forward each event immediately.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Reads the position at which the stream starts.
fn read_start(headers: &HeaderMap, params: &mut QueryParams) -> Result<Start> {
    let (after, last) = (
        params.parse("after", "the id of an event or the number of a change")?,
        params.parse("last", "a number of messages")?,
    );
    let last_event = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
    let last_event = match last_event {
        // A client sends an empty id if it has not received an event with an id.
        None => None,
        Some(_) if headers.get("last-event-id").is_some_and(|id| id.is_empty()) => None,
        Some(None) => {
            return Err(ApiError::invalid("Last-Event-ID", "`Last-Event-ID` is not an event id of this stream"));
        }
        Some(last_event) => last_event,
    };
    // On reconnection, the last received event is more recent than the position in the URL.
    match (last_event.or(after), last) {
        (Some(_), Some(_)) if last_event.is_none() => {
            Err(ApiError::invalid("last", "`after` and `last` are mutually exclusive"))
        }
        (Some(change), _) => Ok(Start::After(change)),
        (None, Some(last)) => Ok(Start::Last(last)),
        (None, None) => Ok(Start::Now),
    }
}
