//! Streams the events of a turn as server-sent events.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use serde::Serialize;
use threadkeep::core::json_line;
use threadkeep::{TurnEvent, TurnStatus};
use threadkeep_api::turn::{TurnEventJson, TurnJson};

use super::{TurnResult, TurnUpdate, TurnUpdates};
use crate::app::App;
use crate::error::{ApiError, Result};

/// Returns a response that streams the events of a turn. Returns an error instead if the turn cannot start.
pub(crate) async fn respond(app: &App, updates: TurnUpdates) -> Result<Response> {
    let stream = UpdateStream::begin(app, updates).await?;
    Ok(respond_with(futures::stream::unfold(Some(stream), |stream| async {
        let mut stream = stream?;
        loop {
            let (event, is_last) = match stream.next().await? {
                Step::Heartbeat => (HEARTBEAT, false),
                Step::Shutdown => (encode_shutdown(), true),
                Step::Update(TurnUpdate::Event(event)) => match encode_turn_event(event) {
                    Some(event) => (event, false),
                    None => continue,
                },
                Step::Update(TurnUpdate::End(Ok(result))) => (encode_end(*result), true),
                Step::Update(TurnUpdate::End(Err(error))) => (encode_error(error.into()), true),
            };
            return Some((event, (!is_last).then_some(stream)));
        }
    })))
}

/// A comment that keeps an idle connection open.
pub(crate) const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// Returns a response with server-sent events.
pub(crate) fn respond_with(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let events = futures::StreamExt::map(events, Ok::<_, std::convert::Infallible>);
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Prevents proxies from buffering the response, which would delay events.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The updates of a turn, with heartbeats, until the server stops.
pub(crate) struct UpdateStream {
    first: Option<TurnUpdate>,
    updates: TurnUpdates,
    shutdown_deadline: BoxFuture<'static, ()>,
    app: App,
}

/// What a stream has to send.
pub(crate) enum Step {
    /// An update of the turn.
    Update(TurnUpdate),
    /// A heartbeat, because nothing happened for a while.
    Heartbeat,
    /// The end of the stream, because the server stops before the turn ends.
    Shutdown,
}

impl UpdateStream {
    /// Waits for the first update.
    ///
    /// # Errors
    /// The turn cannot start.
    pub(crate) async fn begin(app: &App, mut updates: TurnUpdates) -> Result<Self> {
        let first = match updates.recv().await {
            Some(TurnUpdate::End(Err(error))) => return Err(error.into()),
            Some(first) => first,
            None => return Err(ApiError::internal("the task of a turn panicked")),
        };
        let stopping = app.clone();
        let shutdown_deadline: BoxFuture<'static, ()> =
            Box::pin(async move { stopping.shutdown_deadline_near().await });
        Ok(Self { first: Some(first), updates, shutdown_deadline, app: app.clone() })
    }

    /// Returns the next step; `None` if the task of the turn panicked.
    pub(crate) async fn next(&mut self) -> Option<Step> {
        if let Some(first) = self.first.take() {
            return Some(Step::Update(first));
        }
        tokio::select! {
            biased;
            update = self.updates.recv() => update.map(Step::Update),
            () = &mut self.shutdown_deadline => Some(Step::Shutdown),
            () = tokio::time::sleep(self.app.options().heartbeat) => Some(Step::Heartbeat),
        }
    }
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

/// Encodes the last event of a stream that ends because the server stops.
pub(crate) fn encode_shutdown() -> Bytes {
    encode_event("end", &EndJson { reason: "shutdown" })
}

/// Logs an error and encodes it as the last event of a stream.
pub(crate) fn encode_error(error: ApiError) -> Bytes {
    error.log("a turn failed after its stream had started");
    encode_event("error", &ErrorJson { code: error.code, message: &error.message })
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

/// Encodes an event with JSON data.
pub(crate) fn encode_event(name: &str, data: &impl Serialize) -> Bytes {
    let data = json_line(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
