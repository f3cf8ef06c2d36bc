use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::memory::PassageOptions;

use super::{NOTICE, check_query, limit};
use crate::{ToolFailure, Toolbox};

/// The library of `threadkeep docs`.
const LIBRARY: &str = "documents";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    question: String,
    limit: Option<u64>,
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    check_query("question", &arguments.question)?;
    let options = PassageOptions { limit: limit(arguments.limit, 5, 20)?, ..PassageOptions::default() };
    let found = toolbox.memory.find_passages(&toolbox.scope, LIBRARY, &arguments.question, &options).await?;
    let passages = found.passages.iter().map(|passage| {
        json!({
            "document": passage.document, "title": passage.title, "place": passage.place, "text": passage.text,
        })
    });
    Ok(json!({ "notice": NOTICE, "passages": passages.collect::<Vec<_>>() }))
}
