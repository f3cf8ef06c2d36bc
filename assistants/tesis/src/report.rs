//! The report of a turn, read from the data of its answer.

use threadkeep::agent::TurnReport;
use threadkeep::{Map, TokenCounter, Turn, Value};

/// Prices of embedding models, in US dollars per million tokens.
const EMBEDDING_PRICES: [(&str, f64); 2] = [("text-embedding-3-small", 0.02), ("text-embedding-3-large", 0.13)];

/// Reports a turn. The results are the sources, with the seven fields that are stored.
pub(crate) fn report(question: &str, turn: &Turn, embedding_model: Option<&str>) -> TurnReport {
    let data: Map = turn.data.as_ref().and_then(|data| data.read().ok()).unwrap_or_default();
    let list = |name: &str| data.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let discussed = data.get("discussed_tesis_count").and_then(Value::as_u64).unwrap_or_default();
    TurnReport {
        results: list("resultados"),
        sources_used: list("sources_used"),
        metadata: Map::from_iter([
            ("reused_sources".to_owned(), (data.get("reused_sources") == Some(&Value::Bool(true))).into()),
            ("discussed_tesis_count".to_owned(), discussed.into()),
        ]),
        iterations: data.get("iterations").and_then(Value::as_u64).unwrap_or_default(),
        exit_reason: turn.error.as_ref().map_or_else(|| text("exit_reason"), |error| error.code.clone()),
        reasoning: text("llm_reasoning"),
        other_cost_usd: embedding_cost(question, turn.usage.embedding_calls, embedding_model),
    }
}

/// Returns the cost of embedding a question this many times; 0 if the price is unknown.
pub(crate) fn embedding_cost(question: &str, calls: u64, model: Option<&str>) -> f64 {
    let price = model.and_then(|model| EMBEDDING_PRICES.iter().find(|(name, _)| model.ends_with(name)));
    let tokens = threadkeep::ApproximateCounter.count(question).0;
    price.map_or(0.0, |(_, price)| price * tokens as f64 * calls as f64 / 1_000_000.0)
}
