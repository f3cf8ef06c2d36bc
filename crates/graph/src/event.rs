//! What a run is told.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatAnswer, Failure, JsonText, Source};

use crate::RequestId;

/// Something that happened to a run. Its journal is the list of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Something that was asked for is done, or has failed.
    Finished {
        /// What was asked for.
        request: RequestId,
        /// What came of it.
        outcome: Outcome,
    },
    /// The run is to end here, whatever is outstanding.
    Stopped {
        /// Why.
        failure: Failure,
    },
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A model answered.
    Answer(ChatAnswer),
    /// A tool gave a result, which may be an error that the model is to read.
    Tool(ToolOutcome),
    /// An activity gave its output.
    Activity(JsonText),
    /// A person decided.
    Decision(Decision),
    /// It failed.
    Failed(Failure),
}

impl Outcome {
    /// What it answers. A failure answers everything.
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

/// What a tool gave, as a graph sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// The call that it answers.
    pub call_id: String,
    /// What the model reads, within the tool's bound.
    pub output: String,
    /// Whether it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The result for programs, where the tool gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<JsonText>,
    /// What the result stands on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

/// What a person said to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it shall be so.
    pub approved: bool,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is to be done in place of what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<JsonText>,
}
