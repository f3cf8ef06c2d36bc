//! Memories: user messages in the scope's thread with the key [`MEMORIES_KEY`].

use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::core::OpenThread;
use threadkeep::{
    AppendOptions, Bound, Content, Draft, Message, MessageQuery, MessageRef, OnCorrupt, Part, Role, Thread, ThreadKey,
};

use super::{
    MessageResult, NOTICE, PageArguments, TEXT_CHARS, check_text, insert, invalid_cursor, limit, message_text,
};
use crate::message_name::MessageName;
use crate::{ToolFailure, Toolbox};

/// The key of the thread that contains the memories of a scope.
pub const MEMORIES_KEY: &str = "memories";

/// The maximum length of the name of a client, in characters.
const CLIENT_CHARS: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMemory {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangedMemory {
    id: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryArguments {
    id: String,
}

pub(crate) async fn add(toolbox: &Toolbox, arguments: NewMemory, client: &str) -> Result<Value, ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    check_text("text", &arguments.text, TEXT_CHARS)?;
    let mut content = Content::text(Role::User, arguments.text);
    let client: String = client.chars().filter(|c| !c.is_control()).take(CLIENT_CHARS).collect();
    content.metadata.insert("memory".to_owned(), json!({ "client": client }));
    let draft = vec![Draft::new(content)];
    // A thread must not be created for a memory that cannot be stored.
    AppendOptions::default().check(&draft)?;
    let mut open = OpenThread::new(scope, memory.generate_thread_id()).with_key(ThreadKey::new(MEMORIES_KEY)?);
    open.title = Some("Memories".to_owned());
    let thread = memory.open_thread(scope, open).await?.thread.id;
    let added = memory.append_all(scope, thread, draft, &AppendOptions::default()).await?;
    Ok(json!({ "id": MessageName { thread, seq: added.first_seq }.to_string() }))
}

pub(crate) async fn update(toolbox: &Toolbox, arguments: ChangedMemory) -> Result<Value, ToolFailure> {
    check_text("text", &arguments.text, TEXT_CHARS)?;
    let (thread, message) = get_memory(toolbox, &arguments.id).await?;
    let content = Content { parts: vec![Part::Text(arguments.text)], ..message.content };
    toolbox.memory.replace_message(&toolbox.scope, thread.id, message.id, content, None).await.map_err(missing)?;
    Ok(json!({ "id": arguments.id }))
}

pub(crate) async fn delete(toolbox: &Toolbox, arguments: MemoryArguments) -> Result<Value, ToolFailure> {
    let (thread, message) = get_memory(toolbox, &arguments.id).await?;
    toolbox.memory.erase_messages(&toolbox.scope, thread.id, &[message.id]).await.map_err(missing)?;
    Ok(json!({ "deleted": arguments.id }))
}

pub(crate) async fn get(toolbox: &Toolbox, arguments: MemoryArguments) -> Result<Value, ToolFailure> {
    let name = MessageName::parse("id", &arguments.id)?;
    let refs = [MessageRef::Seq(name.seq)];
    let found = toolbox.memory.find_messages(&toolbox.scope, name.thread, &refs).await.map_err(missing)?;
    let message = found.first().ok_or_else(not_found)?;
    let mut result = json!(MessageResult::new(name.thread, message, message_text(message)));
    result["notice"] = NOTICE.into();
    Ok(result)
}

pub(crate) async fn list(toolbox: &Toolbox, arguments: PageArguments) -> Result<Value, ToolFailure> {
    let limit = limit(arguments.limit, 20, 100)?;
    let before = arguments.cursor.map(|cursor| cursor.parse().map(Bound::Seq).map_err(|_| invalid_cursor()));
    let query =
        MessageQuery { before: before.transpose()?, on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(limit) };
    let Some(thread) = toolbox.memory.find_thread_by_key(&toolbox.scope, MEMORIES_KEY).await? else {
        return Ok(json!({ "notice": NOTICE, "memories": [] }));
    };
    let page = toolbox.memory.messages(&toolbox.scope, thread.id, &query).await?;
    let memories = page.messages.iter().rev().map(|message| MessageResult::shortened(thread.id, message));
    let mut result = json!({ "notice": NOTICE, "memories": memories.collect::<Vec<_>>() });
    let next = page.messages.first().filter(|_| page.more).map(|message| message.seq.to_string());
    insert(&mut result, "next_cursor", next);
    Ok(result)
}

/// Returns a memory and its thread. For any other message the result is `NotFound`, so that tools cannot change a conversation.
async fn get_memory(toolbox: &Toolbox, id: &str) -> Result<(Thread, Message), ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    let name = MessageName::parse("id", id)?;
    let thread = memory.find_thread_by_key(scope, MEMORIES_KEY).await?;
    let thread = thread.filter(|thread| thread.id == name.thread).ok_or_else(not_found)?;
    let found = memory.find_messages(scope, thread.id, &[MessageRef::Seq(name.seq)]).await?;
    Ok((thread, found.into_iter().next().ok_or_else(not_found)?))
}

fn not_found() -> ToolFailure {
    ToolFailure::NotFound { what: "memory", hint: "only memories stored by add_memory and not deleted can be changed" }
}

fn missing(error: threadkeep::MemoryError) -> ToolFailure {
    if error.is_not_found() { not_found() } else { error.into() }
}
