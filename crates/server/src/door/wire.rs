use std::fmt;

use crate::error::{ApiError, ErrorBody, ErrorEnvelope};

/// In whose terms the clients of a door are told of errors.
#[derive(Clone, Copy)]
pub struct Wire {
    translate: fn(ApiError) -> ApiError,
    body: fn(&ApiError, &str) -> String,
}

impl Default for Wire {
    /// The server's own form, which clients of OpenAI read too.
    fn default() -> Self {
        Self { translate: |error| error, body: own_body }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// Gives errors another status or code before they are written.
    #[must_use]
    pub fn translating(self, translate: fn(ApiError) -> ApiError) -> Self {
        Self { translate, ..self }
    }

    /// Writes the body of an error, as JSON, from the error and the id of its request.
    #[must_use]
    pub fn with_body(self, body: fn(&ApiError, &str) -> String) -> Self {
        Self { body, ..self }
    }

    pub(crate) fn translate(self, error: ApiError) -> ApiError {
        (self.translate)(error)
    }

    pub(crate) fn body(self, error: &ApiError, request_id: &str) -> String {
        (self.body)(error, request_id)
    }
}

fn own_body(error: &ApiError, request_id: &str) -> String {
    let body = ErrorBody {
        message: &error.message,
        r#type: error.family(),
        param: error.param.as_deref(),
        code: error.code,
        request_id,
    };
    serde_json::to_string(&ErrorEnvelope { error: body }).unwrap_or_default()
}
