//! `run_agent`: answers a question for a program that has a memory but no agent.

use threadkeep::agent::{RunError, RunRequest, RunResult};
use threadkeep::{Agent, Memory, Scope, TenantId};

use crate::{Corpus, TesisAssistant, TesisOptions};

/// Answers a question in a user's conversation, in a new conversation, or without storing anything.
///
/// The results are tesis with the seven fields of a stored source, and `sources_used` their registros. The metadata are `reused_sources`,
/// `discussed_tesis_count` and `total_messages`.
///
/// # Errors
/// The request is invalid, the conversation is not the user's, or a store fails. A failing model or embedder is not an error: the answer
/// quotes the sources, or says what is missing.
pub async fn run_agent(
    memory: &Memory,
    tenant: &TenantId,
    options: &TesisOptions,
    request: &RunRequest,
) -> Result<RunResult, RunError> {
    let assistant = TesisAssistant::new(memory, Corpus::new(memory), options.clone());
    let agent = Agent::new(memory.clone(), assistant);
    Box::pin(agent.run(&Scope::Tenant(tenant.clone()), request.clone(), &mut |_| {})).await
}
