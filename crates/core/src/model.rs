//! Talking to a model: what it is asked, what it answers, and the port in between.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{JsonText, Part, Portable, Role, TokenCount, TokenCounter, ToolCall, ToolResult, Usage};

/// Tokens that a message takes beside its words, by the rule that OpenAI records for its chat models.
const MESSAGE_TOKENS: TokenCount = TokenCount(4);
/// Tokens that a request takes beside its messages: those that begin the answer.
const ANSWER_TOKENS: TokenCount = TokenCount(3);

/// A message for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What is said. A tool's results follow the message that calls it.
    pub parts: Vec<Part>,
    /// The position of the message in its thread, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl ChatMessage {
    /// Makes a message of text that is no message of the thread.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, author: None, parts: vec![Part::Text(text.into())], seq: None }
    }

    /// The words: its text parts and image descriptions, a line feed between two of them.
    #[must_use]
    pub fn plain_text(&self) -> String {
        self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n")
    }

    /// The tools that it calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_among(&self.parts)
    }

    /// The results that it brings, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None })
    }

    /// Counts what it takes: the words of all its parts, ids and names of calls, the author, and 4 for its frame.
    #[must_use]
    pub fn count_tokens(&self, counter: &dyn TokenCounter) -> TokenCount {
        count_message_tokens(self.author.as_deref(), &self.parts, counter)
    }
}

/// Counts what a message of an author and parts takes, as [`ChatMessage::count_tokens`] does.
#[must_use]
pub fn count_message_tokens(author: Option<&str>, parts: &[Part], counter: &dyn TokenCounter) -> TokenCount {
    let author = author.map_or(TokenCount::ZERO, |author| counter.count(author));
    MESSAGE_TOKENS + author + parts.iter().map(|part| count_part(part, counter)).sum()
}

/// Counts what messages take together: each of them, and 3 tokens that begin the answer.
#[must_use]
pub fn count_tokens(messages: &[ChatMessage], counter: &dyn TokenCounter) -> TokenCount {
    add_tokens(messages.iter().map(|message| message.count_tokens(counter)))
}

/// What messages take together that take so much each, as [`count_tokens`] does.
#[must_use]
pub fn add_tokens(counts: impl IntoIterator<Item = TokenCount>) -> TokenCount {
    ANSWER_TOKENS + counts.into_iter().sum()
}

fn calls_among(parts: &[Part]) -> impl Iterator<Item = &ToolCall> {
    parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
}

fn count_part(part: &Part, counter: &dyn TokenCounter) -> TokenCount {
    match part {
        Part::Text(text) | Part::Reasoning(text) => counter.count(text),
        Part::ToolCall(call) => {
            counter.count(&call.id) + counter.count(&call.name) + counter.count(call.arguments.as_str())
        }
        Part::ToolResult(result) => counter.count(&result.call_id) + counter.count(&result.output),
        Part::Image(image) => {
            counter.count(&image.url)
                + image.description.as_deref().map_or(TokenCount::ZERO, |text| counter.count(text))
        }
        Part::Raw { json, .. } => counter.count(json.as_str()),
    }
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// Its name: letters, digits, `_` and `-`, at most 64 of them.
    pub name: String,
    /// What it does and when to call it, in words for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: JsonText,
    /// Whether a provider is to hold the model to the schema, where it can; its own default where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_strict: Option<bool>,
}

/// Whether a model may, must or must not call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call one.
    Required,
    /// It must call this one.
    Named(String),
}

/// The form that the words of an answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Any JSON object.
    Json,
    /// JSON that a schema describes.
    Schema {
        /// What the schema is called: letters, digits, `_` and `-`, at most 64 of them.
        name: String,
        /// What it is for, in words for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The JSON Schema, an object.
        schema: JsonText,
        /// Whether the provider has to keep the answer to it; `None` leaves that to the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_strict: Option<bool>,
    },
}

/// How words are chosen. `None` and empty leave it to the provider; what a provider has no word for is not told to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// The share of the likeliest words that are chosen from, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How much what was said often is avoided, from -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// How much what was said at all is avoided, from -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// The same seed is to give the same answer, as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation, oldest first: exactly what an assembled context holds, and what this turn has added to it.
    pub messages: Vec<ChatMessage>,
    /// Tools that it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDescription>,
    /// Whether it may, must or must not call them.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// How much chance plays a part, from 0 to 2. `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens that it may write at most. `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The form that its words must have. `None` lets it write as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// Whether it may call several tools at once. `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// How much it is to think before it answers, by the provider's own word for it (`low`, `high`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// How words are chosen, beside `temperature`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
}

fn is_default(sampling: &Sampling) -> bool {
    *sampling == Sampling::default()
}

/// A piece of an answer as it is made. Pieces of one kind join to the parts of the finished [`ChatAnswer`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatDelta {
    /// Words.
    Text(String),
    /// Thoughts before the words.
    Reasoning(String),
    /// What came so far is void: the model is asked again, and begins anew.
    Restarted,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It had said everything.
    Stop,
    /// It waits for the results of its tool calls.
    ToolCalls,
    /// It ran into the bound of tokens: the text is cut off.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

