//! What an assistant's model may call: the port, and what it needs to know of each tool.

use std::time::Duration;

use async_trait::async_trait;

use crate::{JsonText, Map, Portable, Scope, Source, ThreadId, Timestamp, ToolDescription};

/// Something that a model may call.
#[async_trait]
pub trait Tool: Portable + std::fmt::Debug {
    /// What a model and its driver must know of it.
    fn spec(&self) -> &ToolSpec;

    /// Whether a call with these arguments changes the world, which needs an approval of this very call. Arguments have
    /// their own names here, not their aliases.
    fn effect(&self, arguments: &Map) -> ToolEffect;

    /// Runs. Dropping the future stops it as far as that is possible; a call that runs out of time is dropped so.
    ///
    /// A call that changes the world comes here at most once, with its approval in `context`.
    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError>;
}

/// What a model and its driver must know of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What a model is told.
    pub description: ToolDescription,
    /// Other names that models give to arguments, and the arguments' own ones. An alias counts where the own name is not
    /// there.
    pub aliases: Vec<(String, String)>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Characters (Unicode scalar values) of a result that a model reads at most; what is longer is cut with a mark.
    pub output_characters: usize,
}

impl ToolSpec {
    /// The time that a call may take unless the tool says otherwise: 30 seconds.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// The characters of a result that a model reads unless the tool says otherwise: 16,000.
    pub const OUTPUT_CHARACTERS: usize = 16_000;

    /// Describes a tool with the usual bounds and no aliases.
    #[must_use]
    pub fn new(description: ToolDescription) -> Self {
        Self { description, aliases: Vec::new(), timeout: Self::TIMEOUT, output_characters: Self::OUTPUT_CHARACTERS }
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Gives arguments their own names.
    #[must_use]
    pub fn without_aliases(&self, mut arguments: Map) -> Map {
        for (alias, name) in &self.aliases {
            if !arguments.contains_key(name)
                && let Some(value) = arguments.remove(alias)
            {
                arguments.insert(name.clone(), value);
            }
        }
        arguments
    }
}

/// Whether a call changes the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// It only looks. It may be repeated.
    ReadOnly,
    /// It changes something outside the conversation: it needs an approval, and is never repeated.
    HasSideEffects {
        /// What it will do, in words for the person who decides, such as the command.
        preview: String,
    },
}

/// On whose behalf and why a tool is called.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolContext {
    /// On whose behalf.
    pub scope: Scope,
    /// In which conversation.
    pub thread: ThreadId,
    /// In which turn, by its id.
    pub turn: String,
    /// The call's id, as the model named it.
    pub call_id: String,
    /// What the user asked in this turn.
    pub question: String,
    /// The approval that allows it, for a call that changes the world.
    pub approval: Option<String>,
    /// When it is called.
    pub now: Timestamp,
}

/// What a tool gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// The result for programs, where there is more to say than the text.
    pub value: Option<JsonText>,
    /// What the result stands on.
    pub sources: Vec<Source>,
    /// Whether it was remembered rather than looked up.
    pub cached: bool,
    /// Calls of an embedder that it took.
    pub embedding_calls: u64,
}

impl ToolOutput {
    /// Makes a result of words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes a result of words that may not be UTF-8; what is not becomes U+FFFD.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::text(String::from_utf8_lossy(bytes))
    }

    /// Makes a result of JSON, which the model reads as it stands.
    #[must_use]
    pub fn json(value: JsonText) -> Self {
        Self { text: value.as_str().to_owned(), value: Some(value), ..Self::default() }
    }

    /// Adds what the result stands on.
    #[must_use]
    pub fn with_sources(self, sources: Vec<Source>) -> Self {
        Self { sources, ..self }
    }
}

/// Why a tool gave nothing. The text is read by the model, so that it can call again or say what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments make no sense. Call again with others.
    #[error("invalid arguments: {0}")]
    Arguments(String),
    /// There is no such thing.
    #[error("not found: {0}")]
    NotFound(String),
    /// It may not do that.
    #[error("not allowed: {0}")]
    Denied(String),
    /// What it needs cannot be reached now.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Something else went wrong.
    #[error("failed: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_counts_where_the_own_name_is_not_there() {
        let parameters = JsonText::new("{}").unwrap();
        let (name, description) = ("arrivals".to_owned(), "Tells arrivals".to_owned());
        let spec = ToolSpec {
            aliases: vec![("stop".to_owned(), "station".to_owned()), ("stop_name".to_owned(), "station".to_owned())],
            ..ToolSpec::new(ToolDescription { name, description, parameters, is_strict: None })
        };
        let renamed = |json: &str| {
            let given: Map = serde_json::from_str(json).unwrap();
            serde_json::to_string(&spec.without_aliases(given)).unwrap()
        };
        assert_eq!(renamed(r#"{"stop":"A"}"#), r#"{"station":"A"}"#);
        assert_eq!(renamed(r#"{"stop_name":"A"}"#), r#"{"station":"A"}"#);
        assert_eq!(renamed(r#"{"station":"A","stop":"B"}"#), r#"{"station":"A","stop":"B"}"#);
    }
}
