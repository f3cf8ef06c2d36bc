//! Reads session files of the Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.jsonl`, and the `.json` files of earlier
//! versions with a single object.
//!
//! The fixture was written by version 0.61.0 of the npm package `@google/gemini-cli`.
//!
//! A session becomes a thread. A line contains a header, a message, or changes (`$set`), which can contain messages as well. When
//! the model calls a tool, the program writes the same message again with the call and its result, and when a session is
//! resumed, it writes all messages again. So texts, thoughts, calls and results become separate messages, each identified by its
//! id in the source, and each is read once. Messages of the types `info`, `warning` and `error` get the role `system`.

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, Timestamp};

use crate::conversation::{Converted, instant, numbered};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind, missing};
use crate::records::Record;
use crate::session::{Session, SessionRecords, SessionStart, copy_metadata};
use crate::{ConversationName, Format, identity, tool_parts};

const RAW_FORMAT: &str = "gemini-cli.session";
const THREAD_METADATA: [&str; 3] = ["projectHash", "kind", "summary"];
const CONTEXT: &str = "<session_context>";

#[derive(Debug)]
pub(crate) struct Lines(Session);

impl Default for Lines {
    fn default() -> Self {
        Self(Session::new(Format::GeminiCli))
    }
}

impl SessionRecords for Lines {
    fn convert(&mut self, record: &Record, mut line: Fields<'_>) -> Result<Converted, Rejection> {
        let mut converted = Converted::default();
        let is_message = line.get("id").is_some() && line.get("type").is_some();
        if is_message {
            self.require_session()?;
            self.message(record, line, &mut converted)?;
            return Ok(converted);
        }
        if let Some(id) = line.take_text("sessionId")? {
            let mut start = SessionStart { created_at: instant(&mut line, "startTime"), ..SessionStart::default() };
            copy_metadata(&mut line, &THREAD_METADATA, &mut start.metadata)?;
            converted.items.extend(self.0.begin(record, Some(&id), start)?);
        }
        let messages = match line.take_fields("$set")? {
            Some(mut set) => set.take_list("messages").map_err(|rejection| rejection.at("$set"))?,
            None => line.take_list("messages")?,
        };
        let messages = messages.unwrap_or_default();
        if !messages.is_empty() {
            self.require_session()?;
        }
        for (index, json) in messages.into_iter().enumerate() {
            let read = Fields::read(json).and_then(|message| self.message(record, message, &mut converted));
            if let Err(rejection) = read {
                converted.skipped.push(rejection.at(numbered("message", index)));
            }
        }
        Ok(converted)
    }

    fn name(&self) -> ConversationName {
        self.0.name()
    }
}

/// The texts and calls of a message.
#[derive(Default)]
struct Parts {
    thoughts: Vec<Part>,
    words: Vec<Part>,
    calls: Vec<Call>,
}

struct Call {
    id: String,
    call: Option<Part>,
    result: Option<Part>,
}

impl Lines {
    fn require_session(&self) -> Result<(), Rejection> {
        self.0.id().map(drop).ok_or_else(|| missing("sessionId"))
    }

    fn message(
        &mut self,
        record: &Record,
        mut message: Fields<'_>,
        converted: &mut Converted,
    ) -> Result<(), Rejection> {
        let id = message.take_id("id")?.ok_or_else(|| missing("id"))?;
        let message_type = message.require_text("type")?;
        let created_at = instant(&mut message, "timestamp");
        let mut parts = Parts::default();
        if let Some(content) = message.take("content") {
            read_content(content, &mut parts).map_err(|rejection| rejection.at("content"))?;
        }
        for (index, thought) in message.take_list("thoughts")?.unwrap_or_default().into_iter().enumerate() {
            let text = read_thought(thought).map_err(|rejection| rejection.at(numbered("thought", index)))?;
            parts.thoughts.extend(text.map(Part::Reasoning));
        }
        for (index, call) in message.take_list("toolCalls")?.unwrap_or_default().into_iter().enumerate() {
            parts.calls.push(read_call(call).map_err(|rejection| rejection.at(numbered("tool call", index)))?);
        }
        let is_context = matches!(parts.words.first(), Some(Part::Text(text)) if text.starts_with(CONTEXT));
        let role = match message_type.as_str() {
            "gemini" | "model" => Role::Assistant,
            "user" if !is_context => Role::User,
            _ => Role::System,
        };
        let mut content = Content::empty(role);
        if role == Role::System {
            content.metadata.insert("type".to_owned(), message_type.into());
        }
        copy_metadata(&mut message, &["model", "tokens"], &mut content.metadata)?;
        self.add(record, &id, created_at, content, parts, converted)
    }

