use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use threadkeep::{Start, SubscribeOptions};
use tokio::sync::mpsc;

use super::json::UpdateJson;
use super::listening::Listener;
use super::telling::Telling;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::security::Caller;

/// Events that wait for a reader at most.
const WAITING: usize = 16;

/// Streams what happens in a thread, as server-sent events
///
/// An event's id is the change that it tells of, with a tag that tells it from a change of another past (`17-a1b2c3d4`). `Last-Event-ID` or `after` replays what came after it, erasures included, then
/// the stream is live; without either it begins now, or with `last` messages as they stand. The stream ends with an event
/// `end` that says why, or `deleted`.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/events",
    tag = "live",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query, description = "An event's id, or a change"),
        ("last" = Option<u32>, Query, description = "Begin with so many messages"),
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
    names: Names,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response> {
    let start = start(&headers, &mut params)?;
    let roles = params.roles()?;
    params.finish()?;
    let options = SubscribeOptions { start, roles };
    let thread = names.thread()?;
    let updates = app.memory().subscribe(&caller.scope, thread, options).await?;
    let (outgoing, waiting) = mpsc::channel(WAITING);
    let write = |told: &Telling, _| told.event();
    let heartbeat = Some(Bytes::from_static(b": heartbeat\n\n"));
    let listener = Listener { app, caller: Arc::new(caller), thread, outgoing, write, heartbeat };
    tokio::spawn(listener.run(updates));
    let events = stream::unfold(waiting, |mut waiting| async {
        let event = waiting.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(event), waiting))
    });
    // The first byte goes out at once, so that a client knows that it listens.
    let opening = stream::iter([Ok(Bytes::from_static(b": listening\n\n"))]);
    let mut response = Body::from_stream(futures::StreamExt::chain(opening, events)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that gather what they pass on would keep events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn start(headers: &HeaderMap, params: &mut Params) -> Result<Start> {
    let (after, last) = (params.parse("after", "a change")?, params.parse("last", "a number of messages")?);
    let seen = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
    let seen = match seen {
        // A client sends an empty id where it has seen none.
        None => None,
        Some(_) if headers.get("last-event-id").is_some_and(|id| id.is_empty()) => None,
        Some(None) => return Err(ApiError::invalid("Last-Event-ID", "not an id of this stream")),
        Some(seen) => seen,
    };
    // What a client has seen itself is newer than what its address says.
    match (seen.or(after), last) {
        (Some(_), Some(_)) if seen.is_none() => Err(ApiError::invalid("last", "give `after` or `last`, not both")),
        (Some(change), _) => Ok(Start::After(change)),
        (None, Some(last)) => Ok(Start::Last(last)),
        (None, None) => Ok(Start::Now),
    }
}
