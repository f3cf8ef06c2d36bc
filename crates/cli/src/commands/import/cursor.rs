//! Reads the conversations of Cursor: the database `state.vscdb` in its folder `User/globalStorage`.
//!
//! Cursor does not document the format, and no package registry offers the program. This reader follows the descriptions published
//! by projects that read these databases: `docs/cursor/storage-reference.md` in the repository `michaeldhood/chatrxiv` and
//! `docs/vscdbRelation.md` in `pppp606/cursor-efficiency`. The fixture was written by hand from these descriptions.
//!
//! The table `cursorDiskKV` has the key `composerData:ID` for each conversation, with the order of its messages
//! (`fullConversationHeadersOnly`), and `bubbleId:ID:MESSAGE` for each message. Earlier versions keep the messages in the
//! conversation itself (`conversation`). The database is opened for reading only, so Cursor can be running.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::Value;
use threadkeep::core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep::{Content, JsonText, Map, Part, Role, ThreadKey, Timestamp};

use super::tfl_sqlite::RowResult;

/// The name of the format.
pub(super) const NAME: &str = "cursor";
/// The maximum size of a value that is read.
const VALUE_BYTES: i64 = 64 * 1024 * 1024;
/// The maximum number of messages in a conversation.
const MESSAGES: usize = 1_000_000;

/// The conversations of a database, one of them in memory at a time.
pub(super) struct CursorDatabase {
    connection: Connection,
    /// The keys of the conversations that have not been read yet.
    keys: VecDeque<String>,
    /// The items of the current conversation that have been read but not returned yet.
    pending: VecDeque<RowResult>,
}

impl CursorDatabase {
    /// Whether a database was written by Cursor.
    pub(super) fn is_cursor_database(path: &Path) -> bool {
        let find = || {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'cursorDiskKV'";
            connection.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        find().is_ok_and(|count| count > 0)
    }

    /// Opens a database for reading.
    ///
    /// # Errors
    /// The file is not a database of Cursor.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // A range condition uses the index on the key. In ASCII, ';' follows ':'.
        let sql = "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY rowid";
        let mut statement =
            connection.prepare(sql).context("the file has no table `cursorDiskKV` in Cursor's format")?;
        let keys = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        Ok(Self { connection, keys, pending: VecDeque::new() })
    }

    /// Reads a value; `None` if it is missing, null or too large.
    fn value(&self, key: &str) -> Result<Option<Value>> {
        let sql = "SELECT CAST(value AS TEXT) FROM cursorDiskKV WHERE key = ?1 AND length(value) <= ?2";
        let text: Option<Option<String>> =
            self.connection.query_row(sql, (key, VALUE_BYTES), |row| row.get(0)).optional()?;
        Ok(match text.flatten() {
            Some(text) => Some(serde_json::from_str(&text).context("not JSON")?),
            None => None,
        })
    }

    fn read_conversation(&mut self, key: &str) -> Result<()> {
        let id = key.strip_prefix("composerData:").unwrap_or(key);
        let Some(data) = self.value(key)? else { return Ok(()) };
        let empty = Vec::new();
        let list = |name: &str| data[name].as_array().filter(|list| !list.is_empty());
        let entries = list("fullConversationHeadersOnly").or_else(|| list("conversation")).unwrap_or(&empty);
        if entries.is_empty() {
            return Ok(());
        }
        let created_at = milliseconds(&data["createdAt"]);
        let mut metadata = Map::new();
        for name in ["unifiedMode", "lastUpdatedAt"] {
            if let Some(value) = data.get(name).filter(|value| value.is_string() || value.is_number()) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        self.pending.push_back(Ok(ImportItem::Thread(Box::new(ImportedThread {
            id: None,
            key: Some(ThreadKey::new(format!("import:{NAME}:{id}"))?),
            title: data["name"].as_str().map(str::trim).filter(|title| !title.is_empty()).map(|title| {
                let end = title.floor_char_boundary(threadkeep::core::limits::TITLE_BYTES);
                title[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
            }),
            metadata,
            state: Map::new(),
            created_at,
            expires_at: None,
        }))));
        for entry in entries.iter().take(MESSAGES) {
            let Some(message) = entry["bubbleId"].as_str().map(str::to_owned) else {
                self.pending.push_back(Err(format!("{key}: a message has no id")));
                continue;
            };
            let bubble = match self.value(&format!("bubbleId:{id}:{message}")) {
                Ok(Some(bubble)) => bubble,
                // Earlier versions store the message in the list itself.
                Ok(None) if entry.get("text").is_some() => entry.clone(),
                Ok(None) => {
                    self.pending.push_back(Err(format!("{key}: message {message} is missing")));
                    continue;
                }
                Err(error) => {
                    self.pending.push_back(Err(format!("{key}: message {message}: {error:#}")));
                    continue;
                }
            };
            match messages(&message, &bubble, created_at) {
                Ok(read) => self.pending.extend(read.into_iter().map(Ok)),
                Err(error) => self.pending.push_back(Err(format!("{key}: message {message}: {error:#}"))),
            }
        }
        Ok(())
    }
}

impl Iterator for CursorDatabase {
    type Item = RowResult;

    fn next(&mut self) -> Option<RowResult> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            let key = self.keys.pop_front()?;
            if let Err(error) = self.read_conversation(&key) {
                self.pending.push_back(Err(format!("{key}: {error:#}")));
            }
        }
    }
}

