//! Encodes message content and thread attributes as text, and decodes them. Only this module knows the encoding.
//!
//! Stores treat the text as opaque, and have separate columns for the few fields that they index. The text begins with a version
//! digit:
//!
//! - content, version 1: `1`, the first letter of the role (`s`, `u`, `a`, `t`), then JSON: a string if the content is a single
//!   text part without other fields, otherwise an object with the fields that are not empty;
//! - title, metadata and state of a thread, version 1: `1`, then a JSON object with the fields that are not empty.
//!
//! If a later version added fields to a thread's object, they are preserved when this version changes the thread.

use serde::{Deserialize, Serialize};

use crate::{Content, JsonText, Map, Part, Result, Role, Source, StoreError, Usage, limits};

/// Encodes the content of a message.
///
/// # Errors
/// `LimitExceeded` if the text is larger than [`limits::MESSAGE_BYTES`].
pub fn encode_content(content: &Content) -> Result<String> {
    let mut text = vec![b'1', content.role.as_str().as_bytes()[0]];
    let written = match content.only_text() {
        Some(plain) => serde_json::to_writer(&mut text, plain),
        None => serde_json::to_writer(&mut text, &ContentRef::from(content)),
    };
    written.map_err(|error| StoreError::invalid("content", error.to_string()))?;
    limits::check_at_most("message bytes", text.len(), limits::MESSAGE_BYTES)?;
    String::from_utf8(text).map_err(|_| StoreError::invalid("content", "not UTF-8"))
}

/// Decodes the content of a message.
///
/// # Errors
/// `Corrupt` for text that [`encode_content`] does not produce, `Incompatible` for text of a later version.
pub fn decode_content(text: &str) -> Result<Content> {
    let rest = strip_version(text, "message")?;
    let (role, json) = rest.split_at_checked(1).ok_or_else(|| StoreError::corrupt("message", "too short"))?;
    let role = match role {
        "s" => Role::System,
        "u" => Role::User,
        "a" => Role::Assistant,
        "t" => Role::Tool,
        _ => return Err(StoreError::corrupt("message", "unknown role")),
    };
    if let Some(text) = without_escapes(json) {
        return Ok(Content::text(role, text));
    }
    if json.starts_with('"') {
        return Ok(Content::text(role, parse::<String>(json, "message")?));
    }
    let stored: StoredContent = parse(json, "message")?;
    Ok(Content {
        role,
        author: stored.author,
        parts: stored.parts,
        agent: stored.agent,
        data: stored.data,
        sources: stored.sources,
        usage: stored.usage,
        metadata: stored.metadata,
    })
}

/// Returns the role in stored content, even if the rest cannot be decoded; `None` if the role cannot be read.
#[must_use]
pub fn stored_role(text: &str) -> Option<Role> {
    match text.as_bytes() {
        [b'1', b's', ..] => Some(Role::System),
        [b'1', b'u', ..] => Some(Role::User),
        [b'1', b'a', ..] => Some(Role::Assistant),
        [b'1', b't', ..] => Some(Role::Tool),
        _ => None,
    }
}

/// The attributes of a thread that are encoded as one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadAttributes {
    /// The title.
    pub title: Option<String>,
    /// Metadata of the application.
    pub metadata: Map,
    /// State of the agent.
    pub state: Map,
    unknown: Map,
}

impl ThreadAttributes {
    /// Creates the attributes of a new thread.
    #[must_use]
    pub fn new(title: Option<String>, metadata: Map, state: Map) -> Self {
        Self { title, metadata, state, unknown: Map::new() }
    }

    /// Applies a patch. Its expiry is ignored, because it is not part of these attributes.
    pub fn apply(&mut self, patch: crate::ThreadPatch) {
        if let Some(title) = patch.title {
            self.title = title;
        }
        if let Some(metadata) = patch.metadata {
            self.metadata = metadata;
        }
        if let Some(state) = patch.state {
            self.state = state;
        }
    }
}

