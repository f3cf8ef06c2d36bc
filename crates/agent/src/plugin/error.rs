use std::error::Error;
use std::fmt;

/// The reason why an assistant cannot be created, or why its command failed.
///
/// It wraps another error: its text and source are those of the wrapped error.
#[derive(Debug)]
pub struct PluginError {
    error: Box<dyn Error + Send + Sync>,
    kind: FailureKind,
    hint: Option<String>,
}

/// What kind of failure it is, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The caller can fix the problem by changing something other than the arguments, such as a setting or a file.
    Setup,
    /// The caller can fix the problem by passing other arguments to the command.
    Usage,
    /// The caller cannot fix the problem: a network, a service or a disk failed.
    External,
}

impl PluginError {
    /// Creates an error from another error or a message.
    pub fn new(kind: FailureKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), kind, hint: None }
    }

    /// Adds a hint about what to do.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the hint about what to do, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for PluginError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
