//! Calling external tools without a language model: a message that consists of the name of a tool and its arguments as JSON.

use async_trait::async_trait;
use threadkeep::{
    ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, DeltaSink, Finish, JsonText, ModelError, Part, Role,
    ToolCall, Value,
};

/// The part of a tool's name that follows the name of its server.
const SEPARATOR: &str = "__";
/// The start of the id of the call. The position of the message follows.
const CALL_ID: &str = "by-name-";

/// A model that makes the call which a message spells out, and passes every other message to another model.
#[derive(Debug)]
pub(crate) struct CalledByName<M>(pub(crate) M);

#[async_trait]
impl<M: ChatModel> ChatModel for CalledByName<M> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn ignored(&self, request: &ChatRequest) -> Option<&'static str> {
        self.0.ignored(request)
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let (part, finish) = match step(request) {
            Some(Step::Call(call)) => (Part::ToolCall(call), Finish::ToolCalls),
            Some(Step::Reply(text)) => {
                deltas(ChatDelta::Text(text.clone()));
                (Part::Text(text), Finish::Stop)
            }
            None => return self.0.answer(request, deltas).await,
        };
        Ok(ChatAnswer { parts: vec![part], finish, model: self.name().to_owned(), usage: None })
    }
}

enum Step {
    Call(ToolCall),
    Reply(String),
}

/// Returns the call that the newest message spells out, or the reply with its result.
fn step(request: &ChatRequest) -> Option<Step> {
    let result = request.messages.last().filter(|message| message.role == Role::Tool);
    if let Some(result) =
        result.and_then(|message| message.tool_results().find(|result| result.call_id.starts_with(CALL_ID)))
    {
        return Some(Step::Reply(result.output.clone()));
    }
    let question = request.messages.last().filter(|message| message.role == Role::User)?;
    let text = ChatMessage::plain_text(question);
    let text = text.trim();
    let (name, arguments) = text.split_at(text.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(text.len()));
    if !is_tool(request, name) {
        return None;
    }
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
    if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
        return Some(Step::Reply(format!(
            "The arguments of {name} must be a JSON object: {name} {{\"argument\": \"value\"}}"
        )));
    }
    let arguments = JsonText::new(arguments).ok()?;
    let position = question.seq.unwrap_or(request.messages.len() as u64);
    let call = ToolCall { id: format!("{CALL_ID}{position}"), name: name.to_owned(), arguments };
    Some(Step::Call(call))
}

fn is_tool(request: &ChatRequest, name: &str) -> bool {
    name.contains(SEPARATOR) && request.tools.iter().any(|tool| tool.name == name)
}
