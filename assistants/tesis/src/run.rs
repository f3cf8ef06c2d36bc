//! `run_agent`: a question of a program that has a memory and no agent of its own.

use serde::{Deserialize, Serialize};
use threadkeep::agent::RunError;
use threadkeep::{Agent, Memory, Scope, TenantId, Value};

use crate::{Corpus, RunRequest, TesisAssistant, TesisOptions};

/// The result of a run. All members are present, whether or not the run was stored; only `warning` may be missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The question.
    pub query: String,
    /// The conversation; `None` if nothing was stored.
    pub conversation_id: Option<String>,
    /// The tesis that were found, with the seven fields of a stored source.
    pub results: Vec<Value>,
    /// The answer.
    pub final_response: String,
    /// The registros of the sources.
    pub sources_used: Vec<i64>,
    /// Facts about the conversation.
    pub metadata: ResultMetadata,
    /// The number of searches.
    pub iterations: u64,
    /// Why the run stopped searching.
    pub exit_reason: String,
    /// The reasons for the decisions of the run.
    pub llm_reasoning: String,
    /// The cost in US dollars, as far as prices are known.
    pub total_cost: f64,
    /// The number of embedder calls.
    pub embedding_calls: u64,
    /// The number of model calls.
    pub llm_calls: u64,
    /// A notice, such as that nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Facts about a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultMetadata {
    /// Whether the sources are those of earlier answers.
    pub reused_sources: bool,
    /// The number of distinct tesis that were cited so far.
    pub discussed_tesis_count: u64,
    /// The number of messages in the conversation.
    pub total_messages: u64,
}

/// Answers a question in a conversation of a user, in a new conversation, or without storing anything.
///
/// # Errors
/// The request is invalid, the conversation is not the user's, or a store fails. A failing model or embedder is no error: the answer
/// quotes the sources, or says what is missing.
pub async fn run_agent(
    memory: &Memory,
    tenant: &TenantId,
    options: &TesisOptions,
    request: &RunRequest,
) -> Result<RunResult, RunError> {
    let assistant = TesisAssistant::new(memory, Corpus::new(memory), options.clone());
    let agent = Agent::new(memory.clone(), assistant);
    let scope = Scope::Tenant(tenant.clone());
    let result = Box::pin(agent.run(&scope, request.clone(), &mut |_| {})).await?;
    Ok(RunResult {
        query: result.query,
        conversation_id: result.conversation_id,
        results: result.results,
        final_response: result.final_response,
        sources_used: result.sources_used.iter().filter_map(Value::as_i64).collect(),
        metadata: serde_json::from_value(Value::Object(result.metadata)).unwrap_or_default(),
        iterations: result.iterations,
        exit_reason: result.exit_reason,
        llm_reasoning: result.llm_reasoning,
        total_cost: result.total_cost,
        embedding_calls: result.embedding_calls,
        llm_calls: result.llm_calls,
        warning: result.warning,
    })
}
