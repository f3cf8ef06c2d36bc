//! Tools that store a user's preferences and list their most frequent trips.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Scope};

use super::{NoArguments, TextArgument, unavailable};
use crate::{RiderMemory, wording};

/// Maximum length in bytes of a preference's name.
const MAX_KEY_BYTES: usize = 200;
/// Maximum length in bytes of a preference.
const MAX_VALUE_BYTES: usize = 2_000;
/// Maximum number of trips in the answer.
const MAX_TRIPS: usize = 10;

#[derive(Debug, Deserialize, JsonSchema)]
struct Preference {
    /// What it is about, in a word or two, such as "home station".
    key: TextArgument,
    /// What the user prefers, such as "86 St on the 6".
    value: TextArgument,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Key {
    /// What it is about, as it was saved, such as "home station".
    key: TextArgument,
}

/// Returns the tools `save_preference`, `get_preference` and `get_common_trips` for a memory.
#[must_use]
pub fn personal_tools(memory: &RiderMemory) -> [FnTool; 3] {
    [save_preference(memory.clone()), get_preference(memory.clone()), get_common_trips(memory.clone())]
}

fn save_preference(memory: RiderMemory) -> FnTool {
    let description = "Saves something that the user prefers, such as their home station, and replaces the earlier \
                       value. Only when the user says so.";
    FnTool::new("save_preference", description, move |context, preference| save(memory.clone(), context, preference))
        .with_alias("name", "key")
}

fn get_preference(memory: RiderMemory) -> FnTool {
    let description = "Returns what the user prefers, such as their home station.";
    FnTool::new("get_preference", description, move |context, wanted| get(memory.clone(), context, wanted))
        .with_alias("name", "key")
}

fn get_common_trips(memory: RiderMemory) -> FnTool {
    let description = "The trips that the user requests most often, with their counts.";
    FnTool::new("get_common_trips", description, move |context, none| common_trips(memory.clone(), context, none))
}

async fn save(memory: RiderMemory, context: ToolContext, preference: Preference) -> Result<ToolOutput, ToolError> {
    require_user(&context)?;
    let key = key_of(&preference.key)?;
    let value = preference.value.required("value", MAX_VALUE_BYTES)?;
    memory.save(&context.scope, key, value).await.map_err(unavailable)?;
    let text = format!("Saved your {key}: {value}");
    Ok(output(text, &json!({"key": key, "value": value})))
}

async fn get(memory: RiderMemory, context: ToolContext, wanted: Key) -> Result<ToolOutput, ToolError> {
    require_user(&context)?;
    let key = key_of(&wanted.key)?;
    let value = memory.get(&context.scope, key).await.map_err(unavailable)?;
    let text = match &value {
        Some(value) => format!("Your {key}: {value}"),
        None => {
            let known = memory.list(&context.scope).await.map_err(unavailable)?;
            let known = match known.is_empty() {
                true => String::new(),
                false => format!(", only: {}", known.join(", ")),
            };
            format!("You have no {key} saved{known}.")
        }
    };
    Ok(output(text, &json!({"key": key, "value": value})))
}

async fn common_trips(memory: RiderMemory, context: ToolContext, _: NoArguments) -> Result<ToolOutput, ToolError> {
    require_user(&context)?;
    let mut trips = memory.common_trips(&context.scope).await.map_err(unavailable)?;
    trips.truncate(MAX_TRIPS);
    Ok(output(wording::common_trips(&trips), &json!({"trips": trips})))
}

fn output(text: String, value: &serde_json::Value) -> ToolOutput {
    ToolOutput { text, value: Some(JsonText::from(value)), ..ToolOutput::default() }
}

/// Returns a preference's name, which must have a letter or digit and no control characters.
fn key_of(key: &TextArgument) -> Result<&str, ToolError> {
    let key = key.required("key", MAX_KEY_BYTES)?;
    let is_a_name = key.chars().any(char::is_alphanumeric) && !key.chars().any(char::is_control);
    if is_a_name {
        Ok(key)
    } else {
        Err(ToolError::Arguments("key must contain a letter or a digit, and no control characters".to_owned()))
    }
}

fn require_user(context: &ToolContext) -> Result<(), ToolError> {
    match context.scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            Err(ToolError::Denied("preferences belong to a user, but the request is not made for one".to_owned()))
        }
    }
}
