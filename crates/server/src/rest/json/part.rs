use serde::{Deserialize, Serialize};
use threadkeep::{ImageReference, JsonText, Map, Part, Source, TokenDetails, ToolCall, ToolResult, Usage};
use utoipa::ToSchema;

/// A piece of what a message says: an object with one member, which names its kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartJson {
    /// Words.
    Text(String),
    /// A model asks for a tool.
    ToolCall(ToolCallJson),
    /// What the tool gave.
    ToolResult(ToolResultJson),
    /// A picture that is kept elsewhere.
    Image(ImageJson),
    /// What the model thought before it spoke.
    Reasoning(String),
    /// An item of a wire format that no other part can hold, byte for byte.
    Raw(RawJson),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCallJson {
    /// The model's name for this call; its result names it too.
    id: String,
    /// The tool.
    name: String,
    /// The arguments.
    #[schema(value_type = Value)]
    arguments: JsonText,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolResultJson {
    /// The call that it answers.
    call_id: String,
    /// What the tool said, as text.
    output: String,
    /// Whether it is an error.
    #[serde(default)]
    is_error: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageJson {
    /// Where it is.
    url: String,
    /// What it shows, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawJson {
    /// Which format.
    format: String,
    /// The exact item.
    #[schema(value_type = Value)]
    json: JsonText,
}

/// What an answer stands on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceJson {
    /// What kind of thing it is.
    kind: String,
    /// Its id among its kind.
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// How good it was found to be: larger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// How far it was from the question: smaller is nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distance: Option<f64>,
    /// Whatever else belongs to it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    fields: Map,
}

/// What making a message took.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageJson {
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    /// What some of these were, where the provider told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<TokenDetailsJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// What some of a call's tokens were, where the provider told.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokenDetailsJson {
    /// Of those that were read, the ones from the provider's cache.
    cached_input: u64,
    /// Of those that were read, the ones that were written to it.
    cache_write: u64,
    /// Of those that were written, the thoughts.
    reasoning: u64,
}

impl TokenDetailsJson {
    /// Nothing where nothing was told.
    pub(crate) fn of(details: TokenDetails) -> Option<Self> {
        let TokenDetails { cached_input, cache_write, reasoning } = details;
        (!details.is_empty()).then_some(Self { cached_input, cache_write, reasoning })
    }
}

impl From<TokenDetailsJson> for TokenDetails {
    fn from(details: TokenDetailsJson) -> Self {
        let TokenDetailsJson { cached_input, cache_write, reasoning } = details;
        Self { cached_input, cache_write, reasoning }
    }
}

impl From<Part> for PartJson {
    fn from(part: Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text),
            Part::Reasoning(text) => Self::Reasoning(text),
            Part::ToolCall(ToolCall { id, name, arguments }) => Self::ToolCall(ToolCallJson { id, name, arguments }),
            Part::ToolResult(ToolResult { call_id, output, is_error }) => {
                Self::ToolResult(ToolResultJson { call_id, output, is_error })
            }
            Part::Image(ImageReference { url, description }) => Self::Image(ImageJson { url, description }),
            Part::Raw { format, json } => Self::Raw(RawJson { format, json }),
        }
    }
}

impl From<PartJson> for Part {
    fn from(part: PartJson) -> Self {
        match part {
            PartJson::Text(text) => Self::Text(text),
            PartJson::Reasoning(text) => Self::Reasoning(text),
            PartJson::ToolCall(ToolCallJson { id, name, arguments }) => {
                Self::ToolCall(ToolCall { id, name, arguments })
            }
            PartJson::ToolResult(ToolResultJson { call_id, output, is_error }) => {
                Self::ToolResult(ToolResult { call_id, output, is_error })
            }
            PartJson::Image(ImageJson { url, description }) => Self::Image(ImageReference { url, description }),
            PartJson::Raw(RawJson { format, json }) => Self::Raw { format, json },
        }
    }
}

impl From<Source> for SourceJson {
    fn from(source: Source) -> Self {
        let Source { kind, id, title, score, distance, fields } = source;
        Self { kind, id, title, score, distance, fields }
    }
}

impl From<SourceJson> for Source {
    fn from(source: SourceJson) -> Self {
        let SourceJson { kind, id, title, score, distance, fields } = source;
        Self { kind, id, title, score, distance, fields }
    }
}

impl From<Usage> for UsageJson {
    fn from(usage: Usage) -> Self {
        let Usage { model, input_tokens, output_tokens, details, cost_usd, duration_ms } = usage;
        let details = TokenDetailsJson::of(details);
        Self { model, input_tokens, output_tokens, details, cost_usd, duration_ms }
    }
}

impl From<UsageJson> for Usage {
    fn from(usage: UsageJson) -> Self {
        let UsageJson { model, input_tokens, output_tokens, details, cost_usd, duration_ms } = usage;
        let details = details.unwrap_or_default().into();
        Self { model, input_tokens, output_tokens, details, cost_usd, duration_ms }
    }
}
