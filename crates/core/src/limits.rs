//! The bounds that every store keeps alike, so that what one takes another can take too.
//!
//! Names are short (they are keys of an index somewhere); texts are bounded per message and per commit, so that one call
//! never holds a store for long.

use crate::{Map, Positions, Result, StoreError};

/// How long a commit's idempotency record, a deleted thread's id and a thread's change log are kept: 7 days.
pub const IDEMPOTENCY_WINDOW_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Bytes of a tenant's, user's, author's, agent's, tool's or namespace's name.
pub const NAME_BYTES: usize = 200;
/// Bytes of a thread key, external id, record key or idempotency key.
pub const KEY_BYTES: usize = 500;
/// Bytes of a thread's title.
pub const TITLE_BYTES: usize = 2_000;
/// Bytes of one message's encoded content.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of all content of one commit.
pub const COMMIT_BYTES: usize = 16 * 1024 * 1024;
/// Messages appended by one commit.
pub const COMMIT_MESSAGES: usize = 1_000;
/// Messages replaced by one commit, and erased by one commit.
pub const COMMIT_EDITS: usize = 1_000;
/// Records written, deleted and required by one commit.
pub const COMMIT_RECORDS: usize = 100;
/// Records and lists of records that are read with a thread.
pub const READ_RECORDS: usize = 100;
/// Bytes of one record.
pub const RECORD_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of metadata, state or source fields, as JSON.
pub const MAP_BYTES: usize = 256 * 1024;
/// Parts of one message.
pub const PARTS: usize = 1_000;
/// Sources of one message.
pub const SOURCES: usize = 1_000;
/// Numbers of an embedding.
pub const DIMENSIONS: usize = 8_192;
/// Levels of arrays and objects in a JSON value.
pub const JSON_DEPTH: usize = 64;
/// Entries of one page of any list.
pub const PAGE: usize = 1_000;
/// Stored bytes after which a page of messages ends early, with more to follow.
pub const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// The last position that a thread gives, to a message or to a commit: it fits 32 bits, and so does the one after it.
pub const LAST_POSITION: u64 = u32::MAX as u64 - 1;

pub(crate) fn check_count(limit: &'static str, actual: usize, max: usize) -> Result<()> {
    if actual <= max {
        return Ok(());
    }
    Err(StoreError::LimitExceeded { limit, max: max as u64, actual: actual as u64 })
}

/// Holds a size against a limit.
///
/// # Errors
/// `LimitExceeded` with the limit named.
pub fn check_bytes(limit: &'static str, actual: usize, max: usize) -> Result<()> {
    check_count(limit, actual, max)
}

/// Checks how many entries a page is to have.
///
/// # Errors
/// `Invalid` for 0, `LimitExceeded` over [`PAGE`].
pub fn check_page(limit: usize) -> Result<()> {
    if limit == 0 {
        return Err(StoreError::invalid("limit", "0; ask for at least 1"));
    }
    check_count("limit", limit, PAGE)
}

/// Checks that a thread's positions do not go beyond [`LAST_POSITION`].
///
/// # Errors
/// `LimitExceeded` with the one that goes furthest.
pub fn check_positions(positions: Positions) -> Result<()> {
    let actual = positions.seq.max(positions.change);
    if actual <= LAST_POSITION {
        return Ok(());
    }
    Err(StoreError::LimitExceeded { limit: "positions of a thread", max: LAST_POSITION, actual })
}

pub(crate) fn check_name(field: &'static str, name: &str) -> Result<()> {
    check_words(field, name, NAME_BYTES)
}

pub(crate) fn check_key(field: &'static str, key: &str) -> Result<()> {
    check_words(field, key, KEY_BYTES)
}

fn check_words(field: &'static str, text: &str, max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(StoreError::invalid(field, "empty"));
    }
    check_count(field, text.len(), max)?;
    if text.chars().any(char::is_control) {
        return Err(StoreError::invalid(field, "holds a control character"));
    }
    Ok(())
}

pub(crate) fn check_title(title: &str) -> Result<()> {
    check_count("title", title.len(), TITLE_BYTES)?;
    check_text("title", title)
}

/// Refuses NUL, which PostgreSQL cannot keep in text.
pub(crate) fn check_text(field: &'static str, text: &str) -> Result<()> {
    if text.as_bytes().contains(&0) {
        return Err(StoreError::invalid(field, "holds a NUL character"));
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
    if holds_nul(&text) {
        return Err(StoreError::invalid(field, "holds a NUL character"));
    }
    Ok(())
}

/// Whether a JSON text escapes a NUL character (an escaped backslash before `u0000` is none).
fn holds_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let backslashes = json.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        backslashes % 2 == 0
    })
}

/// Checks that a text that claims to be JSON nests no deeper than [`JSON_DEPTH`].
///
/// # Errors
/// `LimitExceeded` with the first depth beyond.
pub fn check_json_depth(json: &str) -> Result<()> {
    // Few texts open that many at all, and to count is quicker than to follow.
    if json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= JSON_DEPTH {
        return Ok(());
    }
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                check_count("json nesting", depth, JSON_DEPTH)?;
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}
