//! `conversations.json` of ChatGPT's data export: a list of conversations, each a tree of messages (`mapping`).
//!
//! A conversation is read along the path that the program shows: from `current_node` up to the root, or down the last
//! children where there is none. Branches beside it are counted in the thread's metadata (`branches_left_out`). Hidden
//! messages and system messages without words are skipped.
//!
//! Text stays text, pictures become image references, whatever else has no words is kept as a raw part. Of a message's own
//! metadata only what says who wrote to whom and about what is kept (`model_slug`, `attachments`, `recipient`, `channel`).

mod content;
mod path;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Role, Value};

use crate::Format;
use crate::conversation::{Conversation, clean_name, instant_in_seconds};
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
    let path = path::shown(mapping, current.as_deref())?;
    if path.branches_left_out > 0 {
        conversation.keep("branches_left_out", path.branches_left_out.into());
    }
    conversation.keep_rest(fields)?;
    for (node, message) in path.messages {
        push(&mut conversation, &node, message).map_err(|refusal| refusal.at(format!("node {}", shortened(&node))))?;
    }
    Ok(conversation)
}

fn push(conversation: &mut Conversation, node: &str, message: &RawValue) -> Result<(), Refusal> {
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
        return Ok(());
    }
    conversation.push(Some(id.as_deref().unwrap_or(node)), created_at, content)
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
