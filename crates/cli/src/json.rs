//! Types for the output of `--json` where the library has no suitable type. docs/cli.md lists the fields.

use serde::Serialize;
use threadkeep::core::CorruptRow;
use threadkeep::{Map, Owner, Thread, ThreadId, ThreadKey, Timestamp};

/// A thread.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadJson {
    id: ThreadId,
    owner: Owner,
    key: Option<ThreadKey>,
    title: Option<String>,
    messages: u64,
    first_seq: u64,
    seq: u64,
    change: u64,
    metadata: Map,
    state: Map,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_message_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
}

impl ThreadJson {
    pub(crate) fn with_last_message_at(self, at: Timestamp) -> Self {
        Self { last_message_at: Some(at), ..self }
    }
}

impl From<Thread> for ThreadJson {
    fn from(thread: Thread) -> Self {
        let Thread { id, owner, key, title, metadata, state, positions, message_count, .. } = thread;
        Self {
            id,
            owner,
            key,
            title,
            messages: message_count,
            first_seq: positions.first_seq,
            seq: positions.seq,
            change: positions.change,
            metadata,
            state,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            last_message_at: None,
            expires_at: thread.expires_at,
        }
    }
}

/// A message that cannot be decoded.
#[derive(Debug, Serialize)]
pub(crate) struct Unreadable {
    seq: u64,
    reason: String,
}

impl From<CorruptRow> for Unreadable {
    fn from(row: CorruptRow) -> Self {
        Self { seq: row.seq, reason: row.detail }
    }
}
