//! Errors for JavaScript: `Error`s with a `code`, the same as that of the server's API.

use js_sys::{Error, Reflect};
use threadkeep_core::StoreError;
use threadkeep_memory::MemoryError;
use wasm_bindgen::JsValue;

/// Translates the error of a result.
pub trait ToJs<T> {
    /// Returns the value, or the error as an `Error` with a `code`.
    #[expect(clippy::missing_errors_doc, reason = "it converts an error")]
    fn to_js(self) -> Result<T, JsValue>;
}

impl<T> ToJs<T> for Result<T, MemoryError> {
    fn to_js(self) -> Result<T, JsValue> {
        self.map_err(|error| error_with_code(error.code(), &error.to_string()))
    }
}

impl<T> ToJs<T> for Result<T, StoreError> {
    fn to_js(self) -> Result<T, JsValue> {
        self.map_err(|error| error_with_code(error.code(), &error.to_string()))
    }
}

/// Returns the error for an invalid argument.
pub fn invalid(field: &str, reason: &str) -> JsValue {
    error_with_code("invalid_request", &format!("invalid {field}: {reason}"))
}

/// Creates an error with a code.
pub fn error_with_code(code: &str, message: &str) -> JsValue {
    let error = Error::new(message);
    error.set_name("ThreadkeepError");
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}
