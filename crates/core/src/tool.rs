//! Tools that models call: the port [`Tool`], its specification and its results.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{JsonText, Map, Portable, Scope, Source, ThreadId, Timestamp, ToolDescription};

/// A tool that a model may call.
#[async_trait]
pub trait Tool: Portable + std::fmt::Debug {
    /// Returns the specification.
    fn spec(&self) -> &ToolSpec;

    /// Returns whether a call with these arguments has side effects, and therefore requires approval. Aliases of arguments are
    /// already replaced by their names.
    fn effect(&self, arguments: &Map) -> ToolEffect;

    /// Runs the tool. Dropping the future cancels the call as far as possible; calls that time out are dropped.
    ///
    /// A call with side effects is made at most once. If it requires an approval, `context` contains it.
    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError>;
}

/// Tools that can change while the program runs, such as those of another program.
#[async_trait]
pub trait ToolSource: Portable + std::fmt::Debug {
    /// Waits until the tools are known, for a limited time. Returns immediately if they are, or if they are unavailable.
    async fn wait_until_ready(&self);

    /// Returns the tools that are known at present.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// The specification of a tool, for the model and the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The description for the model.
    pub description: ToolDescription,
    /// Aliases of arguments, as pairs of alias and name. An alias is used only if the call does not contain the name.
    pub aliases: Vec<(String, String)>,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The maximum length of a result for the model, in characters (Unicode scalar values). A truncated result says that it is
    /// truncated.
    pub output_characters: usize,
}

impl ToolSpec {
    /// The default timeout: 30 seconds.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// The default maximum length of a result: 16,000 characters.
    pub const OUTPUT_CHARACTERS: usize = 16_000;

    /// Creates a specification with the default limits and no aliases.
    #[must_use]
    pub fn new(description: ToolDescription) -> Self {
        Self { description, aliases: Vec::new(), timeout: Self::TIMEOUT, output_characters: Self::OUTPUT_CHARACTERS }
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Replaces aliases with the names of the arguments.
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

/// Whether a call has side effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// It only reads. It may be repeated.
    ReadOnly,
    /// It may change something, and the operator allows it without approval. It is never repeated.
    Allowed,
    /// It changes something outside the conversation. It requires approval and is never repeated.
    HasSideEffects {
        /// What the call will do, such as the command, for the person who approves it.
        preview: String,
    },
}

/// The context of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolContext {
    /// The scope of the user.
    pub scope: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The id of the turn.
    pub turn: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The user's question in this turn.
    pub question: String,
    /// The id of the approval, for a call that requires one.
    pub approval: Option<String>,
    /// The time of the call.
    pub now: Timestamp,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    /// The result for programs, if it contains more than the text.
    pub value: Option<JsonText>,
    /// The sources of the result.
    pub sources: Vec<Source>,
    /// Whether the result is from a cache.
    pub cached: bool,
    /// The number of calls to an embedder.
    pub embedding_calls: u64,
}

impl ToolOutput {
    /// Creates a text result.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates a text result from bytes. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::text(String::from_utf8_lossy(bytes))
    }

    /// Creates a JSON result, whose text is the JSON itself.
    #[must_use]
    pub fn json(value: JsonText) -> Self {
        Self { text: value.as_str().to_owned(), value: Some(value), ..Self::default() }
    }

    /// Sets the sources of the result.
    #[must_use]
    pub fn with_sources(self, sources: Vec<Source>) -> Self {
        Self { sources, ..self }
    }
}

/// An error from a tool. The model reads the text, so that it can retry the call or explain the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments are invalid. Retry with other arguments.
    #[error("invalid arguments: {0}")]
    Arguments(String),
    /// The requested object does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The call is not permitted.
    #[error("not allowed: {0}")]
    Denied(String),
    /// A service that the tool needs is unavailable.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Any other error.
    #[error("failed: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_used_if_the_name_is_missing() {
        let parameters = JsonText::new("{}").unwrap();
        let (name, description) = ("arrivals".to_owned(), "Lists arrivals".to_owned());
        let spec = ToolSpec {
            aliases: vec![("stop".to_owned(), "station".to_owned()), ("stop_name".to_owned(), "station".to_owned())],
            ..ToolSpec::new(ToolDescription { name, description, parameters, is_strict: None })
        };
        let renamed = |json: &str| {
            let arguments: Map = serde_json::from_str(json).unwrap();
            serde_json::to_string(&spec.without_aliases(arguments)).unwrap()
        };
        assert_eq!(renamed(r#"{"stop":"A"}"#), r#"{"station":"A"}"#);
        assert_eq!(renamed(r#"{"stop_name":"A"}"#), r#"{"station":"A"}"#);
        assert_eq!(renamed(r#"{"station":"A","stop":"B"}"#), r#"{"station":"A","stop":"B"}"#);
    }
}
