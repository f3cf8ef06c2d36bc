//! The definition of an assistant: its model, tools, graph and policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_context::enrichment::Enrichment;
use threadkeep_context::{ContextPolicy, Recalled};
use threadkeep_core::{
    ApproximateCounter, ChatModel, Embedder, Map, Portable, Scope, ThreadId, Timestamp, TokenCounter, Tool, ToolSource,
};
use threadkeep_graph::{AnyGraph, Failure};
use threadkeep_memory::Memory;

use crate::{Activity, NoticeSource, Result, Turn, TurnReport, tool_loop};

/// An assistant: its definition, and its behaviour outside its graph.
///
/// A [`Definition`] is itself an assistant. An assistant that looks up data before its graph runs, or that replies differently to
/// failures, implements this trait and contains a definition.
#[async_trait]
pub trait Assistant: Portable + std::fmt::Debug {
    /// Returns the definition.
    fn definition(&self) -> &Definition;

    /// Prepares a turn before its graph runs. Returns further input for the graph, and context for the model in addition to the
    /// conversation. The user's message is stored before the call. The method must be read-only, because it is called again after a
    /// crash.
    ///
    /// # Errors
    /// A failure ends the turn. If a source that the turn can do without fails, omit it instead of failing.
    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        let _ = request;
        Ok(TurnPreparation::default())
    }

    /// Returns the model that a thread's settings name; `None` if the assistant has no model of that name.
    fn model_named(&self, name: &str) -> Option<Arc<dyn ChatModel>> {
        let model = &self.definition().model;
        (model.name() == name).then(|| Arc::clone(model))
    }

    /// Returns the text of a source that an answer cites, by the source's kind and id; `None` if the assistant's own collection does not
    /// contain it. Messages and passages of documents are not part of such a collection.
    ///
    /// # Errors
    /// The collection cannot be read.
    async fn source_text(&self, scope: &Scope, kind: &str, id: &str) -> Result<Option<String>> {
        let _ = (scope, kind, id);
        Ok(None)
    }

    /// Returns the reply to the user for a failed turn.
    fn failure_reply(&self, failure: &Failure) -> String {
        format!("I could not answer this: {}. Your message is saved; please try again.", failure.message)
    }

    /// Reports what a turn did, for the results of runs ([`Agent::run`](crate::Agent::run)). `question` is the user's message.
    fn report(&self, question: &str, turn: &Turn) -> TurnReport {
        let _ = question;
        TurnReport::of(turn)
    }

    /// Returns the reply to the user when calls are waiting for approval. `previews` describe the calls.
    fn approval_reply(&self, previews: &[&str]) -> String {
        let commands: Vec<String> = previews.iter().map(|preview| format!("`{preview}`")).collect();
        format!("⚠️ This action requires approval\n{}", commands.join("\n"))
    }
}

/// The input of [`Assistant::prepare`].
#[derive(Clone, Debug)]
pub struct PrepareRequest<'a> {
    /// The memory.
    pub memory: &'a Memory,
    /// The scope on whose behalf the turn runs.
    pub scope: &'a Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The id of the turn.
    pub turn: &'a str,
    /// The text of the user's message.
    pub question: &'a str,
    /// The position of the user's message.
    pub seq: u64,
    /// Further input from the caller, such as the user's location.
    pub extra_input: &'a Map,
    /// The current time.
    pub now: Timestamp,
}

/// The result of [`Assistant::prepare`].
#[derive(Clone, Debug, Default)]
pub struct TurnPreparation {
    /// Further input for the graph. Its fields override fields of the same name in the caller's input.
    pub extra_input: Map,
    /// Text that follows the assistant's instructions in the system prompt, such as passages of documents.
    pub grounding: Option<String>,
    /// Messages of earlier conversations that match the question, best first.
    pub recalled: Vec<Recalled>,
    /// Facts about the conversation, to be added to its context.
    pub enrichment: Option<Enrichment>,
    /// The number of embedder calls that the preparation made.
    pub embedding_calls: u64,
}

