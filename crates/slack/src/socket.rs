//! Socket Mode: receives events and interactions over a WebSocket that the app opens, so that the server needs no public URL.
//!
//! Each message has an envelope with an id. As with the endpoints, the message is stored in the inbox before it is acknowledged
//! with its id; Slack resends messages that are not acknowledged. Slack closes connections regularly, and announces it. Then the
//! next connection is opened while the old one is still read to its end.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Upgraded;
use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::MemoryError;
use threadkeep_service::Service;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::worker::Worker;

/// The delay before the first reconnect; doubled with every failure.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// The maximum number of times that the delay is doubled, which limits it to about a minute.
const MAX_DOUBLINGS: u32 = 8;
/// The interval between pings. Slack answers each, so a connection on which nothing arrives is dead.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum time without a frame.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// The maximum time to read a connection whose end was announced.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum time to send a frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of messages that are stored concurrently. Those of one channel are stored in order.
const LANES: usize = 16;
/// The number of messages that may wait for each lane.
const LANE_CAPACITY: usize = 32;

/// A message from Slack.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    envelope_id: Option<String>,
    payload: Value,
    /// Why the connection will be closed.
    reason: Option<String>,
}

impl Envelope {
    /// Returns the number of the lane that stores the messages of this channel.
    fn lane(&self) -> usize {
        let (payload, event) = (&self.payload, &self.payload["event"]);
        let names = [&event["channel"], &event["item"]["channel"], &payload["container"]["channel_id"]];
        let mut hasher = DefaultHasher::new();
        names.iter().find_map(|name| name.as_str()).hash(&mut hasher);
        usize::try_from(hasher.finish() % LANES as u64).unwrap_or_default()
    }
}

/// What a connection reports.
enum Report {
    /// Slack greeted the app.
    Hello,
    /// Slack will close the connection, or has closed it: the next one is needed.
    Ending {
        /// Whether Socket Mode was turned off.
        is_disabled: bool,
    },
}

impl Worker {
    /// Keeps a connection open until the service stops.
    pub(crate) async fn listen(self: &Arc<Self>, service: &Service, app_token: &str) {
        let mut connections = JoinSet::new();
        let mut failures = 0_u32;
        loop {
            match self.api.open_socket(app_token).await {
                Ok(socket) => {
                    let (reporter, reports) = mpsc::channel(4);
                    let connection = Connection { worker: Arc::clone(self), service: service.clone(), reporter };
                    connections.spawn(connection.read(socket));
                    failures = tokio::select! {
                        failures = next_failures(reports, failures) => failures,
                        () = service.stopped() => break,
                    };
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot connect to Slack in Socket Mode; will retry");
                    failures += 1;
                }
            }
            tokio::select! {
                () = service.stopped() => break,
                () = sleep(RECONNECT_DELAY * 2_u32.pow(failures.min(MAX_DOUBLINGS))) => {}
            }
            while connections.try_join_next().is_some() {}
        }
        connections.join_all().await;
    }
}

/// Waits until the next connection is needed. Returns the number of failures in a row.
async fn next_failures(mut reports: mpsc::Receiver<Report>, failures: u32) -> u32 {
    let mut failures = failures + 1;
    while let Some(report) = reports.recv().await {
        match report {
            Report::Hello => failures = 0,
            Report::Ending { is_disabled: true } => return MAX_DOUBLINGS,
            Report::Ending { is_disabled: false } => return failures,
        }
    }
    failures
}

/// An open connection.
struct Connection {
    worker: Arc<Worker>,
    service: Service,
    reporter: mpsc::Sender<Report>,
}

