use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Checksum, JsonText, Map, MessageId, Result, StoreError, Timestamp, limits};

/// Who speaks in a message. Other names (`human`, `developer`, `ai`) are mapped where they come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The application's instructions.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool, with its result.
    Tool,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// The role's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role as a number that stores keep.
    #[must_use]
    pub const fn to_stored(self) -> u8 {
        match self {
            Self::System => 0,
            Self::User => 1,
            Self::Assistant => 2,
            Self::Tool => 3,
        }
    }

    /// Reads what [`Role::to_stored`] gave; `None` for a number that no role has, which no message was written with.
    #[must_use]
    pub fn from_stored(number: impl Into<i64>) -> Option<Self> {
        let number = number.into();
        Self::ALL.into_iter().find(|role| i64::from(role.to_stored()) == number)
    }

    /// Some roles as one number, a bit for each; all of them where none is named.
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

/// What a message says: everything that a replacement replaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name, where several share a role.
    pub author: Option<String>,
    /// What is said, in order. May be empty.
    pub parts: Vec<Part>,
    /// Which agent of the assistant wrote it.
    pub agent: Option<String>,
    /// What the assistant keeps beside the words (line statuses, arrivals, …).
    pub data: Option<JsonText>,
    /// What the words stand on.
    pub sources: Vec<Source>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// The application's own notes.
    pub metadata: Map,
}

impl Content {
    /// Makes content of one text part.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::empty(role) }
    }

    /// Makes content that says nothing yet.
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

    /// The text of one text part, where there is nothing else about it.
    #[must_use]
    pub fn only_text(&self) -> Option<&str> {
        let Self { role: _, author, parts, agent, data, sources, usage, metadata } = self;
        let is_bare = author.is_none() && agent.is_none() && data.is_none() && usage.is_none();
        match parts.as_slice() {
            [Part::Text(text)] if is_bare && sources.is_empty() && metadata.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The plain text: all text parts and image descriptions, a line feed between two of them.
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

    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// `Invalid` for NUL characters and for numbers that JSON cannot hold, `LimitExceeded` for sizes.
    pub fn check(&self) -> Result<()> {
        limits::check_count("parts of a message", self.parts.len(), limits::PARTS)?;
        limits::check_count("sources of a message", self.sources.len(), limits::SOURCES)?;
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

/// A piece of what a message says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text(String),
    /// A model asks for a tool.
    ToolCall(ToolCall),
    /// What the tool gave.
    ToolResult(ToolResult),
    /// A picture that is kept elsewhere.
    Image(ImageReference),
    /// What the model thought before it spoke.
    Reasoning(String),
    /// An item of a wire format that no other part can hold, byte for byte.
    Raw {
        /// Which format, such as `openai.responses`.
        format: String,
        /// The exact item.
        json: JsonText,
    },
}

impl Part {
    /// The words of a text part, or a picture's description.
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
    /// The model's name for this call; its result names it too.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, exactly as the model wrote them.
    pub arguments: JsonText,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// What the tool said, as text (JSON included).
    pub output: String,
    /// Whether it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A picture that is kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageReference {
    /// Where it is. May be empty when only the description is known.
    pub url: String,
    /// What it shows, in words; counts as text of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What an answer stands on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// What kind of thing it is (`tesis`, `record`, …).
    pub kind: String,
    /// Its id among its kind.
    pub id: String,
    /// What a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How good it was found to be: larger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// How far it was from the question: smaller is nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Whatever else belongs to it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map,
}

impl Source {
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

/// What making a message took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that it read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens that it wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// What some of these were, where the provider tells.
    #[serde(default, skip_serializing_if = "TokenDetails::is_empty")]
    pub details: TokenDetails,
    /// US dollars, where a price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Milliseconds from question to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// What some of a call's tokens were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenDetails {
    /// Of those that were read, the ones from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Of those that were read, the ones that were written to it.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Of those that were written, the thoughts.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl TokenDetails {
    /// Whether nothing was told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
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

/// A message on its way into a thread. The store gives it its position.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// Its id, unique in the thread.
    pub id: MessageId,
    /// What the source calls it, unique in the thread where it is given. At most 500 bytes.
    pub external_id: Option<String>,
    /// When it was said. Positions follow the order of appending, not this.
    pub created_at: Timestamp,
    /// What it says.
    pub content: Content,
}

impl NewMessage {
    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// As [`Content::check`].
    pub fn check(&self) -> Result<()> {
        if let Some(external_id) = &self.external_id {
            limits::check_key("external id", external_id)?;
        }
        self.content.check()
    }

    /// Its checksum. `body` is its content as stored ([`crate::codec::encode_content`]).
    #[must_use]
    pub fn checksum(&self, body: &str) -> Checksum {
        Checksum::of(self.id, Some(self.content.role), self.created_at, self.external_id.as_deref(), body)
    }
}

/// A message of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its position: 1 is the thread's first, each next one is one more.
    pub seq: u64,
    /// Its id, unique in the thread.
    pub id: MessageId,
    /// What the source calls it.
    pub external_id: Option<String>,
    /// How often it was replaced.
    pub revision: u32,
    /// When it was said.
    pub created_at: Timestamp,
    /// What it says.
    pub content: Content,
}

impl Message {
    /// Whether it stands in a thread that was made for a single question ([`crate::EPHEMERAL`]).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        crate::thread::is_marked_ephemeral(&self.content.metadata)
    }

    /// The plain text, as [`Content::plain_text`].
    #[must_use]
    pub fn plain_text(&self) -> Cow<'_, str> {
        self.content.plain_text()
    }
}

/// A stored message that does not decode, told instead of shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorruptRow {
    /// Its position.
    pub seq: u64,
    /// What is wrong with it.
    pub detail: String,
}

impl From<CorruptRow> for StoreError {
    fn from(CorruptRow { seq, detail }: CorruptRow) -> Self {
        Self::corrupt("message", format!("position {seq}: {detail}"))
    }
}
