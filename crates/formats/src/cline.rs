//! Reads the conversations of Cline and Roo Code.
//!
//! The Cline CLI writes `~/.cline/data/sessions/ID/ID.messages.json`, an object with `messages`. The fixture was written by
//! version 3.0.65 of the npm package `cline`. The editor extensions write `tasks/ID/api_conversation_history.json` in their
//! storage folder: a list of messages, without an id, so the name of the folder identifies the task (see
//! `src/core/storage/disk.ts` in the repository `cline/cline` and `src/core/task-persistence` in `RooCodeInc/Roo-Code`). The list
//! is recognised by the name of its file.
//!
//! Messages have the form of Anthropic's API. The program wraps what the user typed in tags, which are removed, and appends a
//! description of the environment, which becomes a raw part.

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, Timestamp};

use crate::conversation::{Conversation, Converted};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind};
use crate::file::FileName;
use crate::records::Record;
use crate::session::{Session, SessionRecords, SessionStart, copy_metadata};
use crate::{ConversationName, Format, claude, tool_parts};

/// The name of a task's file.
pub(crate) const TASK_FILE: &str = "api_conversation_history.json";
const RAW_FORMAT: &str = "cline.session";
/// The tags in which the program wraps what the user typed.
const USER_TAGS: [&str; 4] = ["user_input", "task", "feedback", "user_message"];
const ENVIRONMENT: &str = "<environment_details>";

/// Converts a file of the Cline CLI.
pub(crate) fn convert(record: &Record, mut session: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = session.take_text("sessionId")?;
    let agent = session.take_text("agent")?.filter(|agent| agent != "lead");
    let id = id.map(|id| agent.map_or_else(|| id.clone(), |agent| format!("{id}/{agent}")));
    let messages = session.require_list("messages")?;
    let mut conversation = Conversation::new(Format::Cline, record, id.as_deref())?;
    let first = messages.iter().find_map(|message| instant_in_milliseconds(&mut Fields::read(message).ok()?, "ts"));
    conversation.set_created_at(first);
    session.take("system_prompt");
    conversation.add_remaining_metadata(session)?;
    conversation.each_message("message", messages, |conversation, _, mut message| {
        let id = message.take_id("id")?;
        let created_at = instant_in_milliseconds(&mut message, "ts");
        let content = read_message(&mut message)?;
        conversation.push(id.as_deref(), created_at, content)
    });
    Ok(conversation)
}

/// Reads the message list of a task. Each record is a message.
#[derive(Debug)]
pub(crate) struct TaskMessages {
    session: Session,
    file: FileName,
}

impl TaskMessages {
    pub(crate) fn new(file: FileName) -> Self {
        Self { session: Session::new(Format::Cline), file }
    }
}

impl SessionRecords for TaskMessages {
    fn convert(&mut self, record: &Record, mut message: Fields<'_>) -> Result<Converted, Rejection> {
        if message.get("messages").is_some() {
            return convert(record, message)?.into_items();
        }
        let created_at = instant_in_milliseconds(&mut message, "ts");
        let content = read_message(&mut message)?;
        // The name of a task's folder is the time at which it began, in milliseconds, or a UUID.
        let folder = self.file.folder.clone();
        let began_at = folder.as_deref().and_then(|name| milliseconds(name.parse().ok()?));
        let start =
            SessionStart { created_at: began_at.or(created_at).or(self.file.changed_at), ..SessionStart::default() };
        let thread = match self.session.id() {
            Some(_) => None,
            None => self.session.begin(record, folder.as_deref(), start)?,
        };
        let external_id = self.session.id_of_record(record);
        let message = self.session.message(record, external_id, created_at, content)?;
        Ok(Converted { items: thread.into_iter().chain(message).collect(), ..Converted::default() })
    }

    fn name(&self) -> ConversationName {
        self.session.name()
    }
}

fn read_message(message: &mut Fields<'_>) -> Result<Content, Rejection> {
    let given_role = message.require_text("role")?;
    let mut content = Content::empty(match given_role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "system" => Role::System,
        _ => return Err(Rejection::new("`role` is not one of user, assistant, tool, system")),
    });
    let body = message.take("content").ok_or_else(|| fields::missing("content"))?;
    match kind(body) {
        Kind::Text => content.parts.push(user_text(fields::text(body)?, content.role, body)?),
        _ => {
            for item in fields::list(body).map_err(|rejection| rejection.at("content"))? {
                let part = claude::known_item(item).map_err(|rejection| rejection.at("content"))?;
                content.parts.push(match part {
                    Some(Part::Text(text)) => user_text(text, content.role, item)?,
                    Some(part) => part,
                    None => tool_parts::raw(RAW_FORMAT, item)?,
                });
            }
        }
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let is_environment = |part: &Part| matches!(part, Part::Raw { .. });
    if content.role == Role::User
        && content.parts.iter().any(is_result)
        && content.parts.iter().all(|part| is_result(part) || is_environment(part))
    {
        content.role = Role::Tool;
        content.metadata.insert("role".to_owned(), given_role.into());
    }
    copy_metadata(message, &["modelInfo", "metrics", "isSummary"], &mut content.metadata)?;
    Ok(content)
}

/// Removes the tags around what the user typed. A description of the environment becomes a raw part.
fn user_text(text: String, role: Role, json: &RawValue) -> Result<Part, Rejection> {
    if role != Role::User {
        return Ok(Part::Text(text));
    }
    if text.trim_start().starts_with(ENVIRONMENT) {
        return tool_parts::raw(RAW_FORMAT, json);
    }
    let inner = USER_TAGS.iter().find_map(|tag| {
        let rest = text.trim().strip_prefix('<')?.strip_prefix(tag)?;
        let (attributes, rest) = rest.split_once('>')?;
        let inner = rest.strip_suffix(&format!("</{tag}>"))?;
        (attributes.is_empty() || attributes.starts_with(' ')).then(|| inner.trim().to_owned())
    });
    Ok(Part::Text(inner.unwrap_or(text)))
}

fn instant_in_milliseconds(fields: &mut Fields<'_>, name: &str) -> Option<Timestamp> {
    milliseconds(serde_json::from_str(fields.take(name)?.get()).ok()?)
}

fn milliseconds(milliseconds: i64) -> Option<Timestamp> {
    Timestamp::from_micros(milliseconds.checked_mul(1_000)?).ok()
}

/// Whether a record is a message of a task.
pub(crate) fn is_task_message(fields: &Fields<'_>, file: &FileName) -> bool {
    file.name.as_deref() == Some(TASK_FILE) && fields.get("role").is_some() && fields.get("content").is_some()
}