impl Connection {
    /// Reads messages until the connection or the service ends. Messages that were already read are still stored and acknowledged.
    async fn read(self, socket: WebSocketStream<Upgraded>) {
        let (mut sink, mut stream) = socket.split();
        // This channel needs no bound, because the lanes limit the number of messages that wait to be acknowledged.
        let (acknowledge, mut acknowledgements) = mpsc::unbounded_channel();
        let mut workers = JoinSet::new();
        let lanes = [(); LANES].map(|()| self.start_lane(&mut workers, acknowledge.clone()));
        drop(acknowledge);
        let mut pings = interval(PING_INTERVAL);
        let mut silent_until = Instant::now() + MAX_SILENCE;
        let mut read_until = None;
        loop {
            let deadline = read_until.map_or(silent_until, |until: Instant| until.min(silent_until));
            let frame = tokio::select! {
                frame = stream.next() => frame,
                Some(id) = acknowledgements.recv() => {
                    if !send(&mut sink, acknowledgement(id)).await {
                        break;
                    }
                    continue;
                }
                _ = pings.tick() => {
                    if !send(&mut sink, Message::Ping(Bytes::new())).await {
                        break;
                    }
                    continue;
                }
                () = sleep_until(deadline) => break,
                () = self.service.stopped() => break,
            };
            silent_until = Instant::now() + MAX_SILENCE;
            let text = match frame {
                Some(Ok(Message::Text(text))) => text,
                // Pings are answered by the library.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
            };
            let Ok(envelope) = serde_json::from_str::<Envelope>(&text) else { continue };
            match &*envelope.kind {
                "hello" => {
                    tracing::info!("connected to Slack in Socket Mode");
                    self.report(Report::Hello).await;
                }
                "disconnect" => {
                    let reason = envelope.reason.as_deref().unwrap_or("unknown");
                    tracing::info!(reason, "Slack will close the connection");
                    read_until = Some(Instant::now() + CLOSING_TIMEOUT);
                    self.report(Report::Ending { is_disabled: reason == "link_disabled" }).await;
                }
                // The lane is open for as long as its sender.
                _ => drop(lanes[envelope.lane()].send(envelope).await),
            }
        }
        self.report(Report::Ending { is_disabled: false }).await;
        drop(lanes);
        let acknowledge_rest = async {
            while let Some(id) = acknowledgements.recv().await {
                if !send(&mut sink, acknowledgement(id)).await {
                    break;
                }
            }
        };
        tokio::join!(acknowledge_rest, workers.join_all());
        drop(timeout(SEND_TIMEOUT, sink.close()).await);
    }

    async fn report(&self, report: Report) {
        // Sending fails once an end was reported, because the receiver is gone.
        drop(self.reporter.send(report).await);
    }

    /// Starts a task that stores messages one after the other.
    fn start_lane(
        &self,
        workers: &mut JoinSet<()>,
        acknowledge: mpsc::UnboundedSender<String>,
    ) -> mpsc::Sender<Envelope> {
        let (sender, mut envelopes) = mpsc::channel::<Envelope>(LANE_CAPACITY);
        let (worker, service) = (Arc::clone(&self.worker), self.service.clone());
        workers.spawn(async move {
            while let Some(envelope) = envelopes.recv().await {
                match receive(&worker, &service, &envelope).await {
                    Ok(()) => {
                        if let Some(id) = envelope.envelope_id {
                            // Slack sends the message again if the connection has ended.
                            drop(acknowledge.send(id));
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "failed to store a message from Slack; Slack will send it again")
                    }
                }
            }
        });
        sender
    }
}

/// Stores a message. Messages of other kinds, such as slash commands, need no work.
async fn receive(worker: &Arc<Worker>, service: &Service, envelope: &Envelope) -> Result<(), MemoryError> {
    match &*envelope.kind {
        "events_api" => worker.receive_event(service, &envelope.payload).await,
        "interactive" => worker.receive_interaction(service, &envelope.payload).await,
        _ => Ok(()),
    }
}

fn acknowledgement(id: String) -> Message {
    Message::text(json!({ "envelope_id": id }).to_string())
}

/// Sends a frame. Returns `false` if the connection is dead.
async fn send<S: futures::Sink<Message> + Unpin>(sink: &mut S, message: Message) -> bool {
    matches!(timeout(SEND_TIMEOUT, sink.send(message)).await, Ok(Ok(())))
}
