use std::fmt;

use crate::error::{ApiError, ErrorBody, ErrorEnvelope};

/// The format of a door's error responses.
#[derive(Clone, Copy)]
pub struct ErrorFormat {
    translate: fn(ApiError) -> ApiError,
    body: fn(&ApiError, &str) -> String,
}

impl Default for ErrorFormat {
    /// Returns the standard format, which is compatible with the OpenAI API.
    fn default() -> Self {
        Self { translate: |error| error, body: standard_body }
    }
}

impl fmt::Debug for ErrorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorFormat")
    }
}

impl ErrorFormat {
    /// Sets a function that can change the status and the code of an error before it is rendered.
    #[must_use]
    pub fn translating(self, translate: fn(ApiError) -> ApiError) -> Self {
        Self { translate, ..self }
    }

    /// Sets the function that renders the JSON body of an error. The arguments of the function are the error and the id of the
    /// request.
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

fn standard_body(error: &ApiError, request_id: &str) -> String {
    let body = ErrorBody {
        message: &error.message,
        r#type: error.openai_type(),
        param: error.param.as_deref(),
        code: error.code,
        request_id,
    };
    serde_json::to_string(&ErrorEnvelope { error: body }).unwrap_or_default()
}
