use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadkeep::{ImageReference, JsonText, Map, Part, Source, TokenDetails, ToolCall, ToolResult, Usage};
use utoipa::ToSchema;

/// A piece of what a message says: an object with one member, which names its kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartJson<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A model asks for a tool.
    ToolCall(ToolCallJson<'a>),
    /// What the tool gave.
    ToolResult(ToolResultJson<'a>),
    /// A picture that is kept elsewhere.
    Image(ImageJson<'a>),
    /// What the model thought before it spoke.
    Reasoning(Cow<'a, str>),
    /// An item of a wire format that no other part can hold, byte for byte.
    Raw(RawJson<'a>),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCallJson<'a> {
    /// The model's name for this call; its result names it too.
    id: Cow<'a, str>,
    /// The tool.
    name: Cow<'a, str>,
    /// The arguments.
    #[schema(value_type = Value)]
    arguments: Cow<'a, JsonText>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolResultJson<'a> {
    /// The call that it answers.
    call_id: Cow<'a, str>,
    /// What the tool said, as text.
    output: Cow<'a, str>,
    /// Whether it is an error.
    #[serde(default)]
    is_error: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageJson<'a> {
    /// Where it is.
    url: Cow<'a, str>,
    /// What it shows, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawJson<'a> {
    /// Which format.
    format: Cow<'a, str>,
    /// The exact item.
    #[schema(value_type = Value)]
    json: Cow<'a, JsonText>,
}

/// What an answer stands on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceJson<'a> {
    /// What kind of thing it is.
    kind: Cow<'a, str>,
    /// Its id among its kind.
    id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    /// How good it was found to be: larger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// How far it was from the question: smaller is nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distance: Option<f64>,
    /// Whatever else belongs to it.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[schema(value_type = Object)]
    fields: Cow<'a, Map>,
}

/// What making a message took.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageJson<'a> {
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
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

/// Whether nothing is in a map, for serde.
pub(super) fn is_empty(map: &Map) -> bool {
    map.is_empty()
}

impl<'a> From<&'a Part> for PartJson<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text.into()),
            Part::Reasoning(text) => Self::Reasoning(text.into()),
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                let arguments = Cow::Borrowed(arguments);
                Self::ToolCall(ToolCallJson { id: id.into(), name: name.into(), arguments })
            }
            Part::ToolResult(ToolResult { call_id, output, is_error }) => {
                let (call_id, output, is_error) = (call_id.into(), output.into(), *is_error);
                Self::ToolResult(ToolResultJson { call_id, output, is_error })
            }
            Part::Image(ImageReference { url, description }) => {
                Self::Image(ImageJson { url: url.into(), description: description.as_ref().map(Into::into) })
            }
            Part::Raw { format, json } => Self::Raw(RawJson { format: format.into(), json: Cow::Borrowed(json) }),
        }
    }
}

impl From<PartJson<'_>> for Part {
    fn from(part: PartJson<'_>) -> Self {
        match part {
            PartJson::Text(text) => Self::Text(text.into_owned()),
            PartJson::Reasoning(text) => Self::Reasoning(text.into_owned()),
            PartJson::ToolCall(ToolCallJson { id, name, arguments }) => Self::ToolCall(ToolCall {
                id: id.into_owned(),
                name: name.into_owned(),
                arguments: arguments.into_owned(),
            }),
            PartJson::ToolResult(ToolResultJson { call_id, output, is_error }) => {
                Self::ToolResult(ToolResult { call_id: call_id.into_owned(), output: output.into_owned(), is_error })
            }
            PartJson::Image(ImageJson { url, description }) => {
                Self::Image(ImageReference { url: url.into_owned(), description: description.map(Cow::into_owned) })
            }
            PartJson::Raw(RawJson { format, json }) => {
                Self::Raw { format: format.into_owned(), json: json.into_owned() }
            }
        }
    }
}

impl<'a> From<&'a Source> for SourceJson<'a> {
    fn from(source: &'a Source) -> Self {
        let Source { kind, id, title, score, distance, fields } = source;
        Self {
            kind: kind.into(),
            id: id.into(),
            title: title.as_ref().map(Into::into),
            score: *score,
            distance: *distance,
            fields: Cow::Borrowed(fields),
        }
    }
}

impl From<Source> for SourceJson<'static> {
    fn from(source: Source) -> Self {
        let Source { kind, id, title, score, distance, fields } = source;
        let (title, fields) = (title.map(Cow::Owned), Cow::Owned(fields));
        Self { kind: kind.into(), id: id.into(), title, score, distance, fields }
    }
}

impl From<SourceJson<'_>> for Source {
    fn from(source: SourceJson<'_>) -> Self {
        let SourceJson { kind, id, title, score, distance, fields } = source;
        Self {
            kind: kind.into_owned(),
            id: id.into_owned(),
            title: title.map(Cow::into_owned),
            score,
            distance,
            fields: fields.into_owned(),
        }
    }
}

impl<'a> From<&'a Usage> for UsageJson<'a> {
    fn from(usage: &'a Usage) -> Self {
        let Usage { model, input_tokens, output_tokens, details, cost_usd, duration_ms } = usage;
        Self {
            model: model.as_ref().map(Into::into),
            input_tokens: *input_tokens,
            output_tokens: *output_tokens,
            details: TokenDetailsJson::of(*details),
            cost_usd: *cost_usd,
            duration_ms: *duration_ms,
        }
    }
}

impl From<UsageJson<'_>> for Usage {
    fn from(usage: UsageJson<'_>) -> Self {
        let UsageJson { model, input_tokens, output_tokens, details, cost_usd, duration_ms } = usage;
        let (model, details) = (model.map(Cow::into_owned), details.unwrap_or_default().into());
        Self { model, input_tokens, output_tokens, details, cost_usd, duration_ms }
    }
}
