//! The one place where what a provider made of tool calls becomes calls.
//!
//! Models write calls as text in many forms, and providers pass them on as text or within an error. Such text counts as
//! a call only where the request gives tools; it is never shown. Where the provider gave calls of its own, what stands
//! in the text is no call (S2.43).

mod gate;
mod markup;

use threadkeep_core::{ChatRequest, JsonText, Map, Part, Role, ToolCall, Value};

pub(crate) use gate::Gate;

use crate::calls::{mint_ids, mint_written_ids};
use crate::provider::{Draft, DraftCall, DraftPart};
use markup::{Written, read};

/// A call that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// What the model wrote.
    pub(crate) text: String,
}

/// Makes the parts of an answer of a draft.
pub(crate) fn parts(draft: &Draft, request: &ChatRequest) -> Result<Vec<Part>, Unreadable> {
    let text = draft.text();
    let has_calls = draft.calls().next().is_some();
    let written = read(&text, request);
    let mut mint_id = mint_ids(request);
    let mut parts = Vec::new();
    let mut shown = match &written {
        Written::Nothing => text.len(),
        Written::Calls { begins_at, .. } | Written::Unreadable { begins_at, .. } => *begins_at,
    };
    let mut used_ids: Vec<String> = Vec::new();
    for part in &draft.parts {
        match part {
            DraftPart::Reasoning(text) => parts.push(Part::Reasoning(text.clone())),
            DraftPart::Raw { format, json } => {
                parts.push(Part::Raw { format: (*format).to_owned(), json: json.clone() });
            }
            DraftPart::Text(text) => {
                let piece = &text[..text.len().min(shown)];
                shown -= piece.len();
                if !piece.trim().is_empty() {
                    parts.push(Part::Text(piece.to_owned()));
                }
            }
            DraftPart::Call(call) => {
                let call = repaired(call, request, &used_ids, &mut mint_id)?;
                used_ids.push(call.id.clone());
                parts.push(Part::ToolCall(call));
            }
        }
    }
    match written {
        Written::Calls { calls, .. } if !has_calls => {
            let mut mint_id = mint_written_ids(request);
            let made = calls.into_iter().map(|(name, arguments)| written_call(mint_id(), name, &arguments));
            parts.extend(made);
        }
        Written::Unreadable { text, .. } if !has_calls => return Err(Unreadable { text }),
        _ => {}
    }
    Ok(parts)
}

/// Whether an error says that the model's call could not be read.
pub(crate) fn is_failed_call(body: &str) -> bool {
    body.contains("tool_use_failed") || body.contains("failed_generation")
}

/// Makes calls of an error that says so: of the generation that failed, else of the whole text (S2.44).
pub(crate) fn parts_of_failure(body: &str, request: &ChatRequest) -> Result<Vec<Part>, Unreadable> {
    let generation = failed_generation(body);
    let tried = generation.iter().map(String::as_str).chain([body]);
    let mut mint_id = mint_written_ids(request);
    for text in tried {
        // What a user or a tool said is not searched here: the provider itself says that this was to be a call.
        let asked = ChatRequest { tools: request.tools.clone(), ..ChatRequest::default() };
        if let Written::Calls { begins_at, calls } = read(text, &asked) {
            let before = if text == body { "" } else { &text[..begins_at] };
            let words = (!before.trim().is_empty()).then(|| Part::Text(before.to_owned()));
            let calls = calls.into_iter().map(|(name, arguments)| written_call(mint_id(), name, &arguments));
            return Ok(words.into_iter().chain(calls).collect());
        }
    }
    Err(Unreadable { text: generation.unwrap_or_else(|| body.to_owned()) })
}

fn written_call(id: String, name: String, arguments: &Map) -> Part {
    let arguments = JsonText::from(&Value::Object(arguments.clone()));
    Part::ToolCall(ToolCall { id, name, arguments })
}

/// A call of the provider's own: with an id of its own, a name without decoration and arguments that are an object.
fn repaired(
    call: &DraftCall,
    request: &ChatRequest,
    used_ids: &[String],
    mint_id: &mut impl FnMut() -> String,
) -> Result<ToolCall, Unreadable> {
    let unreadable = || Unreadable { text: format!("{}{}", call.name, call.arguments) };
    let is_own = !call.id.is_empty() && !used_ids.contains(&call.id);
    let id = if is_own { call.id.clone() } else { mint_id() };
    let name = known_name(&call.name, request);
    if name.is_none() {
        // The arguments stand in the name: `arrivals{"station": "x"}`.
        if let Written::Calls { calls, .. } = read(&format!("<function={}</function>", call.name.trim()), request) {
            let (name, arguments) = calls.into_iter().next().ok_or_else(unreadable)?;
            return Ok(ToolCall { id, name, arguments: JsonText::from(&Value::Object(arguments)) });
        }
    }
    // A name that nobody knows is for the agent to answer: the model can choose another.
    let name = name.unwrap_or_else(|| call.name.trim()).to_owned();
    if name.is_empty() {
        return Err(unreadable());
    }
    let arguments = arguments(&call.arguments).ok_or_else(unreadable)?;
    Ok(ToolCall { id, name, arguments })
}

/// The name of a tool of the request, without what models put before it.
fn known_name<'a>(name: &'a str, request: &ChatRequest) -> Option<&'a str> {
    let name = name.trim();
    let bare = ["functions.", "function.", "tools."].iter().find_map(|prefix| name.strip_prefix(prefix));
    [Some(name), bare].into_iter().flatten().find(|name| request.tools.iter().any(|tool| tool.name == *name))
}

/// The arguments as the provider wrote them, where they are an object; else the object that they stand for.
fn arguments(text: &str) -> Option<JsonText> {
    let text = text.trim();
    if text.starts_with('{') && text.ends_with('}') && serde_json::from_str::<Map>(text).is_ok() {
        return JsonText::new(text).ok();
    }
    let object = markup::object(text)?;
    Some(JsonText::from(&Value::Object(object)))
}

/// The value of `failed_generation`, from JSON or from text that quotes it in single or double quotes.
fn failed_generation(body: &str) -> Option<String> {
    if let Ok(body) = serde_json::from_str::<Value>(body) {
        return find_member(&body, 16);
    }
    let (_, rest) = body.split_once("failed_generation")?;
    let rest = rest.trim_start_matches(['\\', '\'', '"']).trim_start().strip_prefix([':', '='])?.trim_start();
    let rest = rest.trim_start_matches('\\');
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    Some(unquoted(&rest[1..], quote))
}

fn find_member(value: &Value, depth: usize) -> Option<String> {
    let object = value.as_object().filter(|_| depth > 0)?;
    let here = object.get("failed_generation").and_then(Value::as_str).map(str::to_owned);
    here.or_else(|| object.values().find_map(|member| find_member(member, depth - 1)))
}

/// Reads up to the closing quote, with the escapes of JSON and Python undone.
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

/// Whether a text stands word for word in what a user or a tool said: then a model that repeats it quotes.
fn is_quoted(text: &str, request: &ChatRequest) -> bool {
    request.messages.iter().filter(|message| matches!(message.role, Role::User | Role::Tool)).any(|message| {
        message.parts.iter().any(|part| match part {
            Part::ToolResult(result) => result.output.contains(text),
            _ => part.text().is_some_and(|words| words.contains(text)),
        })
    })
}

#[cfg(test)]
mod tests;
