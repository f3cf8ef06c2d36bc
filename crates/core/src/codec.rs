//! The one place where a message's content and a thread's own words become text, and text becomes them again.
//!
//! Stores keep the text opaque, beside the few columns that they index. It begins with a version digit:
//!
//! - content, version 1: `1`, the role's first letter (`s`, `u`, `a`, `t`), then JSON: a string for one plain text part
//!   with nothing else about it, otherwise an object with the members that are not empty;
//! - a thread's title, metadata and state, version 1: `1`, then a JSON object with the members that are not empty.
//!
//! Members that a later version adds to a thread's object survive a change made by this one.

use serde::{Deserialize, Serialize};

use crate::{Content, JsonText, Map, Part, Result, Role, Source, StoreError, Usage, limits};

/// Encodes content.
///
/// # Errors
/// `LimitExceeded` when the text is larger than [`limits::MESSAGE_BYTES`].
pub fn encode_content(content: &Content) -> Result<String> {
    let mut text = vec![b'1', content.role.as_str().as_bytes()[0]];
    let written = match content.only_text() {
        Some(plain) => serde_json::to_writer(&mut text, plain),
        None => serde_json::to_writer(&mut text, &ContentRef::from(content)),
    };
    written.map_err(|error| StoreError::invalid("content", error.to_string()))?;
    limits::check_bytes("message bytes", text.len(), limits::MESSAGE_BYTES)?;
    String::from_utf8(text).map_err(|_| StoreError::invalid("content", "not UTF-8"))
}

/// Decodes content.
///
/// # Errors
/// `Corrupt` for text that this function's counterpart did not write, `Incompatible` for a later version.
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
    if let Some(words) = unescaped(json) {
        return Ok(Content::text(role, words));
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

/// The role that a stored content names, whether or not the rest of it decodes; `None` where none can be read.
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

/// What a thread says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadAttributes {
    /// Its title.
    pub title: Option<String>,
    /// The application's own notes.
    pub metadata: Map,
    /// The state that an agent keeps.
    pub state: Map,
    unknown: Map,
}

impl ThreadAttributes {
    /// Makes the words of a new thread.
    #[must_use]
    pub fn new(title: Option<String>, metadata: Map, state: Map) -> Self {
        Self { title, metadata, state, unknown: Map::new() }
    }

    /// Applies a patch, expiry aside.
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
pub fn encode_thread(words: &ThreadAttributes) -> String {
    let mut object = words.unknown.clone();
    if let Some(title) = &words.title {
        object.insert("title".to_owned(), title.as_str().into());
    }
    for (name, map) in [("metadata", &words.metadata), ("state", &words.state)] {
        if !map.is_empty() {
            object.insert(name.to_owned(), map.clone().into());
        }
    }
    format!("1{}", serde_json::Value::Object(object))
}

/// Decodes a thread's title, metadata and state.
///
/// # Errors
/// As [`decode_content`].
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
        Some(_) => return Err(StoreError::corrupt("thread", "title is not a text")),
    };
    Ok(ThreadAttributes { title, metadata, state, unknown })
}

fn strip_version<'a>(text: &'a str, what: &'static str) -> Result<&'a str> {
    match text.as_bytes().first() {
        Some(b'1') => Ok(&text[1..]),
        Some(b'2'..=b'9') => Err(StoreError::Incompatible(format!("a {what} written by a later version"))),
        _ => Err(StoreError::corrupt(what, "no version")),
    }
}

/// The words of a JSON string in which nothing is escaped, as most are; `None` for any other text.
fn unescaped(json: &str) -> Option<&str> {
    let words = json.strip_prefix('"')?.strip_suffix('"')?;
    // To the end, whatever is found: so it is done many bytes at a time.
    let special =
        words.bytes().fold(0, |special, byte| special | u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    (special == 0).then_some(words)
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str, what: &'static str) -> Result<T> {
    // The place is told, the words are not: serde's own text may quote the data.
    serde_json::from_str(json).map_err(|error| {
        StoreError::corrupt(what, format!("not as written, at line {} column {}", error.line(), error.column()))
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
    fn words_are_read_as_json_has_them() {
        let texts = ["", "a", "año 東京 👍", "a \"b\"", "\"", "a\\", "\n", "\u{0}\u{1f}", "\u{7f}\u{2028}", "a \\\" b"];
        let written = texts.map(|text| serde_json::to_string(text).unwrap());
        let broken =
            ["\"", "\"a", "\"a\"b\"", "\"a\n\"", "\"\\\"", "\"\\x\"", "\"a\"\"", "\"\u{1f}\""].map(str::to_owned);
        let mut plain = 0;
        for json in written.iter().chain(&broken) {
            let read = decode_content(&format!("1u{json}")).ok();
            let expected = serde_json::from_str::<String>(json).ok();
            assert_eq!(read, expected.map(|text| Content::text(Role::User, text)), "{json}");
            plain += usize::from(unescaped(json).is_some());
        }
        assert_eq!(plain, 4);
    }
}
