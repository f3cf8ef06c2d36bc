//! Reads session files of the Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, one line per event.
//!
//! The fixture was written by version 0.169.0 of the npm package `@openai/codex`.
//!
//! A file becomes a thread. Lines of the type `response_item` are its messages: texts, reasoning summaries, tool calls and tool
//! results. A message that the program wrote for the model gets the role `system`, as does the summary of a compaction
//! (`compacted`). Other lines repeat messages for the program's display (`event_msg`), or contain its state. Encrypted reasoning
//! is skipped, because only the provider can read it.
//!
//! A forked session begins with the lines of its parent. They are part of the fork's thread.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, Map, Part, Role, Timestamp};

use crate::conversation::{Converted, instant};
use crate::error::Rejection;
use crate::fields::{self, Fields, missing};
use crate::records::Record;
use crate::session::{Session, SessionRecords, SessionStart, copy_metadata};
use crate::{ConversationName, Format, tool_parts};

const RAW_FORMAT: &str = "codex.session";
const THREAD_METADATA: [&str; 6] = ["cwd", "git", "originator", "cli_version", "source", "forked_from_id"];
/// The beginnings of texts that the program writes in the user's name.
const PROGRAM_TEXTS: [&str; 7] = [
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
];

#[derive(Debug)]
pub(crate) struct Lines {
    session: Session,
    /// The session whose lines the current one repeats.
    parent: Option<String>,
}

impl Default for Lines {
    fn default() -> Self {
        Self { session: Session::new(Format::Codex), parent: None }
    }
}

impl SessionRecords for Lines {
    fn convert(&mut self, record: &Record, mut line: Fields<'_>) -> Result<Converted, Rejection> {
        let created_at = instant(&mut line, "timestamp");
        let kind = line.require_text("type")?;
        let is_message = matches!(kind.as_str(), "response_item" | "compacted");
        if !is_message && kind != "session_meta" {
            return Ok(Converted::default());
        }
        let json = line.take("payload").ok_or_else(|| missing("payload"))?;
        let mut payload = Fields::read(json).map_err(|rejection| rejection.at("payload"))?;
        if !is_message {
            let thread = self.begin(record, &mut payload, created_at)?;
            return Ok(Converted { items: thread.into_iter().collect(), ..Converted::default() });
        }
        if self.session.id().is_none() {
            return Err(Rejection::new("no `session_meta` line precedes the message"));
        }
        let content = match kind.as_str() {
            "compacted" => payload.take_text("message")?.filter(|text| !text.is_empty()).map(|summary| Content {
                metadata: Map::from_iter([("compaction".to_owned(), true.into())]),
                ..Content::text(Role::System, &summary)
            }),
            _ => item(json, payload)?,
        };
        let Some(content) = content else { return Ok(Converted::default()) };
        let message = self.session.message(record, self.session.id_of_record(record), created_at, content)?;
        Ok(Converted { items: message.into_iter().collect(), ..Converted::default() })
    }

    fn name(&self) -> ConversationName {
        self.session.name()
    }
}

impl Lines {
    fn begin(
        &mut self,
        record: &Record,
        meta: &mut Fields<'_>,
        written_at: Option<Timestamp>,
    ) -> Result<Option<threadkeep_core::exchange::ImportItem>, Rejection> {
        let id = meta.take_text("id")?;
        let id = id.or(meta.take_text("session_id")?).ok_or_else(|| missing("id"))?;
        if self.parent.as_ref() == Some(&id) {
            return Ok(None);
        }
        self.parent = meta.get("forked_from_id").and_then(|json| fields::text(json).ok());
        let created_at = instant(meta, "timestamp").or(written_at);
        let mut metadata = Map::new();
        copy_metadata(meta, &THREAD_METADATA, &mut metadata)?;
        self.session.begin(record, Some(&id), SessionStart { title: None, metadata, created_at })
    }
}

