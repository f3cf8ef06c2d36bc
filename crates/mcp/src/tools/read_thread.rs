//! Reads a thread in pages. A cursor is the position of a message, optionally with an offset in its text, at which a page of a long
//! message continues: `12` or `12+32000`.

use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::{MessageQuery, OnCorrupt};

use super::{MessageResult, NOTICE, insert, invalid_cursor, limit, message_text};
use crate::message_name::{MessageName, get_thread};
use crate::{ToolFailure, Toolbox};

/// The maximum size of all texts of one page, in bytes.
const PAGE_BYTES: usize = 32_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    thread: String,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// The start of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    seq: u64,
    offset: usize,
}

impl Start {
    fn parse(cursor: &str) -> Result<Self, ToolFailure> {
        let (seq, offset) = cursor.split_once('+').unwrap_or((cursor, "0"));
        let seq = seq.parse().ok().filter(|seq| (1..=threadkeep::core::limits::LAST_POSITION).contains(seq));
        match (seq, offset.parse()) {
            (Some(seq), Ok(offset)) => Ok(Self { seq, offset }),
            _ => Err(invalid_cursor()),
        }
    }

    fn cursor(self) -> String {
        if self.offset == 0 { self.seq.to_string() } else { format!("{}+{}", self.seq, self.offset) }
    }
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    let limit = limit(arguments.limit, 20, 100)?;
    let message_name = MessageName::find(&arguments.thread);
    let name = message_name.map_or_else(|| arguments.thread.clone(), |message_name| message_name.thread.to_string());
    let thread = get_thread(memory, scope, &name).await?;
    let first_seq = thread.positions.first_seq;
    let start = match (&arguments.cursor, message_name) {
        (Some(cursor), _) => Start::parse(cursor)?,
        (None, Some(message_name)) => Start { seq: message_name.seq.saturating_sub(limit as u64 / 2), offset: 0 },
        (None, None) => Start { seq: first_seq, offset: 0 },
    };
    let start = if start.seq < first_seq { Start { seq: first_seq, offset: 0 } } else { start };
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(start.seq - 1, limit) };
    let page = memory.messages(scope, thread.id, &query).await?;
    let (mut messages, mut next, mut remaining) = (Vec::new(), None, PAGE_BYTES);
    for message in &page.messages {
        let text = message_text(message);
        let from = if message.seq == start.seq { text.floor_char_boundary(start.offset) } else { 0 };
        let end = text.floor_char_boundary(from + remaining);
        let is_cut = end < text.len();
        if is_cut && !messages.is_empty() {
            // The next page begins with this message.
            next = Some(Start { seq: message.seq, offset: 0 });
            break;
        }
        remaining = remaining.saturating_sub(end - from);
        let result = MessageResult::new(thread.id, message, text[from..end].to_owned());
        messages.push(MessageResult { cut: is_cut, ..result });
        next = if is_cut {
            Some(Start { seq: message.seq, offset: end })
        } else {
            page.more.then_some(Start { seq: message.seq + 1, offset: 0 })
        };
        if is_cut {
            break;
        }
    }
    let previous = (start.seq > first_seq).then(|| start.seq.saturating_sub(limit as u64).max(first_seq).to_string());
    let mut result = json!({ "notice": NOTICE, "thread": thread.id, "messages": messages });
    insert(&mut result, "title", thread.title);
    insert(&mut result, "next_cursor", next.map(Start::cursor));
    insert(&mut result, "previous_cursor", previous);
    let unreadable: Vec<u64> = page.corrupt.iter().map(|row| row.seq).collect();
    insert(&mut result, "unreadable", (!unreadable.is_empty()).then_some(unreadable));
    Ok(result)
}
