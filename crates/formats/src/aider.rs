//! Reads chat histories of Aider: `.aider.chat.history.md` in the folder of a project.
//!
//! The fixture was written by version 0.86.2 of the PyPI package `aider-chat`.
//!
//! Each session (`# aider chat started at TIME`) becomes a thread. It is identified by its time and the name of the
//! project's folder, because the file contains no ids. The time is that of the machine, without a zone; it is read as
//! UTC, and messages have no times of their own. Lines that start with `####` are the user's, lines that start with `>`
//! the program's (role `system`), all others the model's. If a model quotes text (`> `) or writes a heading of level 4,
//! its answer is split there, because the file does not distinguish these lines. The program's lines at the end of the
//! file are not read until other lines follow, because the program may add to them.

use threadkeep_core::exchange::ImportItem;
use threadkeep_core::{Content, Map, Role, Timestamp};

use crate::conversation::Converted;
use crate::error::Rejection;
use crate::file::FileName;
use crate::records::{Block, Record, START};
use crate::session::{Session, SessionStart};
use crate::{ConversationName, Format, identity};

#[derive(Debug)]
pub(crate) struct Blocks {
    session: Session,
    /// The time of the session that begins with the next message, in its written form.
    started: Option<String>,
    folder: Option<String>,
    created_at: Option<Timestamp>,
    /// The number of blocks since the session began.
    position: u64,
}

impl Blocks {
    pub(crate) fn new(file: FileName) -> Self {
        let session = Session::new(Format::Aider);
        Self { session, started: None, folder: file.folder, created_at: None, position: 0 }
    }

    pub(crate) fn name(&self) -> ConversationName {
        self.session.name()
    }

    pub(crate) fn convert(&mut self, record: &Record) -> Result<Converted, Rejection> {
        let kind = Block::of(&record.text);
        if kind == Block::Start {
            let started = record.text[START.len()..].trim().to_owned();
            self.created_at = instant(&started);
            (self.started, self.position) = (Some(started), 0);
            return Ok(Converted::default());
        }
        let (role, text) = match kind {
            Block::User => (Role::User, without_marks(&record.text, "####")),
            Block::Tool => (Role::System, without_marks(&record.text, ">")),
            Block::Start | Block::Model => (Role::Assistant, record.text.trim().to_owned()),
        };
        if text.is_empty() {
            return Ok(Converted::default());
        }
        let content = Content::text(role, &text);
        let thread = self.begin(record)?;
        let external_id = identity::message_id_by_content(self.position as usize, &content);
        self.position += 1;
        let message = self.session.message(record, external_id, self.created_at, content)?;
        Ok(Converted { items: thread.into_iter().chain(message).collect(), ..Converted::default() })
    }

    /// Begins the session with its first message.
    fn begin(&mut self, record: &Record) -> Result<Option<ImportItem>, Rejection> {
        let started = match self.started.take() {
            Some(started) => started,
            None if self.session.id().is_some() => return Ok(None),
            None => return Err(Rejection::new("no session header precedes the message")),
        };
        let id = format!("{started}:{}", self.folder.as_deref().unwrap_or_default());
        let metadata = self.folder.iter().map(|folder| ("project".to_owned(), folder.clone().into()));
        let metadata = metadata.collect::<Map>();
        let start = SessionStart { title: None, metadata, created_at: self.created_at };
        self.session.begin(record, Some(&id), start)
    }
}

/// Removes the mark at the start of each line, and the white space that the program appends.
fn without_marks(text: &str, mark: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_end();
        let line = line.strip_prefix(mark).unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line)
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Reads `YYYY-MM-DD HH:MM:SS`.
fn instant(started: &str) -> Option<Timestamp> {
    format!("{}Z", started.replacen(' ', "T", 1)).parse().ok()
}
