use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Checksum, JsonText, Map, MessageId, Result, StoreError, ThreadId, Timestamp, Value, limits};

/// The role of a message's author. Readers of other formats map other names, such as `human`, `developer` and `ai`, to these roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions from the application.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool; the message contains its result.
    Tool,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// Returns the name of the role in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Returns the number that stores use for the role.
    #[must_use]
    pub const fn to_stored(self) -> u8 {
        match self {
            Self::System => 0,
            Self::User => 1,
            Self::Assistant => 2,
            Self::Tool => 3,
        }
    }

    /// Returns the role with this number in stores ([`Role::to_stored`]); `None` if no role has it.
    #[must_use]
    pub fn from_stored(number: impl Into<i64>) -> Option<Self> {
        let number = number.into();
        Self::ALL.into_iter().find(|role| i64::from(role.to_stored()) == number)
    }

    /// Returns a bit mask of roles, with one bit for each stored number. An empty list of roles means all roles.
    #[must_use]
    pub fn stored_mask(roles: &[Self]) -> u8 {
        let roles = if roles.is_empty() { &Self::ALL } else { roles };
        roles.iter().fold(0, |mask, role| mask | 1 << role.to_stored())
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| StoreError::invalid("role", "not one of system, user, assistant, tool"))
    }
}

/// The content of a message: everything that can be replaced in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The role of the author.
    pub role: Role,
    /// The name of the author, if several share a role.
    pub author: Option<String>,
    /// The parts, in order. May be empty.
    pub parts: Vec<Part>,
    /// The assistant's agent that wrote it.
    pub agent: Option<String>,
    /// Structured data from the assistant in addition to the text, such as line statuses or arrivals.
    pub data: Option<JsonText>,
    /// The sources that the answer is based on.
    pub sources: Vec<Source>,
    /// Token usage and cost.
    pub usage: Option<Usage>,
    /// Metadata of the application.
    pub metadata: Map,
}

impl Content {
    /// Creates content with one text part.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::empty(role) }
    }

    /// Creates content without parts.
    #[must_use]
    pub fn empty(role: Role) -> Self {
        Self {
            role,
            author: None,
            parts: Vec::new(),
            agent: None,
            data: None,
            sources: Vec::new(),
            usage: None,
            metadata: Map::new(),
        }
    }

    /// Returns the text if the content is a single text part without other fields.
    #[must_use]
    pub fn only_text(&self) -> Option<&str> {
        let Self { role: _, author, parts, agent, data, sources, usage, metadata } = self;
        let has_no_options = author.is_none() && agent.is_none() && data.is_none() && usage.is_none();
        match parts.as_slice() {
            [Part::Text(text)] if has_no_options && sources.is_empty() && metadata.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the plain text: all text parts and image descriptions, separated by line feeds.
    #[must_use]
    pub fn plain_text(&self) -> Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(Part::text);
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        let Some(second) = texts.next() else { return Cow::Borrowed(first) };
        let mut all = format!("{first}\n{second}");
        for text in texts {
            all.push('\n');
            all.push_str(text);
        }
        Cow::Owned(all)
    }

    /// Checks the content against the limits that all stores share.
    ///
    /// # Errors
    /// `Invalid` if text contains NUL characters or JSON cannot represent a number, `LimitExceeded` if a size or count exceeds its
    /// limit.
    pub fn check(&self) -> Result<()> {
        limits::check_count("parts per message", self.parts.len(), limits::PARTS)?;
        limits::check_count("sources per message", self.sources.len(), limits::SOURCES)?;
        for name in [&self.author, &self.agent].into_iter().flatten() {
            limits::check_name("author or agent", name)?;
        }
        self.parts.iter().try_for_each(Part::check)?;
        self.sources.iter().try_for_each(Source::check)?;
        if let Some(usage) = &self.usage {
            usage.check()?;
        }
        limits::check_map("metadata", &self.metadata)
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// A tool call by a model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// An image that is stored elsewhere.
    Image(ImageReference),
    /// The model's reasoning before its answer.
    Reasoning(String),
    /// An item of a wire format that no other part can represent. It is preserved byte for byte.
    Raw {
        /// The format, such as `openai.responses`.
        format: String,
        /// The exact item.
        json: JsonText,
    },
}

impl Part {
    /// Returns the text of a text part or the description of an image; `None` for other parts.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image(image) => image.description.as_deref(),
            _ => None,
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Text(text) | Self::Reasoning(text) => limits::check_text("text", text),
            Self::ToolCall(call) => {
                limits::check_text("tool call id", &call.id)?;
                limits::check_name("tool name", &call.name)
            }
            Self::ToolResult(result) => {
                limits::check_text("tool call id", &result.call_id)?;
                limits::check_text("tool result", &result.output)
            }
            Self::Image(image) => {
                limits::check_text("image url", &image.url)?;
                limits::check_text("image description", image.description.as_deref().unwrap_or(""))
            }
            Self::Raw { format, .. } => limits::check_name("raw format", format),
        }
    }
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the model assigned to the call. The result refers to this id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, exactly as the model wrote them.
    pub arguments: JsonText,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The output of the tool, as text (or as JSON text).
    pub output: String,
    /// Whether the output is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// An image that is stored elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageReference {
    /// The URL. May be empty if only the description is known.
    pub url: String,
    /// A description of the image, which counts as text of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The resolution at which a model reads the image, in the provider's terms, such as `low`. `None` is the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A source that an answer is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The kind of source, such as `document` or `message`.
    pub kind: String,
    /// Its id, unique among sources of this kind.
    pub id: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The relevance: higher is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The distance from the question: lower is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Other fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map,
}

