//! Builds requests to Anthropic's messages API.

use serde_json::{Map, Value, json};
use threadkeep_core::{AnswerFormat, ChatMessage, ChatRequest, Part, Role, ToolChoice};

use crate::provider::ProviderConfig;
use crate::provider::anthropic::BLOCK;
use crate::provider::openai::{is_address, is_attachment};
use crate::provider::order::in_order;

/// The value of `max_tokens`, which the API requires, if the request sets no limit. All models support it, and it leaves
/// tokens for reasoning.
const MAX_TOKENS: u64 = 16_384;

/// The supported levels of reasoning effort.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The options that the API does not support.
const MISSING_OPTIONS: [&str; 5] = ["frequency_penalty", "presence_penalty", "seed", "logit_bias", "verbosity"];

/// Inserted before a conversation that starts with the assistant, because the API requires a user message first.
const CONTINUED: &str = "(The conversation continues.)";

pub(in crate::provider) fn body(config: &ProviderConfig, request: &ChatRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.model));
    body.insert("max_tokens".to_owned(), json!(request.max_tokens.unwrap_or(MAX_TOKENS)));
    let ordered = in_order(&request.messages);
    let leading = ordered.iter().take_while(|message| message.role == Role::System);
    let system: Vec<String> = leading.map(|message| message.plain_text()).filter(|text| !text.is_empty()).collect();
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    let remaining = ordered.iter().skip_while(|message| message.role == Role::System);
    body.insert("messages".to_owned(), messages(remaining.map(AsRef::as_ref)));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let schema: Value = tool.parameters.read().unwrap_or(Value::Null);
            json!({"name": tool.name, "description": tool.description, "input_schema": schema})
        });
        body.insert("tools".to_owned(), tools.collect());
        if let Some(choice) = tool_choice(&request.tool_choice, request.parallel_tool_calls) {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    if let Some(output) = output_config(request) {
        body.insert("output_config".to_owned(), output);
    }
    if !request.sampling.stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(request.sampling.stop));
    }
    if config.streams {
        body.insert("stream".to_owned(), json!(true));
    }
    Value::Object(body)
}

/// Returns an option, or content of a user's message, that the provider's request cannot contain; `None` if it can contain everything.
pub(in crate::provider) fn ignored(request: &ChatRequest) -> Option<&'static str> {
    if matches!(request.format, Some(AnswerFormat::Json)) {
        return Some("format");
    }
    let content = || {
        let messages = request.messages.iter().filter(|message| message.role == Role::User);
        messages.flat_map(|message| &message.parts).find_map(|part| match part {
            Part::Image(image) if !is_address(&image.url) => Some("image"),
            Part::Image(image) => image.detail.as_ref().is_some_and(|detail| detail != "auto").then_some("detail"),
            part => is_attachment(part).then_some("file"),
        })
    };
    request.required_options().find(|option| MISSING_OPTIONS.contains(option)).or_else(content)
}

fn tool_choice(choice: &ToolChoice, parallel: Option<bool>) -> Option<Value> {
    let is_sequential = parallel == Some(false);
    let mut tool_choice = match choice {
        ToolChoice::Auto if is_sequential => json!({"type": "auto"}),
        ToolChoice::Auto => return None,
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if is_sequential {
        tool_choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(tool_choice)
}

/// Builds the output configuration. Ignores JSON output without a schema, which the API does not support.
fn output_config(request: &ChatRequest) -> Option<Value> {
    let mut config = Map::new();
    if let Some(AnswerFormat::Schema { schema, .. }) = &request.format {
        let schema: Value = schema.read().unwrap_or(Value::Null);
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    let effort = request.reasoning_effort.as_deref().filter(|effort| EFFORTS.contains(effort));
    config.extend(effort.map(|effort| ("effort".to_owned(), json!(effort))));
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Groups the messages into alternating turns of user and assistant, as the API requires. Tool results, and system messages
/// after the start, become part of user turns.
fn messages<'a>(messages: impl Iterator<Item = &'a ChatMessage>) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let mut blocks: Vec<Value> = message.parts.iter().filter_map(|part| block(message, part)).collect();
        if blocks.is_empty() {
            continue;
        }
        if turns.is_empty() && role == "assistant" {
            turns.push(("user", vec![text_block(CONTINUED)]));
        }
        match turns.last_mut() {
            Some((last, known)) if *last == role => known.append(&mut blocks),
            _ => turns.push((role, blocks)),
        }
    }
    for (_, blocks) in &mut turns {
        // The API requires tool results first.
        blocks.sort_by_key(|block| block["type"] != "tool_result");
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": content(blocks)})).collect()
}

/// Renders the content of a turn; a single text block becomes a plain string.
fn content(blocks: Vec<Value>) -> Value {
    match &blocks[..] {
        [block] if block["type"] == "text" => block["text"].clone(),
        _ => Value::Array(blocks),
    }
}

fn block(message: &ChatMessage, part: &Part) -> Option<Value> {
    match part {
        Part::ToolCall(call) => {
            let input: Value = call.arguments.read().unwrap_or_else(|_| json!({}));
            Some(json!({"type": "tool_use", "id": sanitized_id(&call.id), "name": call.name, "input": input}))
        }
        Part::ToolResult(result) => {
            let mut block =
                json!({"type": "tool_result", "tool_use_id": sanitized_id(&result.call_id), "content": result.output});
            if result.is_error {
                block["is_error"] = json!(true);
            }
            Some(block)
        }
        // Only reasoning blocks are restored from stored data; they are signed and must be sent unchanged.
        Part::Raw { format, json } if format == BLOCK && message.role == Role::Assistant => {
            let block: Value = json.read().ok()?;
            matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")).then_some(block)
        }
        Part::Image(image) if message.role == Role::User && is_address(&image.url) => Some(image_block(&image.url)),
        _ => {
            let text = part.text().filter(|text| !text.trim().is_empty())?;
            Some(text_block(&match (message.role, &message.author) {
                (Role::System, _) => format!("<system>\n{text}\n</system>"),
                // The API has no field for author names.
                (Role::User, Some(author)) => format!("{author}: {text}"),
                _ => text.to_owned(),
            }))
        }
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_block(url: &str) -> Value {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source = match inline {
        Some((media_type, data)) => json!({"type": "base64", "media_type": media_type, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

/// Replaces characters that other providers use in ids and that this API rejects.
fn sanitized_id(id: &str) -> String {
    id.chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect()
}
