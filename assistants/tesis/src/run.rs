//! `run_agent`: a turn whose question and answer are stored in one commit, or not at all.
//!
//! The turn runs in a temporary store with the last messages of the conversation, so that a failure leaves nothing behind.

use serde::Serialize;
use threadkeep::{
    Agent, AgentError, Content, Draft, JsonText, Map, Memory, MemoryError, Message, MessageQuery, OpenThread, Role,
    Scope, StoreError, TenantId, ThreadId, TokenCounter, Turn, TurnRequest, TurnStatus, UserId, Value,
};

use crate::assistant::WINDOW;
use crate::graph::{DEFAULT_ITERATIONS, LARGEST_ITERATIONS, MAX_ITERATIONS};
use crate::{Corpus, TesisAssistant, TesisOptions};

/// The longest question, in characters.
const QUERY_CHARACTERS: usize = 1_000;
/// The longest title of a conversation, in characters.
const TITLE_CHARACTERS: usize = 100;
/// The notice of a run without ids.
const NOT_STORED: &str = "No conversation_id or user_id, skipping save";
/// The notice of a run with a conversation but without a user.
const NO_USER: &str = "user_id required for persistence";
/// Prices of embedding models, in US dollars per million tokens.
const EMBEDDING_PRICES: [(&str, f64); 2] = [("text-embedding-3-small", 0.02), ("text-embedding-3-large", 0.13)];

/// A question to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The question, of 1 to 1,000 characters.
    pub user_query: String,
    /// The maximum number of searches (1 to 10). Default: 5.
    pub max_iterations: Option<u64>,
    /// The conversation to continue. Default: a new one.
    pub conversation_id: Option<ThreadId>,
    /// The user. Without a user, nothing is stored.
    pub user_id: Option<UserId>,
}

/// The result of a run. All members are present, whether or not the run was stored.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultMetadata {
    /// Whether the sources are those of earlier answers.
    pub reused_sources: bool,
    /// The number of distinct tesis that were cited so far.
    pub discussed_tesis_count: u64,
    /// The number of messages in the conversation.
    pub total_messages: u64,
}

/// An error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The request is invalid.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// The member of the request.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The user has no such conversation.
    #[error("conversation not found")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The agent failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The temporary store failed.
    #[error("the temporary store cannot be opened: {0}")]
    Temporary(String),
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
    check(request)?;
    let scope = match &request.user_id {
        Some(user) => Scope::User(tenant.clone(), user.clone()),
        None => Scope::Tenant(tenant.clone()),
    };
    let stored = request.conversation_id.filter(|_| request.user_id.is_some());
    let (history, message_count) = match stored {
        Some(thread) => load(memory, &scope, thread).await?,
        None => (Vec::new(), 0),
    };
    let turn = run(memory, &scope, options, request, history).await?;
    let mut result = result(request, options, &turn, message_count);
    let is_completed = turn.status == TurnStatus::Completed;
    match (&request.user_id, is_completed) {
        (Some(_), true) => {
            let thread = save(memory, &scope, stored, request, &turn).await?;
            result.conversation_id = Some(thread.to_string());
        }
        (Some(_), false) => {
            result.conversation_id = stored.map(|thread| thread.to_string());
            result.warning = Some("the turn failed, so neither question nor answer was stored".to_owned());
        }
        (None, _) => {
            let warning = if request.conversation_id.is_some() { NO_USER } else { NOT_STORED };
            result.warning = Some(warning.to_owned());
        }
    }
    Ok(result)
}

fn check(request: &RunRequest) -> Result<(), RunError> {
    let invalid = |field, reason: String| Err(RunError::Invalid { field, reason });
    let characters = request.user_query.chars().count();
    if request.user_query.trim().is_empty() {
        return invalid("user_query", "the question is empty".to_owned());
    }
    if characters > QUERY_CHARACTERS {
        return invalid("user_query", format!("{characters} characters, at most {QUERY_CHARACTERS}"));
    }
    match request.max_iterations {
        Some(iterations) if !(1..=LARGEST_ITERATIONS).contains(&iterations) => {
            invalid("max_iterations", format!("{iterations}; expected 1 to {LARGEST_ITERATIONS}"))
        }
        _ => Ok(()),
    }
}

