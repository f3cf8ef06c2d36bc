//! Parses tool calls that a model wrote as text.

use threadkeep_core::{ChatRequest, Map, Value};

use super::{is_quoted_from_request, known_name};

/// The result of parsing a text.
#[derive(Debug, PartialEq)]
pub(super) enum ParsedText {
    NoCalls,
    /// The calls; the first one starts at the byte offset `starts_at`. Text after the calls is ignored, because the model wrote it
    /// without seeing results.
    Calls {
        starts_at: usize,
        calls: Vec<(String, Map)>,
    },
    /// Text that starts like a call but cannot be parsed.
    Unreadable {
        starts_at: usize,
        text: String,
    },
}

/// The syntax of a call, which depends on its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallSyntax {
    /// `<function=NAME …`
    Function,
    /// A JSON object that names the tool.
    Json,
}

/// Strings that start a call, in any order: the marker that occurs first in the text counts. The stream filter buffers text
/// from that marker on.
pub(super) const MARKERS: [&str; 9] = [
    "<function=",
    "<function_calls>",
    "<tool_call>",
    "<tool_calls>",
    "<tool-use>",
    "<tool_use>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "\\u003cfunction=",
];

const CLOSING: &str = "</function>";

/// The maximum number of calls in the text.
const MAX_CALLS: usize = 32;

/// The maximum number of markers to examine. After that many markers without a call, the text is treated as plain text.
const MAX_MARKERS: usize = 64;

/// Parses the calls in the text.
pub(super) fn parse_calls(text: &str, request: &ChatRequest) -> ParsedText {
    if request.tools.is_empty() {
        return ParsedText::NoCalls;
    }
    // Search only for markers that occur in the text.
    let markers: Vec<&'static str> = MARKERS.into_iter().filter(|marker| text.contains(marker)).collect();
    let mut from = 0;
    for _ in 0..MAX_MARKERS {
        let Some((starts_at, syntax, length)) = find_marker(&text[from..], &markers) else { break };
        let starts_at = from + starts_at;
        let rest = &text[starts_at..];
        let escaped = rest.starts_with('\\');
        if is_in_code(text, starts_at) {
            from = starts_at + length;
            continue;
        }
        let unescaped = escaped.then(|| unescaped(rest));
        let body = unescaped.as_deref().map_or(&rest[length..], |rest| &rest["<function=".len()..]);
        let parsed = match syntax {
            CallSyntax::Function => read_functions(body, request),
            CallSyntax::Json => read_json(body, request),
        };
        let end = match &parsed {
            Some((_, left)) if !escaped => rest.len().saturating_sub(left.len()),
            _ => end_of_markup(rest),
        };
        if is_quoted_from_request(rest[..end].trim(), request) {
            from = starts_at + length;
            continue;
        }
        return match parsed {
            Some((calls, _)) => ParsedText::Calls { starts_at, calls },
            None => ParsedText::Unreadable { starts_at, text: rest.to_owned() },
        };
    }
    read_whole(text, request)
}

/// Returns the object that the text represents: the object itself, a JSON string that contains an object, an object in a code
/// fence, or the only element of a list. Only superfluous closing brackets may follow.
pub(super) fn object(text: &str) -> Option<Map> {
    let text = without_fence(text.trim());
    if text.is_empty() {
        return Some(Map::new());
    }
    let (value, rest) = first_value(text)?;
    let is_closed = rest.chars().all(|character| character.is_whitespace() || matches!(character, '}' | ']'));
    if is_closed { as_object(value, 3) } else { None }
}

fn as_object(value: Value, depth: usize) -> Option<Map> {
    match value {
        Value::Object(object) => Some(object),
        Value::Null => Some(Map::new()),
        Value::String(text) if depth > 0 => match text.trim() {
            "" => Some(Map::new()),
            text => as_object(serde_json::from_str(text).ok()?, depth - 1),
        },
        Value::Array(values) if values.len() == 1 => as_object(values.into_iter().next()?, depth.checked_sub(1)?),
        _ => None,
    }
}

