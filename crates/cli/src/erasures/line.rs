//! Encodes and decodes the lines of the ledger.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::Timestamp;

use super::key::Key;

pub(super) const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    #[serde(rename = "threadkeep_erasures")]
    Header { version: u32 },
    /// An erasure that is about to be carried out.
    Erased(Entry),
    /// The entries with this id are void, because the store rejected their erasure.
    Void { id: String },
    /// A crash truncated the previous line, so the erasure that it announces was not carried out.
    #[serde(rename = "torn")]
    Truncated {},
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

/// The erased item. Hashes replace names and ids; in a ledger, their fields are called `name`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Item {
    User {
        #[serde(rename = "name")]
        hash: String,
        shared_messages: bool,
        #[serde(rename = "document_version")]
        record_version: u64,
    },
    Thread {
        #[serde(rename = "name")]
        hash: String,
    },
    Message {
        thread: String,
        #[serde(rename = "name")]
        hash: String,
        change: u64,
    },
    #[serde(rename = "document")]
    Record {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
        #[serde(rename = "name")]
        hash: String,
        version: u64,
    },
}

/// A line with its checksum, for encoding.
#[derive(Serialize)]
struct EncodedLine<'a> {
    line: &'a RawValue,
    check: &'a str,
}

/// A line with its checksum, which has not been verified yet.
#[derive(Deserialize)]
struct UnverifiedLine<'a> {
    #[serde(borrow)]
    line: &'a RawValue,
    check: &'a str,
}

/// The reason why a line is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    Damaged,
    LaterVersion,
}

impl Line {
    /// Encodes the line with a newline at the end and a keyed checksum that detects damage.
    pub(super) fn encode(&self, key: &Key) -> serde_json::Result<String> {
        let line = serde_json::value::to_raw_value(self)?;
        let check = key.hash(&["line", line.get()]);
        let text = serde_json::to_string(&EncodedLine { line: &line, check: &check[..16] })?;
        Ok(text + "\n")
    }

    /// Decodes a line without its newline.
    ///
    /// # Errors
    /// The line is damaged, or a later version wrote it.
    pub(super) fn decode(text: &str, key: &Key) -> Result<Self, Unusable> {
        let UnverifiedLine { line, check } = serde_json::from_str(text).map_err(|_| Unusable::Damaged)?;
        if key.hash(&["line", line.get()])[..16] != *check {
            return Err(Unusable::Damaged);
        }
        match serde_json::from_str(line.get()) {
            Ok(Self::Header { version }) if version > VERSION => Err(Unusable::LaterVersion),
            Ok(line) => Ok(line),
            // The checksum is valid, so the line is not damaged: its kind was added by a later version.
            Err(_) => Err(Unusable::LaterVersion),
        }
    }
}
