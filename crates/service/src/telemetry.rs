//! Traces: what a request took, and within it the turns of assistants and the calls of models, embedders and tools, by the
//! conventions of OpenTelemetry.
//!
//! Spans go to a collector by OTLP over HTTP, as JSON (`export`). They hold names, numbers and outcomes: no words of
//! anyone, no ids of users, no keys. What is traced of assistants is counted too (`watched`).

mod export;
mod watched;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::hex::hex;
use crate::outgoing::OutgoingProxy;
use export::Exporter;
pub(crate) use watched::Watch;

/// Where traces go.
#[derive(Clone)]
pub struct TelemetryOptions {
    /// The collector's address, such as `http://127.0.0.1:4318`; `/v1/traces` is added.
    pub endpoint: String,
    /// Headers to send, such as a key of the collector.
    pub headers: Vec<(String, String)>,
    /// What this server is called.
    pub service: String,
    /// Through which proxy it is reached, where it is not on this machine.
    pub proxy: Option<OutgoingProxy>,
}

impl std::fmt::Debug for TelemetryOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelemetryOptions").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Takes spans, and sends them once there is a collector.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    exporter: Arc<OnceLock<Exporter>>,
}

/// The place of a span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    trace: [u8; 16],
    span: [u8; 8],
}

tokio::task_local! {
    static CURRENT: Place;
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
    place: Place,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    began: u128,
    attributes: Vec<Value>,
    is_error: bool,
}

impl Telemetry {
    /// Begins to send.
    pub(crate) fn start(&self, options: Option<&TelemetryOptions>) {
        match options.map(Exporter::start) {
            // Whoever has one already goes on with it.
            Some(Some(exporter)) => drop(self.exporter.set(exporter)),
            Some(None) => tracing::error!("no traces are sent: the collector's address or the proxy cannot be used"),
            None => {}
        }
    }

    /// Begins the span of a request; `None` where nobody wants to know.
    /// The caller's own place in a trace, as the W3C writes it, is asked for only then.
    pub fn begin_request<'a>(&self, traceparent: impl FnOnce() -> Option<&'a str>) -> Option<Span> {
        self.exporter.get()?;
        Span::begin(traceparent().and_then(parse), SpanKind::Server)
    }

    /// Begins a span within the one that is on its way here.
    fn begin(&self, kind: SpanKind) -> Option<Span> {
        self.exporter.get()?;
        Span::begin(CURRENT.try_with(|place| *place).ok(), kind)
    }

    /// Sends a span, which ends now.
    pub fn end(&self, span: Span) {
        if let Some(exporter) = self.exporter.get() {
            exporter.send(span.ended(nanoseconds()));
        }
    }

    /// Sends what was not sent yet.
    pub async fn flush(&self) {
        if let Some(exporter) = self.exporter.get() {
            exporter.flush().await;
        }
    }
}

impl Span {
    fn begin(parent: Option<Place>, kind: SpanKind) -> Option<Self> {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        getrandom::fill(&mut trace).and_then(|()| getrandom::fill(&mut span)).ok()?;
        let place = Place { trace: parent.map_or(trace, |parent| parent.trace), span };
        let parent = parent.map(|parent| parent.span);
        let (name, attributes) = (String::new(), Vec::new());
        Some(Self { place, parent, name, kind, began: nanoseconds(), attributes, is_error: false })
    }

    /// Gives it a name.
    pub fn named(&mut self, name: String) {
        self.name = name;
    }

    /// Says that it is about something that failed.
    pub fn failed(&mut self) {
        self.is_error = true;
    }

    /// Adds an attribute that is a text.
    pub fn text(&mut self, key: &str, value: &str) {
        self.attributes.push(json!({ "key": key, "value": { "stringValue": value } }));
    }

    /// Adds an attribute that is a number.
    pub fn number(&mut self, key: &str, value: u64) {
        // OTLP writes whole numbers as text, as JSON has no 64 bits.
        self.attributes.push(json!({ "key": key, "value": { "intValue": value.to_string() } }));
    }

    fn texts(&mut self, key: &str, values: &[&str]) {
        let values: Vec<Value> = values.iter().map(|value| json!({ "stringValue": value })).collect();
        self.attributes.push(json!({ "key": key, "value": { "arrayValue": { "values": values } } }));
    }

    fn decimal(&mut self, key: &str, value: f64) {
        self.attributes.push(json!({ "key": key, "value": { "doubleValue": value } }));
    }

    /// Runs what happens within this span.
    pub async fn around<T>(&self, within: impl Future<Output = T>) -> T {
        CURRENT.scope(self.place, within).await
    }

    fn ended(self, at: u128) -> Value {
        let Self { place, parent, name, kind, began, attributes, is_error } = self;
        let mut span = json!({
            "traceId": hex(&place.trace), "spanId": hex(&place.span), "name": name, "kind": kind as u8,
            "startTimeUnixNano": began.to_string(), "endTimeUnixNano": at.to_string(), "attributes": attributes,
            "status": if is_error { json!({ "code": 2 }) } else { json!({}) },
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = json!(hex(&parent));
        }
        span
    }
}

/// Takes the span that this runs in along to another task.
pub fn carried<T>(within: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = CURRENT.try_with(|place| *place).ok();
    async move {
        match place {
            Some(place) => CURRENT.scope(place, within).await,
            None => within.await,
        }
    }
}

/// Reads a `traceparent`, as the W3C has it.
fn parse(text: &str) -> Option<Place> {
    let mut parts = text.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let place = Place { trace: unhex(trace)?, span: unhex(span)? };
    let is_real = version.len() == 2 && version != "ff" && place.trace != [0; 16] && place.span != [0; 8];
    is_real.then_some(place)
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_trace_is_gone_on_with_and_nonsense_is_not() {
        let place = parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(hex(&place.trace), "0af7651916cd43dd8448eb211c80319c");
        for nonsense in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-💥af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
