//! What makes an assistant: its model, tools, graph and policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_context::enrichment::Enrichment;
use threadkeep_context::{ContextPolicy, Recalled};
use threadkeep_core::{
    ApproximateCounter, ChatModel, Embedder, Map, Portable, Scope, ThreadId, Timestamp, TokenCounter, Tool,
};
use threadkeep_graph::{AnyGraph, Failure};
use threadkeep_memory::Memory;

use crate::{Activity, tool_loop};

/// An assistant: what it is made of, and what it does beside its graph.
///
/// A [`Definition`] is one by itself. An assistant that looks things up before its graph runs, or has words of its own
/// for failures, implements the trait around a definition.
#[async_trait]
pub trait Assistant: Portable + std::fmt::Debug {
    /// What it is made of.
    fn definition(&self) -> &Definition;

    /// Gathers what a turn needs before its graph runs: what the graph is given, what the model is told beside the
    /// conversation. The user's message is stored by then. It only looks: after a crash it is called again.
    ///
    /// # Errors
    /// A failure ends the turn. A source that fails without harm is left out instead.
    async fn prepare(&self, asked: &Asked<'_>) -> Result<Prepared, Failure> {
        let _ = asked;
        Ok(Prepared::default())
    }

    /// The model that a thread's settings name; `None` where this assistant has no such model.
    fn model_named(&self, name: &str) -> Option<Arc<dyn ChatModel>> {
        let model = &self.definition().model;
        (model.name() == name).then(|| Arc::clone(model))
    }

    /// What the user reads when a turn failed.
    fn failure_reply(&self, failure: &Failure) -> String {
        format!("I could not answer this: {}. Your message is kept; please ask again.", failure.message)
    }

    /// What the user reads when calls wait for an approval, by their previews.
    fn approval_reply(&self, previews: &[&str]) -> String {
        let commands: Vec<String> = previews.iter().map(|preview| format!("`{preview}`")).collect();
        format!("⚠️ This action requires approval\n{}", commands.join("\n"))
    }
}

/// What is asked in a turn.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The conversations.
    pub memory: &'a Memory,
    /// On whose behalf.
    pub scope: &'a Scope,
    /// In which conversation.
    pub thread: ThreadId,
    /// In which turn.
    pub turn: &'a str,
    /// The user's words.
    pub question: &'a str,
    /// The position of the user's message.
    pub seq: u64,
    /// What the door gave beside the words, such as where the user is.
    pub given: &'a Map,
    /// When.
    pub now: Timestamp,
}

/// What an assistant gathered for a turn.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// What the graph is given beside the question; members here win over those of the door.
    pub given: Map,
    /// What the model is told behind the assistant's instructions, such as passages of documents.
    pub grounding: Option<String>,
    /// Messages found for the question, best first.
    pub recalled: Vec<Recalled>,
    /// What the conversation is about.
    pub enrichment: Option<Enrichment>,
    /// Calls of an embedder that it took.
    pub embedding_calls: u64,
}

/// What an assistant is made of.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name, as it stands in turns.
    pub name: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// Its graph. Default: [`tool_loop`].
    pub graph: Arc<dyn AnyGraph>,
    /// The model that answers unless a thread's settings name another.
    pub model: Arc<dyn ChatModel>,
    /// What its model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What its graph's nodes may ask for.
    pub activities: BTreeMap<String, Arc<dyn Activity>>,
    /// What its model sees; the instructions are the system prompt here.
    pub context: ContextPolicy,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// Joins the ranking of recalled messages.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What a turn may take.
    pub bounds: Bounds,
    /// How approvals are asked for and given.
    pub approvals: ApprovalPolicy,
    /// What becomes of a turn while another is on its way in the same thread.
    pub busy: BusyPolicy,
    /// How much chance plays a part in answers. `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Tokens that an answer may have. `None` leaves it to the provider.
    pub max_tokens: Option<u64>,
}

impl Definition {
    /// An assistant without tools that answers with a model.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn ChatModel>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            graph: Arc::new(tool_loop()),
            model,
            tools: Vec::new(),
            activities: BTreeMap::new(),
            context: ContextPolicy::default(),
            counter: Arc::new(ApproximateCounter),
            embedder: None,
            bounds: Bounds::default(),
            approvals: ApprovalPolicy::default(),
            busy: BusyPolicy::default(),
            temperature: None,
            max_tokens: None,
        }
    }

    /// Says how it shall behave.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.context.system_prompt = Some(instructions.into());
        self
    }

    /// Gives it another graph.
    #[must_use]
    pub fn with_graph(self, graph: impl AnyGraph) -> Self {
        Self { graph: Arc::new(graph), ..self }
    }

    /// Gives it a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Gives its graph an activity.
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

/// What a turn may take. A graph bounds its steps itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Calls of models. Default: 20.
    pub model_calls: u64,
    /// Calls of tools; further ones are told so and not made. Default: 40.
    pub tool_calls: u64,
    /// Tokens that models read and wrote, where they tell: none is asked once they are used up. Default: 400,000.
    pub tokens: u64,
    /// US dollars, where a price is known: no model is asked once they are spent. Default: no bound.
    pub cost_usd: Option<f64>,
    /// How long a model may take to answer. Default: 3 minutes.
    pub model_timeout: Duration,
}

impl Default for Bounds {
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

/// How approvals are asked for and given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPolicy {
    /// How long a request stands. Default: 30 minutes.
    pub expires_after: Duration,
    /// Who may decide, by the names that doors give. `None` for everyone who reaches the thread.
    pub deciders: Option<Vec<String>>,
    /// What becomes of open requests of earlier turns when a turn requests another. Default: they are void.
    pub earlier: EarlierRequests,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self { expires_after: Duration::from_secs(30 * 60), deciders: None, earlier: EarlierRequests::Replace }
    }
}

/// What becomes of open requests when a later turn makes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRequests {
    /// They are void.
    Replace,
    /// They stand.
    Keep,
}

/// What becomes of a turn while another is on its way in the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPolicy {
    /// It waits, so long at most; then it is refused.
    Wait(Duration),
    /// It is refused.
    Refuse,
}

impl Default for BusyPolicy {
    fn default() -> Self {
        Self::Wait(Duration::from_secs(60))
    }
}
