//! Builds the items of one conversation. All formats except Threadkeep's own use this module.

use std::collections::HashSet;

use serde_json::value::RawValue;
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{Content, Map, ThreadPatch, Timestamp, Value, codec, limits};

use crate::Format;
use crate::error::Rejection;
use crate::fields::{self, Fields};
use crate::identity;
use crate::records::Record;

/// How many bytes of a thread's metadata may be used for fields copied from the source. The rest is reserved for the
/// names of omitted fields.
const METADATA_BYTES: usize = limits::MAP_BYTES - 16 * 1024;
const OMITTED_KEY: &str = "left_out";

/// Collects the messages of a conversation and checks each against the limits of the stores.
#[derive(Debug)]
pub(crate) struct Conversation {
    thread: ImportedThread,
    metadata_bytes: usize,
    messages: Vec<ImportedMessage>,
    /// Set only for a conversation with branches.
    branches: Option<Branches>,
    external_ids: HashSet<String>,
    /// The reasons for skipped messages and fields.
    skipped: Vec<Rejection>,
    /// The number of skipped messages. They still occupy a position.
    skipped_messages: usize,
    record_bytes: usize,
}

/// The tree structure of a conversation.
#[derive(Debug, Default)]
struct Branches {
    parents: Vec<Option<usize>>,
    current: Option<usize>,
    updated_at: Option<Timestamp>,
}

/// The place of a message in a conversation with branches.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// The index of the parent message.
    pub(crate) parent: Option<usize>,
    /// The 1-based position on the path from the root.
    pub(crate) position: usize,
    /// The message's id in the source.
    pub(crate) source_id: Option<&'a str>,
    /// An id that is unique in the source, even where `source_id` is repeated.
    pub(crate) fallback_id: &'a str,
}

/// The items read from a record, and the reasons for skipped messages and fields.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) items: Vec<ImportItem>,
    pub(crate) skipped: Vec<Rejection>,
}

impl Conversation {
    pub(crate) fn new(format: Format, record: &Record, source_id: Option<&str>) -> Result<Self, Rejection> {
        let key = identity::thread_key(format, record, source_id)?;
        let thread = ImportedThread {
            id: None,
            key: Some(key),
            title: None,
            metadata: Map::new(),
            state: Map::new(),
            created_at: None,
            expires_at: None,
        };
        Ok(Self {
            thread,
            metadata_bytes: 0,
            messages: Vec::new(),
            branches: None,
            external_ids: HashSet::new(),
            skipped: Vec::new(),
            skipped_messages: 0,
            record_bytes: record.text.len(),
        })
    }

    pub(crate) fn set_title(&mut self, title: Option<String>) {
        self.thread.title = title.and_then(|title| clean(&title, limits::TITLE_BYTES));
    }

    pub(crate) fn set_created_at(&mut self, created_at: Option<Timestamp>) {
        self.thread.created_at = created_at;
    }

    /// Copies a field of the source to the thread's metadata. If it is too large or invalid, the metadata contains only its
    /// name. An invalid field is also reported.
    pub(crate) fn add_metadata(&mut self, name: &str, value: Value) {
        let bytes = Value::from(name).to_string().len() + value.to_string().len() + ":,".len();
        let member = Map::from_iter([(name.to_owned(), value)]);
        let invalid = checked(member.clone()).err();
        let fits = self.metadata_bytes + bytes <= METADATA_BYTES;
        if fits && invalid.is_none() {
            self.metadata_bytes += bytes;
            self.thread.metadata.extend(member);
        } else {
            self.note_omitted(&clean_name(name).unwrap_or_default());
        }
        if let Some(rejection) = invalid.filter(|_| fits) {
            self.skipped.push(rejection.at(clean_name(name).unwrap_or_default()));
        }
    }

