//! One conversation on its way to becoming items: what all foreign formats do alike.

use std::collections::HashSet;

use serde_json::value::RawValue;
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{Content, Map, ThreadPatch, Timestamp, Value, codec, limits};

use crate::Format;
use crate::error::Refusal;
use crate::fields::{self, Fields};
use crate::identity;
use crate::records::Record;

/// What a source may fill of a thread's metadata: the rest has room for the names of what does not fit.
const METADATA_BYTES: usize = limits::MAP_BYTES - 16 * 1024;
const LEFT_OUT: &str = "left_out";

/// Collects a conversation's messages and checks each as a store will.
#[derive(Debug)]
pub(crate) struct Conversation {
    thread: ImportedThread,
    metadata_bytes: usize,
    messages: Vec<ImportedMessage>,
    /// For a conversation with branches.
    branches: Option<Branches>,
    external_ids: HashSet<String>,
    /// What is wrong with the messages and members that are left out.
    left_out: Vec<Refusal>,
    /// Messages that were left out: they keep their positions.
    messages_left_out: usize,
    record_bytes: usize,
}

/// How the messages of a conversation hang together.
#[derive(Debug, Default)]
struct Branches {
    parents: Vec<Option<usize>>,
    current: Option<usize>,
    updated_at: Option<Timestamp>,
}

/// A message on its way into a conversation with branches.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// The message that it follows.
    pub(crate) parent: Option<usize>,
    /// Its position on its path; the first is 1.
    pub(crate) position: usize,
    /// What the source calls it.
    pub(crate) source_id: Option<&'a str>,
    /// Where it stands in the source; no other message stands there.
    pub(crate) place: &'a str,
}

/// What became of a record: items, and what is wrong with what was left out.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) items: Vec<ImportItem>,
    pub(crate) left_out: Vec<Refusal>,
}

impl Conversation {
    pub(crate) fn new(format: Format, record: &Record, source_id: Option<&str>) -> Result<Self, Refusal> {
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
            left_out: Vec::new(),
            messages_left_out: 0,
            record_bytes: record.text.len(),
        })
    }

    pub(crate) fn set_title(&mut self, title: Option<String>) {
        self.thread.title = title.and_then(|title| clean(&title, limits::TITLE_BYTES));
    }

    pub(crate) fn set_created_at(&mut self, created_at: Option<Timestamp>) {
        self.thread.created_at = created_at;
    }

    /// Keeps a member of the source in the thread's metadata. One that is too large for it is named there instead, and so is
    /// one that no store keeps, which is told as well.
    pub(crate) fn keep(&mut self, name: &str, value: Value) {
        let bytes = Value::from(name).to_string().len() + value.to_string().len() + ":,".len();
        let member = Map::from_iter([(name.to_owned(), value)]);
        let unkeepable = checked(member.clone()).err();
        let fits = self.metadata_bytes + bytes <= METADATA_BYTES;
        if fits && unkeepable.is_none() {
            self.metadata_bytes += bytes;
            self.thread.metadata.extend(member);
        } else {
            self.note_left_out(&clean_name(name).unwrap_or_default());
        }
        if let Some(refusal) = unkeepable.filter(|_| fits) {
            self.left_out.push(refusal.at(clean_name(name).unwrap_or_default()));
        }
    }

    /// Keeps all that nobody has taken from the source. Of members with one name, the last counts.
    pub(crate) fn keep_rest(&mut self, rest: Fields<'_>) -> Result<(), Refusal> {
        let (large, small) = rest.into_large_and_small();
        for (name, value) in small.into_map()? {
            self.keep(&name, value);
        }
        for name in large {
            self.note_left_out(&name);
        }
        Ok(())
    }

    fn note_left_out(&mut self, name: &str) {
        let names = self.thread.metadata.entry(LEFT_OUT).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(names) = names {
            names.push(name.into());
        }
    }

    /// The position that the next message gets; the first is 1.
    pub(crate) fn next_position(&self) -> usize {
        self.messages.len() + self.messages_left_out + 1
    }

    /// Adds a message. An id that an earlier message has already counts as none.
    pub(crate) fn push(
        &mut self,
        source_id: Option<&str>,
        created_at: Option<Timestamp>,
        content: Content,
    ) -> Result<(), Refusal> {
        check_content(&content, self.record_bytes)?;
        let own = source_id.map(identity::message_id).filter(|id| !self.external_ids.contains(id));
        let id = own.unwrap_or_else(|| identity::message_id_by_content(self.next_position(), &content));
        self.external_ids.insert(id.clone());
        self.messages.push(ImportedMessage { id: None, external_id: Some(id), created_at, content });
        Ok(())
    }

    /// Adds a message of a conversation with branches, and gives its place among them.
    pub(crate) fn push_node(
        &mut self,
        node: &Node<'_>,
        created_at: Option<Timestamp>,
        content: Content,
    ) -> Result<usize, Refusal> {
        check_content(&content, self.record_bytes)?;
        let is_new = |id: &String| !self.external_ids.contains(id);
        let own = node.source_id.map(identity::message_id).filter(is_new);
        let id = own
            .or_else(|| Some(identity::message_id_by_content(node.position, &content)).filter(is_new))
            .unwrap_or_else(|| identity::message_id_by_place(node.place));
        self.external_ids.insert(id.clone());
        self.messages.push(ImportedMessage { id: None, external_id: Some(id), created_at, content });
        self.branches.get_or_insert_default().parents.push(node.parent);
        Ok(self.messages.len() - 1)
    }

    /// Says which of the messages the source shows, and when it changed the conversation.
    pub(crate) fn set_current(&mut self, current: Option<usize>, updated_at: Option<Timestamp>) {
        let branches = self.branches.get_or_insert_default();
        (branches.current, branches.updated_at) = (current, updated_at);
    }

    /// Runs `read` on each entry of a list as an object. A message that cannot be read or stored is left out, and reported.
    pub(crate) fn each_message<'a>(
        &mut self,
        what: &str,
        list: Vec<&'a RawValue>,
        mut read: impl FnMut(&mut Self, usize, Fields<'a>) -> Result<(), Refusal>,
    ) {
        for (index, json) in list.into_iter().enumerate() {
            if let Err(refusal) = Fields::read(json).and_then(|entry| read(self, index, entry)) {
                self.leave_out(refusal.at(number(what, index)));
            }
        }
    }

    /// Leaves out one message, which keeps its position; the rest of the conversation is read.
    pub(crate) fn leave_out(&mut self, refusal: Refusal) {
        self.left_out.push(refusal);
        self.messages_left_out += 1;
    }

    /// The thread, then its messages; one item where the conversation may have branches.
    ///
    /// Refuses a conversation of which no message could be read.
    pub(crate) fn into_items(mut self) -> Result<Converted, Refusal> {
        if self.messages.is_empty() && self.messages_left_out > 0 {
            return Err(self.left_out.swap_remove(0));
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
        Ok(Converted { items, left_out: self.left_out })
    }
}

