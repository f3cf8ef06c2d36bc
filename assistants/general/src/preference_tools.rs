//! Tools for the user's preferences. Their calls need no approval, because they only change the memory at the user's request and
//! can be undone.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Map, Memory, Scope, Value};

use crate::search_tools::unavailable;

/// The maximum length of a preference's value, in bytes.
const MAX_VALUE_BYTES: usize = 2_000;
/// The maximum length of a preference's name, in bytes.
const MAX_NAME_BYTES: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
struct Setting {
    /// What the preference is about, in a word or two, such as `language`.
    name: String,
    /// What the user prefers.
    value: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    /// The name under which the preference was set.
    name: String,
}

/// Lists the user's preferences.
pub(crate) fn list(memory: Memory) -> FnTool {
    FnTool::new("list_preferences", "Lists what the user prefers.", move |context: ToolContext, _: NoArguments| {
        let memory = memory.clone();
        async move {
            require_user(&context)?;
            let preferences = memory.list_preferences(&context.scope).await.map_err(unavailable)?;
            let named = preferences.into_iter().map(|preference| {
                let value = preference.value.read().unwrap_or_else(|_| Value::from(preference.value.as_str()));
                (preference.key, value)
            });
            let preferences: Map = named.collect();
            Ok(ToolOutput::json(JsonText::from(&json!({"preferences": preferences}))))
        }
    })
}

/// Sets a preference of the user for all conversations.
pub(crate) fn set(memory: Memory) -> FnTool {
    let description = "Stores a preference of the user for all conversations. Call this only if the user asks for it.";
    FnTool::new("set_preference", description, move |context: ToolContext, arguments: Setting| {
        let memory = memory.clone();
        async move {
            require_user(&context)?;
            let name = key(&arguments.name)?;
            if arguments.value.len() > MAX_VALUE_BYTES {
                return Err(ToolError::Arguments(format!("the value exceeds {MAX_VALUE_BYTES} bytes")));
            }
            memory.set_preference(&context.scope, &name, &arguments.value).await.map_err(unavailable)?;
            Ok(ToolOutput::json(JsonText::from(&json!({"name": name, "value": arguments.value}))))
        }
    })
}

/// Removes a preference of the user.
pub(crate) fn forget(memory: Memory) -> FnTool {
    let description = "Removes a preference of the user. Call this only if the user asks for it.";
    FnTool::new("forget_preference", description, move |context: ToolContext, arguments: Name| {
        let memory = memory.clone();
        async move {
            require_user(&context)?;
            let name = key(&arguments.name)?;
            let preferences = memory.list_preferences(&context.scope).await.map_err(unavailable)?;
            if !preferences.iter().any(|preference| preference.key == name) {
                return Err(ToolError::NotFound(format!("no preference named {name}")));
            }
            memory.delete_preference(&context.scope, &name).await.map_err(unavailable)?;
            Ok(ToolOutput::json(JsonText::from(&json!({"forgotten": name}))))
        }
    })
}

fn require_user(context: &ToolContext) -> Result<(), ToolError> {
    match context.scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            Err(ToolError::Denied("preferences belong to a user, but this conversation has no user".to_owned()))
        }
    }
}

/// Normalizes a preference's name to lower case with single spaces, so that variants of a name refer to the same preference.
fn key(name: &str) -> Result<String, ToolError> {
    let key = name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    match key.len() {
        0 => Err(ToolError::Arguments("the name is empty".to_owned())),
        1..=MAX_NAME_BYTES => Ok(key),
        _ => Err(ToolError::Arguments(format!("the name exceeds {MAX_NAME_BYTES} bytes"))),
    }
}
