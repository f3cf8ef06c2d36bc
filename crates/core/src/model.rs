//! Language models: requests, answers and the port [`ChatModel`].

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{JsonText, Map, Part, Portable, Role, TokenCount, TokenCounter, ToolCall, ToolResult, Usage};

/// The overhead of a message in tokens, as OpenAI documents it for its chat models.
const MESSAGE_TOKENS: TokenCount = TokenCount(4);
/// The overhead of a request in tokens: the tokens that begin the answer.
const ANSWER_TOKENS: TokenCount = TokenCount(3);

/// A message in a request to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// The role of the author.
    pub role: Role,
    /// The name of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The parts. The results of tool calls are in messages after the message with the calls.
    pub parts: Vec<Part>,
    /// The position of the message in the thread; `None` if it is not a message of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl ChatMessage {
    /// Creates a text message that is not a message of the thread.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, author: None, parts: vec![Part::Text(text.into())], seq: None }
    }

    /// Returns the plain text: text parts and image descriptions, separated by line feeds.
    #[must_use]
    pub fn plain_text(&self) -> String {
        self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n")
    }

    /// Returns its tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_among(&self.parts)
    }

    /// Returns its tool results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None })
    }

    /// Counts its tokens: those of all parts, including the ids and names of tool calls, those of the author, and an overhead of 4.
    #[must_use]
    pub fn count_tokens(&self, counter: &dyn TokenCounter) -> TokenCount {
        count_message_tokens(self.author.as_deref(), &self.parts, counter)
    }
}

/// Counts the tokens of a message with this author and these parts, like [`ChatMessage::count_tokens`].
#[must_use]
pub fn count_message_tokens(author: Option<&str>, parts: &[Part], counter: &dyn TokenCounter) -> TokenCount {
    let author = author.map_or(TokenCount::ZERO, |author| counter.count(author));
    MESSAGE_TOKENS + author + parts.iter().map(|part| count_part(part, counter)).sum()
}

/// Counts the tokens of a request with these messages, including 3 tokens that begin the answer.
#[must_use]
pub fn count_tokens(messages: &[ChatMessage], counter: &dyn TokenCounter) -> TokenCount {
    add_tokens(messages.iter().map(|message| message.count_tokens(counter)))
}

/// Returns the token count of a request, given the counts of its messages. Includes 3 tokens that begin the answer, like
/// [`count_tokens`].
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

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// The name: at most 64 letters, digits, `_` and `-`.
    pub name: String,
    /// What the tool does and when to call it, for the model.
    pub description: String,
    /// The JSON Schema of the arguments, an object.
    pub parameters: JsonText,
    /// Whether the provider enforces the schema, if it can. `None` uses the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_strict: Option<bool>,
}

/// Whether a model may, must or must not call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call the tool with this name.
    Named(String),
}

/// The required format of the text of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Any JSON object.
    Json,
    /// JSON that matches a schema.
    Schema {
        /// The name of the schema: at most 64 letters, digits, `_` and `-`.
        name: String,
        /// The purpose of the schema, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The JSON Schema, an object.
        schema: JsonText,
        /// Whether the provider enforces the schema. `None` uses the provider's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_strict: Option<bool>,
    },
}

/// Sampling parameters. `None` and empty lists mean the provider's default. Parameters that a provider does not support are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// The probability mass of the tokens to sample from (nucleus sampling), from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The penalty for tokens by their frequency in the text so far, from -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// The penalty for tokens that occur in the text so far, from -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// The seed. With the same seed, the provider tries to return the same answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Stop sequences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Adjustments to the likelihood of tokens, from -100 to 100. The keys are the tokens' ids in the model's tokenizer.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub logit_bias: Map,
    /// How detailed the answer should be, in the provider's terms, such as `low`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation, oldest first: the assembled context, followed by the messages that this turn added.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDescription>,
    /// Whether the model may, must or must not call tools.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// The sampling temperature, from 0 to 2. `None` uses the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum number of output tokens. `None` uses the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The required format of the answer. `None` allows any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// Whether one answer may contain several tool calls. `None` uses the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The reasoning effort, in the provider's terms, such as `low` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Sampling parameters in addition to `temperature`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
}

impl ChatRequest {
    /// Returns the names of the options that the answer must respect: those set to a value other than the providers' default. Temperature,
    /// `top_p` and reasoning effort are not included, because models that do not accept them are called without them.
    pub fn required_options(&self) -> impl Iterator<Item = &'static str> {
        let Sampling { frequency_penalty, presence_penalty, seed, stop, logit_bias, verbosity, .. } = &self.sampling;
        let is_penalty = |number: Option<f64>| number.is_some_and(|number| number != 0.0);
        let options = [
            ("frequency_penalty", is_penalty(*frequency_penalty)),
            ("presence_penalty", is_penalty(*presence_penalty)),
            ("seed", seed.is_some()),
            ("stop", !stop.is_empty()),
            ("logit_bias", !logit_bias.is_empty()),
            ("verbosity", verbosity.as_ref().is_some_and(|verbosity| verbosity != "medium")),
            ("max_tokens", self.max_tokens.is_some()),
            ("format", self.format.is_some()),
            ("tools", !self.tools.is_empty()),
            ("tool_choice", matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_))),
        ];
        options.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

fn is_default(sampling: &Sampling) -> bool {
    *sampling == Sampling::default()
}

/// A part of a streamed answer. Deltas of one kind concatenate to the parts of the complete [`ChatAnswer`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatDelta {
    /// Text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// The request is retried: discard all deltas received so far.
    Restarted,
}

