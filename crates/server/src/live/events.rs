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
use super::subscription::Subscription;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::security::Caller;

/// The most events that are buffered for a client.
const BUFFERED_EVENTS: usize = 16;

/// Streams the changes of a thread as server-sent events
///
/// An event's id is the number of its change, with a tag that distinguishes it from a change with the same number in another
/// history of the thread, such as before a restored backup (`17-a1b2c3d4`). `Last-Event-ID` or `after` replays all later changes,
/// erasures included, before live events follow. Without either, the stream starts with the next change, or with the `last`
/// messages as they are. The stream ends with an event `end` with a reason, or `deleted`.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/events",
    tag = "live",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query, description = "The id of an event, or the number of a change"),
        ("last" = Option<u32>, Query, description = "Start with this many of the latest messages"),
        ("role" = Option<Vec<String>>, Query, description = "Only messages of these roles"),
        ("Last-Event-ID" = Option<String>, Header)
    ),
    responses(
        (status = 200, description = "Events `history`, `commit`, `reset`, `deleted` and `end`.", content_type = "text/event-stream", body = UpdateJson),
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
    let start = start(&headers, &mut params)?;
    let roles = params.take_roles()?;
    params.finish()?;
    let options = SubscribeOptions { start, roles };
    let thread = path_params.thread()?;
    let updates = app.memory().subscribe(&caller.scope, thread, options).await?;
    let (outgoing, receiver) = mpsc::channel(BUFFERED_EVENTS);
    let write = |update: &EncodedUpdate, _| update.event();
    let heartbeat = Some(Bytes::from_static(b": heartbeat\n\n"));
    let subscription = Subscription { app, caller: Arc::new(caller), thread, outgoing, write, heartbeat };
    tokio::spawn(subscription.run(updates));
    let events = stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(event), receiver))
    });
    // Sent immediately, so that the client knows that its subscription is active.
    let opening = stream::iter([Ok(Bytes::from_static(b": listening\n\n"))]);
    let mut response = Body::from_stream(futures::StreamExt::chain(opening, events)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Makes buffering proxies, such as nginx, forward each event immediately.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn start(headers: &HeaderMap, params: &mut QueryParams) -> Result<Start> {
    let (after, last) = (
        params.parse("after", "the id of an event or the number of a change")?,
        params.parse("last", "a number of messages")?,
    );
    let seen = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
    let seen = match seen {
        // A client sends an empty id if it has not received an event with an id.
        None => None,
        Some(_) if headers.get("last-event-id").is_some_and(|id| id.is_empty()) => None,
        Some(None) => return Err(ApiError::invalid("Last-Event-ID", "not an event id of this stream")),
        Some(seen) => seen,
    };
    // On reconnection, the last received event is more recent than the position in the URL.
    match (seen.or(after), last) {
        (Some(_), Some(_)) if seen.is_none() => {
            Err(ApiError::invalid("last", "`after` and `last` are mutually exclusive"))
        }
        (Some(change), _) => Ok(Start::After(change)),
        (None, Some(last)) => Ok(Start::Last(last)),
        (None, None) => Ok(Start::Now),
    }
}
