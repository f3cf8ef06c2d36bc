//! Reads the database of the TFL assistant: `chatHistory.sqlite`, with the tables `threads` and `messages`.
//!
//! A thread's id becomes part of its key. Messages keep their ids, roles, times, agents and data. A row that cannot be read
//! is reported by its number and skipped; data that is not JSON is reported, and its message is imported without it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OpenFlags, Row};
use threadkeep::core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep::{Content, JsonText, Map, Role, ThreadKey, Timestamp, Value};

/// The name of the format.
pub(super) const NAME: &str = "tfl-sqlite";
/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Converts `created_at` to milliseconds since the Unix epoch; null if SQLite cannot parse it as a time.
const MILLISECONDS: &str = "CAST(ROUND((julianday(created_at) - 2440587.5) * 86400000.0) AS INTEGER)";

/// An item, or the reason why a row is skipped.
pub(super) type RowResult = std::result::Result<ImportItem, String>;

/// Whether a file is a SQLite database.
pub(super) fn is_database(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == MAGIC
}

/// The conversations of a database, one thread in memory at a time.
pub(super) struct TflDatabase {
    connection: Connection,
    /// The row numbers of the threads that have not been read yet.
    threads: VecDeque<i64>,
    /// The items of the current thread that have been read but not returned yet.
    pending: VecDeque<RowResult>,
}

impl TflDatabase {
    /// Opens a database for reading.
    ///
    /// # Errors
    /// The file is not a database of the TFL assistant.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let threads = rows(&connection, "SELECT rowid FROM threads ORDER BY created_at, rowid", [], |row| row.get(0));
        let threads = threads.context("the file has no table `threads` in the format of the TFL assistant")?;
        let columns = "SELECT id, thread_id, role, content, agent_type, tfl_data, created_at FROM messages LIMIT 0";
        connection.prepare(columns).context("the file has no table `messages` in the format of the TFL assistant")?;
        let orphans =
            "SELECT rowid, thread_id FROM messages WHERE thread_id NOT IN (SELECT id FROM threads) ORDER BY rowid";
        let orphans =
            rows(&connection, orphans, [], |row| Ok((row.get::<_, i64>(0)?, text(row, 1).unwrap_or_default())))?;
        let pending =
            orphans.into_iter().map(|(row, thread)| Err(format!("messages, row {row}: there is no thread {thread}")));
        let pending = pending.collect();
        Ok(Self { connection, threads: threads.into(), pending })
    }

    /// Reads a thread with its messages.
    fn read_thread(&mut self, row: i64) -> Result<()> {
        let sql = format!("SELECT id, metadata, {MILLISECONDS} FROM threads WHERE rowid = ?1");
        let (id, metadata, created_at) = self
            .connection
            .query_row(&sql, [row], |row| Ok((text(row, 0), text(row, 1), row.get::<_, Option<i64>>(2)?)))?;
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            self.pending.push_back(Err(format!("threads, row {row}: `id` is not text")));
            return Ok(());
        };
        let key = match ThreadKey::new(format!("import:{NAME}:{id}")) {
            Ok(key) => key,
            Err(error) => {
                self.pending.push_back(Err(format!("threads, row {row}: {error}")));
                return Ok(());
            }
        };
        let metadata = match metadata.as_deref().filter(|text| !text.is_empty()).map(serde_json::from_str::<Map>) {
            None => Map::new(),
            Some(Ok(metadata)) => metadata,
            Some(Err(_)) => {
                self.pending.push_back(Err(format!(
                    "threads, row {row}: `metadata` is not a JSON object; imported without it"
                )));
                Map::new()
            }
        };
        self.pending.push_back(Ok(ImportItem::Thread(Box::new(ImportedThread {
            id: None,
            key: Some(key),
            title: None,
            metadata,
            state: Map::new(),
            created_at: created_at.and_then(|millis| Timestamp::from_millis(millis).ok()),
            expires_at: None,
        }))));
        let sql = format!(
            "SELECT rowid, id, role, content, agent_type, tfl_data, {MILLISECONDS} FROM messages WHERE thread_id = ?1 \
             ORDER BY created_at, rowid"
        );
        let messages = rows(&self.connection, &sql, [&id], |row| Ok(message(row)))?;
        self.pending.extend(messages.into_iter().flatten());
        Ok(())
    }
}

impl Iterator for TflDatabase {
    type Item = RowResult;

    fn next(&mut self) -> Option<RowResult> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            let row = self.threads.pop_front()?;
            if let Err(error) = self.read_thread(row) {
                return Some(Err(format!("threads, row {row}: {error:#}")));
            }
        }
    }
}

fn rows<T, P: rusqlite::Params>(
    connection: &Connection,
    sql: &str,
    parameters: P,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare(sql)?;
    let found = statement.query_map(parameters, read)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Returns the text in a column; `None` if the value has another type.
fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get::<_, SqlValue>(column) {
        Ok(SqlValue::Text(text)) => Some(text),
        _ => None,
    }
}

/// Reads a message. If its data is invalid, that problem precedes the message in the result.
fn message(row: &Row<'_>) -> Vec<RowResult> {
    let number = row.get::<_, i64>(0).unwrap_or_default();
    let id = text(row, 1).filter(|id| !id.is_empty());
    let name =
        id.as_ref().map_or_else(|| format!("messages, row {number}"), |id| format!("messages, row {number} ({id})"));
    let skipped = |reason: String| vec![Err(format!("{name}: {reason}"))];
    let role = match text(row, 2).as_deref() {
        Some("human") => Role::User,
        Some("assistant") => Role::Assistant,
        other => return skipped(format!("`role` is {}, not human or assistant", other.unwrap_or("not a text"))),
    };
    let Some(text_of_message) = text(row, 3) else { return skipped("`content` is not text".to_owned()) };
    let mut content = Content::text(role, text_of_message);
    content.agent = text(row, 4).filter(|agent| !agent.is_empty());
    let mut read = Vec::new();
    if let Some(data) = text(row, 5).filter(|data| !data.is_empty()) {
        let checked = serde_json::from_str::<Value>(&data).ok().and_then(|_| JsonText::new(data).ok());
        if checked.is_none() {
            read.push(Err(format!("{name}: `tfl_data` is not JSON; imported without it")));
        }
        content.data = checked;
    }
    if let Err(error) = content.check() {
        return skipped(error.to_string());
    }
    let millis = row.get::<_, Option<i64>>(6).ok().flatten();
    read.push(Ok(ImportItem::Message(Box::new(ImportedMessage {
        id: None,
        external_id: Some(id.unwrap_or_else(|| format!("row:{number}"))),
        created_at: millis.and_then(|millis| Timestamp::from_millis(millis).ok()),
        content,
    }))));
    read
}
