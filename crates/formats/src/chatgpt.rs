//! Reads `conversations.json` of ChatGPT's data export: a list of conversations, each a tree of messages (`mapping`).
//!
//! The whole tree is read, with the node that ChatGPT displays (`current_node`). The importer decides which branch becomes
//! which thread. Hidden messages and empty system messages are skipped. Their children are attached to the nearest ancestor
//! that is imported.
//!
//! Text becomes text parts, images become image references, and other content without text becomes raw parts. From the
//! metadata of a message, only `model_slug`, `attachments`, `recipient` and `channel` are imported.

mod content;
mod tree;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Role, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, clean_name, instant_in_seconds, read_seconds};
use crate::error::Rejection;
use crate::fields::{Fields, missing};
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let (conversation_id, id) = (fields.take_id("conversation_id")?, fields.take_id("id")?);
    let mapping = fields.take_fields("mapping")?.ok_or_else(|| missing("mapping"))?;
    let current = fields.take_text("current_node")?;
    let mut conversation = Conversation::new(Format::ChatGptExport, record, conversation_id.or(id).as_deref())?;
    conversation.set_title(fields.take_text("title")?);
    conversation.set_created_at(instant_in_seconds(&mut fields, "create_time"));
    let updated_at = fields.get("update_time").and_then(read_seconds);
    let tree = tree::read(mapping, current.as_deref())?;
    conversation.add_remaining_metadata(fields)?;
    // For each node: the nearest imported message on the path from the root to the node, and the number of such messages.
    let mut nearest_message: Vec<(Option<usize>, usize)> = Vec::with_capacity(tree.nodes.len());
    for tree::Node { id, message, parent } in &tree.nodes {
        let (before, depth) = parent.map_or((None, 0), |parent| nearest_message[parent]);
        let pushed = match message {
            Some(message) => push(&mut conversation, (before, depth + 1), id, message),
            None => Ok(Pushed::Hidden),
        };
        nearest_message.push(match pushed.map_err(|rejection| rejection.at(format!("node {}", truncated(id)))) {
            Ok(Pushed::Message(message)) => (Some(message), depth + 1),
            Ok(Pushed::Hidden) => (before, depth),
            Err(rejection) => {
                conversation.skip_message(rejection);
                (before, depth + 1)
            }
        });
    }
    conversation.set_current(tree.current.and_then(|current| nearest_message[current].0), updated_at);
    Ok(conversation)
}

enum Pushed {
    /// The message was added at this index.
    Message(usize),
    /// The message was skipped, because ChatGPT does not display it.
    Hidden,
}

fn push(
    conversation: &mut Conversation,
    (parent, position): (Option<usize>, usize),
    node_id: &str,
    message: &RawValue,
) -> Result<Pushed, Rejection> {
    let mut message = Fields::read(message)?;
    let id = message.take_id("id")?;
    let created_at = instant_in_seconds(&mut message, "create_time");
    let mut author = message.take_fields("author")?.ok_or_else(|| missing("author"))?;
    let given_role = author.require_text("role")?;
    let mut content = Content::empty(role(&given_role));
    if given_role != content.role.as_str() {
        content.metadata.insert("role".to_owned(), given_role.into());
    }
    content.author = author.take_text("name")?.as_deref().and_then(clean_name);
    if let Some(json) = message.take("content") {
        content::read(json, &mut content)?;
    }
    if copy_metadata(message, &mut content)? || (content.role == Role::System && content.parts.is_empty()) {
        return Ok(Pushed::Hidden);
    }
    let node = Node { parent, position, source_id: Some(id.as_deref().unwrap_or(node_id)), fallback_id: node_id };
    conversation.push_node(&node, created_at, content).map(Pushed::Message)
}

/// Unknown roles become `assistant`, because they describe actions of the program. The metadata contains the original role.
fn role(given: &str) -> Role {
    given.parse().unwrap_or(Role::Assistant)
}

/// Copies the relevant metadata. Returns whether ChatGPT hides the message.
fn copy_metadata(mut message: Fields<'_>, content: &mut Content) -> Result<bool, Rejection> {
    let mut details = message.take_fields("metadata")?;
    let mut copy = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            content.metadata.insert(name.to_owned(), value);
        }
    };
    copy("recipient", message.take_value("recipient")?.filter(|recipient| recipient != "all"));
    copy("channel", message.take_value("channel")?);
    let Some(details) = &mut details else { return Ok(false) };
    for name in ["model_slug", "attachments"] {
        copy(name, details.take_value(name)?);
    }
    Ok(details.take_value("is_visually_hidden_from_conversation")? == Some(Value::Bool(true)))
}

/// Truncates an id for an error message. Only invalid ids are that long.
fn truncated(id: &str) -> &str {
    &id[..id.floor_char_boundary(50)]
}