    /// Copies all remaining fields of the source. If a name is repeated, the last field wins.
    pub(crate) fn add_remaining_metadata(&mut self, remaining: Fields<'_>) -> Result<(), Rejection> {
        let (large, small) = remaining.into_large_and_small();
        for (name, value) in small.into_map()? {
            self.add_metadata(&name, value);
        }
        for name in large {
            self.note_omitted(&name);
        }
        Ok(())
    }

    fn note_omitted(&mut self, name: &str) {
        let names = self.thread.metadata.entry(OMITTED_KEY).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(names) = names {
            names.push(name.into());
        }
    }

    /// Returns the 1-based position of the next message.
    pub(crate) fn next_position(&self) -> usize {
        self.messages.len() + self.skipped_messages + 1
    }

    /// Adds a message. Ignores its id if an earlier message has the same id.
    pub(crate) fn push(
        &mut self,
        source_id: Option<&str>,
        created_at: Option<Timestamp>,
        content: Content,
    ) -> Result<(), Rejection> {
        check_content(&content, self.record_bytes)?;
        let external_id = source_id.map(identity::message_id).filter(|id| !self.external_ids.contains(id));
        let id = external_id.unwrap_or_else(|| identity::message_id_by_content(self.next_position(), &content));
        self.external_ids.insert(id.clone());
        self.messages.push(ImportedMessage { id: None, external_id: Some(id), created_at, content });
        Ok(())
    }

    /// Adds a message to a conversation with branches. Returns its index.
    pub(crate) fn push_node(
        &mut self,
        node: &Node<'_>,
        created_at: Option<Timestamp>,
        content: Content,
    ) -> Result<usize, Rejection> {
        check_content(&content, self.record_bytes)?;
        let is_new = |id: &String| !self.external_ids.contains(id);
        let external_id = node.source_id.map(identity::message_id).filter(is_new);
        let id = external_id
            .or_else(|| Some(identity::message_id_by_content(node.position, &content)).filter(is_new))
            .unwrap_or_else(|| identity::message_id_by_fallback(node.fallback_id));
        self.external_ids.insert(id.clone());
        self.messages.push(ImportedMessage { id: None, external_id: Some(id), created_at, content });
        self.branches.get_or_insert_default().parents.push(node.parent);
        Ok(self.messages.len() - 1)
    }

    /// Sets the index of the message that the source displays, and the time of the last change.
    pub(crate) fn set_current(&mut self, current: Option<usize>, updated_at: Option<Timestamp>) {
        let branches = self.branches.get_or_insert_default();
        (branches.current, branches.updated_at) = (current, updated_at);
    }

    /// Reads each entry of a list as an object and calls `read` with it. Messages that cannot be read or stored are
    /// skipped and reported.
    pub(crate) fn each_message<'a>(
        &mut self,
        label: &str,
        list: Vec<&'a RawValue>,
        mut read: impl FnMut(&mut Self, usize, Fields<'a>) -> Result<(), Rejection>,
    ) {
        for (index, json) in list.into_iter().enumerate() {
            if let Err(rejection) = Fields::read(json).and_then(|entry| read(self, index, entry)) {
                self.skip_message(rejection.at(numbered(label, index)));
            }
        }
    }

    /// Skips a message. It still occupies a position.
    pub(crate) fn skip_message(&mut self, rejection: Rejection) {
        self.skipped.push(rejection);
        self.skipped_messages += 1;
    }

    /// Returns the thread, then its messages. For a conversation with branches, returns a single tree.
    ///
    /// # Errors
    /// No message of the conversation could be read.
    pub(crate) fn into_items(mut self) -> Result<Converted, Rejection> {
        if self.messages.is_empty() && self.skipped_messages > 0 {
            return Err(self.skipped.swap_remove(0));
        }
        let ThreadPatch { metadata, .. } = checked(self.thread.metadata)?;
        let thread = ImportedThread { metadata: metadata.unwrap_or_default(), ..self.thread };
        let items = match self.branches {
            Some(Branches { parents, current, updated_at }) => {
                let nodes = parents.into_iter().zip(self.messages);
                let nodes = nodes.map(|(parent, message)| ImportedNode { parent, message }).collect();
                vec![ImportItem::Tree(Box::new(ImportedTree { thread, nodes, current, updated_at }))]
            }
            None => {
                let messages = self.messages.into_iter().map(|message| ImportItem::Message(Box::new(message)));
                std::iter::once(ImportItem::Thread(Box::new(thread))).chain(messages).collect()
            }
        };
        Ok(Converted { items, skipped: self.skipped })
    }
}

