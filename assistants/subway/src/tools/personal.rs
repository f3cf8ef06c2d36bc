//! Tools that keep what a person prefers, and tell which trips they make.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Scope};

use super::words::Words;
use super::{Nothing, SubwayTools, unavailable};
use crate::{preferences, wording};

/// Bytes of a preference's name.
const KEY_BYTES: usize = 200;
/// Bytes of a preference.
const VALUE_BYTES: usize = 2_000;
/// Trips that are told; a person has few that are common.
const TRIPS: usize = 10;

#[derive(Debug, Deserialize, JsonSchema)]
struct Preference {
    /// What it is about, in a word or two, such as "home station".
    key: Words,
    /// What the user prefers, such as "86 St on the 6".
    value: Words,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Key {
    /// What it is about, as it was kept, such as "home station".
    key: Words,
}

pub(super) fn save_preference(tools: &SubwayTools) -> FnTool {
    let description = "Keeps something that the user prefers, such as their home station, in place of what was kept \
                       before. Only when the user says so.";
    tools.tool("save_preference", description, save).with_alias("name", "key")
}

pub(super) fn get_preference(tools: &SubwayTools) -> FnTool {
    let description = "Tells what the user prefers, such as their home station.";
    tools.tool("get_preference", description, get).with_alias("name", "key")
}

pub(super) fn get_common_trips(tools: &SubwayTools) -> FnTool {
    let description = "The trips that the user asks for most, with how often.";
    tools.tool("get_common_trips", description, common_trips)
}

async fn save(tools: SubwayTools, context: ToolContext, preference: Preference) -> Result<ToolOutput, ToolError> {
    of_a_user(&context)?;
    let key = key_of(&preference.key)?;
    let value = preference.value.required("value", VALUE_BYTES)?;
    preferences::save_preference(&tools.memory, &context.scope, key, value).await.map_err(unavailable)?;
    let text = format!("Saved your {key}: {value}");
    Ok(output(text, &json!({"key": key, "value": value})))
}

async fn get(tools: SubwayTools, context: ToolContext, wanted: Key) -> Result<ToolOutput, ToolError> {
    of_a_user(&context)?;
    let key = key_of(&wanted.key)?;
    let value = preferences::get_preference(&tools.memory, &context.scope, key).await.map_err(unavailable)?;
    let text = match &value {
        Some(value) => format!("Your {key}: {value}"),
        None => {
            let known = preferences::list_preferences(&tools.memory, &context.scope).await.map_err(unavailable)?;
            let known = match known.is_empty() {
                true => String::new(),
                false => format!(", only for {}", known.join(", ")),
            };
            format!("Nothing is saved for \"{key}\"{known}.")
        }
    };
    Ok(output(text, &json!({"key": key, "value": value})))
}

async fn common_trips(tools: SubwayTools, context: ToolContext, _: Nothing) -> Result<ToolOutput, ToolError> {
    of_a_user(&context)?;
    let mut trips = preferences::get_common_trips(&tools.memory, &context.scope).await.map_err(unavailable)?;
    trips.truncate(TRIPS);
    Ok(output(wording::common_trips(&trips), &json!({"trips": trips})))
}

fn output(text: String, value: &serde_json::Value) -> ToolOutput {
    ToolOutput { text, value: Some(JsonText::from(value)), ..ToolOutput::default() }
}

/// A preference's name, on one line.
fn key_of(key: &Words) -> Result<&str, ToolError> {
    let key = key.required("key", KEY_BYTES)?;
    let is_a_name = key.chars().any(char::is_alphanumeric) && !key.chars().any(char::is_control);
    if is_a_name { Ok(key) } else { Err(ToolError::Arguments("key is no name".to_owned())) }
}

fn of_a_user(context: &ToolContext) -> Result<(), ToolError> {
    match context.scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            Err(ToolError::Denied("preferences are a user's, and nobody in particular asks".to_owned()))
        }
    }
}
