use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds of the histogram buckets for requests, in seconds.
const REQUEST_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Upper bounds of the histogram buckets for calls, in seconds.
const CALL_SECONDS: [f64; 9] = [0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// The metrics of a server. Labels are methods, routes, statuses, outcomes, and names of models, tools and assistants. They
/// contain no tenants and no text that a caller chooses.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    running: Gauge,
    connections: Gauge,
    models: Calls,
    model_tokens: Family<TokenLabels, Counter>,
    embedders: Calls,
    tools: Calls,
    turns: Calls,
}

/// The metrics of one kind of call, labelled with the name of the model, tool or assistant that is called.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    label: &'static str,
    counts: Family<[(&'static str, String); 2], Counter>,
    seconds: Family<[(&'static str, String); 1], Histogram>,
}

impl Calls {
    fn new(label: &'static str) -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(CALL_SECONDS)) as fn() -> Histogram);
        Self { label, counts: Family::default(), seconds }
    }

    pub(crate) fn count(&self, name: &str, outcome: String, duration: Duration) {
        self.counts.get_or_create(&[(self.label, name.to_owned()), ("outcome", outcome)]).inc();
        self.seconds.get_or_create(&[(self.label, name.to_owned())]).observe(duration.as_secs_f64());
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    model: String,
    kind: &'static str,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// A guard that decrements a gauge when it is dropped.
#[derive(Debug)]
pub struct CountGuard(Gauge);

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            running: Gauge::default(),
            connections: Gauge::default(),
            models: Calls::new("model"),
            model_tokens: Family::default(),
            embedders: Calls::new("model"),
            tools: Calls::new("tool"),
            turns: Calls::new("assistant"),
        };
        let mut registry = Registry::with_prefix("threadkeep");
        registry.register("requests", "Completed requests", metrics.requests.clone());
        registry.register_with_unit(
            "request",
            "Time until the response starts",
            Unit::Seconds,
            metrics.request_seconds.clone(),
        );
        registry.register("requests_running", "Requests whose response has not started", metrics.running.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        for (calls, name, counts, seconds) in [
            (&metrics.models, "model", "Model calls", "Duration of model calls"),
            (&metrics.embedders, "embedder", "Embedder calls", "Duration of embedder calls"),
            (&metrics.tools, "tool", "Tool calls", "Duration of tool calls"),
            (&metrics.turns, "turn", "Assistant turns", "Duration of assistant turns"),
        ] {
            let plural = if name == "turn" { "turns".to_owned() } else { format!("{name}_calls") };
            registry.register(plural, counts, calls.counts.clone());
            registry.register_with_unit(name, seconds, Unit::Seconds, calls.seconds.clone());
        }
        registry.register("model_tokens", "Input and output tokens of models", metrics.model_tokens.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }
}

impl Metrics {
    /// Counts an open connection until the guard is dropped.
    #[must_use]
    pub fn count_connection(&self) -> CountGuard {
        self.connections.inc();
        CountGuard(self.connections.clone())
    }

    /// Counts a running request until the guard is dropped.
    #[must_use]
    pub fn count_running(&self) -> CountGuard {
        self.running.inc();
        CountGuard(self.running.clone())
    }

    /// Counts a completed request.
    pub fn count_request(&self, method: &str, route: &str, status: u16, duration: Duration) {
        // Clients may send arbitrary methods, which must not become labels.
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
        let method = if known.contains(&method) { method } else { "other" };
        let labels = RequestLabels { method: method.to_owned(), route: route.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
        let labels = RouteLabels { route: route.to_owned() };
        self.request_seconds.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Returns the metrics of model calls.
    pub(crate) fn models(&self) -> &Calls {
        &self.models
    }

    /// Returns the metrics of embedder calls.
    pub(crate) fn embedders(&self) -> &Calls {
        &self.embedders
    }

    /// Returns the metrics of tool calls.
    pub(crate) fn tools(&self) -> &Calls {
        &self.tools
    }

    /// Returns the metrics of turns.
    pub(crate) fn turns(&self) -> &Calls {
        &self.turns
    }

    pub(crate) fn count_model_tokens(&self, model: &str, input: u64, output: u64) {
        for (kind, count) in [("input", input), ("output", output)] {
            self.model_tokens.get_or_create(&TokenLabels { model: model.to_owned(), kind }).inc_by(count);
        }
    }

    /// Encodes the metrics in the text format of OpenMetrics.
    ///
    /// # Errors
    /// Fails if a label cannot be encoded.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }
}
