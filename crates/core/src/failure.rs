use std::fmt;

use serde::{Deserialize, Serialize};

use crate::StoreError;

/// An error as stored and sent to clients: a code for programs and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A short identifier, such as `model_unavailable`.
    pub code: String,
    /// What happened, without user content.
    pub message: String,
}

impl Failure {
    /// Creates a failure.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new("invalid_request", error.to_string())
    }
}
