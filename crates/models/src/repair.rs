//! Converts and repairs the tool calls of providers' answers. No other module does this.
//!
//! Models write calls as text in many forms. Providers pass such text on, or return it within an error. Such text
//! is parsed as a call only if the request has tools, and it is never displayed. If the provider returned calls, the text
//! is not searched for further calls (S2.43).

mod markup;
mod stream_filter;

use threadkeep_core::{ChatRequest, JsonText, Map, Part, Role, ToolCall, Value};

pub(crate) use stream_filter::StreamFilter;

use threadkeep_dialogue::Turn;

use crate::calls::text_call_ids;
use crate::provider::{Draft, DraftCall, DraftPart};
use markup::{ParsedText, parse_calls};

/// A tool call that cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnreadableCall {
    /// The text that the model wrote.
    pub(crate) text: String,
}

/// Converts a draft to the parts of an answer.
pub(crate) fn parts(draft: &Draft, request: &ChatRequest) -> Result<Vec<Part>, UnreadableCall> {
    let text = draft.text();
    let has_calls = draft.calls().next().is_some();
    let parsed = parse_calls(&text, request);
    let mut mint_id = Turn::of(request).call_ids("call");
    let mut parts = Vec::new();
    let mut visible_bytes = match &parsed {
        ParsedText::NoCalls => text.len(),
        ParsedText::Calls { starts_at, .. } | ParsedText::Unreadable { starts_at, .. } => *starts_at,
    };
    let mut used_ids: Vec<String> = Vec::new();
    for part in &draft.parts {
        match part {
            DraftPart::Reasoning(text) => parts.push(Part::Reasoning(text.clone())),
            DraftPart::Raw { format, json } => {
                parts.push(Part::Raw { format: (*format).to_owned(), json: json.clone() });
            }
            DraftPart::Text(text) => {
                let piece = &text[..text.len().min(visible_bytes)];
                visible_bytes -= piece.len();
                if !piece.trim().is_empty() {
                    parts.push(Part::Text(piece.to_owned()));
                }
            }
            DraftPart::Call(call) => {
                let call = repair_call(call, request, &used_ids, &mut mint_id)?;
                used_ids.push(call.id.clone());
                parts.push(Part::ToolCall(call));
            }
        }
    }
    match parsed {
        ParsedText::Calls { calls, .. } if !has_calls => {
            let mut mint_id = text_call_ids(request);
            let text_calls = calls.into_iter().map(|(name, arguments)| text_call(mint_id(), name, &arguments));
            parts.extend(text_calls);
        }
        ParsedText::Unreadable { text, .. } if !has_calls => return Err(UnreadableCall { text }),
        _ => {}
    }
    Ok(parts)
}

/// Whether an error reports an unreadable tool call.
pub(crate) fn is_failed_call(body: &str) -> bool {
    body.contains("tool_use_failed") || body.contains("failed_generation")
}

/// Parses the calls in an error that reports an unreadable call: in the failed generation if there is one, otherwise in the whole
/// body (S2.44).
pub(crate) fn parts_of_failure(body: &str, request: &ChatRequest) -> Result<Vec<Part>, UnreadableCall> {
    let generation = failed_generation(body);
    let candidates = generation.iter().map(String::as_str).chain([body]);
    let mut mint_id = text_call_ids(request);
    for text in candidates {
        // The request has no messages, so that no text counts as a quotation: the provider itself reports that this is a
        // call.
        let tools_only = ChatRequest { tools: request.tools.clone(), ..ChatRequest::default() };
        if let ParsedText::Calls { starts_at, calls } = parse_calls(text, &tools_only) {
            let before = if text == body { "" } else { &text[..starts_at] };
            let words = (!before.trim().is_empty()).then(|| Part::Text(before.to_owned()));
            let calls = calls.into_iter().map(|(name, arguments)| text_call(mint_id(), name, &arguments));
            return Ok(words.into_iter().chain(calls).collect());
        }
    }
    Err(UnreadableCall { text: generation.unwrap_or_else(|| body.to_owned()) })
}

