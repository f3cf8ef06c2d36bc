use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::{ContextPolicy, TokenCount};

use super::{NOTICE, check_query};
use crate::message_name::get_thread;
use crate::{ToolFailure, Toolbox};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    thread: String,
    question: Option<String>,
    budget: Option<u64>,
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    if let Some(question) = &arguments.question {
        check_query("question", question)?;
    }
    let budget = arguments.budget.unwrap_or(4_000);
    if !(100..=32_000).contains(&budget) {
        return Err(ToolFailure::argument("budget", "expected a number from 100 to 32000"));
    }
    let thread = get_thread(memory, scope, &arguments.thread).await?.id;
    let policy = ContextPolicy { budget: Some(TokenCount(budget)), ..ContextPolicy::default() };
    let assembled = memory.context(scope, thread, arguments.question.as_deref(), &policy).await?;
    let (messages, report) = (&assembled.context.messages, &assembled.context.report);
    Ok(json!({ "notice": NOTICE, "messages": messages, "report": report }))
}
