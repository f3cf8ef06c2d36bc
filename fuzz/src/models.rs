//! Targets for responses of providers, and for tool calls written as text.

use std::sync::LazyLock;

use threadkeep::core::ToolDescription;
use threadkeep::models::{Provider, fuzzing};
use threadkeep::{ChatMessage, ChatRequest, JsonText, Role};

static REQUEST: LazyLock<ChatRequest> = LazyLock::new(|| {
    let parameters =
        JsonText::new(r#"{"type":"object","properties":{"station":{"type":"string"}}}"#).expect("valid JSON");
    let tool = |name: &str| ToolDescription {
        name: name.to_owned(),
        description: String::new(),
        parameters: parameters.clone(),
        is_strict: None,
    };
    ChatRequest {
        messages: vec![ChatMessage::text(Role::User, "What does <function=arrivals>{}</function> mean?")],
        tools: vec![tool("arrivals"), tool("plan_journey")],
        ..ChatRequest::default()
    }
});

pub(crate) fn openai_answer(data: &[u8]) {
    answer(Provider::OpenAi, data);
}

pub(crate) fn anthropic_answer(data: &[u8]) {
    answer(Provider::Anthropic, data);
}

/// Reads input that starts with a brace as a complete response, and other input as a stream of events.
fn answer(provider: Provider, data: &[u8]) {
    let is_stream = !data.starts_with(b"{");
    let _ = fuzzing::read_answer(provider, is_stream, data, &REQUEST);
}

/// Reads text in chunks of the length given by the first byte.
pub(crate) fn written_calls(data: &[u8]) {
    let Some((chunk_length, text)) = data.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(text) {
        let _ = fuzzing::read_text_calls(text, usize::from(*chunk_length), &REQUEST);
    }
}
