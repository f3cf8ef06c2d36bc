use std::collections::BTreeMap;

use serde::Serialize;
use threadkeep::{Analytics, Timestamp};
use utoipa::ToSchema;

/// Statistics about a thread, or about all threads to which the caller has full access.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnalyticsJson {
    threads: u64,
    messages: u64,
    /// Messages that cannot be decoded. The other statistics do not include them.
    corrupt_messages: u64,
    messages_per_thread: f64,
    /// Messages by role.
    roles: BTreeMap<&'static str, u64>,
    /// Messages by the agent that wrote them.
    agents: BTreeMap<String, u64>,
    /// Messages by the model that generated them.
    models: BTreeMap<String, u64>,
    /// Answered user messages. Several user messages in a row count once.
    turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    sources: SourcesJson,
    /// The durations of those answers whose duration is stored.
    durations: Option<DurationsJson>,
    #[schema(value_type = Option<String>, format = DateTime)]
    first_message_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_message_at: Option<Timestamp>,
}

/// The sources of answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct SourcesJson {
    citations: u64,
    distinct: u64,
    /// Sources that are cited in more than one message.
    reused: u64,
    citing_messages: u64,
    /// Messages whose citations all occur earlier in their thread: they needed no search.
    reusing_messages: u64,
    /// The share of the messages with citations that needed no search.
    reuse_rate: f64,
    /// The cost of the searches that were not needed; null if `usd_per_search` is not set.
    saved_usd: Option<f64>,
}

/// The durations of answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct DurationsJson {
    count: u64,
    min_ms: u64,
    median_ms: u64,
    p95_ms: u64,
    max_ms: u64,
}

impl AnalyticsJson {
    /// Converts statistics. `usd_per_search` is the cost of a search, if it is known.
    pub fn of(figures: Analytics, usd_per_search: Option<f64>) -> Self {
        let sources = &figures.sources;
        Self {
            threads: figures.threads,
            messages: figures.messages,
            corrupt_messages: figures.corrupt_messages,
            messages_per_thread: figures.messages_per_thread(),
            roles: figures.roles.iter().map(|(role, count)| (role.as_str(), *count)).collect(),
            turns: figures.turns,
            input_tokens: figures.input_tokens,
            output_tokens: figures.output_tokens,
            cost_usd: figures.cost_usd,
            sources: SourcesJson {
                citations: sources.citations,
                distinct: sources.distinct,
                reused: sources.reused,
                citing_messages: sources.citing_messages,
                reusing_messages: sources.reusing_messages,
                reuse_rate: sources.reuse_rate(),
                saved_usd: usd_per_search.map(|price| sources.saved_usd(price)),
            },
            durations: figures.durations.map(|durations| DurationsJson {
                count: durations.count,
                min_ms: durations.min_ms,
                median_ms: durations.median_ms,
                p95_ms: durations.p95_ms,
                max_ms: durations.max_ms,
            }),
            first_message_at: figures.first_message_at,
            last_message_at: figures.last_message_at,
            agents: figures.agents,
            models: figures.models,
        }
    }
}
