//! What a line of the ledger holds.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::Timestamp;

use super::key::Key;

pub(super) const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    ThreadkeepErasures { version: u32 },
    /// Something is about to be erased.
    Erased(Entry),
    /// The entries with this id are void: the store refused the erasure.
    Void { id: String },
    /// The line before this one was cut by a crash, and its erasure never carried out.
    Torn {},
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Shared by the entries of one erasure.
    pub(super) id: String,
    pub(super) at: Timestamp,
    /// The hash of the store's location.
    pub(super) store: String,
    pub(super) item: Item,
}

/// What was erased. Names are hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Item {
    User {
        name: String,
        shared_messages: bool,
        document_version: u64,
    },
    Thread {
        name: String,
    },
    Message {
        thread: String,
        name: String,
        change: u64,
    },
    Document {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
        name: String,
        version: u64,
    },
}

#[derive(Serialize)]
struct Written<'a> {
    line: &'a RawValue,
    check: &'a str,
}

#[derive(Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    line: &'a RawValue,
    check: &'a str,
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    Damaged,
    LaterVersion,
}

impl Line {
    /// The line with its end. A checksum made with the key tells when a byte of it changes.
    pub(super) fn written(&self, key: &Key) -> serde_json::Result<String> {
        let line = serde_json::value::to_raw_value(self)?;
        let check = key.hash(&["line", line.get()]);
        let text = serde_json::to_string(&Written { line: &line, check: &check[..16] })?;
        Ok(text + "\n")
    }

    /// Reads a line without its end.
    pub(super) fn read(text: &str, key: &Key) -> Result<Self, Unusable> {
        let Read { line, check } = serde_json::from_str(text).map_err(|_| Unusable::Damaged)?;
        if key.hash(&["line", line.get()])[..16] != *check {
            return Err(Unusable::Damaged);
        }
        match serde_json::from_str(line.get()) {
            Ok(Self::ThreadkeepErasures { version }) if version > VERSION => Err(Unusable::LaterVersion),
            Ok(line) => Ok(line),
            // Somebody with the key wrote it.
            Err(_) => Err(Unusable::LaterVersion),
        }
    }
}