/// Why a model ended its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The answer reached the maximum number of tokens, and is truncated.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatAnswer {
    /// Text, reasoning and tool calls, in the order in which the model produced them.
    pub parts: Vec<Part>,
    /// Why the answer ended.
    pub finish: Finish,
    /// The provider's name of the model that answered.
    pub model: String,
    /// Token usage and cost, if the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl ChatAnswer {
    /// Returns the text, without reasoning and tool calls.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("")
    }

    /// Returns its tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_among(&self.parts)
    }

    /// Returns the answer as a message for the next request of the same turn.
    #[must_use]
    pub fn message(&self) -> ChatMessage {
        ChatMessage { role: Role::Assistant, author: None, parts: self.parts.clone(), seq: None }
    }
}

/// Receives the deltas of an answer.
pub type DeltaSink<'a> = &'a mut (dyn FnMut(ChatDelta) + Send);

/// A language model, or a substitute for one.
///
/// Dropping the future cancels the call: no part of it continues, and the connection to the provider is closed.
#[async_trait]
pub trait ChatModel: Portable + std::fmt::Debug {
    /// Returns the model's name, as stored with turns: the provider's model id, `offline` or `scripted`.
    fn name(&self) -> &str;

    /// Returns the provider's name in traces and metrics, such as `openai` or `anthropic`. Default: `threadkeep`, for models without
    /// a provider.
    fn provider(&self) -> &str {
        "threadkeep"
    }

    /// Returns the name of an option or content in `request` that the model would ignore; `None` if it ignores nothing. Options are
    /// named as the fields of [`ChatRequest`] and [`Sampling`]; content is `image`, `detail` or `file`. The model can be called anyway;
    /// doors call this method first, to reject requests instead of ignoring parts of them. Default: `None`.
    fn ignored(&self, request: &ChatRequest) -> Option<&'static str> {
        let _ = request;
        None
    }

    /// Answers a request, and passes deltas to `deltas` as they arrive. A model that cannot stream passes its text as one delta.
    ///
    /// Tool calls in the answer have unique ids, and their arguments are JSON objects. Implementations repair malformed calls, or
    /// fail with [`ModelError::MalformedCall`].
    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError>;
}

/// An error of a model. Variants are named for what the caller can do about it. They contain no keys and no user content, except
/// [`ModelError::MalformedCall`], which contains the model's text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model cannot be reached, ended the connection or is overloaded. Retry later.
    #[error("model {model} unavailable: {detail}")]
    Unavailable {
        /// The model.
        model: String,
        /// What happened, without content.
        detail: String,
        /// How long the provider asks callers to wait; `None` if it does not.
        retry_after: Option<Duration>,
    },
    /// The provider's limit on requests or tokens for the server's account is exceeded. Retry later.
    #[error("the provider's rate limit for model {model} is exceeded: {detail}")]
    RateLimited {
        /// The model.
        model: String,
        /// The provider's message.
        detail: String,
        /// How long the provider asks callers to wait; `None` if it does not.
        retry_after: Option<Duration>,
    },
    /// The model did not respond in time.
    #[error("model {model} did not respond within {} ms", after.as_millis())]
    TimedOut {
        /// The model.
        model: String,
        /// The timeout.
        after: Duration,
    },
    /// The API key is missing or invalid, or lacks a permission.
    #[error("model {model} rejected the API key: {detail}")]
    Unauthorized {
        /// The model.
        model: String,
        /// The provider's message.
        detail: String,
    },
    /// The provider rejected the request. Retrying the same request does not help.
    #[error("model {model} rejected the request ({status}): {detail}")]
    Refused {
        /// The model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        detail: String,
    },
    /// The request exceeds the context window of the model.
    #[error("the context is too long for model {model}")]
    ContextTooLong {
        /// The model.
        model: String,
    },
    /// The model returned a malformed tool call, even when the request was retried.
    #[error("model {model} returned a malformed tool call")]
    MalformedCall {
        /// The model.
        model: String,
        /// The malformed text.
        text: String,
    },
    /// The response from the provider is not a valid answer.
    #[error("model {model} returned an invalid answer: {detail}")]
    InvalidAnswer {
        /// The model.
        model: String,
        /// Why it is invalid.
        detail: String,
    },
}

impl ModelError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::RateLimited { .. } | Self::TimedOut { .. })
    }

    /// Returns the error code, such as `model_unavailable`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "model_unavailable",
            Self::RateLimited { .. } => "model_rate_limited",
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
    fn defaults_and_hints_are_not_required() {
        let sampling = Sampling {
            top_p: Some(0.5),
            frequency_penalty: Some(0.0),
            verbosity: Some("medium".to_owned()),
            ..Sampling::default()
        };
        let plain = ChatRequest { temperature: Some(0.25), sampling, ..ChatRequest::default() };
        assert_eq!(plain.required_options().count(), 0);
        let sampling =
            Sampling { presence_penalty: Some(0.5), verbosity: Some("low".to_owned()), ..Sampling::default() };
        let set = ChatRequest { format: Some(AnswerFormat::Json), sampling, ..plain };
        assert_eq!(set.required_options().collect::<Vec<_>>(), ["presence_penalty", "verbosity", "format"]);
    }

    #[test]
    fn answer_converts_to_a_message() {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "arrivals".to_owned(),
            arguments: JsonText::new("{}").expect("valid JSON"),
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
    fn only_unavailable_rate_limited_and_timed_out_are_retryable() {
        let model = || "m".to_owned();
        let unavailable =
            ModelError::Unavailable { model: model(), detail: "connection refused".to_owned(), retry_after: None };
        assert!(unavailable.is_retryable());
        assert!(ModelError::RateLimited { model: model(), detail: String::new(), retry_after: None }.is_retryable());
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
