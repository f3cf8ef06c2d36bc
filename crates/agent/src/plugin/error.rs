use std::error::Error;
use std::fmt;

/// The reason why an assistant cannot be created, or why its command failed.
///
/// It is displayed as the error that it wraps, and has the same source.
#[derive(Debug)]
pub struct PluginError {
    error: Box<dyn Error + Send + Sync>,
    fault: Fault,
    hint: Option<String>,
}

/// Who can correct a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller.
    Caller,
    /// The caller, by passing other arguments to the command.
    Usage,
    /// Neither: a network, a service or a disk failed.
    OtherSide,
}

impl PluginError {
    /// Creates an error from another error or a message.
    pub fn new(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), fault, hint: None }
    }

    /// Adds a hint what to do.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns who can correct the failure.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Returns the hint what to do.
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
