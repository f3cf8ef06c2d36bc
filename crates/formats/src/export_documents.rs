//! Reads what the exports of Claude and ChatGPT contain besides conversations: the documents and instructions of projects, the memory,
//! and custom instructions.
//!
//! Neither service documents its format. These forms follow public reports about exports:
//!
//! - Claude, projects: objects with `uuid`, `name`, `prompt_template` and `docs` (`uuid`, `filename`, `content`), as a list in
//!   `projects.json`, later one in each file of the folder `projects` (issue 22 of `Superkikim/nexus-ai-chat-importer`, issue 4 of
//!   `ukogan/claude-migration-assistant`).
//! - Claude, memory: `conversations_memory`, and `project_memories` by project, in `memories.json`.
//! - ChatGPT: each conversation starts with a hidden message of the type `user_editable_context` with the custom instructions of that
//!   time, `user_profile` and `user_instructions`. The newest ones are read.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind};
use crate::reader::read_object;
use crate::records::{Record, Records};
use crate::{ConversationName, FormatError, RecordError, input};

/// The type of ChatGPT's message with the custom instructions.
const INSTRUCTIONS: &str = "user_editable_context";

/// A document of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedDocument {
    /// An id that stays the same in later exports.
    pub id: String,
    /// The title, as shown to people.
    pub title: String,
    /// The text; Markdown, unless the title ends in the name of a file of another type.
    pub text: String,
}

/// Reads the documents of a file of an export. Other records yield no documents.
///
/// # Errors
/// `Read` for errors of the operating system, and `Empty`.
pub fn read_exported_documents(source: Box<dyn Read + Send>) -> Result<ExportedDocuments, FormatError> {
    let input = input::open(source, Arc::default())?;
    let records = Records::open(input)?.ok_or(FormatError::Empty)?;
    Ok(ExportedDocuments { records, found: VecDeque::new(), instructions: None, is_finished: false })
}

/// Iterates over the documents of a file.
pub struct ExportedDocuments {
    records: Records,
    found: VecDeque<ExportedDocument>,
    /// The newest custom instructions of ChatGPT, and when the message with them was created.
    instructions: Option<(f64, ExportedDocument)>,
    is_finished: bool,
}

impl fmt::Debug for ExportedDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportedDocuments").finish_non_exhaustive()
    }
}

impl Iterator for ExportedDocuments {
    type Item = Result<ExportedDocument, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.found.pop_front() {
                return Some(Ok(document));
            }
            if self.is_finished {
                return None;
            }
            match self.records.next() {
                None => {
                    self.is_finished = true;
                    self.found.extend(self.instructions.take().map(|(_, document)| document));
                }
                Some(Err(error)) => {
                    self.is_finished = error.fault.is_final();
                    return Some(Err(error));
                }
                Some(Ok(record)) => {
                    if let Err(rejection) = self.read(&record) {
                        let (line, record) = (record.line, record.index);
                        let conversation = ConversationName::default();
                        return Some(Err(RecordError { line, record, conversation, fault: rejection.into() }));
                    }
                }
            }
        }
    }
}

impl ExportedDocuments {
    fn read(&mut self, record: &Record) -> Result<(), Rejection> {
        // Files of conversations are large, and few of them have instructions.
        let is_candidate = |name: &&str| record.text.contains(*name);
        if !["prompt_template", "docs", "conversations_memory", "project_memories", INSTRUCTIONS]
            .iter()
            .any(is_candidate)
        {
            return Ok(());
        }
        let mut fields = read_object(record)?;
        let has =
            |fields: &Fields<'_>, name: &str, expected| fields.get(name).is_some_and(|json| kind(json) == expected);
        if has(&fields, "mapping", Kind::Object) {
            let nodes = fields.take_fields("mapping")?.map(Fields::into_remaining).unwrap_or_default();
            return nodes.into_iter().try_for_each(|(_, node)| self.read_instructions(node));
        }
        if has(&fields, "uuid", Kind::Text)
            && (has(&fields, "docs", Kind::List) || has(&fields, "prompt_template", Kind::Text))
        {
            return self.read_project(fields);
        }
        if let Some(text) = fields.take_text("conversations_memory")? {
            self.add("claude/memory", "Claude: memory", text);
        }
        if has(&fields, "project_memories", Kind::Object) {
            let memories = fields.take_fields("project_memories")?.map(Fields::into_remaining).unwrap_or_default();
            for (project, memory) in memories.into_iter().filter(|(_, memory)| kind(memory) == Kind::Text) {
                let title = format!("Claude: memory of the project {project}");
                self.add(format!("claude/memory/{project}"), title, fields::text(memory)?);
            }
        }
        Ok(())
    }

