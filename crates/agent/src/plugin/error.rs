use std::error::Error;
use std::fmt;

/// Why an assistant cannot be made, or its command failed.
///
/// It reads as the error that it was made from; its causes are that error's.
#[derive(Debug)]
pub struct PluginError {
    error: Box<dyn Error + Send + Sync>,
    fault: Fault,
    hint: Option<String>,
}

/// Whose turn it is after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller has something to put right.
    Caller,
    /// The command was not given what it needs.
    Usage,
    /// The other side failed: the network, a service, the disk.
    OtherSide,
}

impl PluginError {
    /// A failure with an error or a message of its own.
    pub fn new(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), fault, hint: None }
    }

    /// Says what to do.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whose turn it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// What to do about it.
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