/// Converts an item. Returns `None` if it is empty or not part of the conversation.
fn item(json: &RawValue, mut item: Fields<'_>) -> Result<Option<Content>, Rejection> {
    let kind = item.require_text("type")?;
    let content = match kind.as_str() {
        "message" => message(&mut item)?,
        "reasoning" => reasoning(&mut item)?,
        "function_call" | "custom_tool_call" | "local_shell_call" => call(&kind, &mut item)?,
        "function_call_output" | "custom_tool_call_output" => result(&mut item)?,
        // A snapshot of the files, for undoing.
        "ghost_snapshot" => return Ok(None),
        _ => Some(Content { parts: vec![tool_parts::raw(RAW_FORMAT, json)?], ..Content::empty(Role::System) }),
    };
    match content {
        Some(content) => Ok(Some(content).filter(|content| !content.parts.is_empty())),
        None => Ok(Some(Content { parts: vec![tool_parts::raw(RAW_FORMAT, json)?], ..Content::empty(Role::System) })),
    }
}

fn message(item: &mut Fields<'_>) -> Result<Option<Content>, Rejection> {
    let given_role = item.require_text("role")?;
    let mut content = Content::empty(match given_role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => return Err(Rejection::new("`role` is not one of user, assistant, system, developer")),
    });
    for part in item.require_list("content")? {
        content.parts.push(message_part(part).map_err(|rejection| rejection.at("content"))?);
    }
    let is_by_program = |part: &Part| matches!(part, Part::Text(text) if PROGRAM_TEXTS.iter().any(|start| text.trim_start().starts_with(start)));
    if content.role == Role::User && !content.parts.is_empty() && content.parts.iter().all(is_by_program) {
        content.role = Role::System;
    }
    if given_role != content.role.as_str() {
        content.metadata.insert("role".to_owned(), given_role.into());
    }
    copy_metadata(item, &["phase"], &mut content.metadata)?;
    Ok(Some(content))
}

fn message_part(json: &RawValue) -> Result<Part, Rejection> {
    let mut part = Fields::read(json)?;
    let known_part = match part.take_text("type")?.as_deref() {
        Some("input_text" | "output_text" | "text") => part.take_text("text")?.map(Part::Text),
        Some("input_image") => {
            let url = part.take_text("image_url")?;
            url.map(|url| Part::Image(ImageReference { url, description: None, detail: None }))
        }
        _ => None,
    };
    known_part.map_or_else(|| tool_parts::raw(RAW_FORMAT, json), Ok)
}

/// Reads the summaries and the text of reasoning. An item with encrypted reasoning alone is skipped.
fn reasoning(item: &mut Fields<'_>) -> Result<Option<Content>, Rejection> {
    let mut content = Content::empty(Role::Assistant);
    for name in ["summary", "content"] {
        for entry in item.take_list(name)?.unwrap_or_default() {
            let text = Fields::read(entry).and_then(|mut entry| entry.take_text("text"));
            let text = text.map_err(|rejection| rejection.at(name))?.filter(|text| !text.is_empty());
            content.parts.extend(text.map(Part::Reasoning));
        }
    }
    Ok(Some(content))
}

fn call(kind: &str, item: &mut Fields<'_>) -> Result<Option<Content>, Rejection> {
    let id = item.take_text("call_id")?.or(item.take_text("id")?);
    let (name, arguments) = match kind {
        "local_shell_call" => (Some("local_shell".to_owned()), item.take("action")),
        "custom_tool_call" => (item.take_text("name")?, item.take("input")),
        _ => (item.take_text("name")?, item.take("arguments")),
    };
    let (Some(id), Some(name)) = (id, name) else { return Ok(None) };
    let part = tool_parts::call(id, name, tool_parts::arguments(arguments)?);
    Ok(part.map(|part| Content { parts: vec![part], ..Content::empty(Role::Assistant) }))
}

fn result(item: &mut Fields<'_>) -> Result<Option<Content>, Rejection> {
    let (Some(id), Some(output)) = (item.take_text("call_id")?, item.take("output")) else { return Ok(None) };
    // Earlier versions wrap the output in an object that says whether the call succeeded.
    let (output, is_error) = match Fields::read(output) {
        Ok(mut wrapped) if wrapped.get("content").is_some() => {
            let is_error = wrapped.get("success").is_some_and(|success| success.get() == "false");
            (wrapped.take("content").unwrap_or(output), is_error)
        }
        _ => (output, false),
    };
    let part = tool_parts::result(id, tool_parts::output(output)?, is_error);
    Ok(Some(Content { parts: vec![part], ..Content::empty(Role::Tool) }))
}
