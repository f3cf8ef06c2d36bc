use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::TelemetryOptions;
use crate::outgoing;

/// Spans that wait; a collector that is away costs no more memory than this.
const WAITING: usize = 2_048;
/// Spans that go together.
const BATCH: usize = 512;
const EVERY: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends spans to a collector, many together, beside the requests.
#[derive(Debug)]
pub(super) struct Exporter {
    spans: std::sync::Mutex<Option<mpsc::Sender<Value>>>,
    sending: Mutex<Option<JoinHandle<()>>>,
}

impl Exporter {
    /// `None` where nothing can be sent from here.
    pub(super) fn start(options: &TelemetryOptions) -> Option<Self> {
        let url = Url::parse(&format!("{}/v1/traces", options.endpoint.trim_end_matches('/'))).ok()?;
        let client = outgoing::client(&url, options.proxy.as_ref(), TIMEOUT)?;
        let sender = Sender { client, url, options: options.clone() };
        let (spans, waiting) = mpsc::channel(WAITING);
        let sending = tokio::spawn(sender.run(waiting));
        Some(Self { spans: std::sync::Mutex::new(Some(spans)), sending: Mutex::new(Some(sending)) })
    }

    /// Gives a span away. Where too many wait it is lost: no request waits for a collector.
    pub(super) fn send(&self, span: Value) {
        let spans = self.spans.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(spans) = spans.as_ref() {
            drop(spans.try_send(span));
        }
    }

    /// Sends what waits, and ends.
    pub(super) async fn flush(&self) {
        drop(self.spans.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        if let Some(sending) = self.sending.lock().await.take() {
            drop(tokio::time::timeout(TIMEOUT, sending).await);
        }
    }
}

struct Sender {
    client: reqwest::Client,
    url: Url,
    options: TelemetryOptions,
}

impl Sender {
    async fn run(self, mut waiting: mpsc::Receiver<Value>) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut spans = Vec::new();
        let mut was_failing = false;
        loop {
            let is_over = tokio::select! {
                count = waiting.recv_many(&mut spans, BATCH) => count == 0,
                _ = ticks.tick() => false,
            };
            if is_over && spans.is_empty() {
                return;
            }
            if is_over || spans.len() >= BATCH || (!spans.is_empty() && waiting.is_empty()) {
                let sent = self.send(std::mem::take(&mut spans)).await;
                if !sent && !was_failing {
                    tracing::warn!("traces cannot be sent; they are lost until the collector takes them again");
                }
                was_failing = !sent;
            }
            if is_over {
                return;
            }
        }
    }

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
        request.send().await.is_ok_and(|answer| answer.status().is_success())
    }
}
