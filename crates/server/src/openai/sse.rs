//! Responses that stream server-sent events.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::app::App;

/// Streams events from a channel until the channel is closed. If the server has to stop earlier, the stream ends with the event
/// that `last_event` returns, given the number of events that have been sent.
pub(super) fn from_channel(
    app: App,
    events: mpsc::UnboundedReceiver<Bytes>,
    last_event: fn(u64) -> String,
) -> Response {
    let shutdown_deadline: BoxFuture<'static, ()> = Box::pin(async move { app.shutdown_deadline_near().await });
    let stream = futures::stream::unfold(Some((events, shutdown_deadline, 0)), move |state| async move {
        let (mut events, mut shutdown_deadline, count) = state?;
        let event = tokio::select! {
            biased;
            event = events.recv() => event?,
            () = &mut shutdown_deadline => return Some((Ok(last_event(count).into()), None)),
        };
        Some((Ok(event), Some((events, shutdown_deadline, count + 1))))
    });
    from_stream(stream)
}

/// Streams events until there are no more.
pub(super) fn from_stream(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Makes buffering proxies, such as nginx, forward each event immediately.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
