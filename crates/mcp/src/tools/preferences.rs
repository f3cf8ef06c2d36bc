use serde::Deserialize;
use serde_json::{Value, json};

use super::NOTICE;
use crate::{ToolFailure, Toolbox};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {}

pub(crate) async fn run(toolbox: &Toolbox, _: Arguments) -> Result<Value, ToolFailure> {
    let preferences = toolbox.memory.list_preferences(&toolbox.scope).await?;
    let mut values = serde_json::Map::new();
    for preference in preferences {
        values.insert(preference.key, preference.value.read()?);
    }
    Ok(json!({ "notice": NOTICE, "preferences": values }))
}
