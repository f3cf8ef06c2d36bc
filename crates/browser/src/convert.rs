//! Plain objects of JavaScript, and values of Rust.

use js_sys::JSON;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wasm_bindgen::JsValue;

use crate::error::invalid;

/// Parses a plain object; `undefined` is an empty one. `name` names the argument in the error.
pub fn from_js<T: DeserializeOwned>(name: &str, value: &JsValue) -> Result<T, JsValue> {
    let text = if value.is_undefined() || value.is_null() {
        "{}".to_owned()
    } else {
        let text = JSON::stringify(value)?;
        // `stringify` returns `undefined` for a function.
        text.as_string().unwrap_or_else(|| "null".to_owned())
    };
    serde_json::from_str(&text).map_err(|error| invalid(name, &error.to_string()))
}

/// Parses a plain object into a type that ignores unknown fields, and rejects them nevertheless.
pub fn from_js_checked<T: DeserializeOwned + Serialize>(name: &str, value: &JsValue) -> Result<T, JsValue> {
    let given: Value = from_js(name, value)?;
    let parsed: T = from_js(name, value)?;
    let known = serde_json::to_value(&parsed).map_err(|error| invalid(name, &error.to_string()))?;
    match find_unknown_field(&given, &known) {
        Some(path) => Err(invalid(name, &format!("unknown field `{path}`"))),
        None => Ok(parsed),
    }
}

/// Returns the path of a field of an object that is not in the serialized form of what was parsed from the object.
fn find_unknown_field(given: &Value, known: &Value) -> Option<String> {
    let (Value::Object(given), Value::Object(known)) = (given, known) else { return None };
    given.iter().find_map(|(field, value)| match known.get(field) {
        None => Some(field.clone()),
        Some(known) => find_unknown_field(value, known).map(|rest| format!("{field}.{rest}")),
    })
}

/// Creates a plain object.
pub fn to_js(value: &impl Serialize) -> Result<JsValue, JsValue> {
    let text = serde_json::to_string(value).map_err(|error| invalid("result", &error.to_string()))?;
    JSON::parse(&text)
}