/// Checks content against the limits of the stores. Called before any part of its conversation is stored.
pub(crate) fn check_content(content: &Content, record_bytes: usize) -> Result<(), Rejection> {
    content.check()?;
    // The codec enlarges content by less than this factor, so only large records need to be encoded to measure them.
    if record_bytes > limits::MESSAGE_BYTES / 4 {
        codec::encode_content(content)?;
    }
    Ok(())
}

fn checked(metadata: Map) -> Result<ThreadPatch, Rejection> {
    let patch = ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() };
    patch.check()?;
    Ok(patch)
}

/// Formats the location of a list entry for an error message, with a 1-based number.
pub(crate) fn numbered(label: &str, index: usize) -> String {
    format!("{label} {}", index + 1)
}

/// Reads each entry of a list as an object and calls `read` with it. Errors contain the entry's location.
pub(crate) fn each_object<'a>(
    label: &str,
    list: Vec<&'a RawValue>,
    mut read: impl FnMut(usize, Fields<'a>) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    for (index, json) in list.into_iter().enumerate() {
        Fields::read(json)
            .and_then(|entry| read(index, entry))
            .map_err(|rejection| rejection.at(numbered(label, index)))?;
    }
    Ok(())
}

/// Replaces control characters with spaces and truncates to [`limits::NAME_BYTES`]. Returns `None` if the result is empty.
pub(crate) fn clean_name(name: &str) -> Option<String> {
    clean(name, limits::NAME_BYTES)
}

fn clean(text: &str, max_bytes: usize) -> Option<String> {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let trimmed = printable.trim();
    let truncated = trimmed[..trimmed.floor_char_boundary(max_bytes)].trim_end();
    (!truncated.is_empty()).then(|| truncated.to_owned())
}

/// Takes a timestamp in RFC 3339. Returns `None` if it is missing or invalid.
pub(crate) fn instant(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    fields::text(fields.take(name)?).ok()?.parse().ok()
}

/// Takes a timestamp in seconds since the Unix epoch, with decimals. Returns `None` if it is missing or invalid.
pub(crate) fn instant_in_seconds(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    read_seconds(fields.take(name)?)
}

/// Reads a timestamp in seconds since the Unix epoch from a value.
pub(crate) fn read_seconds(json: &RawValue) -> Option<Timestamp> {
    let seconds: f64 = serde_json::from_str(json.get()).ok()?;
    let micros = (seconds * 1e6).round();
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates and `from_micros` checks the range")]
    Timestamp::from_micros(micros as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_and_truncated_between_characters() {
        assert_eq!(clean_name(" Ana\u{0}\tMaría\n"), Some("Ana  María".to_owned()));
        assert_eq!(clean_name("\u{7f}\r\n"), None);
        let long = "é".repeat(150);
        assert_eq!(clean_name(&long), Some("é".repeat(100)));
    }

    #[test]
    fn seconds_keep_their_microseconds() {
        let at = |json: &str| {
            let json = RawValue::from_string(format!(r#"{{"at":{json}}}"#)).unwrap();
            instant_in_seconds(&mut Fields::read(&json).unwrap(), "at").map(|at| at.to_string())
        };
        assert_eq!(at("1700000000.123456"), Some("2023-11-14T22:13:20.123456Z".to_owned()));
        assert_eq!(at("0"), Some("1970-01-01T00:00:00Z".to_owned()));
        assert_eq!(at("1e300"), None);
        assert_eq!(at("null"), None);
        assert_eq!(at(r#""yesterday""#), None);
    }
}
