use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::app::App;

/// Tells what comes, as server-sent events, until there is no more. A server that has to stop before that ends with
/// `last`, which is told how much was said before.
pub(super) fn streamed(app: App, told: mpsc::UnboundedReceiver<Bytes>, last: fn(u64) -> String) -> Response {
    let out_of_time: BoxFuture<'static, ()> = Box::pin(async move { app.out_of_time().await });
    let said = futures::stream::unfold(Some((told, out_of_time, 0)), move |telling| async move {
        let (mut told, mut out_of_time, count) = telling?;
        let said = tokio::select! {
            biased;
            said = told.recv() => said?,
            () = &mut out_of_time => return Some((Ok(last(count).into()), None)),
        };
        Some((Ok(said), Some((told, out_of_time, count + 1))))
    });
    event_stream(said)
}

/// Tells what comes, as server-sent events.
pub(super) fn event_stream(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that gather what they pass on would keep events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
