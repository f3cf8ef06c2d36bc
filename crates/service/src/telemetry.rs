//! Tracing of requests, turns of assistants, and calls to models, embedders and tools, following the conventions of OpenTelemetry.
//!
//! Spans are exported to a collector by OTLP over HTTP, as JSON (`export`). They contain names, numbers and outcomes, but no
//! message content, no ids of users and no keys. The wrappers in `instrumented` trace and count the calls that assistants make.

mod export;
mod instrumented;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::hex::hex;
use crate::outgoing::OutgoingProxy;
use export::Exporter;
pub(crate) use instrumented::Instrumentation;

/// Where and how to export traces.
#[derive(Clone)]
pub struct TelemetryOptions {
    /// The base URL of the collector, such as `http://127.0.0.1:4318`; `/v1/traces` is appended.
    pub endpoint: String,
    /// Headers to send, such as an API key of the collector.
    pub headers: Vec<(String, String)>,
    /// The service name of this server in traces.
    pub service: String,
    /// The proxy for requests to the collector. It is not used for a collector on this machine.
    pub proxy: Option<OutgoingProxy>,
}

impl std::fmt::Debug for TelemetryOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelemetryOptions").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Creates spans and exports them if a collector is configured.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    exporter: Arc<OnceLock<Exporter>>,
}

/// The ids of a span and its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpanContext {
    trace: [u8; 16],
    span: [u8; 8],
}

tokio::task_local! {
    static CURRENT: SpanContext;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// A span that has not ended.
#[derive(Debug)]
pub struct Span {
    context: SpanContext,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    /// Nanoseconds since the Unix epoch.
    started_at: u128,
    attributes: Vec<Value>,
    is_error: bool,
}

impl Telemetry {
    /// Starts to export spans.
    pub(crate) fn start(&self, options: Option<&TelemetryOptions>) {
        match options.map(Exporter::start) {
            // If an exporter was set before, it remains in use.
            Some(Some(exporter)) => drop(self.exporter.set(exporter)),
            Some(None) => tracing::error!("traces are not exported: the collector's URL or the proxy is invalid"),
            None => {}
        }
    }

    /// Starts the span of a request. Returns `None` if no collector is configured. `traceparent` returns the W3C
    /// `traceparent` header of the client; it is called only if a collector is configured.
    pub fn begin_request<'a>(&self, traceparent: impl FnOnce() -> Option<&'a str>) -> Option<Span> {
        self.exporter.get()?;
        Span::start(traceparent().and_then(parse_traceparent), SpanKind::Server)
    }

    /// Starts a child of the current span, or a new trace if there is no current span. Returns `None` if no collector
    /// is configured.
    fn start_child(&self, kind: SpanKind) -> Option<Span> {
        self.exporter.get()?;
        Span::start(CURRENT.try_with(|context| *context).ok(), kind)
    }

    /// Ends a span and exports it.
    pub fn end(&self, span: Span) {
        if let Some(exporter) = self.exporter.get() {
            exporter.send(span.into_json(unix_nanoseconds()));
        }
    }

    /// Exports all pending spans, and stops exporting.
    pub async fn flush(&self) {
        if let Some(exporter) = self.exporter.get() {
            exporter.flush().await;
        }
    }
}

impl Span {
    /// Starts a span. Returns `None` if the operating system provides no random bytes for its id.
    fn start(parent: Option<SpanContext>, kind: SpanKind) -> Option<Self> {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        getrandom::fill(&mut trace).and_then(|()| getrandom::fill(&mut span)).ok()?;
        let context = SpanContext { trace: parent.map_or(trace, |parent| parent.trace), span };
        let parent = parent.map(|parent| parent.span);
        let (name, attributes) = (String::new(), Vec::new());
        Some(Self { context, parent, name, kind, started_at: unix_nanoseconds(), attributes, is_error: false })
    }

    /// Sets the name.
    pub fn set_name(&mut self, name: String) {
        self.name = name;
    }

    /// Marks the operation as failed.
    pub fn set_failed(&mut self) {
        self.is_error = true;
    }

    /// Adds a string attribute.
    pub fn add_text(&mut self, key: &str, value: &str) {
        self.attributes.push(json!({ "key": key, "value": { "stringValue": value } }));
    }

    /// Adds an integer attribute.
    pub fn add_number(&mut self, key: &str, value: u64) {
        // OTLP represents 64-bit integers as strings in JSON.
        self.attributes.push(json!({ "key": key, "value": { "intValue": value.to_string() } }));
    }

    fn add_texts(&mut self, key: &str, values: &[&str]) {
        let values: Vec<Value> = values.iter().map(|value| json!({ "stringValue": value })).collect();
        self.attributes.push(json!({ "key": key, "value": { "arrayValue": { "values": values } } }));
    }

    fn add_decimal(&mut self, key: &str, value: f64) {
        self.attributes.push(json!({ "key": key, "value": { "doubleValue": value } }));
    }

    /// Runs a future with this span as the current span.
    pub async fn in_scope<T>(&self, future: impl Future<Output = T>) -> T {
        CURRENT.scope(self.context, future).await
    }

    fn into_json(self, ended_at: u128) -> Value {
        let Self { context, parent, name, kind, started_at, attributes, is_error } = self;
        let mut span = json!({
            "traceId": hex(&context.trace), "spanId": hex(&context.span), "name": name, "kind": kind as u8,
            "startTimeUnixNano": started_at.to_string(), "endTimeUnixNano": ended_at.to_string(), "attributes": attributes,
            "status": if is_error { json!({ "code": 2 }) } else { json!({}) },
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = json!(hex(&parent));
        }
        span
    }
}

/// Wraps a future so that it runs in the span that is current now, even if the future is spawned as another task.
pub fn in_current_span<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let context = CURRENT.try_with(|context| *context).ok();
    async move {
        match context {
            Some(context) => CURRENT.scope(context, future).await,
            None => future.await,
        }
    }
}

/// Parses a W3C `traceparent` header; `None` if it is invalid.
fn parse_traceparent(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let context = SpanContext { trace: parse_hex(trace)?, span: parse_hex(span)? };
    let is_valid = version.len() == 2 && version != "ff" && context.trace != [0; 16] && context.span != [0; 8];
    is_valid.then_some(context)
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Returns the current time in nanoseconds since the Unix epoch.
fn unix_nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_traceparent_is_parsed() {
        let context = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(hex(&context.trace), "0af7651916cd43dd8448eb211c80319c");
        for invalid in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-💥af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ] {
            assert_eq!(parse_traceparent(invalid), None, "{invalid}");
        }
    }
}