    fn read_project(&mut self, mut project: Fields<'_>) -> Result<(), Rejection> {
        let id = project.require_text("uuid")?;
        let name = project.take_text("name")?.unwrap_or_else(|| id.clone());
        if let Some(text) = project.take_text("prompt_template")? {
            self.add(format!("claude/project/{id}/instructions"), format!("{name}: instructions"), text);
        }
        for (index, json) in project.take_list("docs")?.unwrap_or_default().into_iter().enumerate() {
            let mut document = Fields::read(json).map_err(|rejection| rejection.at("docs"))?;
            let text = document.take_text("content")?.unwrap_or_default();
            let file = document.take_text("filename")?.unwrap_or_else(|| format!("document {}", index + 1));
            let document_id = document.take_text("uuid")?.unwrap_or_else(|| file.clone());
            self.add(format!("claude/project/{id}/{document_id}"), format!("{name}: {file}"), text);
        }
        Ok(())
    }

    /// Reads a node of a conversation of ChatGPT.
    fn read_instructions(&mut self, node: &RawValue) -> Result<(), Rejection> {
        if !node.get().contains(INSTRUCTIONS) {
            return Ok(());
        }
        let Some(mut message) = Fields::read(node)?.take_fields("message")? else { return Ok(()) };
        let Some(mut content) = message.take_fields("content")? else { return Ok(()) };
        if content.take_text("content_type")?.as_deref() != Some(INSTRUCTIONS) {
            return Ok(());
        }
        let at = message.get("create_time").and_then(|json| json.get().parse::<f64>().ok()).unwrap_or_default();
        let texts = ["user_profile", "user_instructions"].into_iter().map(|name| content.take_text(name));
        let texts = texts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().filter(|text| !text.trim().is_empty());
        let text = texts.collect::<Vec<_>>().join("\n\n");
        if !text.is_empty() && self.instructions.as_ref().is_none_or(|(newest, _)| at >= *newest) {
            let (id, title) = ("chatgpt/instructions".to_owned(), "ChatGPT: custom instructions".to_owned());
            self.instructions = Some((at, ExportedDocument { id, title, text }));
        }
        Ok(())
    }

    fn add(&mut self, id: impl Into<String>, title: impl Into<String>, text: String) {
        if !text.trim().is_empty() {
            self.found.push_back(ExportedDocument { id: id.into(), title: title.into(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Vec<String> {
        let documents = read_exported_documents(Box::new(std::io::Cursor::new(text.to_owned()))).unwrap();
        let line = |document: Result<ExportedDocument, RecordError>| match document {
            Ok(ExportedDocument { id, title, text }) => format!("{id} | {title} | {text}"),
            Err(error) => format!("error: {error}"),
        };
        documents.map(line).collect()
    }

    #[test]
    fn projects_of_claude_have_instructions_and_documents() {
        let project = r##"{"uuid":"p1","name":"Pier","description":"","prompt_template":"Be brief.","docs":[{"uuid":"d1","filename":"hours.md","content":"# Hours\nNine."},{"filename":"empty.txt","content":""}]}"##;
        let expected = [
            "claude/project/p1/instructions | Pier: instructions | Be brief.",
            "claude/project/p1/d1 | Pier: hours.md | # Hours\nNine.",
        ];
        assert_eq!(documents(project), expected);
        assert_eq!(documents(&format!("[{project}]")), expected);
        let damaged = documents(&format!("[{{\"uuid\":\"p\",\"docs\":[7]}},{project}]"));
        assert!(damaged[0].starts_with("error: ") && damaged[1..] == expected, "{damaged:?}");
    }

    #[test]
    fn memories_of_claude_are_documents() {
        let text = r#"[{"conversations_memory":"Likes boats.","project_memories":{"p1":"The pier.","p2":null},"account_uuid":"a"}]"#;
        let expected = [
            "claude/memory | Claude: memory | Likes boats.",
            "claude/memory/p1 | Claude: memory of the project p1 | The pier.",
        ];
        assert_eq!(documents(text), expected);
    }

    #[test]
    fn the_newest_custom_instructions_of_chatgpt_are_a_document() {
        let conversation = |at: u32, text: &str| {
            let content = format!(
                r#"{{"content_type":"user_editable_context","user_profile":"I am {text}.","user_instructions":"Be kind."}}"#
            );
            format!(
                r#"{{"title":"t","mapping":{{"a":{{"message":null}},"b":{{"message":{{"create_time":{at},"content":{content}}}}}}}}}"#
            )
        };
        let text = format!("[{},{},{}]", conversation(2, "old"), conversation(3, "new"), conversation(1, "oldest"));
        let expected = ["chatgpt/instructions | ChatGPT: custom instructions | I am new.\n\nBe kind."];
        assert_eq!(documents(&text), expected);
        assert_eq!(documents(r#"{"messages":[{"role":"user","content":"user_editable_context docs"}]}"#), [""; 0]);
    }
}