/// Loads the last messages of a conversation, and the number of its messages.
async fn load(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<(Vec<Message>, u64), RunError> {
    let found = memory.find_thread(scope, thread).await?.ok_or(RunError::NotFound)?;
    let query = MessageQuery { roles: vec![Role::User, Role::Assistant], ..MessageQuery::newest(WINDOW) };
    let page = memory.messages(scope, thread, &query).await?;
    Ok((page.messages, found.message_count))
}

/// Runs the turn in a temporary store that contains the history.
async fn run(
    memory: &Memory,
    scope: &Scope,
    options: &TesisOptions,
    request: &RunRequest,
    history: Vec<Message>,
) -> Result<Turn, RunError> {
    let backend = threadkeep::open_backend("memory:").await.map_err(|error| RunError::Temporary(error.to_string()))?;
    let temporary = Memory::with_platform(backend, memory.platform().clone());
    let thread = temporary.open(scope).await?.thread.id;
    if !history.is_empty() {
        let drafts = history.into_iter().map(|message| Draft::new(message.content));
        drafts.fold(temporary.batch(), |batch, draft| batch.append(draft)).commit(scope, thread).await?;
    }
    let assistant = TesisAssistant::new(&temporary, Corpus::new(memory), options.clone());
    let iterations = request.max_iterations.unwrap_or(DEFAULT_ITERATIONS);
    let input: Map = [(MAX_ITERATIONS.to_owned(), Value::from(iterations))].into_iter().collect();
    let request = TurnRequest { extra_input: input, ..TurnRequest::new(&request.user_query) };
    let agent = Agent::new(temporary, assistant);
    Ok(Box::pin(agent.chat_with(scope, thread, request, &mut |_| {})).await?)
}

fn result(request: &RunRequest, options: &TesisOptions, turn: &Turn, message_count: u64) -> RunResult {
    let data: Map = turn.data.as_ref().and_then(|data| data.read().ok()).unwrap_or_default();
    let number = |name: &str| data.get(name).and_then(Value::as_u64).unwrap_or_default();
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let error = turn.error.as_ref().map(|error| error.code.clone());
    let is_stored = request.user_id.is_some() && error.is_none();
    let query_tokens = threadkeep::ApproximateCounter.count(&request.user_query).0;
    let embedding_price = options.embedder.as_ref().and_then(|embedder| {
        EMBEDDING_PRICES.iter().find(|(model, _)| embedder.model().ends_with(model)).map(|(_, price)| *price)
    });
    let embedding_cost =
        embedding_price.unwrap_or(0.0) * query_tokens as f64 * turn.usage.embedding_calls as f64 / 1_000_000.0;
    RunResult {
        query: request.user_query.clone(),
        conversation_id: None,
        results: data.get("resultados").and_then(Value::as_array).cloned().unwrap_or_default(),
        final_response: turn.reply.clone(),
        sources_used: data
            .get("sources_used")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_i64).collect())
            .unwrap_or_default(),
        metadata: ResultMetadata {
            reused_sources: data.get("reused_sources").and_then(Value::as_bool).unwrap_or_default(),
            discussed_tesis_count: number("discussed_tesis_count"),
            total_messages: message_count + if is_stored { 2 } else { 0 },
        },
        iterations: number("iterations"),
        exit_reason: error.unwrap_or_else(|| text("exit_reason")),
        llm_reasoning: text("llm_reasoning"),
        total_cost: turn.usage.cost_usd.unwrap_or(0.0) + embedding_cost,
        embedding_calls: turn.usage.embedding_calls,
        llm_calls: turn.usage.model_calls,
        warning: None,
    }
}

/// Stores question and answer in one commit. A new conversation that stays empty is deleted again.
async fn save(
    memory: &Memory,
    scope: &Scope,
    thread: Option<ThreadId>,
    request: &RunRequest,
    turn: &Turn,
) -> Result<ThreadId, RunError> {
    let id = match thread {
        Some(id) => id,
        None => {
            let title: String = request.user_query.chars().take(TITLE_CHARACTERS).collect();
            let metadata = Map::from_iter([("model".to_owned(), turn.model.clone().into())]);
            let open =
                OpenThread { title: Some(title), metadata, ..OpenThread::new(scope, memory.generate_thread_id()) };
            memory.open_thread(scope, open).await?.thread.id
        }
    };
    let mut answer = Content::text(Role::Assistant, &turn.reply);
    answer.sources = turn.sources.iter().take(5).cloned().collect();
    answer.data = turn.data.clone().map(|data| with_total(&data, turn));
    answer.agent = Some(turn.agent.clone());
    let pair = memory.batch().append(Draft::user(&request.user_query)).append(Draft::new(answer));
    match pair.commit(scope, id).await {
        Ok(_) => Ok(id),
        Err(error) => {
            if thread.is_none() {
                // If this fails as well, an empty conversation remains.
                let _ = memory.delete_thread(scope, id).await;
            }
            Err(error.into())
        }
    }
}

/// Adds the counts of the engine to the data of the answer.
fn with_total(data: &JsonText, turn: &Turn) -> JsonText {
    let Ok(mut map) = data.read::<Map>() else { return data.clone() };
    map.remove("total_messages");
    map.insert("llm_calls".to_owned(), turn.usage.model_calls.into());
    map.insert("embedding_calls".to_owned(), turn.usage.embedding_calls.into());
    JsonText::from(&Value::Object(map))
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Memory(error.into())
    }
}
