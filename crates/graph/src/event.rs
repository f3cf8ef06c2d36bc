//! Events: the inputs of a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatAnswer, Failure, JsonText, Source};

use crate::RequestId;

/// An input of a run. A run's journal is the list of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A request completed or failed.
    Finished {
        /// The request id.
        request: RequestId,
        /// The outcome.
        outcome: Outcome,
    },
    /// The run was stopped. Its outstanding requests are discarded.
    Stopped {
        /// The reason.
        failure: Failure,
    },
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A model answered.
    Answer(ChatAnswer),
    /// A tool returned a result, which may be an error for the model to read.
    Tool(ToolOutcome),
    /// An activity returned its output.
    Activity(JsonText),
    /// A person decided.
    Decision(Decision),
    /// The request failed.
    Failed(Failure),
}

impl Outcome {
    /// Returns the kind of this outcome. Every request accepts [`OutcomeKind::Failure`].
    #[must_use]
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Answer(_) => OutcomeKind::Answer,
            Self::Tool(_) => OutcomeKind::Tool,
            Self::Activity(_) => OutcomeKind::Activity,
            Self::Decision(_) => OutcomeKind::Decision,
            Self::Failed(_) => OutcomeKind::Failure,
        }
    }
}

/// The kinds of [`Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// A model's answer.
    Answer,
    /// A tool's result.
    Tool,
    /// An activity's output.
    Activity,
    /// A person's decision.
    Decision,
    /// A failure.
    Failure,
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "a model's answer",
            Self::Tool => "a tool's result",
            Self::Activity => "an activity's output",
            Self::Decision => "a person's decision",
            Self::Failure => "a failure",
        })
    }
}

/// A tool's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// The id of the call.
    pub call_id: String,
    /// The text for the model, within the tool's size limit.
    pub output: String,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The structured result, if the tool returns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<JsonText>,
    /// The sources of the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

/// A person's answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether the person approved.
    pub approved: bool,
    /// The name of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do instead of the proposal; `None` to do what was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<JsonText>,
}