/// Checks content as a store will, before any of its conversation is stored.
pub(crate) fn check_content(content: &Content, record_bytes: usize) -> Result<(), Refusal> {
    content.check()?;
    // Content grows by less than this factor on its way through the codec, so only large records need the measure.
    if record_bytes > limits::MESSAGE_BYTES / 4 {
        codec::encode_content(content)?;
    }
    Ok(())
}

fn checked(metadata: Map) -> Result<ThreadPatch, Refusal> {
    let patch = ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() };
    patch.check()?;
    Ok(patch)
}

/// Says which entry of a list something is about; people count from 1.
pub(crate) fn number(what: &str, index: usize) -> String {
    format!("{what} {}", index + 1)
}

/// Runs `read` on each entry of a list as an object, and says which one it was if it fails.
pub(crate) fn each_object<'a>(
    what: &str,
    list: Vec<&'a RawValue>,
    mut read: impl FnMut(usize, Fields<'a>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    for (index, json) in list.into_iter().enumerate() {
        Fields::read(json).and_then(|entry| read(index, entry)).map_err(|refusal| refusal.at(number(what, index)))?;
    }
    Ok(())
}

/// A name of at most the bytes that a name may have, without control characters; `None` when nothing is left.
pub(crate) fn clean_name(name: &str) -> Option<String> {
    clean(name, limits::NAME_BYTES)
}

fn clean(text: &str, max_bytes: usize) -> Option<String> {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let trimmed = spaced.trim();
    let kept = trimmed[..trimmed.floor_char_boundary(max_bytes)].trim_end();
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// An instant in RFC 3339; `None` when it is none.
pub(crate) fn instant(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    fields::text(fields.take(name)?).ok()?.parse().ok()
}

/// An instant in seconds since 1970 UTC, with decimals; `None` when it is none.
pub(crate) fn instant_in_seconds(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    read_seconds(fields.take(name)?)
}

/// As [`instant_in_seconds`], of a value.
pub(crate) fn read_seconds(json: &RawValue) -> Option<Timestamp> {
    let seconds: f64 = serde_json::from_str(json.get()).ok()?;
    let micros = (seconds * 1e6).round();
    // Beyond the range of core's instants there is nothing to round, and the cast saturates.
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and the range is checked after it")]
    Timestamp::from_micros(micros as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_and_cut_between_characters() {
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
