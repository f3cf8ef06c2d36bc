//! `conversations.json` of ChatGPT's data export: a list of conversations, each a tree of messages (`mapping`).
//!
//! The whole tree is read, with the node that the program shows (`current_node`): the importer decides which branch becomes
//! which thread. Hidden messages and system messages without words are skipped, and what follows them follows the message before.
//!
//! Text stays text, pictures become image references, whatever else has no words is kept as a raw part. Of a message's own
//! metadata only what says who wrote to whom and about what is kept (`model_slug`, `attachments`, `recipient`, `channel`).

mod content;
mod tree;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Role, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, clean_name, instant_in_seconds, read_seconds};
use crate::error::Refusal;
use crate::fields::{Fields, missing};
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let (own, old) = (fields.take_id("conversation_id")?, fields.take_id("id")?);
    let mapping = fields.take_fields("mapping")?.ok_or_else(|| missing("mapping"))?;
    let current = fields.take_text("current_node")?;
    let mut conversation = Conversation::new(Format::ChatGptExport, record, own.or(old).as_deref())?;
    conversation.set_title(fields.take_text("title")?);
    conversation.set_created_at(instant_in_seconds(&mut fields, "create_time"));
    let updated_at = fields.get("update_time").and_then(read_seconds);
    let tree = tree::read(mapping, current.as_deref())?;
    conversation.keep_rest(fields)?;
    // For each node of the tree the message that stands there or last before it, and how many lead there.
    let mut reached: Vec<(Option<usize>, usize)> = Vec::with_capacity(tree.nodes.len());
    for tree::Node { id, message, parent } in &tree.nodes {
        let (before, depth) = parent.map_or((None, 0), |parent| reached[parent]);
        let pushed = match message {
            Some(message) => push(&mut conversation, (before, depth + 1), id, message),
            None => Ok(Pushed::Nothing),
        };
        reached.push(match pushed.map_err(|refusal| refusal.at(format!("node {}", shortened(id)))) {
            Ok(Pushed::Message(message)) => (Some(message), depth + 1),
            Ok(Pushed::Nothing) => (before, depth),
            Err(refusal) => {
                conversation.leave_out(refusal);
                (before, depth + 1)
            }
        });
    }
    conversation.set_current(tree.current.and_then(|current| reached[current].0), updated_at);
    Ok(conversation)
}

enum Pushed {
    /// At this place.
    Message(usize),
    /// It is one that the program does not show.
    Nothing,
}

fn push(
    conversation: &mut Conversation,
    (parent, position): (Option<usize>, usize),
    node: &str,
    message: &RawValue,
) -> Result<Pushed, Refusal> {
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
    if let Some(said) = message.take("content") {
        content::read(said, &mut content)?;
    }
    if keep_details(message, &mut content)? || (content.role == Role::System && content.parts.is_empty()) {
        return Ok(Pushed::Nothing);
    }
    let place = Node { parent, position, source_id: Some(id.as_deref().unwrap_or(node)), place: node };
    conversation.push_node(&place, created_at, content).map(Pushed::Message)
}

/// Other roles than ours are kept beside `assistant`: they belong to what the program did.
fn role(given: &str) -> Role {
    given.parse().unwrap_or(Role::Assistant)
}

/// Keeps what is worth it, and says whether the program hides the message.
fn keep_details(mut message: Fields<'_>, content: &mut Content) -> Result<bool, Refusal> {
    let mut details = message.take_fields("metadata")?;
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            content.metadata.insert(name.to_owned(), value);
        }
    };
    keep("recipient", message.take_value("recipient")?.filter(|recipient| recipient != "all"));
    keep("channel", message.take_value("channel")?);
    let Some(details) = &mut details else { return Ok(false) };
    for name in ["model_slug", "attachments"] {
        keep(name, details.take_value(name)?);
    }
    Ok(details.take_value("is_visually_hidden_from_conversation")? == Some(Value::Bool(true)))
}

/// Ids are short; what is not is none that a person could look up.
fn shortened(id: &str) -> &str {
    &id[..id.floor_char_boundary(50)]
}