fn text_call(id: String, name: String, arguments: &Map) -> Part {
    let arguments = JsonText::from(&Value::Object(arguments.clone()));
    Part::ToolCall(ToolCall { id, name, arguments })
}

/// Repairs a call that the provider returned: makes the id unique, removes decoration from the name, and parses the
/// arguments as an object.
fn repair_call(
    call: &DraftCall,
    request: &ChatRequest,
    used_ids: &[String],
    mint_id: &mut impl FnMut() -> String,
) -> Result<ToolCall, UnreadableCall> {
    let unreadable = || UnreadableCall { text: format!("{}{}", call.name, call.arguments) };
    let is_usable = !call.id.is_empty() && !used_ids.contains(&call.id);
    let id = if is_usable { call.id.clone() } else { mint_id() };
    let name = known_name(&call.name, request);
    if name.is_none() {
        // The name includes the arguments: `arrivals{"station": "x"}`.
        if let ParsedText::Calls { calls, .. } =
            parse_calls(&format!("<function={}</function>", call.name.trim()), request)
        {
            let (name, arguments) = calls.into_iter().next().ok_or_else(unreadable)?;
            return Ok(ToolCall { id, name, arguments: JsonText::from(&Value::Object(arguments)) });
        }
    }
    // An unknown name is kept. The agent reports it to the model, which can choose another tool.
    let name = name.unwrap_or_else(|| call.name.trim()).to_owned();
    if name.is_empty() {
        return Err(unreadable());
    }
    let arguments = arguments(&call.arguments).ok_or_else(unreadable)?;
    Ok(ToolCall { id, name, arguments })
}

/// Returns the name of the tool in the request, without prefixes that models add. `None` if there is no such tool.
fn known_name<'a>(name: &'a str, request: &ChatRequest) -> Option<&'a str> {
    let name = name.trim();
    let bare = ["functions.", "function.", "tools."].iter().find_map(|prefix| name.strip_prefix(prefix));
    [Some(name), bare].into_iter().flatten().find(|name| request.tools.iter().any(|tool| tool.name == *name))
}

/// Returns the arguments verbatim if they are an object, otherwise the object that they represent.
fn arguments(text: &str) -> Option<JsonText> {
    let text = text.trim();
    if text.starts_with('{') && text.ends_with('}') && serde_json::from_str::<Map>(text).is_ok() {
        return JsonText::new(text).ok();
    }
    let object = markup::object(text)?;
    Some(JsonText::from(&Value::Object(object)))
}

/// Returns the value of `failed_generation`, from JSON or from text with single or double quotes.
fn failed_generation(body: &str) -> Option<String> {
    if let Ok(body) = serde_json::from_str::<Value>(body) {
        return find_field(&body, 16);
    }
    let (_, rest) = body.split_once("failed_generation")?;
    let rest = rest.trim_start_matches(['\\', '\'', '"']).trim_start().strip_prefix([':', '='])?.trim_start();
    let rest = rest.trim_start_matches('\\');
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    Some(unquoted(&rest[1..], quote))
}

fn find_field(value: &Value, depth: usize) -> Option<String> {
    let object = value.as_object().filter(|_| depth > 0)?;
    let generation = object.get("failed_generation").and_then(Value::as_str).map(str::to_owned);
    generation.or_else(|| object.values().find_map(|member| find_field(member, depth - 1)))
}

/// Returns the text before the closing quote, with the escape sequences of JSON and Python resolved.
fn unquoted(text: &str, quote: char) -> String {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('u') => {
                    let code: String = characters.by_ref().take(4).collect();
                    value.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                Some(other) => value.push(other),
                None => {}
            },
            _ if character == quote => break,
            _ => value.push(character),
        }
    }
    value
}

/// Whether the text occurs verbatim in a user message or a tool result. A model that repeats it is quoting, not calling.
fn is_quoted_from_request(text: &str, request: &ChatRequest) -> bool {
    request.messages.iter().filter(|message| matches!(message.role, Role::User | Role::Tool)).any(|message| {
        message.parts.iter().any(|part| match part {
            Part::ToolResult(result) => result.output.contains(text),
            _ => part.text().is_some_and(|words| words.contains(text)),
        })
    })
}

#[cfg(test)]
mod tests;
