//! Reads `spec.tools`: tool names, optionally with approval settings.

use serde_saphyr::Spanned;
use threadkeep::Value;

use super::{ManifestError, line_of, manifest_error};
use crate::assistant::TOOLS;

const KEY: &str = "spec.tools";

/// Returns the names of all listed tools, and the names of the tools that require approval.
pub(super) fn tools(
    items: Option<&Spanned<Vec<Spanned<Value>>>>,
) -> Result<(Option<Vec<String>>, Vec<String>), ManifestError> {
    let Some(items) = items else { return Ok((None, Vec::new())) };
    let (mut names, mut requiring_approval) = (Vec::new(), Vec::new());
    for item in &items.value {
        let (name, requires_approval) =
            tool(&item.value).map_err(|reason| manifest_error(line_of(item), KEY, reason))?;
        if requires_approval {
            requiring_approval.push(name.clone());
        }
        names.push(name);
    }
    Ok((Some(names), requiring_approval))
}

/// Reads `NAME` or `{name: NAME, approval: ask|never}`.
fn tool(item: &Value) -> Result<(String, bool), String> {
    let (name, approval) = match item {
        Value::Object(fields) => {
            if let Some(unknown) = fields.keys().find(|key| !["name", "approval"].contains(&key.as_str())) {
                return Err(format!("unknown key `{unknown}`; expected `name` or `approval`"));
            }
            (fields.get("name").unwrap_or(&Value::Null), fields.get("approval"))
        }
        name => (name, None),
    };
    let Value::String(name) = name else { return Err(format!("expected the name of a tool, found {name}")) };
    if !TOOLS.contains(&name.as_str()) {
        return Err(format!("unknown tool `{name}`; available tools are {}", TOOLS.join(", ")));
    }
    match approval.map(|approval| approval.as_str().ok_or(approval)) {
        None | Some(Ok("never")) => Ok((name.clone(), false)),
        Some(Ok("ask")) => Ok((name.clone(), true)),
        Some(Ok(other)) => {
            Err(format!("invalid value `{other}` of `approval` for tool `{name}`; expected `ask` or `never`"))
        }
        Some(Err(other)) => {
            Err(format!("invalid value {other} of `approval` for tool `{name}`; expected `ask` or `never`"))
        }
    }
}