/// Returns the end of markup that cannot be parsed: the end of its closing tag, otherwise the end of its line.
fn end_of_markup(text: &str) -> usize {
    let line = text.find('\n').unwrap_or(text.len());
    let tag = text.find("</").and_then(|tag| Some(tag + text[tag..].find('>')? + 1));
    tag.unwrap_or(line)
}

fn find_marker(text: &str, markers: &[&'static str]) -> Option<(usize, CallSyntax, usize)> {
    let found = markers.iter().filter_map(|marker| Some((text.find(marker)?, *marker)));
    let (at, marker) = found.min_by_key(|(at, _)| *at)?;
    let syntax = if marker.ends_with("function=") { CallSyntax::Function } else { CallSyntax::Json };
    Some((at, syntax, marker.len()))
}

/// Parses calls of the form `NAME {json}></function>`. `text` starts after the marker of the first call; each further call starts
/// with `<function=`.
fn read_functions<'a>(text: &'a str, request: &ChatRequest) -> Option<(Vec<(String, Map)>, &'a str)> {
    let mut calls = Vec::new();
    let mut rest = text;
    loop {
        let (call, remaining) = read_function(rest, request)?;
        calls.push(call);
        match remaining.trim_start().strip_prefix("<function=") {
            Some(next) if calls.len() < MAX_CALLS => rest = next,
            _ => return Some((calls, remaining)),
        }
    }
}

/// Parses one call: a name, optional arguments, and a closing tag or a fragment of one.
fn read_function<'a>(text: &'a str, request: &ChatRequest) -> Option<((String, Map), &'a str)> {
    let text = text.trim_start();
    let end = text.find(|character: char| !is_name(character)).unwrap_or(text.len());
    let name = known_name(&text[..end], request)?.to_owned();
    let rest =
        text[end..].trim_start_matches(|character: char| character.is_whitespace() || "=>(,:".contains(character));
    let (arguments, rest) = if rest.starts_with(['{', '[', '"']) {
        let (value, rest) = first_value(rest)?;
        (as_object(value, 3)?, rest)
    } else {
        (Map::new(), rest)
    };
    let rest = rest.trim_start_matches(|character: char| character.is_whitespace() || ")}]>/".contains(character));
    let remaining =
        rest.strip_prefix(CLOSING).or_else(|| rest.strip_prefix("</function")).or_else(|| rest.strip_prefix("</"));
    // Without a closing tag, the call must be followed by the end of the text or by another tag. `<function=arrivals at
    // noon` is not a call.
    let remaining =
        remaining.or_else(|| rest.is_empty().then_some(rest)).or_else(|| rest.starts_with('<').then_some(rest))?;
    Some(((name, arguments), remaining.strip_prefix('>').unwrap_or(remaining)))
}

/// Parses calls of the form `{"name": …, "arguments": {…}}`: one or a list, with or without tags.
fn read_json<'a>(text: &'a str, request: &ChatRequest) -> Option<(Vec<(String, Map)>, &'a str)> {
    let mut calls = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start_matches(|character: char| character.is_whitespace() || "`;,".contains(character));
        let start = start.strip_prefix("json").unwrap_or(start).trim_start();
        let (value, remaining) = first_value(start)?;
        calls.extend(calls_of(&value, request)?);
        let remaining = without_closing_tag(remaining.trim_start());
        let more = MARKERS.iter().find_map(|marker| remaining.trim_start().strip_prefix(marker));
        match more {
            Some(next) if calls.len() < MAX_CALLS => rest = next,
            _ => return Some((calls, remaining)),
        }
    }
}

fn without_closing_tag(text: &str) -> &str {
    let closed =
        text.strip_prefix("</").and_then(|rest| rest.split_once('>')).filter(|(tag, _)| tag.chars().all(is_name));
    closed.map_or(text, |(_, rest)| rest)
}

