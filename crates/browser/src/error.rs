//! Errors for JavaScript: `Error`s with a `code`, which names the kind of error as the server's API does.

use js_sys::{Error, Reflect};
use threadkeep_core::{Conflict, StoreError};
use threadkeep_memory::MemoryError;
use wasm_bindgen::JsValue;

/// Translates the error of a result.
pub(crate) trait ToJs<T> {
    fn to_js(self) -> Result<T, JsValue>;
}

impl<T> ToJs<T> for threadkeep_memory::Result<T> {
    fn to_js(self) -> Result<T, JsValue> {
        self.map_err(|error| {
            let code = match &error {
                MemoryError::Store(error) => store_code(error),
                MemoryError::Invalid { .. } => "invalid",
                MemoryError::Context(_) => "invalid_policy",
                MemoryError::Contended { .. } => "unavailable",
                _ => "internal",
            };
            error_with_code(code, &error.to_string())
        })
    }
}

impl<T> ToJs<T> for Result<T, StoreError> {
    fn to_js(self) -> Result<T, JsValue> {
        self.map_err(|error| error_with_code(store_code(&error), &error.to_string()))
    }
}

/// Returns the error for an invalid argument.
pub(crate) fn invalid(field: &str, reason: &str) -> JsValue {
    error_with_code("invalid", &format!("invalid {field}: {reason}"))
}

fn store_code(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound(_) => "not_found",
        StoreError::Denied(_) => "denied",
        StoreError::Conflict(Conflict::Change { .. } | Conflict::Record { .. }) => "changed_meanwhile",
        StoreError::Conflict(Conflict::Seq { .. }) => "seq_conflict",
        StoreError::Conflict(Conflict::IdempotencyKey) => "idempotency_key_reused",
        StoreError::Conflict(_) => "conflict",
        StoreError::Invalid { .. } => "invalid",
        StoreError::Unsupported(_) => "unsupported",
        StoreError::LimitExceeded { .. } => "limit_exceeded",
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Incompatible(_) => "incompatible",
        _ => "internal",
    }
}

fn error_with_code(code: &str, message: &str) -> JsValue {
    let error = Error::new(message);
    error.set_name("ThreadkeepError");
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}