    fn add(
        &mut self,
        record: &Record,
        id: &str,
        created_at: Option<Timestamp>,
        content: Content,
        Parts { mut thoughts, words, calls }: Parts,
        converted: &mut Converted,
    ) -> Result<(), Rejection> {
        let thoughts_id = identity::message_id(&format!("{id}/thoughts"));
        if self.0.contains(&thoughts_id) {
            thoughts.clear();
        }
        let (external_id, parts) = match words.is_empty() {
            false => (identity::message_id(id), [thoughts, words].concat()),
            true => (thoughts_id, thoughts),
        };
        if !parts.is_empty() {
            let content = Content { parts, ..content };
            converted.items.extend(self.0.message(record, external_id, created_at, content)?);
        }
        for Call { id, call, result } in calls {
            for (role, part, kind) in [(Role::Assistant, call, "call"), (Role::Tool, result, "result")] {
                let Some(part) = part else { continue };
                let external_id = identity::message_id(&format!("{kind}/{id}"));
                let content = Content { parts: vec![part], ..Content::empty(role) };
                converted.items.extend(self.0.message(record, external_id, created_at, content)?);
            }
        }
        Ok(())
    }
}

fn read_content(json: &RawValue, parts: &mut Parts) -> Result<(), Rejection> {
    match kind(json) {
        Kind::Text => {
            let text = fields::text(json)?;
            parts.words.extend((!text.is_empty()).then_some(Part::Text(text)));
            Ok(())
        }
        Kind::List => fields::list(json)?.into_iter().try_for_each(|part| read_part(part, parts)),
        _ => read_part(json, parts),
    }
}

fn read_part(json: &RawValue, parts: &mut Parts) -> Result<(), Rejection> {
    if kind(json) == Kind::Text {
        return read_content(json, parts);
    }
    let mut part = Fields::read(json)?;
    let is_thought = part.get("thought").is_some_and(|thought| thought.get() == "true");
    if let Some(text) = part.take_text("text")? {
        match is_thought {
            true => parts.thoughts.push(Part::Reasoning(text)),
            false => parts.words.push(Part::Text(text)),
        }
    } else if let Some(mut call) = part.take_fields("functionCall")? {
        let (id, name) = (call.take_text("id")?, call.require_text("name")?);
        let id = id.unwrap_or_else(|| name.clone());
        let call = tool_parts::call(id.clone(), name, tool_parts::arguments(call.take("args"))?);
        parts.calls.push(Call { id, call, result: None });
    } else if let Some(response) = part.take_fields("functionResponse")? {
        let (id, output) = read_response(response)?;
        let result = Some(tool_parts::result(id.clone(), output, false));
        parts.calls.push(Call { id, call: None, result });
    } else {
        parts.words.push(tool_parts::raw(RAW_FORMAT, json)?);
    }
    Ok(())
}

/// Returns the id of the call, and its output.
fn read_response(mut response: Fields<'_>) -> Result<(String, String), Rejection> {
    let (id, name) = (response.take_text("id")?, response.take_text("name")?);
    let id = id.or(name).ok_or_else(|| missing("id"))?;
    let Some(json) = response.take("response") else { return Ok((id, String::new())) };
    let text = Fields::read(json).ok().and_then(|mut fields| {
        let is_only = fields.names().count() == 1;
        ["output", "error"].iter().find_map(|name| fields.take_text(name).ok().flatten()).filter(|_| is_only)
    });
    Ok((id, text.unwrap_or_else(|| json.get().to_owned())))
}

fn read_thought(json: &RawValue) -> Result<Option<String>, Rejection> {
    let mut thought = Fields::read(json)?;
    let texts = [thought.take_text("subject")?, thought.take_text("description")?];
    let text = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    Ok((!text.is_empty()).then_some(text))
}

fn read_call(json: &RawValue) -> Result<Call, Rejection> {
    let mut call = Fields::read(json)?;
    let (id, name) = (call.require_text("id")?, call.require_text("name")?);
    let is_error = matches!(call.take_text("status")?.as_deref(), Some("error" | "cancelled"));
    let outputs = match call.take("result") {
        Some(result) if kind(result) == Kind::List => fields::list(result)?,
        Some(result) => vec![result],
        None => Vec::new(),
    };
    let mut output = Vec::new();
    for part in outputs {
        let response = Fields::read(part).ok().and_then(|mut part| part.take_fields("functionResponse").ok().flatten());
        output.push(match response {
            Some(response) => read_response(response)?.1,
            None => tool_parts::output(part)?,
        });
    }
    let result = (!output.is_empty()).then(|| tool_parts::result(id.clone(), output.join("\n"), is_error));
    let arguments = tool_parts::arguments(call.take("args"))?;
    Ok(Call { call: tool_parts::call(id.clone(), name, arguments), id, result })
}
