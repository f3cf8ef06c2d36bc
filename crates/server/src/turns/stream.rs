//! A turn as a stream of server-sent events.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Serialize;
use threadkeep::core::json_line;
use threadkeep::{TurnEvent, TurnStatus};

use super::{Answered, TurnUpdate, Waiting};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::rest::json::turn::{TurnEventJson, TurnJson};

/// Tells a turn as it happens. What keeps it from beginning is an error like any other.
pub(crate) async fn respond(app: &App, mut waiting: Waiting) -> Result<Response> {
    let first = match waiting.recv().await {
        Some(TurnUpdate::End(Err(error))) => return Err(error.into()),
        Some(first) => first,
        None => return Err(ApiError::internal("a turn broke off")),
    };
    let stopping = app.clone();
    let out_of_time: BoxFuture<'static, ()> = Box::pin(async move { stopping.out_of_time().await });
    let telling = Telling { first: Some(first), waiting, out_of_time, app: app.clone() };
    let events = futures::stream::unfold(Some(telling), |telling| async {
        let mut telling = telling?;
        let (told, is_last) = telling.next().await?;
        Some((Ok::<_, std::convert::Infallible>(told), (!is_last).then_some(telling)))
    });
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that gather what they pass on would keep events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct Telling {
    first: Option<TurnUpdate>,
    waiting: Waiting,
    out_of_time: BoxFuture<'static, ()>,
    app: App,
}

/// Why a stream ends before its turn.
#[derive(Serialize)]
struct EndJson {
    reason: &'static str,
}

/// What a turn failed with that had begun and has no end.
#[derive(Serialize)]
struct ErrorJson<'a> {
    code: &'a str,
    message: &'a str,
}

impl Telling {
    /// What is told next, and whether it is the last.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        loop {
            let told = match self.first.take() {
                Some(first) => first,
                None => tokio::select! {
                    biased;
                    told = self.waiting.recv() => told?,
                    () = &mut self.out_of_time => {
                        return Some((written("end", &EndJson { reason: "shutdown" }), true));
                    }
                    () = tokio::time::sleep(self.app.options().heartbeat) => {
                        return Some((Bytes::from_static(b": heartbeat\n\n"), false));
                    }
                },
            };
            match told {
                TurnUpdate::Event(event) => {
                    if let Some(event) = event_of(event) {
                        return Some((event, false));
                    }
                }
                TurnUpdate::End(Ok(answered)) => return Some((end_of(*answered), true)),
                TurnUpdate::End(Err(error)) => {
                    let internal = error.internal.as_deref().unwrap_or(&error.message);
                    tracing::error!(code = error.code, internal, "a turn failed on its way");
                    let error = ErrorJson { code: error.code, message: &error.message };
                    return Some((written("error", &error), true));
                }
            }
        }
    }
}

fn event_of(event: TurnEvent) -> Option<Bytes> {
    let name = event.name();
    TurnEventJson::of(event).map(|event| written(name, &event))
}

fn end_of(answered: Answered) -> Bytes {
    let name = match answered.turn.status {
        TurnStatus::Failed => "turn.failed",
        TurnStatus::Completed | TurnStatus::WaitingForApproval => "turn.completed",
    };
    written(name, &TurnJson::from(answered.turn))
}

fn written(name: &str, data: &impl Serialize) -> Bytes {
    let data = json_line(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