impl Source {
    /// The kind of a source that is a message. The source's id is the message's id.
    pub const MESSAGE: &str = "message";

    /// Creates a source that is a message, with its position in the fields.
    #[must_use]
    pub fn of_message(thread: ThreadId, message: &Message) -> Self {
        let fields = [
            ("thread", Value::from(thread.to_string())),
            ("seq", Value::from(message.seq)),
            ("role", Value::from(message.content.role.as_str())),
            ("said_at", Value::from(message.created_at.to_string())),
        ];
        Self {
            kind: Self::MESSAGE.to_owned(),
            id: message.id.to_string(),
            title: None,
            score: None,
            distance: None,
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// Returns the thread and the position of a source that [`Source::of_message`] created; `None` for other sources.
    #[must_use]
    pub fn message_position(&self) -> Option<(ThreadId, u64)> {
        let thread = self.fields.get("thread").filter(|_| self.kind == Self::MESSAGE)?;
        Some((thread.as_str()?.parse().ok()?, self.fields.get("seq")?.as_u64()?))
    }

    fn check(&self) -> Result<()> {
        limits::check_name("source kind", &self.kind)?;
        limits::check_text("source id", &self.id)?;
        limits::check_text("source title", self.title.as_deref().unwrap_or(""))?;
        for number in [self.score, self.distance].into_iter().flatten() {
            limits::check_number("source score or distance", number)?;
        }
        limits::check_map("source fields", &self.fields)
    }
}

/// The resources used to generate a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input tokens.
    #[serde(default)]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// A breakdown of the tokens, if the provider reports it.
    #[serde(default, skip_serializing_if = "TokenDetails::is_empty")]
    pub details: TokenDetails,
    /// The cost in US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The milliseconds from the request to the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A breakdown of the tokens of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenDetails {
    /// Input tokens that the provider read from its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Input tokens that the provider wrote to its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Output tokens that were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl TokenDetails {
    /// Whether all counts are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the token counts of another call.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    fn check(&self) -> Result<()> {
        limits::check_text("model name", self.model.as_deref().unwrap_or(""))?;
        self.cost_usd.map_or(Ok(()), |cost| limits::check_number("cost", cost))
    }
}

/// A message to append to a thread. The store assigns its position.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// Its id, unique in the thread.
    pub id: MessageId,
    /// Its id in the source, unique in the thread if present. At most 500 bytes.
    pub external_id: Option<String>,
    /// When it was created. Positions follow the order of appending, not this time.
    pub created_at: Timestamp,
    /// The content.
    pub content: Content,
}

impl NewMessage {
    /// Checks the message against the limits that all stores share.
    ///
    /// # Errors
    /// The same as [`Content::check`].
    pub fn check(&self) -> Result<()> {
        if let Some(external_id) = &self.external_id {
            limits::check_key("external id", external_id)?;
        }
        self.content.check()
    }

    /// Computes the checksum. `body` is the content as stored ([`crate::codec::encode_content`]).
    #[must_use]
    pub fn checksum(&self, body: &str) -> Checksum {
        Checksum::of(self.id, Some(self.content.role), self.created_at, self.external_id.as_deref(), body)
    }
}

/// A message of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its 1-based position in the thread. Positions have no gaps.
    pub seq: u64,
    /// Its id, unique in the thread.
    pub id: MessageId,
    /// Its id in the source.
    pub external_id: Option<String>,
    /// How often its content was replaced.
    pub revision: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// The content.
    pub content: Content,
}

impl Message {
    /// Whether the message belongs to a thread that was created for a single question ([`crate::EPHEMERAL`]).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        crate::thread::is_marked_ephemeral(&self.content.metadata)
    }

    /// Returns the plain text, like [`Content::plain_text`].
    #[must_use]
    pub fn plain_text(&self) -> Cow<'_, str> {
        self.content.plain_text()
    }
}

/// A stored message that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorruptRow {
    /// Its position.
    pub seq: u64,
    /// Why it cannot be decoded.
    pub detail: String,
}

impl From<CorruptRow> for StoreError {
    fn from(CorruptRow { seq, detail }: CorruptRow) -> Self {
        Self::corrupt("message", format!("position {seq}: {detail}"))
    }
}
