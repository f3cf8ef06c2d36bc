//! The limits of all stores. They are the same everywhere, so that data can move between stores. Constants are maximum values unless
//! their docs say otherwise.
//!
//! Names are short because stores index them. Text is limited per message and per commit, so that no call occupies a store for
//! long.

use crate::{Map, Positions, Result, StoreError};

/// How long idempotency records, ids of deleted threads and change logs are retained, in milliseconds: 7 days.
pub const IDEMPOTENCY_WINDOW_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Bytes of a tenant, user, author, agent, tool or namespace name.
pub const NAME_BYTES: usize = 200;
/// Bytes of a thread key, external id, record key or idempotency key.
pub const KEY_BYTES: usize = 500;
/// Bytes of a thread's title.
pub const TITLE_BYTES: usize = 2_000;
/// Bytes of one message's encoded content.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Total bytes of content in one commit.
pub const COMMIT_BYTES: usize = 16 * 1024 * 1024;
/// Messages appended by one commit.
pub const COMMIT_MESSAGES: usize = 1_000;
/// Messages replaced by one commit. Also the limit for messages erased by one commit.
pub const COMMIT_EDITS: usize = 1_000;
/// Records written, deleted and required by one commit, together.
pub const COMMIT_RECORDS: usize = 100;
/// Records and lists of records that one call reads with a thread.
pub const READ_RECORDS: usize = 100;
/// Bytes of one record's value.
pub const RECORD_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of metadata, state or the fields of a source, as JSON.
pub const MAP_BYTES: usize = 256 * 1024;
/// Parts of one message.
pub const PARTS: usize = 1_000;
/// Sources of one message.
pub const SOURCES: usize = 1_000;
/// Dimensions of an embedding.
pub const DIMENSIONS: usize = 8_192;
/// Levels of arrays and objects in a JSON value.
pub const JSON_DEPTH: usize = 64;
/// Entries in one page of any list.
pub const PAGE: usize = 1_000;
/// Stored bytes after which a page of messages ends early.
pub const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// The highest position of a message or a change in a thread. It and its successor fit into 32 bits.
pub const LAST_POSITION: u64 = u32::MAX as u64 - 1;

pub(crate) fn check_count(limit: &'static str, actual: usize, max: usize) -> Result<()> {
    if actual <= max {
        return Ok(());
    }
    Err(StoreError::LimitExceeded { limit, max: max as u64, actual: actual as u64 })
}

/// Checks a size in bytes against a limit.
///
/// # Errors
/// `LimitExceeded`, naming `limit`, if `actual` exceeds `max`.
pub fn check_at_most(limit: &'static str, actual: usize, max: usize) -> Result<()> {
    check_count(limit, actual, max)
}

/// Checks the requested number of entries per page.
///
/// # Errors
/// `Invalid` for 0, `LimitExceeded` for more than [`PAGE`].
pub fn check_page(limit: usize) -> Result<()> {
    if limit == 0 {
        return Err(StoreError::invalid("limit", "must be at least 1"));
    }
    check_count("limit", limit, PAGE)
}

/// Checks that no position exceeds [`LAST_POSITION`].
///
/// # Errors
/// `LimitExceeded` if a position is higher.
pub fn check_positions(positions: Positions) -> Result<()> {
    let actual = positions.seq.max(positions.change);
    if actual <= LAST_POSITION {
        return Ok(());
    }
    Err(StoreError::LimitExceeded { limit: "positions of a thread", max: LAST_POSITION, actual })
}

pub(crate) fn check_name(field: &'static str, name: &str) -> Result<()> {
    check_plain_text(field, name, NAME_BYTES)
}

pub(crate) fn check_key(field: &'static str, key: &str) -> Result<()> {
    check_plain_text(field, key, KEY_BYTES)
}

fn check_plain_text(field: &'static str, text: &str, max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(StoreError::invalid(field, "empty"));
    }
    check_count(field, text.len(), max)?;
    if text.chars().any(char::is_control) {
        return Err(StoreError::invalid(field, "contains a control character"));
    }
    Ok(())
}

pub(crate) fn check_title(title: &str) -> Result<()> {
    check_count("title", title.len(), TITLE_BYTES)?;
    check_text("title", title)
}

/// Rejects NUL, which PostgreSQL cannot store in text, and text that exceeds the size of a message.
pub(crate) fn check_text(field: &'static str, text: &str) -> Result<()> {
    if text.as_bytes().contains(&0) {
        return Err(StoreError::invalid(field, "contains a NUL character"));
    }
    check_count(field, text.len(), MESSAGE_BYTES)
}

pub(crate) fn check_number(field: &'static str, number: f64) -> Result<()> {
    if number.is_finite() { Ok(()) } else { Err(StoreError::invalid(field, "not a finite number")) }
}

pub(crate) fn check_map(field: &'static str, map: &Map) -> Result<()> {
    if map.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string(map).map_err(|error| StoreError::invalid(field, error.to_string()))?;
    check_count(field, text.len(), MAP_BYTES)?;
    check_json_depth(&text)?;
    if contains_nul(&text) {
        return Err(StoreError::invalid(field, "contains a NUL character"));
    }
    Ok(())
}

/// Whether a JSON text contains an escaped NUL character: `\u0000`, but not `\\u0000`, in which only the backslash is escaped.
fn contains_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(index, _)| {
        let backslashes = json.as_bytes()[..index].iter().rev().take_while(|byte| **byte == b'\\').count();
        backslashes % 2 == 0
    })
}

/// Checks that the text, if it is JSON, nests no deeper than [`JSON_DEPTH`].
///
/// # Errors
/// `LimitExceeded`, with the limit plus 1 as the actual depth.
pub fn check_json_depth(json: &str) -> Result<()> {
    // Few texts have more brackets than this, and counting brackets is faster than tracking the depth.
    if json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= JSON_DEPTH {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                check_count("JSON nesting depth", depth, JSON_DEPTH)?;
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}
