//! Streams the events of a turn as server-sent events.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Serialize;
use threadkeep::core::json_line;
use threadkeep::{TurnEvent, TurnStatus};

use super::{TurnResult, TurnUpdate, TurnUpdates};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::rest::json::turn::{TurnEventJson, TurnJson};

/// Returns a response that streams the events of a turn. Returns an error instead if the turn cannot start.
pub(crate) async fn respond(app: &App, mut updates: TurnUpdates) -> Result<Response> {
    let first = match updates.recv().await {
        Some(TurnUpdate::End(Err(error))) => return Err(error.into()),
        Some(first) => first,
        None => return Err(ApiError::internal("the task of a turn panicked")),
    };
    let stopping = app.clone();
    let shutdown_deadline: BoxFuture<'static, ()> = Box::pin(async move { stopping.shutdown_deadline_near().await });
    let stream = EventStream { first: Some(first), updates, shutdown_deadline, app: app.clone() };
    let events = futures::stream::unfold(Some(stream), |stream| async {
        let mut stream = stream?;
        let (event, is_last) = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), (!is_last).then_some(stream)))
    });
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Prevents proxies from buffering the response, which would delay events.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct EventStream {
    first: Option<TurnUpdate>,
    updates: TurnUpdates,
    shutdown_deadline: BoxFuture<'static, ()>,
    app: App,
}

/// The data of the last event of a stream that ends before its turn does.
#[derive(Serialize)]
struct EndJson {
    reason: &'static str,
}

/// The data of the last event of a turn that started and failed without a result.
#[derive(Serialize)]
struct ErrorJson<'a> {
    code: &'a str,
    message: &'a str,
}

impl EventStream {
    /// Returns the next event, and whether it is the last.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        loop {
            let update = match self.first.take() {
                Some(first) => first,
                None => tokio::select! {
                    biased;
                    update = self.updates.recv() => update?,
                    () = &mut self.shutdown_deadline => {
                        return Some((encode_event("end", &EndJson { reason: "shutdown" }), true));
                    }
                    () = tokio::time::sleep(self.app.options().heartbeat) => {
                        return Some((Bytes::from_static(b": heartbeat\n\n"), false));
                    }
                },
            };
            match update {
                TurnUpdate::Event(event) => {
                    if let Some(event) = encode_turn_event(event) {
                        return Some((event, false));
                    }
                }
                TurnUpdate::End(Ok(result)) => return Some((encode_end(*result), true)),
                TurnUpdate::End(Err(error)) => {
                    let error = ApiError::from(error);
                    error.log("a turn failed after its stream had started");
                    let error = ErrorJson { code: error.code, message: &error.message };
                    return Some((encode_event("error", &error), true));
                }
            }
        }
    }
}

fn encode_turn_event(event: TurnEvent) -> Option<Bytes> {
    let name = event.name();
    TurnEventJson::of(event).map(|event| encode_event(name, &event))
}

fn encode_end(result: TurnResult) -> Bytes {
    let name = match result.turn.status {
        TurnStatus::Failed => "turn.failed",
        TurnStatus::Completed | TurnStatus::WaitingForApproval => "turn.completed",
    };
    encode_event(name, &TurnJson::from(result.turn))
}

fn encode_event(name: &str, data: &impl Serialize) -> Bytes {
    let data = json_line(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
