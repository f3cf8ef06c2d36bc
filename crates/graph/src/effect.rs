//! Effects: the work that a run requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatMessage, JsonText, Source, ToolCall, ToolChoice};

use crate::Failure;

/// The id of a request within a run. Ids are assigned in the order of requests, identically in every replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u32);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Work that a run requests. Every effect except [`Effect::Finish`] is answered by an event with the same request id.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Call a model.
    CallModel {
        /// The request id.
        request: RequestId,
        /// The node that made the request.
        node: &'static str,
        /// The model request.
        model_request: Box<ModelRequest>,
    },
    /// Call a tool.
    CallTool {
        /// The request id.
        request: RequestId,
        /// The node that made the request.
        node: &'static str,
        /// The call.
        call: ToolCall,
    },
    /// Run an application-defined activity.
    RunActivity {
        /// The request id.
        request: RequestId,
        /// The node that made the request.
        node: &'static str,
        /// The activity's name.
        name: &'static str,
        /// The activity's input.
        input: JsonText,
    },
    /// Ask a person for approval. This may take days: a run that waits for nothing else can be suspended.
    RequestApproval {
        /// The request id.
        request: RequestId,
        /// The node that made the request.
        node: &'static str,
        /// The question, as text for a person.
        question: String,
        /// The subject of the question, as JSON for programs.
        input: JsonText,
    },
    /// The run is over.
    Finish(Result<Output, Failure>),
}

impl Effect {
    /// Returns the request id; `None` for [`Effect::Finish`].
    #[must_use]
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::CallModel { request, .. }
            | Self::CallTool { request, .. }
            | Self::RunActivity { request, .. }
            | Self::RequestApproval { request, .. } => Some(*request),
            Self::Finish(_) => None,
        }
    }
}

/// A node's request to a model. The driver adds the conversation history and the tool descriptions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The messages that this turn has added to the conversation so far.
    pub messages: Vec<ChatMessage>,
    /// Instructions of the node, added after those of the assistant.
    pub instructions: Option<String>,
    /// What precedes the messages.
    pub history: History,
    /// The tools that the model may call.
    pub tools: ToolSelection,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// Whether the answer is the reply to the user, and is therefore streamed.
    pub is_reply: bool,
    /// The sampling temperature; `None` for the assistant's setting.
    pub temperature: Option<f64>,
    /// The maximum number of output tokens; `None` for the assistant's setting.
    pub max_tokens: Option<u64>,
}

impl ModelRequest {
    /// Creates a request for the reply to the user: with the conversation, followed by this turn's messages, and with all tools.
    #[must_use]
    pub fn reply(messages: &[ChatMessage]) -> Self {
        Self { messages: messages.to_vec(), is_reply: true, ..Self::default() }
    }

    /// Creates a request outside the conversation: without history and tools, and not streamed to the user.
    #[must_use]
    pub fn without_history(messages: Vec<ChatMessage>) -> Self {
        Self { messages, history: History::None, tools: ToolSelection::None, ..Self::default() }
    }

    /// Sets the node's instructions.
    #[must_use]
    pub fn with_instructions(self, instructions: impl Into<String>) -> Self {
        Self { instructions: Some(instructions.into()), ..self }
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(self, tools: ToolSelection) -> Self {
        Self { tools, ..self }
    }
}

/// What precedes the messages of a model request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// The conversation as the assistant's context policy renders it, including the question.
    #[default]
    Conversation,
    /// No messages.
    None,
}

/// Which tools a model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolSelection {
    /// All tools of the assistant that the thread allows.
    #[default]
    All,
    /// No tools.
    None,
    /// The tools with these names, if the thread allows them.
    Only(Vec<String>),
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The reply to the user.
    pub reply: String,
    /// The name of the assistant's agent that answered.
    pub agent: Option<String>,
    /// The confidence in the choice of that agent, from 0 to 1.
    pub confidence: Option<f64>,
    /// Application data that is stored with the message.
    pub data: Option<JsonText>,
    /// The sources of the answer.
    pub sources: Vec<Source>,
}

impl Output {
    /// Creates an output with only a reply.
    #[must_use]
    pub fn reply(reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..Self::default() }
    }
}