/// Encodes a thread's title, metadata and state.
#[must_use]
pub fn encode_thread(attributes: &ThreadAttributes) -> String {
    let mut object = attributes.unknown.clone();
    if let Some(title) = &attributes.title {
        object.insert("title".to_owned(), title.as_str().into());
    }
    for (name, map) in [("metadata", &attributes.metadata), ("state", &attributes.state)] {
        if !map.is_empty() {
            object.insert(name.to_owned(), map.clone().into());
        }
    }
    format!("1{}", serde_json::Value::Object(object))
}

/// Decodes a thread's title, metadata and state.
///
/// # Errors
/// `Corrupt` for text that [`encode_thread`] does not produce, `Incompatible` for text of a later version.
pub fn decode_thread(text: &str) -> Result<ThreadAttributes> {
    let json = strip_version(text, "thread")?;
    if json == "{}" {
        return Ok(ThreadAttributes::default());
    }
    let mut unknown: Map = parse(json, "thread")?;
    let mut map = |name: &str| match unknown.shift_remove(name) {
        None => Ok(Map::new()),
        Some(serde_json::Value::Object(map)) => Ok(map),
        Some(_) => Err(StoreError::corrupt("thread", format!("{name} is not an object"))),
    };
    let (metadata, state) = (map("metadata")?, map("state")?);
    let title = match unknown.shift_remove("title") {
        None => None,
        Some(serde_json::Value::String(title)) => Some(title),
        Some(_) => return Err(StoreError::corrupt("thread", "title is not a string")),
    };
    Ok(ThreadAttributes { title, metadata, state, unknown })
}

fn strip_version<'a>(text: &'a str, what: &'static str) -> Result<&'a str> {
    match text.as_bytes().first() {
        Some(b'1') => Ok(&text[1..]),
        Some(b'2'..=b'9') => Err(StoreError::Incompatible(format!("a {what} written by a later version"))),
        _ => Err(StoreError::corrupt(what, "missing version digit")),
    }
}

/// Returns the value of a JSON string without escapes, the common case; `None` for any other text.
fn without_escapes(json: &str) -> Option<&str> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    // The loop has no early exit, so that the compiler can vectorise it.
    let special =
        text.bytes().fold(0, |special, byte| special | u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    (special == 0).then_some(text)
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str, what: &'static str) -> Result<T> {
    // Only the location is reported: serde's message may quote the data.
    serde_json::from_str(json).map_err(|error| {
        StoreError::corrupt(what, format!("invalid JSON at line {} column {}", error.line(), error.column()))
    })
}

#[derive(Serialize)]
struct ContentRef<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    parts: &'a [Part],
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sources: &'a [Source],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map,
}

impl<'a> From<&'a Content> for ContentRef<'a> {
    fn from(content: &'a Content) -> Self {
        Self {
            author: content.author.as_deref(),
            parts: &content.parts,
            agent: content.agent.as_deref(),
            data: content.data.as_ref(),
            sources: &content.sources,
            usage: content.usage.as_ref(),
            metadata: &content.metadata,
        }
    }
}

#[derive(Deserialize)]
struct StoredContent {
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    data: Option<JsonText>,
    #[serde(default)]
    sources: Vec<Source>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    metadata: Map,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_without_escapes_decode_like_other_json() {
        let texts = ["", "a", "año 東京 👍", "a \"b\"", "\"", "a\\", "\n", "\u{0}\u{1f}", "\u{7f}\u{2028}", "a \\\" b"];
        let written = texts.map(|text| serde_json::to_string(text).unwrap());
        let broken =
            ["\"", "\"a", "\"a\"b\"", "\"a\n\"", "\"\\\"", "\"\\x\"", "\"a\"\"", "\"\u{1f}\""].map(str::to_owned);
        let mut fast_path_count = 0;
        for json in written.iter().chain(&broken) {
            let read = decode_content(&format!("1u{json}")).ok();
            let expected = serde_json::from_str::<String>(json).ok();
            assert_eq!(read, expected.map(|text| Content::text(Role::User, text)), "{json}");
            fast_path_count += usize::from(without_escapes(json).is_some());
        }
        assert_eq!(fast_path_count, 4);
    }
}
