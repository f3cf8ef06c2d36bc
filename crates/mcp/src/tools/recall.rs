use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::{Map, RecallOptions};

use super::{MessageResult, NOTICE, check_query, insert, limit, metadata_filter, titles};
use crate::message_name::get_thread;
use crate::{ToolFailure, Toolbox};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    question: String,
    thread: Option<String>,
    metadata: Option<Map>,
    limit: Option<u64>,
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    check_query("question", &arguments.question)?;
    let thread = match &arguments.thread {
        Some(name) => Some(get_thread(memory, scope, name).await?.id),
        None => None,
    };
    let metadata = metadata_filter(arguments.metadata.as_ref())?;
    let options = RecallOptions { thread, metadata, limit: limit(arguments.limit, 5, 20)?, ..RecallOptions::default() };
    let found = memory.recall(scope, &arguments.question, &options).await?;
    let titles = titles(toolbox, found.messages.iter().map(|found| found.thread)).await?;
    let messages = found.messages.iter().map(|found| MessageResult {
        title: titles.get(&found.thread).cloned().flatten(),
        ..MessageResult::shortened(found.thread, &found.message)
    });
    let mut result = json!({ "notice": NOTICE, "messages": messages.collect::<Vec<_>>() });
    insert(&mut result, "incomplete", (!found.unsearched.is_empty()).then_some(true));
    Ok(result)
}
