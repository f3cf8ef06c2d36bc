//! `spec.tools`: names, or names with how their calls are allowed.

use serde_saphyr::Spanned;
use threadkeep::Value;

use super::{ManifestError, line_of, wrong};
use crate::assistant::TOOLS;

const KEY: &str = "spec.tools";

/// The tools that are named, and those of them whose calls a person allows one by one.
pub(super) fn tools(
    members: Option<&Spanned<Vec<Spanned<Value>>>>,
) -> Result<(Option<Vec<String>>, Vec<String>), ManifestError> {
    let Some(members) = members else { return Ok((None, Vec::new())) };
    let (mut names, mut ask_before) = (Vec::new(), Vec::new());
    for member in &members.value {
        let (name, asks) = tool(&member.value).map_err(|reason| wrong(line_of(member), KEY, reason))?;
        if asks {
            ask_before.push(name.clone());
        }
        names.push(name);
    }
    Ok((Some(names), ask_before))
}

/// Reads `NAME` or `{name: NAME, approval: ask|never}`.
fn tool(member: &Value) -> Result<(String, bool), String> {
    let (name, approval) = match member {
        Value::Object(members) => {
            if let Some(unknown) = members.keys().find(|key| !["name", "approval"].contains(&key.as_str())) {
                return Err(format!("`{unknown}` is unknown; a tool has name and approval"));
            }
            (members.get("name").unwrap_or(&Value::Null), members.get("approval"))
        }
        name => (name, None),
    };
    let Value::String(name) = name else { return Err(format!("{name} is no name of a tool")) };
    if !TOOLS.contains(&name.as_str()) {
        return Err(format!("there is no tool `{name}`; there are {}", TOOLS.join(", ")));
    }
    match approval.map(|approval| approval.as_str().ok_or(approval)) {
        None | Some(Ok("never")) => Ok((name.clone(), false)),
        Some(Ok("ask")) => Ok((name.clone(), true)),
        Some(Ok(other)) => Err(format!("approval of {name}: `{other}` is unknown; there are ask, never")),
        Some(Err(other)) => Err(format!("approval of {name}: {other} is no text; there are ask, never")),
    }
}
