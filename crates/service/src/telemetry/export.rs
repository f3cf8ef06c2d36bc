use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::TelemetryOptions;
use crate::outgoing;

/// The maximum number of queued spans, which limits the memory used while the collector is unavailable.
const QUEUE_CAPACITY: usize = 2_048;
/// The maximum number of spans in one request.
const BATCH: usize = 512;
/// The maximum time between attempts to send spans.
const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Exports spans to a collector in batches, in the background.
#[derive(Debug)]
pub(super) struct Exporter {
    spans: std::sync::Mutex<Option<mpsc::Sender<Value>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Exporter {
    /// Starts the background task. Returns `None` if the URL or the proxy is invalid.
    pub(super) fn start(options: &TelemetryOptions) -> Option<Self> {
        let url = Url::parse(&format!("{}/v1/traces", options.endpoint.trim_end_matches('/'))).ok()?;
        let client = outgoing::client(&url, options.proxy.as_ref(), TIMEOUT)?;
        let sender = BatchSender { client, url, options: options.clone() };
        let (spans, queue) = mpsc::channel(QUEUE_CAPACITY);
        let task = tokio::spawn(sender.run(queue));
        Some(Self { spans: std::sync::Mutex::new(Some(spans)), task: Mutex::new(Some(task)) })
    }

    /// Queues a span. If the queue is full, the span is dropped, so that requests never wait for the collector.
    pub(super) fn send(&self, span: Value) {
        let spans = self.spans.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(spans) = spans.as_ref() {
            drop(spans.try_send(span));
        }
    }

    /// Exports all queued spans and ends the background task. Stops waiting after [`TIMEOUT`].
    pub(super) async fn flush(&self) {
        drop(self.spans.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        if let Some(task) = self.task.lock().await.take() {
            drop(tokio::time::timeout(TIMEOUT, task).await);
        }
    }
}

struct BatchSender {
    client: reqwest::Client,
    url: Url,
    options: TelemetryOptions,
}

impl BatchSender {
    async fn run(self, mut queue: mpsc::Receiver<Value>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut spans = Vec::new();
        let mut was_failing = false;
        loop {
            let is_closed = tokio::select! {
                count = queue.recv_many(&mut spans, BATCH) => count == 0,
                _ = ticks.tick() => false,
            };
            if is_closed && spans.is_empty() {
                return;
            }
            if is_closed || spans.len() >= BATCH || (!spans.is_empty() && queue.is_empty()) {
                let is_sent = self.send(std::mem::take(&mut spans)).await;
                if !is_sent && !was_failing {
                    tracing::warn!("cannot export traces; spans are dropped until the collector accepts them again");
                }
                was_failing = !is_sent;
            }
            if is_closed {
                return;
            }
        }
    }

    /// Sends spans to the collector. Returns whether the collector accepted them.
    async fn send(&self, spans: Vec<Value>) -> bool {
        let attribute = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [
                attribute("service.name", &self.options.service),
                attribute("service.version", env!("CARGO_PKG_VERSION")),
            ] },
            "scopeSpans": [{ "scope": { "name": "threadkeep" }, "spans": spans }],
        }] });
        let mut request =
            self.client.post(self.url.clone()).header("content-type", "application/json").body(body.to_string());
        for (name, value) in &self.options.headers {
            request = request.header(name, value);
        }
        request.send().await.is_ok_and(|response| response.status().is_success())
    }
}