/// Returns the calls that a JSON value represents, or `None` if it represents no call or names an unknown tool.
fn calls_of(value: &Value, request: &ChatRequest) -> Option<Vec<(String, Map)>> {
    match value {
        Value::Array(values) if !values.is_empty() && values.len() <= MAX_CALLS => {
            values.iter().map(|value| call_of(value, request)).collect()
        }
        Value::Object(object) => match object.get("tool_calls") {
            Some(calls @ Value::Array(_)) => calls_of(calls, request),
            _ => call_of(value, request).map(|call| vec![call]),
        },
        _ => None,
    }
}

fn call_of(value: &Value, request: &ChatRequest) -> Option<(String, Map)> {
    let function = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name = ["name", "tool", "function"].iter().find_map(|member| function.get(member)?.as_str())?;
    let name = known_name(name, request)?.to_owned();
    let members = ["arguments", "parameters", "input", "args"];
    let found = [function, value].into_iter().find_map(|holder| members.iter().find_map(|member| holder.get(member)));
    let arguments = as_object(found.cloned().unwrap_or(Value::Null), 3)?;
    Some((name, arguments))
}

/// Parses calls that are the whole text, apart from a code fence around it: `<function=NAME …`, `NAME{json}</function>`, or JSON
/// with the name of a tool and its arguments.
fn read_whole(text: &str, request: &ChatRequest) -> ParsedText {
    let trimmed = without_fence(text.trim());
    if trimmed.is_empty() || is_quoted_from_request(trimmed, request) {
        return ParsedText::NoCalls;
    }
    let starts_at = 0;
    let unreadable = || ParsedText::Unreadable { starts_at, text: text.to_owned() };
    if let Some(fenced) = trimmed.strip_prefix(MARKERS[0]) {
        let parsed = read_functions(fenced, request);
        return parsed.map_or_else(unreadable, |(calls, _)| ParsedText::Calls { starts_at, calls });
    }
    let head = trimmed.split(['{', '<']).next().unwrap_or(trimmed).trim();
    if trimmed.ends_with(CLOSING) && !head.is_empty() && head.chars().all(is_name) {
        let parsed = read_function(trimmed, request);
        let parsed = parsed.filter(|(_, left)| left.trim().is_empty());
        return parsed.map_or_else(unreadable, |(call, _)| ParsedText::Calls { starts_at, calls: vec![call] });
    }
    let json: Option<Value> = trimmed.starts_with(['{', '[']).then(|| serde_json::from_str(trimmed).ok()).flatten();
    let has_arguments = |value: &Value| {
        let members = ["tool_calls", "arguments", "parameters", "input", "args"];
        members.iter().any(|member| value.get(member).is_some())
    };
    let json =
        json.filter(|value| value.as_array().map_or(has_arguments(value), |values| values.iter().all(has_arguments)));
    match json.and_then(|value| calls_of(&value, request)) {
        Some(calls) => ParsedText::Calls { starts_at, calls },
        None => ParsedText::NoCalls,
    }
}

/// Parses the first JSON value of the text. Returns the value and the text after it.
fn first_value(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    Some((value, &text[end..]))
}

fn without_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some(inner) = inner.filter(|inner| !inner.contains("```")) else { return text };
    // The first line of a fenced block contains a language name or nothing.
    match inner.split_once('\n') {
        Some((first, rest)) if first.trim().chars().all(char::is_alphanumeric) => rest.trim(),
        _ => inner.trim(),
    }
}

/// Whether a position is in a code span or fence, where a model shows a call as an example. If a fence surrounds the whole
/// text, all of it is in code; [`read_whole`] then parses the text.
fn is_in_code(text: &str, at: usize) -> bool {
    let before = &text[..at];
    if before.matches("```").count() % 2 == 1 {
        return true;
    }
    let line = before.rsplit('\n').next().unwrap_or(before);
    let closes = text[at..].lines().next().is_some_and(|rest| rest.contains('`'));
    line.matches('`').count() % 2 == 1 && closes
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// Unescapes text that was JSON-escaped twice.
fn unescaped(text: &str) -> String {
    let text = text.replace("\\u003c", "<").replace("\\u003e", ">");
    if text.contains("\\\"") { text.replace("\\\"", "\"") } else { text }
}