/// The parts of an assistant.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name, as stored in its turns.
    pub name: String,
    /// Its purpose, as a sentence.
    pub description: String,
    /// Its graph. Default: [`tool_loop`].
    pub graph: Arc<dyn AnyGraph>,
    /// The model that answers unless the thread's settings name another model.
    pub model: Arc<dyn ChatModel>,
    /// The tools that its model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Further tools, which can change between turns.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// The activities that its graph's nodes may request, by name.
    pub activities: BTreeMap<String, Arc<dyn Activity>>,
    /// How the context of its model is assembled; the system prompt contains its instructions.
    pub context: ContextPolicy,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// Ranks recalled messages by meaning as well.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The limits of a turn.
    pub bounds: TurnLimits,
    /// How approvals are requested and decided.
    pub approvals: ApprovalPolicy,
    /// Whether a turn waits while another is running in the same thread.
    pub busy: BusyPolicy,
    /// When a turn stores the user's message.
    pub store_user_message: StoreUserMessage,
    /// The sampling temperature. `None` uses the provider's default.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of an answer. `None` uses the provider's default.
    pub max_tokens: Option<u64>,
    /// The metadata of threads that are created for conversations with the assistant.
    pub thread_metadata: Map,
    /// What clients can subscribe to besides threads. Default: nothing.
    pub notices: Option<Arc<dyn NoticeSource>>,
}

impl Definition {
    /// Creates an assistant without tools that answers with a model.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn ChatModel>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            graph: Arc::new(tool_loop()),
            model,
            tools: Vec::new(),
            tool_sources: Vec::new(),
            activities: BTreeMap::new(),
            context: ContextPolicy::default(),
            counter: Arc::new(ApproximateCounter),
            embedder: None,
            bounds: TurnLimits::default(),
            approvals: ApprovalPolicy::default(),
            busy: BusyPolicy::default(),
            store_user_message: StoreUserMessage::default(),
            temperature: None,
            max_tokens: None,
            thread_metadata: Map::new(),
            notices: None,
        }
    }

    /// Sets the instructions.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.context.system_prompt = Some(instructions.into());
        self
    }

    /// Replaces the graph.
    #[must_use]
    pub fn with_graph(self, graph: impl AnyGraph) -> Self {
        Self { graph: Arc::new(graph), ..self }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Returns all tools that are known at present. Of several tools with the same name, only the first is returned.
    #[must_use]
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools.clone();
        for tool in self.tool_sources.iter().flat_map(|source| source.tools()) {
            if !tools.iter().any(|known| known.spec().name() == tool.spec().name()) {
                tools.push(tool);
            }
        }
        tools
    }

    /// Adds an activity.
    #[must_use]
    pub fn with_activity(mut self, activity: impl Activity) -> Self {
        self.activities.insert(activity.name().to_owned(), Arc::new(activity));
        self
    }
}

impl Assistant for Definition {
    fn definition(&self) -> &Definition {
        self
    }
}

/// The limits of a turn. The number of steps is limited by the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnLimits {
    /// Maximum number of model calls. Default: 20.
    pub model_calls: u64,
    /// Maximum number of tool calls; further calls are refused. Default: 40.
    pub tool_calls: u64,
    /// Maximum number of input and output tokens, as far as models report them. When the maximum is reached, no more models are called.
    /// Default: 400,000.
    pub tokens: u64,
    /// Maximum cost in US dollars, as far as prices are known. When the maximum is reached, no more models are called. Default: no limit.
    pub cost_usd: Option<f64>,
    /// Timeout of a model call. Default: 3 minutes.
    pub model_timeout: Duration,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            model_calls: 20,
            tool_calls: 40,
            tokens: 400_000,
            cost_usd: None,
            model_timeout: Duration::from_secs(180),
        }
    }
}

/// How approvals are requested and decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPolicy {
    /// The time after which a request expires and can no longer be decided. Default: 30 minutes.
    pub expires_after: Duration,
    /// The names of the people who may decide, as authenticated by callers. `None` allows everyone whose scope includes the thread.
    pub deciders: Option<Vec<String>>,
    /// Whether a new request replaces the open requests of earlier turns. Default: it does.
    pub earlier_requests: EarlierRequests,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self { expires_after: Duration::from_secs(30 * 60), deciders: None, earlier_requests: EarlierRequests::Replace }
    }
}

/// What happens to open approval requests when a later turn makes a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRequests {
    /// The earlier requests can no longer be decided.
    Replace,
    /// The earlier requests remain open.
    Keep,
}

/// What happens to a new turn while another is running in the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPolicy {
    /// The new turn waits at most for this duration, and is then refused.
    Wait(Duration),
    /// The new turn is refused immediately.
    Refuse,
}

impl Default for BusyPolicy {
    fn default() -> Self {
        Self::Wait(Duration::from_secs(60))
    }
}

/// When a turn stores the user's message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreUserMessage {
    /// Before the model is called. A message without an answer remains if the turn fails, with a reply that explains the failure.
    #[default]
    BeforeModelCall,
    /// With the answer, in one commit: the thread contains both or neither. Before that commit, only the record of the run contains the
    /// message, from which an interrupted turn is resumed. A failed turn stores no messages, unless it called a tool with side effects.
    WithAnswer,
}
