//! Tools that keep what the user prefers. Their calls need no approval: they change what is remembered, at the user's word,
//! and can be taken back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{FnTool, JsonText, Map, Memory, Scope, Value};

use crate::search_tools::unavailable;

/// Bytes of a preference's value.
const VALUE_BYTES: usize = 2_000;
/// Bytes of a preference's name.
const NAME_BYTES: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
struct Setting {
    /// What it is about, in a word or two, such as `language`.
    name: String,
    /// What the user prefers.
    value: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    /// What it is about, as it was set.
    name: String,
}

/// Lists what the user prefers.
pub(crate) fn list(memory: Memory) -> FnTool {
    FnTool::new("list_preferences", "Lists what the user prefers.", move |context: ToolContext, _: Nothing| {
        let memory = memory.clone();
        async move {
            of_a_user(&context)?;
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

/// Sets what the user prefers, for all conversations.
pub(crate) fn set(memory: Memory) -> FnTool {
    let description = "Keeps something that the user prefers, for all conversations. Only when the user says so.";
    FnTool::new("set_preference", description, move |context: ToolContext, arguments: Setting| {
        let memory = memory.clone();
        async move {
            of_a_user(&context)?;
            let name = key(&arguments.name)?;
            if arguments.value.len() > VALUE_BYTES {
                return Err(ToolError::Arguments(format!("the value has more than {VALUE_BYTES} bytes")));
            }
            memory.set_preference(&context.scope, &name, &arguments.value).await.map_err(unavailable)?;
            Ok(ToolOutput::json(JsonText::from(&json!({"name": name, "value": arguments.value}))))
        }
    })
}

/// Forgets what the user preferred.
pub(crate) fn forget(memory: Memory) -> FnTool {
    let description = "Forgets something that the user preferred. Only when the user says so.";
    FnTool::new("forget_preference", description, move |context: ToolContext, arguments: Name| {
        let memory = memory.clone();
        async move {
            of_a_user(&context)?;
            let name = key(&arguments.name)?;
            let preferences = memory.list_preferences(&context.scope).await.map_err(unavailable)?;
            if !preferences.iter().any(|preference| preference.key == name) {
                return Err(ToolError::NotFound(format!("no preference is called {name}")));
            }
            memory.delete_preference(&context.scope, &name).await.map_err(unavailable)?;
            Ok(ToolOutput::json(JsonText::from(&json!({"forgotten": name}))))
        }
    })
}

fn of_a_user(context: &ToolContext) -> Result<(), ToolError> {
    match context.scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            Err(ToolError::Denied("preferences are a user's, and nobody in particular asks".to_owned()))
        }
    }
}

/// A preference's name: in lower case and on one line, so that it is found again however it is written.
fn key(name: &str) -> Result<String, ToolError> {
    let key = name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    match key.len() {
        0 => Err(ToolError::Arguments("the name is empty".to_owned())),
        1..=NAME_BYTES => Ok(key),
        _ => Err(ToolError::Arguments(format!("the name has more than {NAME_BYTES} bytes"))),
    }
}
