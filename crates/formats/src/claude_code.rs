//! Reads session files of Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`, one line per event.
//!
//! The fixture was written by version 2.1.197 of the npm package `@anthropic-ai/claude-code`.
//!
//! A session becomes a thread. A sub-agent has its own file with the session's id and an `agentId`, and becomes a thread of its own.
//! Lines of the types `user` and `assistant` are messages, in the order of the file. A message that contains only tool
//! results gets the role `tool`. A message that the program wrote for the model (`isMeta`, `isCompactSummary`) gets the role
//! `system`. Other lines with a `uuid`, such as attachments and compaction boundaries, become system messages: with their
//! text, or else with the line as a raw part. Lines without a `uuid`, such as `mode` and `last-prompt`, contain the state of
//! the program and are skipped.
//!
//! A branch begins where `parentUuid` names a message other than the previous one. Branches stay in the order of the file.
//! The metadata of each message contains its parent. `toolUseResult`, which repeats the tool result, is not imported.

use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep_core::{Content, Map, Part, Role};

use crate::conversation::{Converted, check_content, instant, numbered};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, exact, kind, missing};
use crate::records::Record;
use crate::session::{SessionRecords, copy_metadata};
use crate::{ConversationName, Format, claude, identity, name};

const RAW_FORMAT: &str = "claude-code.session";
/// The fields of a line that are copied to the metadata of its message.
const LINE_METADATA: [&str; 9] = [
    "parentUuid",
    "logicalParentUuid",
    "isMeta",
    "isCompactSummary",
    "isSidechain",
    "agentId",
    "cwd",
    "gitBranch",
    "version",
];
/// The fields of `message` that are copied to the metadata of the message.
const MESSAGE_METADATA: [&str; 4] = ["id", "model", "stop_reason", "usage"];
/// The fields of the first message that are copied to the metadata of the thread.
const THREAD_METADATA: [&str; 5] = ["cwd", "gitBranch", "version", "isSidechain", "agentId"];

/// Converts lines, and tracks the session to which they belong.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    session: Option<String>,
    /// The number of messages since the session began.
    messages: usize,
}

impl SessionRecords for Lines {
    fn convert(&mut self, record: &Record, mut line: Fields<'_>) -> Result<Converted, Rejection> {
        let kind = line.require_text("type")?;
        let uuid = line.take_id("uuid")?;
        let is_message = matches!(kind.as_str(), "user" | "assistant");
        if !is_message && uuid.is_none() {
            return Ok(Converted::default());
        }
        let mut session = line.take_id("sessionId")?.ok_or_else(|| missing("sessionId"))?;
        if let Some(agent) = line.get("agentId").and_then(|json| fields::text(json).ok()) {
            session = format!("{session}/{agent}");
        }
        let created_at = instant(&mut line, "timestamp");
        let content = if is_message { message(&mut line)? } else { event(record, &mut line)? };
        check_content(&content, record.text.len())?;
        let mut items = Vec::new();
        if self.session.as_ref() != Some(&session) {
            let metadata = content.metadata.iter().filter(|(name, _)| THREAD_METADATA.contains(&name.as_str()));
            items.push(ImportItem::Thread(Box::new(ImportedThread {
                id: None,
                key: Some(identity::thread_key(Format::ClaudeCode, record, Some(&session))?),
                title: None,
                metadata: metadata.map(|(name, value)| (name.clone(), value.clone())).collect::<Map>(),
                state: Map::new(),
                created_at,
                expires_at: None,
            })));
            (self.session, self.messages) = (Some(session), 0);
        }
        self.messages += 1;
        let id = uuid.as_deref().map(identity::message_id);
        let external_id = Some(id.unwrap_or_else(|| identity::message_id_by_content(self.messages, &content)));
        items.push(ImportItem::Message(Box::new(ImportedMessage { id: None, external_id, created_at, content })));
        Ok(Converted { items, ..Converted::default() })
    }

    fn name(&self) -> ConversationName {
        ConversationName { title: None, id: self.session.as_deref().and_then(name::truncated) }
    }
}

fn message(line: &mut Fields<'_>) -> Result<Content, Rejection> {
    let mut message = line.take_fields("message")?.ok_or_else(|| missing("message"))?;
    let given_role = message.require_text("role")?;
    let role = match given_role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(Rejection::new("`role` is neither user nor assistant")),
    };
    let mut content = Content::empty(role);
    let body = message.take("content").ok_or_else(|| missing("content"))?;
    if kind(body) == Kind::List {
        for (index, item) in fields::list(body)?.into_iter().enumerate() {
            let part = claude::known_item(item).map_err(|rejection| rejection.at(numbered("content", index)))?;
            content.parts.push(match part {
                Some(part) => part,
                None => Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(item)? },
            });
        }
    } else {
        content.parts.push(Part::Text(fields::text(body).map_err(|rejection| rejection.at("content"))?));
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let is_true = |name: &str| line.get(name).is_some_and(|json| json.get() == "true");
    if is_true("isMeta") || is_true("isCompactSummary") {
        content.role = Role::System;
    } else if !content.parts.is_empty() && content.parts.iter().all(is_result) {
        content.role = Role::Tool;
    }
    if content.role != role {
        content.metadata.insert("role".to_owned(), given_role.into());
    }
    copy_metadata(&mut message, &MESSAGE_METADATA, &mut content.metadata)?;
    copy_metadata(line, &LINE_METADATA, &mut content.metadata)?;
    Ok(content)
}

/// Returns the text of a message that the user sent while the model was working.
fn queued_prompt(line: &Fields<'_>) -> Option<String> {
    let mut attachment = Fields::read(line.get("attachment")?).ok()?;
    let is_prompt = attachment.take_text("type").ok()?.as_deref() == Some("queued_command");
    attachment.take_text("prompt").ok()?.filter(|prompt| is_prompt && !prompt.trim().is_empty())
}

/// Converts a line that is not a message of the user or the model.
fn event(record: &Record, line: &mut Fields<'_>) -> Result<Content, Rejection> {
    let mut content = Content::empty(Role::System);
    if let Some(prompt) = queued_prompt(line) {
        content.role = Role::User;
        content.parts.push(Part::Text(prompt));
        copy_metadata(line, &LINE_METADATA, &mut content.metadata)?;
        return Ok(content);
    }
    content.parts.push(match line.get("content").and_then(|json| fields::text(json).ok()) {
        Some(text) => Part::Text(text),
        None => {
            let json: &serde_json::value::RawValue =
                serde_json::from_str(&record.text).map_err(|error| fields::parser_error(&error))?;
            Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? }
        }
    });
    copy_metadata(line, &LINE_METADATA, &mut content.metadata)?;
    copy_metadata(line, &["subtype", "compactMetadata"], &mut content.metadata)?;
    Ok(content)
}
