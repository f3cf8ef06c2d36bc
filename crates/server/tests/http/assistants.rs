//! An assistant whose model follows commands.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};
use threadkeep::{Definition, FnTool, JsonText, Map, Part, TokenDetails, ToolCall, ToolError, ToolOutput, Usage};
use tokio::sync::Semaphore;

use crate::server::{TIMEOUT, TestConfig, TestServer};

/// A model that follows commands: `look THING` and `delete THING` call a tool, `wait` blocks until [`CommandModel::unblock`], `fail`
/// fails. It echoes any other text.
#[derive(Debug)]
pub(crate) struct CommandModel {
    /// The text of the last message of each request.
    pub(crate) requests: Mutex<Vec<String>>,
    /// The things that the tool `delete` deleted.
    pub(crate) deleted: Arc<Mutex<Vec<String>>>,
    blocked: Semaphore,
    unblocked: Semaphore,
}

impl CommandModel {
    /// Waits until a request is blocked by `wait`.
    pub(crate) async fn wait_until_blocked(&self) {
        tokio::time::timeout(TIMEOUT, self.blocked.acquire()).await.unwrap().unwrap().forget();
    }

    /// Unblocks one request.
    pub(crate) fn unblock(&self) {
        self.unblocked.add_permits(1);
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for CommandModel {
    fn name(&self) -> &str {
        "keeper"
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let last = request.messages.last().and_then(|message| message.parts.last()).cloned();
        let (text, is_result) = match last {
            Some(Part::Text(text)) => (text, false),
            Some(Part::ToolResult(result)) => (result.output, true),
            _ => (String::new(), false),
        };
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(text.clone());
            requests.len()
        };
        let details = TokenDetails { cached_input: 5, ..TokenDetails::default() };
        let usage = Some(Usage { input_tokens: 7, output_tokens: 3, details, ..Usage::default() });
        let answer = |part, finish| ChatAnswer { parts: vec![part], finish, model: "keeper-1".to_owned(), usage };
        let call = text.split_once(' ').filter(|(verb, _)| !is_result && matches!(*verb, "look" | "delete"));
        if let Some((verb, thing)) = call {
            let arguments = JsonText::of(&json!({ "thing": thing })).unwrap();
            let call = ToolCall { id: format!("call_{number}"), name: verb.to_owned(), arguments };
            return Ok(answer(Part::ToolCall(call), Finish::ToolCalls));
        }
        if text.starts_with("wait") {
            self.blocked.add_permits(1);
            self.unblocked.acquire().await.unwrap().forget();
        }
        if text == "fail" {
            let detail = "the test requested a failure".to_owned();
            return Err(ModelError::Unavailable { model: "keeper".to_owned(), detail, retry_after: None });
        }
        let text = if is_result { format!("Done: {text}") } else { format!("You said: {text}") };
        let (first, rest) = text.split_at(5);
        deltas(ChatDelta::Text(first.to_owned()));
        deltas(ChatDelta::Text(rest.to_owned()));
        Ok(answer(Part::Text(text), Finish::Stop))
    }
}

/// Creates an assistant with the tools `look` and `delete`; `delete` requires approval. Also returns the assistant's
/// model.
pub(crate) fn test_assistant(name: &str) -> (Definition, Arc<CommandModel>) {
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let model = CommandModel {
        requests: Mutex::default(),
        deleted: Arc::clone(&deleted),
        blocked: Semaphore::new(0),
        unblocked: Semaphore::new(0),
    };
    let model = Arc::new(model);
    let schema =
        || JsonText::of(&json!({ "type": "object", "properties": { "thing": { "type": "string" } } })).unwrap();
    let thing = |arguments: &Map| arguments["thing"].as_str().unwrap_or_default().to_owned();
    let look = FnTool::with_schema("look", "Looks at a thing", schema(), move |_, arguments| async move {
        Ok::<_, ToolError>(ToolOutput::json(JsonText::of(&json!({ "seen": thing(&arguments) })).unwrap()))
    });
    let delete = FnTool::with_schema("delete", "Deletes a thing", schema(), move |_, arguments| {
        let deleted = Arc::clone(&deleted);
        async move {
            deleted.lock().unwrap().push(thing(&arguments));
            Ok::<_, ToolError>(ToolOutput::text(format!("{} deleted", thing(&arguments))))
        }
    });
    let delete = delete.with_side_effects(move |arguments| format!("rm {}", thing(arguments)));
    let mut definition = Definition::new(name, model.clone()).with_tool(look).with_tool(delete);
    definition.description = "Follows commands.".to_owned();
    (definition, model)
}

pub(crate) async fn start_with_test_assistant() -> (TestServer, Arc<CommandModel>) {
    let (definition, model) = test_assistant("keeper");
    (TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await, model)
}
