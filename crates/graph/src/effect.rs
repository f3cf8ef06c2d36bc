//! What a run asks for.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatMessage, JsonText, Source, ToolCall, ToolChoice};

use crate::Failure;

/// Names one request of a run. Numbers are given in the order of asking, the same in every replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u32);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something to be done for a run. All but the last are answered by an event that names the request.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask a model.
    CallModel {
        /// The request.
        request: RequestId,
        /// The node that asks.
        node: &'static str,
        /// What to ask.
        ask: Box<ModelAsk>,
    },
    /// Call a tool.
    CallTool {
        /// The request.
        request: RequestId,
        /// The node that asks.
        node: &'static str,
        /// Which, and with what.
        call: ToolCall,
    },
    /// Do some other work of a node's.
    RunActivity {
        /// The request.
        request: RequestId,
        /// The node that asks.
        node: &'static str,
        /// Which activity.
        name: &'static str,
        /// What it is given.
        input: JsonText,
    },
    /// Ask a person. It may take days: a run that waits for nothing else is put away.
    AskPerson {
        /// The request.
        request: RequestId,
        /// The node that asks.
        node: &'static str,
        /// What it is about, in words.
        question: String,
        /// What it is about, for programs.
        input: JsonText,
    },
    /// The run is over.
    Finish(Result<Output, Failure>),
}

impl Effect {
    /// The request, but for the end.
    #[must_use]
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::CallModel { request, .. }
            | Self::CallTool { request, .. }
            | Self::RunActivity { request, .. }
            | Self::AskPerson { request, .. } => Some(*request),
            Self::Finish(_) => None,
        }
    }
}

/// What a node asks a model. The driver adds the conversation before it, and descriptions of tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAsk {
    /// What this turn added to the conversation so far.
    pub messages: Vec<ChatMessage>,
    /// Instructions of the node's own, behind those of the assistant.
    pub instructions: Option<String>,
    /// What stands before the messages.
    pub history: History,
    /// The tools that it may call.
    pub tools: ToolUse,
    /// Whether it may, must or must not call them.
    pub tool_choice: ToolChoice,
    /// Whether its words are the reply, and streamed to the user as they come.
    pub speaks: bool,
    /// How much chance plays a part; the assistant's own setting where there is none.
    pub temperature: Option<f64>,
    /// Tokens that it may write at most; the assistant's own setting where there is none.
    pub max_tokens: Option<u64>,
}

impl ModelAsk {
    /// Asks for the reply: the conversation, then what this turn added, with all tools.
    #[must_use]
    pub fn reply(messages: &[ChatMessage]) -> Self {
        Self { messages: messages.to_vec(), speaks: true, ..Self::default() }
    }

    /// Asks something beside the conversation, which the user does not see.
    #[must_use]
    pub fn aside(messages: Vec<ChatMessage>) -> Self {
        Self { messages, history: History::None, tools: ToolUse::None, ..Self::default() }
    }

    /// Adds instructions of the node's own.
    #[must_use]
    pub fn with_instructions(self, instructions: impl Into<String>) -> Self {
        Self { instructions: Some(instructions.into()), ..self }
    }

    /// Says which tools it may call.
    #[must_use]
    pub fn with_tools(self, tools: ToolUse) -> Self {
        Self { tools, ..self }
    }
}

/// What a model is shown before the messages of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// The conversation as the assistant's policy shows it, with the question.
    #[default]
    Conversation,
    /// Nothing.
    None,
}

/// Which tools a model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolUse {
    /// All that the assistant has and the thread allows.
    #[default]
    All,
    /// None.
    None,
    /// Those of these names, as far as the thread allows them.
    Only(Vec<String>),
}

/// What a run ends with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// What the user reads.
    pub reply: String,
    /// Which of the assistant's agents answered.
    pub agent: Option<String>,
    /// How sure the choice of that agent is, from 0 to 1.
    pub confidence: Option<f64>,
    /// The assistant's own, kept with the message.
    pub data: Option<JsonText>,
    /// What the answer stands on.
    pub sources: Vec<Source>,
}

impl Output {
    /// Makes an output of words.
    #[must_use]
    pub fn reply(reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..Self::default() }
    }
}