/// Converts a bubble: its text and reasoning, and the call of a tool with its result.
fn messages(id: &str, bubble: &Value, created_at: Option<Timestamp>) -> Result<Vec<ImportItem>> {
    let at = bubble["createdAt"].as_str().and_then(|text| text.parse().ok()).or(created_at);
    let role = match bubble["type"].as_i64() {
        Some(1) => Role::User,
        Some(2) => Role::Assistant,
        _ => anyhow::bail!("`type` is neither 1 nor 2"),
    };
    let mut content = Content::empty(role);
    let thinking = bubble["thinking"]["text"].as_str().filter(|text| !text.is_empty());
    content.parts.extend(thinking.map(|text| Part::Reasoning(text.to_owned())));
    let text = bubble["text"].as_str().filter(|text| !text.is_empty());
    content.parts.extend(text.map(|text| Part::Text(text.to_owned())));
    let tool = &bubble["toolFormerData"];
    let call_id = tool["toolCallId"].as_str().unwrap_or(id);
    let mut result = None;
    if let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty() && !name.contains(char::is_control)) {
        let arguments = ["rawArgs", "params"].iter().find_map(|member| tool[*member].as_str()).unwrap_or("{}");
        let arguments = match serde_json::from_str::<Value>(arguments) {
            Ok(_) => JsonText::new(arguments.trim())?,
            Err(_) => JsonText::new(Value::from(arguments).to_string())?,
        };
        let call = threadkeep::ToolCall { id: call_id.to_owned(), name: name.to_owned(), arguments };
        content.parts.push(Part::ToolCall(call));
        let output = tool["result"].as_str().filter(|output| !output.is_empty());
        let is_error = matches!(tool["status"].as_str(), Some("error" | "cancelled"));
        result = output.map(|output| threadkeep::ToolResult {
            call_id: call_id.to_owned(),
            output: output.to_owned(),
            is_error,
        });
    }
    let message = |external_id: String, content: Content| -> Result<ImportItem> {
        content.check()?;
        Ok(ImportItem::Message(Box::new(ImportedMessage {
            id: None,
            external_id: Some(external_id),
            created_at: at,
            content,
        })))
    };
    let mut read = Vec::new();
    if !content.parts.is_empty() {
        read.push(message(id.to_owned(), content)?);
    }
    if let Some(result) = result {
        let content = Content { parts: vec![Part::ToolResult(result)], ..Content::empty(Role::Tool) };
        read.push(message(format!("{id}/result"), content)?);
    }
    Ok(read)
}

