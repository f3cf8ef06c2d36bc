use std::error::Error;
use std::fmt;

/// The reason why an assistant cannot be created, or why its command failed.
///
/// It wraps another error: its text and source are those of the wrapped error.
#[derive(Debug)]
pub struct PluginError {
    error: Box<dyn Error + Send + Sync>,
    fault: Fault,
    hint: Option<String>,
}

/// Who can correct a failure, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller, for example by changing a setting or a file.
    Caller,
    /// The caller, by passing other arguments to the command.
    Usage,
    /// Not the caller: a network, a service or a disk failed.
    External,
}

impl PluginError {
    /// Creates an error from another error or a message.
    pub fn new(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), fault, hint: None }
    }

    /// Adds a hint about what to do.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns who can correct the failure.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
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
