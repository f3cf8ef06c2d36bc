//! Responses with server-sent events.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::app::App;

/// Streams events from a channel until it is closed. If the server has to stop earlier, the stream ends with the event that
/// `last` returns for the number of events sent.
pub(super) fn from_channel(app: App, events: mpsc::UnboundedReceiver<Bytes>, last: fn(u64) -> String) -> Response {
    let out_of_time: BoxFuture<'static, ()> = Box::pin(async move { app.shutdown_deadline_near().await });
    let stream = futures::stream::unfold(Some((events, out_of_time, 0)), move |state| async move {
        let (mut events, mut out_of_time, count) = state?;
        let event = tokio::select! {
            biased;
            event = events.recv() => event?,
            () = &mut out_of_time => return Some((Ok(last(count).into()), None)),
        };
        Some((Ok(event), Some((events, out_of_time, count + 1))))
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