/// Reads a time in milliseconds since the Unix epoch.
fn milliseconds(value: &Value) -> Option<Timestamp> {
    Timestamp::from_micros(value.as_i64()?.checked_mul(1_000)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(rows: &[(&str, &str)]) -> (tempfile::TempDir, CursorDatabase) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.vscdb");
        let connection = Connection::open(&path).unwrap();
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)", []).unwrap();
        for (key, value) in rows {
            connection.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", (key, value.as_bytes())).unwrap();
        }
        drop(connection);
        assert!(CursorDatabase::is_cursor_database(&path));
        let database = CursorDatabase::open(&path).unwrap();
        (folder, database)
    }

    fn outline(database: CursorDatabase) -> Vec<String> {
        let line = |item: RowResult| match item {
            Ok(ImportItem::Thread(thread)) => format!("{} {}", thread.key.unwrap(), thread.title.unwrap_or_default()),
            Ok(ImportItem::Message(message)) => {
                format!("{} {}: {}", message.external_id.unwrap(), message.content.role, message.content.parts.len())
            }
            Ok(other) => format!("{other:?}"),
            Err(reason) => format!("error: {reason}"),
        };
        database.map(line).collect()
    }

    #[test]
    fn conversations_are_read_in_the_order_of_their_headers() {
        let data = r#"{"name":"Pier","createdAt":1795646100000,"fullConversationHeadersOnly":[{"bubbleId":"b","type":1},{"bubbleId":"a","type":2},{"bubbleId":"gone","type":2}]}"#;
        let tool = r#"{"type":2,"text":"","thinking":{"text":"hm"},"toolFormerData":{"name":"read_file","toolCallId":"t","rawArgs":"{}","result":"nine","status":"completed"}}"#;
        let (_folder, database) = database(&[
            ("composerData:c1", data),
            ("bubbleId:c1:a", tool),
            ("bubbleId:c1:b", r#"{"type":1,"text":"When?"}"#),
            ("composerData:c2", r#"{"conversation":[{"bubbleId":"x","type":1,"text":"old"}]}"#),
            ("composerData:c3", "{}"),
            ("other", "not JSON"),
        ]);
        let expected = [
            "import:cursor:c1 Pier",
            "b user: 1",
            "a assistant: 2",
            "a/result tool: 1",
            "error: composerData:c1: message gone is missing",
            "import:cursor:c2 ",
            "x user: 1",
        ];
        assert_eq!(outline(database), expected);
    }

    const DATA: &str = r#"{"name":"Pier","createdAt":1795646100000,"unifiedMode":"chat","fullConversationHeadersOnly":[{"bubbleId":"a","type":1},{"bubbleId":"b","type":2}]}"#;
    const BUBBLES: [(&str, &str); 2] = [
        ("a", r#"{"type":1,"text":"When?","createdAt":"2026-11-25T22:35:00Z"}"#),
        (
            "b",
            r#"{"type":2,"text":"Nine.","thinking":{"text":"hm"},"toolFormerData":{"name":"read_file","toolCallId":"t","rawArgs":"{}","result":"nine","status":"completed"}}"#,
        ),
    ];

    /// Returns the value with each of its parts replaced by each hostile value.
    fn hostile_forms(value: &Value) -> Vec<Value> {
        let deep = (0..100).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let mut forms: Vec<Value> = [
            "null",
            "-1",
            "1e300",
            "9007199254740993",
            "true",
            "\"\"",
            "\"\\u0000\"",
            "\"\\u202e../<x>\"",
            "[]",
            "[[],7,null,{}]",
            "{}",
            "{\"\":{\"\":\"\"}}",
        ]
        .map(|json| serde_json::from_str(json).unwrap())
        .into();
        forms.extend([deep, Value::from("x".repeat(5 * 1024 * 1024)), Value::from(vec![Value::Null; 10_000])]);
        match value {
            Value::Object(members) => forms.extend(members.iter().flat_map(|(name, member)| {
                hostile_forms(member).into_iter().map(move |form| {
                    let mut members = members.clone();
                    members.insert(name.clone(), form);
                    Value::Object(members)
                })
            })),
            Value::Array(items) => forms.extend(items.iter().enumerate().flat_map(|(index, item)| {
                hostile_forms(item).into_iter().map(move |form| {
                    let mut items = items.clone();
                    items[index] = form;
                    Value::Array(items)
                })
            })),
            _ => {}
        }
        forms
    }

    #[test]
    fn every_value_can_be_hostile() {
        let rows = |data: &str| {
            let bubbles = BUBBLES.map(|(id, bubble)| (format!("bubbleId:c:{id}"), bubble.to_owned()));
            [[("composerData:c".to_owned(), data.to_owned())].to_vec(), bubbles.to_vec()].concat()
        };
        let original = rows(DATA);
        for changed in 0..original.len() {
            for form in hostile_forms(&serde_json::from_str(&original[changed].1).unwrap()) {
                let mut rows = original.clone();
                rows[changed].1 = form.to_string();
                let rows: Vec<_> = rows.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                let (_folder, database) = database(&rows);
                for item in database {
                    match item {
                        Ok(ImportItem::Message(message)) => message.content.check().unwrap(),
                        Ok(_) => {}
                        Err(reason) => assert!(reason.contains(":c"), "the conversation is not named: {reason}"),
                    }
                }
            }
        }
    }

    #[test]
    fn damaged_databases_end_with_errors() {
        let (folder, intact) = database(&[("composerData:c", DATA), ("bubbleId:c:a", BUBBLES[0].1)]);
        drop(intact);
        let path = folder.path().join("state.vscdb");
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let flipped: Vec<u8> =
                bytes.iter().enumerate().map(|(index, byte)| if index == at { !byte } else { *byte }).collect();
            for damaged in [&bytes[..at], &flipped[..]] {
                std::fs::write(&path, damaged).unwrap();
                if let Ok(database) = CursorDatabase::open(&path) {
                    assert!(database.count() < 10, "byte {at}");
                }
            }
        }
    }

    #[test]
    fn invalid_values_are_reported_and_the_rest_is_read() {
        let (_folder, database) = database(&[
            ("composerData:bad", "oops"),
            (
                "composerData:c",
                r#"{"fullConversationHeadersOnly":[7,{"bubbleId":"m"},{"bubbleId":"n"}],"createdAt":1e300}"#,
            ),
            ("bubbleId:c:m", r#"{"type":"x"}"#),
            ("bubbleId:c:n", r#"{"type":1,"text":"words"}"#),
        ]);
        let lines = outline(database);
        assert_eq!(lines.iter().filter(|line| line.starts_with("error")).count(), 3, "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("n user: 1"));
    }
}
