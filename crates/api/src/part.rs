use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadkeep::{ImageReference, JsonText, Map, Part, Source, TokenDetails, ToolCall, ToolResult, Usage};
use utoipa::ToSchema;

use crate::whole_number::{optional_whole_number, whole_number};

/// A part of a message's content: an object with one field, whose name is the kind of the part.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartJson<'a> {
    Text(Cow<'a, str>),
    /// A tool call by a model.
    ToolCall(ToolCallJson<'a>),
    /// The result of a tool call.
    ToolResult(ToolResultJson<'a>),
    /// An image that is stored elsewhere.
    Image(ImageJson<'a>),
    /// The model's reasoning before its answer.
    Reasoning(Cow<'a, str>),
    /// An item of another API's format that no other part can represent, byte for byte.
    Raw(RawJson<'a>),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCallJson<'a> {
    /// The id of the call, to which the result refers.
    id: Cow<'a, str>,
    /// The name of the tool.
    name: Cow<'a, str>,
    /// The arguments.
    #[schema(value_type = Value)]
    arguments: Cow<'a, JsonText>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResultJson<'a> {
    /// The id of the call.
    call_id: Cow<'a, str>,
    /// The tool's output as text.
    output: Cow<'a, str>,
    /// Whether the output is an error.
    #[serde(default)]
    is_error: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageJson<'a> {
    url: Cow<'a, str>,
    /// A description of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    /// The resolution at which a model reads the image, in the provider's terms, such as `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RawJson<'a> {
    /// The name of the format.
    format: Cow<'a, str>,
    /// The exact item.
    #[schema(value_type = Value)]
    json: Cow<'a, JsonText>,
}

/// A source of an answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceJson<'a> {
    /// The kind of the source.
    kind: Cow<'a, str>,
    /// The id, which is unique among sources of the same kind.
    id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    /// The relevance of the source: larger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// The distance of the source from the question: smaller is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distance: Option<f64>,
    /// Additional fields.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[schema(value_type = Object)]
    fields: Cow<'a, Map>,
}

/// The resources used to generate a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageJson<'a> {
    /// The model that generated the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "whole_number")]
    input_tokens: u64,
    #[serde(default, deserialize_with = "whole_number")]
    output_tokens: u64,
    /// Details of the token counts, if the provider reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<TokenDetailsJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "optional_whole_number", skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// Details of the token counts of a model call, as reported by the provider.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenDetailsJson {
    /// Input tokens that were read from the provider's cache.
    #[serde(deserialize_with = "whole_number")]
    cached_input: u64,
    /// Input tokens that were written to the provider's cache.
    #[serde(deserialize_with = "whole_number")]
    cache_write: u64,
    /// Output tokens that were used for the model's reasoning.
    #[serde(deserialize_with = "whole_number")]
    reasoning: u64,
}

impl TokenDetailsJson {
    /// Converts details; `None` if the provider reported none.
    pub fn of(details: TokenDetails) -> Option<Self> {
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

/// Whether a map is empty. Used in serde attributes.
pub(crate) fn is_empty(map: &Map) -> bool {
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
            Part::Image(ImageReference { url, description, detail }) => {
                let [description, detail] = [description, detail].map(|text| text.as_ref().map(Into::into));
                Self::Image(ImageJson { url: url.into(), description, detail })
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
            PartJson::Image(ImageJson { url, description, detail }) => {
                let [description, detail] = [description, detail].map(|text| text.map(Cow::into_owned));
                Self::Image(ImageReference { url: url.into_owned(), description, detail })
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