/// What a model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatAnswer {
    /// Text, reasoning and tool calls, in the model's order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish: Finish,
    /// The model that spoke, by the provider's own name for it.
    pub model: String,
    /// What it took, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl ChatAnswer {
    /// The words, without thoughts and calls.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("")
    }

    /// The tools that it calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_among(&self.parts)
    }

    /// The message that the answer is, for the next request of the same turn.
    #[must_use]
    pub fn message(&self) -> ChatMessage {
        ChatMessage { role: Role::Assistant, author: None, parts: self.parts.clone(), seq: None }
    }
}

/// Takes the pieces of an answer while it is made.
pub type DeltaSink<'a> = &'a mut (dyn FnMut(ChatDelta) + Send);

/// A language model, or what stands in for one.
///
/// Dropping the future cancels the call: nothing of it runs on, and the connection to a provider is closed.
#[async_trait]
pub trait ChatModel: Portable + std::fmt::Debug {
    /// The model's name, as it stands in a turn: a provider's id, `offline`, `scripted`.
    fn name(&self) -> &str;

    /// Who runs it, as traces and figures name it: `openai`, `anthropic`. Default: `threadkeep`, for what stands in for a
    /// model.
    fn provider(&self) -> &str {
        "threadkeep"
    }

    /// Answers. Pieces go to `deltas` as they come; a model that cannot stream gives its text as one.
    ///
    /// Calls in the answer have ids that are unique within it, and arguments that are JSON objects; whatever a provider
    /// made of them is repaired before, or is a [`ModelError::MalformedCall`].
    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError>;
}

/// Why a model did not answer. Variants say what a caller can do; user content and keys are in none of them but
/// [`ModelError::MalformedCall`], whose text is the model's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It cannot be reached, broke off or has too much to do: ask again later.
    #[error("model {model} unavailable: {detail}")]
    Unavailable {
        /// Which model.
        model: String,
        /// What happened, without content.
        detail: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    #[error("model {model} gave no answer within {} ms", after.as_millis())]
    TimedOut {
        /// Which model.
        model: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The key is missing, wrong or lacks a right.
    #[error("model {model} refused the key: {detail}")]
    Unauthorized {
        /// Which model.
        model: String,
        /// The provider's words.
        detail: String,
    },
    /// The provider does not take this request, and never will.
    #[error("model {model} refused the request ({status}): {detail}")]
    Refused {
        /// Which model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        detail: String,
    },
    /// The request is longer than what the model can read.
    #[error("the context is too long for model {model}")]
    ContextTooLong {
        /// Which model.
        model: String,
    },
    /// It tried to call a tool in a form that could not be read, and asking again did not help.
    #[error("model {model} wrote a tool call that cannot be read")]
    MalformedCall {
        /// Which model.
        model: String,
        /// What it wrote.
        text: String,
    },
    /// What came is no answer.
    #[error("model {model} gave an invalid answer: {detail}")]
    InvalidAnswer {
        /// Which model.
        model: String,
        /// What is wrong with it.
        detail: String,
    },
}

impl ModelError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::TimedOut { .. })
    }

    /// The error's name for programs, such as `model_unavailable`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "model_unavailable",
            Self::TimedOut { .. } => "model_timed_out",
            Self::Unauthorized { .. } => "model_unauthorized",
            Self::Refused { .. } => "model_refused",
            Self::ContextTooLong { .. } => "context_too_long",
            Self::MalformedCall { .. } => "malformed_tool_call",
            Self::InvalidAnswer { .. } => "invalid_model_answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_the_message_that_the_results_follow() {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "arrivals".to_owned(),
            arguments: JsonText::new("{}").expect("this is JSON"),
        };
        let parts = vec![
            Part::Reasoning("hm".to_owned()),
            Part::Text("Let me ".to_owned()),
            Part::Text("look.".to_owned()),
            Part::ToolCall(call.clone()),
        ];
        let answer = ChatAnswer { parts: parts.clone(), finish: Finish::ToolCalls, model: "m".to_owned(), usage: None };
        assert_eq!(answer.text(), "Let me look.");
        assert_eq!(answer.tool_calls().collect::<Vec<_>>(), [&call]);
        let message = answer.message();
        assert_eq!((message.role, &message.parts), (Role::Assistant, &parts));
        assert_eq!(message.plain_text(), "Let me \nlook.");
        assert_eq!(message.tool_calls().collect::<Vec<_>>(), [&call]);
        assert_eq!(message.tool_results().count(), 0);
    }

    #[test]
    fn only_what_passes_is_worth_another_try() {
        let model = || "m".to_owned();
        let unavailable =
            ModelError::Unavailable { model: model(), detail: "connection refused".to_owned(), retry_after: None };
        assert!(unavailable.is_retryable());
        assert!(ModelError::TimedOut { model: model(), after: Duration::from_secs(1) }.is_retryable());
        for error in [
            ModelError::Refused { model: model(), status: 400, detail: String::new() },
            ModelError::ContextTooLong { model: model() },
            ModelError::MalformedCall { model: model(), text: "<function=".to_owned() },
        ] {
            assert!(!error.is_retryable(), "{error}");
        }
    }
}
