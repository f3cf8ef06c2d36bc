//! Builds requests to the chat completions API.

use serde_json::{Map, Value, json};
use threadkeep_core::{AnswerFormat, ChatMessage, ChatRequest, JsonText, Part, Role, Sampling, ToolCall, ToolChoice};

use crate::provider::order::in_order;
use crate::provider::{Provider, ProviderConfig};

/// The maximum length of an author's name, in characters.
const NAME_CHARACTERS: usize = 64;

pub(in crate::provider) fn body(config: &ProviderConfig, request: &ChatRequest) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.model));
    body.insert(
        "messages".to_owned(),
        in_order(&request.messages).iter().flat_map(|message| messages(config.provider, message)).collect(),
    );
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        if let Some(choice) = tool_choice(&request.tool_choice) {
            body.insert("tool_choice".to_owned(), choice);
        }
        if let Some(parallel) = request.parallel_tool_calls {
            body.insert("parallel_tool_calls".to_owned(), json!(parallel));
        }
    }
    if let Some(format) = &request.format {
        body.insert("response_format".to_owned(), response_format(format));
    }
    if let Some(effort) = &request.reasoning_effort {
        body.insert("reasoning_effort".to_owned(), json!(effort));
    }
    sampling(&mut body, &request.sampling);
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(max_tokens) = request.max_tokens {
        // OpenAI's newer models reject `max_tokens`, and other servers do not support `max_completion_tokens`.
        let name = if config.provider == Provider::OpenAi { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.to_owned(), json!(max_tokens));
    }
    if config.streams {
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    body
}

/// Returns content of a user's message that the provider's request cannot contain; `None` if it can contain everything.
pub(in crate::provider) fn ignored(provider: Provider, request: &ChatRequest) -> Option<&'static str> {
    let messages = request.messages.iter().filter(|message| message.role == Role::User);
    messages.flat_map(|message| &message.parts).find_map(|part| match part {
        Part::Image(image) => (!is_address(&image.url)).then_some("image"),
        part if is_attachment(part) => attachment_part(provider, part).is_none().then_some("file"),
        _ => None,
    })
}

fn response_format(format: &AnswerFormat) -> Value {
    let AnswerFormat::Schema { name, description, schema, is_strict } = format else {
        return json!({"type": "json_object"});
    };
    let mut schema_format = json!({"name": name, "schema": json_of(schema)});
    if let Some(description) = description {
        schema_format["description"] = json!(description);
    }
    if let Some(is_strict) = is_strict {
        schema_format["strict"] = json!(is_strict);
    }
    json!({"type": "json_schema", "json_schema": schema_format})
}

fn sampling(body: &mut Map<String, Value>, sampling: &Sampling) {
    let Sampling { top_p, frequency_penalty, presence_penalty, seed, stop, logit_bias, verbosity } = sampling;
    let numbers = [("top_p", top_p), ("frequency_penalty", frequency_penalty), ("presence_penalty", presence_penalty)];
    body.extend(numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), json!((*number)?)))));
    body.extend(seed.map(|seed| ("seed".to_owned(), json!(seed))));
    if !stop.is_empty() {
        body.insert("stop".to_owned(), json!(stop));
    }
    if !logit_bias.is_empty() {
        body.insert("logit_bias".to_owned(), json!(logit_bias));
    }
    if let Some(verbosity) = verbosity {
        body.insert("verbosity".to_owned(), json!(verbosity));
    }
}

fn tool(tool: &threadkeep_core::ToolDescription) -> Value {
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": json_of(&tool.parameters),
    });
    if let Some(is_strict) = tool.is_strict {
        function["strict"] = json!(is_strict);
    }
    json!({ "type": "function", "function": function })
}

fn json_of(text: &JsonText) -> Value {
    text.read().unwrap_or(Value::Null)
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        // All providers use this choice by default, so the parameter is omitted.
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

/// Converts a message. Each tool result becomes a separate message. An empty message is omitted.
fn messages(provider: Provider, message: &ChatMessage) -> Vec<Value> {
    let mut messages = Vec::new();
    let content = content(provider, message);
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    if message.role == Role::Assistant && !calls.is_empty() {
        messages.push(with_name(message, json!({"role": "assistant", "content": content, "tool_calls": calls})));
    } else if message.role != Role::Tool && !content.is_null() {
        messages.push(with_name(message, json!({"role": message.role.as_str(), "content": content})));
    }
    messages.extend(message.tool_results().map(|result| {
        // The API cannot mark a result as an error, so the text does.
        let output = if result.is_error { format!("Error: {}", result.output) } else { result.output.clone() };
        json!({"role": "tool", "tool_call_id": result.call_id, "content": output})
    }));
    messages
}

fn call(call: &ToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments.as_str()});
    json!({"id": call.id, "type": "function", "function": function})
}

/// Renders the content: a string, a list of parts if there are images or attachments, or null if there is none.
fn content(provider: Provider, message: &ChatMessage) -> Value {
    let non_text_part = |part: &Part| match part {
        Part::Image(image) if is_address(&image.url) => {
            let mut address = json!({"url": image.url});
            if let Some(detail) = &image.detail {
                address["detail"] = json!(detail);
            }
            Some(json!({"type": "image_url", "image_url": address}))
        }
        part => attachment_part(provider, part),
    };
    if message.role == Role::User && message.parts.iter().any(|part| non_text_part(part).is_some()) {
        let text_part =
            |part: &Part| Some(json!({"type": "text", "text": part.text().filter(|text| !text.is_empty())?}));
        return message.parts.iter().filter_map(|part| non_text_part(part).or_else(|| text_part(part))).collect();
    }
    let text = message.plain_text();
    if text.is_empty() { Value::Null } else { json!(text) }
}

/// Whether a part was stored in the format of chat completions or of OpenAI's responses, such as a file or audio input.
pub(in crate::provider) fn is_attachment(part: &Part) -> bool {
    matches!(part, Part::Raw { format, .. } if matches!(format.as_str(), "openai.chat" | "openai.content"))
}

/// Renders a file or audio input; `None` if the provider does not accept it.
fn attachment_part(provider: Provider, part: &Part) -> Option<Value> {
    match part {
        Part::Raw { json, .. }
            if is_attachment(part) && matches!(provider, Provider::OpenAi | Provider::Compatible) =>
        {
            attachment(json)
        }
        _ => None,
    }
}

fn attachment(json: &JsonText) -> Option<Value> {
    let part: Value = json.read().ok()?;
    match part["type"].as_str()? {
        "file" | "input_audio" => Some(part),
        "input_file" => {
            let names = ["file_data", "file_id", "filename"];
            let members = names.into_iter().filter_map(|name| Some((name.to_owned(), json!(part[name].as_str()?))));
            let file: Map<String, Value> = members.collect();
            let has_content = file.contains_key("file_data") || file.contains_key("file_id");
            has_content.then(|| json!({"type": "file", "file": file}))
        }
        _ => None,
    }
}

/// Whether an image URL has a scheme that providers can load.
pub(in crate::provider) fn is_address(url: &str) -> bool {
    ["https://", "http://", "data:image/"].iter().any(|scheme| url.starts_with(scheme))
}

fn with_name(message: &ChatMessage, mut json: Value) -> Value {
    let sanitized =
        |character: char| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' };
    let name: String =
        message.author.iter().flat_map(|author| author.chars()).take(NAME_CHARACTERS).map(sanitized).collect();
    if let Some(object) = json.as_object_mut().filter(|_| !name.is_empty()) {
        object.insert("name".to_owned(), json!(name));
    }
    json
}
