//! An assistant of a test's own.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};
use threadkeep::{Definition, FnTool, JsonText, Map, Part, TokenDetails, ToolCall, ToolError, ToolOutput, Usage};
use tokio::sync::Semaphore;

use crate::server::{PATIENCE, Parts, TestServer};

/// Does what it is told: `look THING` and `delete THING` call a tool, `wait` waits until it is let go, `fail` fails.
/// Everything else it says again.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// What it was asked, by its last message.
    pub(crate) asked: Mutex<Vec<String>>,
    /// What it deleted.
    pub(crate) deleted: Arc<Mutex<Vec<String>>>,
    waits: Semaphore,
    goes: Semaphore,
}

impl Keeper {
    /// Waits until somebody waits for its answer.
    pub(crate) async fn waits(&self) {
        tokio::time::timeout(PATIENCE, self.waits.acquire()).await.unwrap().unwrap().forget();
    }

    /// Lets one go that waits.
    pub(crate) fn go(&self) {
        self.goes.add_permits(1);
    }

    pub(crate) fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for Keeper {
    fn name(&self) -> &str {
        "keeper"
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let last = request.messages.last().and_then(|message| message.parts.last()).cloned();
        let (said, is_result) = match last {
            Some(Part::Text(text)) => (text, false),
            Some(Part::ToolResult(result)) => (result.output, true),
            _ => (String::new(), false),
        };
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(said.clone());
            asked.len()
        };
        let details = TokenDetails { cached_input: 5, ..TokenDetails::default() };
        let usage = Some(Usage { input_tokens: 7, output_tokens: 3, details, ..Usage::default() });
        let answer = |part, finish| ChatAnswer { parts: vec![part], finish, model: "keeper-1".to_owned(), usage };
        let call = said.split_once(' ').filter(|(verb, _)| !is_result && matches!(*verb, "look" | "delete"));
        if let Some((verb, thing)) = call {
            let arguments = JsonText::of(&json!({ "thing": thing })).unwrap();
            let call = ToolCall { id: format!("call_{number}"), name: verb.to_owned(), arguments };
            return Ok(answer(Part::ToolCall(call), Finish::ToolCalls));
        }
        if said.starts_with("wait") {
            self.waits.add_permits(1);
            self.goes.acquire().await.unwrap().forget();
        }
        if said == "fail" {
            let detail = "asked to".to_owned();
            return Err(ModelError::Unavailable { model: "keeper".to_owned(), detail, retry_after: None });
        }
        let text = if is_result { format!("Done: {said}") } else { format!("You said: {said}") };
        let (first, rest) = text.split_at(5);
        deltas(ChatDelta::Text(first.to_owned()));
        deltas(ChatDelta::Text(rest.to_owned()));
        Ok(answer(Part::Text(text), Finish::Stop))
    }
}

/// The assistant, and the model that speaks for it.
pub(crate) fn keeper(name: &str) -> (Definition, Arc<Keeper>) {
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let model = Keeper {
        asked: Mutex::default(),
        deleted: Arc::clone(&deleted),
        waits: Semaphore::new(0),
        goes: Semaphore::new(0),
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
    let delete = delete.changing_the_world(move |arguments| format!("rm {}", thing(arguments)));
    let mut definition = Definition::new(name, model.clone()).with_tool(look).with_tool(delete);
    definition.description = "Does what it is told.".to_owned();
    (definition, model)
}

pub(crate) async fn with_keeper() -> (TestServer, Arc<Keeper>) {
    let (definition, model) = keeper("keeper");
    (TestServer::start_with(Parts { assistants: vec![definition], ..Parts::default() }).await, model)
}
