//! The JSON of a response.

use serde_json::{Map, Value, json};
use threadkeep::core::Finish;
use threadkeep::{TokenDetails, Usage};

use super::create::CreateResponseJson;
use crate::openai::items::Item;

/// Returns the fields of a response. Fields that depend on the answer are empty.
pub(super) fn envelope(
    id: &str,
    created_at: i64,
    request: &CreateResponseJson,
    conversation: Option<&str>,
) -> Map<String, Value> {
    let value_or = |value: &Option<Value>, default: Value| value.clone().unwrap_or(default);
    let object_or =
        |members: &Option<Map<String, Value>>, default: Value| members.clone().map_or(default, Value::Object);
    let tools: Vec<Value> = request.raw_tools.iter().map(with_defaults).collect();
    let envelope = json!({
        "id": id,
        "object": "response",
        "created_at": created_at,
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "metadata": request.metadata.clone().unwrap_or_default(),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls.unwrap_or(true),
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "conversation": conversation.map(|id| json!({ "id": id })),
        "reasoning": with_reasoning_defaults(request.reasoning.as_ref()),
        "safety_identifier": request.safety_identifier,
        "service_tier": request.service_tier,
        "store": request.store.unwrap_or(true),
        "temperature": request.temperature.unwrap_or(1.0),
        "text": object_or(&request.text, json!({ "format": { "type": "text" } })),
        "tool_choice": value_or(&request.tool_choice, json!("auto")),
        "tools": tools,
        "top_logprobs": value_or(&request.top_logprobs, json!(0)),
        "top_p": request.top_p.unwrap_or(1.0),
        "truncation": request.truncation.as_deref().unwrap_or("disabled"),
        "usage": null,
        "user": request.user,
    });
    match envelope {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Adds to the reasoning options of a request the fields that clients expect.
fn with_reasoning_defaults(reasoning: Option<&Map<String, Value>>) -> Value {
    let mut reasoning = reasoning.cloned().unwrap_or_default();
    for member in ["effort", "summary"] {
        reasoning.entry(member).or_insert(Value::Null);
    }
    Value::Object(reasoning)
}

/// Adds default values to a tool, as OpenAI's API does.
fn with_defaults(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(members) = tool.as_object_mut() {
        members.entry("description").or_insert(Value::Null);
        members.entry("parameters").or_insert(json!({ "type": "object", "properties": {} }));
    }
    tool
}

/// Sets the fields that describe how the model finished.
pub(super) fn set_finished(envelope: &mut Map<String, Value>, finish: Finish, usage: Option<&Usage>) {
    let reason = match finish {
        Finish::Length => Some("max_output_tokens"),
        Finish::Filtered => Some("content_filter"),
        _ => None,
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    envelope.insert("status".to_owned(), status.into());
    if let Some(reason) = reason {
        envelope.insert("incomplete_details".to_owned(), json!({ "reason": reason }));
    }
    envelope.insert("usage".to_owned(), usage_json(usage));
}

/// Returns the JSON of the token usage of an answer.
pub(super) fn usage_json(usage: Option<&Usage>) -> Value {
    let (input, output) = usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
    let details = usage.map_or_else(TokenDetails::default, |usage| usage.details);
    json!({
        "input_tokens": input,
        "input_tokens_details": { "cached_tokens": details.cached_input, "cache_write_tokens": details.cache_write },
        "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": details.reasoning },
        "total_tokens": input + output,
    })
}

/// Sets the fields that describe a failure.
pub(super) fn set_failed(envelope: &mut Map<String, Value>, code: &str, message: &str) {
    envelope.insert("status".to_owned(), "failed".into());
    let code = if code.starts_with("model") || code == "unavailable" { "server_error" } else { code };
    envelope.insert("error".to_owned(), json!({ "code": code, "message": message }));
}

/// Returns the JSON text of a response: the fields of the envelope and the exact text of each output item.
pub(super) fn with_output(envelope: &Map<String, Value>, output: &[Item]) -> String {
    let mut members = Vec::with_capacity(envelope.len());
    for (name, value) in envelope {
        let value = if name == "output" {
            let items: Vec<&str> = output.iter().map(|item| item.json.as_str()).collect();
            format!("[{}]", items.join(","))
        } else {
            value.to_string()
        };
        members.push(format!("\"{name}\":{value}"));
    }
    format!("{{{}}}", members.join(","))
}
