//! Converts rows into the types of `threadkeep_core`, and positions in threads into table keys.

use rusqlite::{Row, types::ValueRef};
use threadkeep_core::{
    ChangeTag, Checksum, Content, CorruptRow, Message, MessageId, Owner, Positions, StoreError, Thread, ThreadId,
    ThreadKey, Timestamp, codec,
};
use uuid::Uuid;

use crate::error::Result;

/// Returns the table key of a position in a thread. Columns named `position` contain such keys.
pub(crate) const fn key(thread_no: i64, position: u64) -> i64 {
    (thread_no << 32) | position as i64
}

/// Returns the largest possible key of a thread.
pub(crate) const fn last_key(thread_no: i64) -> i64 {
    (thread_no << 32) | 0xffff_ffff
}

/// Returns the position in a key.
pub(crate) const fn position_of_key(key: i64) -> u64 {
    low_half(key)
}

const fn low_half(number: i64) -> u64 {
    (number & 0xffff_ffff) as u64
}

/// Returns the thread number in a key.
pub(crate) const fn thread_no_of_key(key: i64) -> i64 {
    key >> 32
}

pub(crate) fn timestamp(micros: i64) -> Result<Timestamp> {
    Timestamp::from_micros(micros)
        .map_err(|_| StoreError::corrupt("instant", format!("outside the range of timestamps: {micros} µs")).into())
}

pub(crate) fn uuid(row: &Row<'_>, column: usize) -> Result<Uuid> {
    let blob = row.get_ref(column)?.as_blob().map_err(|_| StoreError::corrupt("id", "not a blob"))?;
    Uuid::from_slice(blob).map_err(|_| StoreError::corrupt("id", "not 16 bytes").into())
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number)
        .map_err(|_| StoreError::corrupt("number", format!("column {column} is negative: {number}")).into())
}

/// Encodes a thread's change number and its tag as one number: `tag << 32 | change`.
pub(crate) fn stored_change(positions: Positions) -> i64 {
    let tag = positions.tag.map_or(0, ChangeTag::to_stored);
    i64::from(tag) << 32 | positions.change as i64
}

/// Returns the change number in a value of [`stored_change`].
pub(crate) const fn change_number(stored_change: i64) -> u64 {
    low_half(stored_change)
}

/// Reads a thread's positions from three consecutive columns: `seq`, `change` and `first_seq`.
pub(crate) fn positions(row: &Row<'_>, first_column: usize) -> Result<Positions> {
    let change: i64 = row.get(first_column + 1)?;
    // The upper half is a signed 32-bit number.
    let tag = (change >> 32) as i32;
    Ok(Positions {
        seq: unsigned(row, first_column)?,
        change: change_number(change),
        first_seq: unsigned(row, first_column + 2)?,
        tag: (tag != 0).then(|| ChangeTag::from_stored(tag)),
    })
}

pub(crate) fn tag(row: &Row<'_>, column: usize) -> Result<Option<ChangeTag>> {
    Ok(row.get::<_, Option<i32>>(column)?.map(ChangeTag::from_stored))
}

/// The fields of a thread that every operation reads first, without title, metadata and state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRow {
    pub(crate) number: i64,
    pub(crate) owner_no: i64,
    pub(crate) tenant_no: i64,
    pub(crate) positions: Positions,
    /// The number of the last change that is no longer in the change log; 0 if the log is complete.
    pub(crate) log_from: u64,
    pub(crate) message_count: u64,
}

/// The columns that [`thread_row`] reads, in order.
macro_rules! thread_columns {
    () => {
        "no, owner_no, tenant_no, seq, change, first_seq, log_from, message_count"
    };
}
pub(crate) use thread_columns;

pub(crate) fn thread_row(row: &Row<'_>) -> Result<ThreadRow> {
    Ok(ThreadRow {
        number: row.get(0)?,
        owner_no: row.get(1)?,
        tenant_no: row.get(2)?,
        positions: positions(row, 3)?,
        log_from: unsigned(row, 6)?,
        message_count: unsigned(row, 7)?,
    })
}

/// The columns that [`thread`] reads, in order, for a join of threads `t` with owners `o`.
macro_rules! full_thread_columns {
    () => {
        "t.id, o.user, t.key, t.body, t.seq, t.change, t.first_seq, t.message_count, t.created_at, t.updated_at, \
         t.expires_at"
    };
}
pub(crate) use full_thread_columns;

pub(crate) fn thread(row: &Row<'_>) -> Result<Thread> {
    let body = codec::decode_thread(text(row, 3)?)?;
    let key: Option<String> = row.get(2)?;
    let expires_at: Option<i64> = row.get(10)?;
    let owner: Owner = crate::owners::parse_owner(row.get(1)?)?;
    Ok(Thread {
        id: ThreadId(uuid(row, 0)?),
        owner,
        key: key.map(ThreadKey::new).transpose()?,
        title: body.title,
        metadata: body.metadata,
        state: body.state,
        positions: positions(row, 4)?,
        message_count: unsigned(row, 7)?,
        created_at: timestamp(row.get(8)?)?,
        updated_at: timestamp(row.get(9)?)?,
        expires_at: expires_at.map(timestamp).transpose()?,
    })
}

/// The columns that [`message`] reads, in order.
macro_rules! message_columns {
    () => {
        "position, id, external_id, revision, created_at, body"
    };
}
pub(crate) use message_columns;

/// Reads a message. A message that cannot be decoded is returned as a [`CorruptRow`], so that the caller can continue.
pub(crate) fn message(row: &Row<'_>) -> Result<Message, CorruptRow> {
    let seq = row.get(0).map_or(0, position_of_key);
    decode_message(row, seq).map_err(|error| CorruptRow { seq, detail: StoreError::from(error).to_string() })
}

fn decode_message(row: &Row<'_>, seq: u64) -> Result<Message> {
    let content: Content = codec::decode_content(text(row, 5)?)?;
    Ok(Message {
        seq,
        id: MessageId(uuid(row, 1)?),
        external_id: row.get(2)?,
        revision: row.get(3)?,
        created_at: timestamp(row.get(4)?)?,
        content,
    })
}

pub(crate) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| StoreError::corrupt("text", "not UTF-8").into())
        }
        _ => Err(StoreError::corrupt("text", "not stored as text").into()),
    }
}

pub(crate) fn checksum(row: &Row<'_>, column: usize) -> Result<Option<Checksum>> {
    Ok(row.get::<_, Option<i32>>(column)?.map(Checksum::from_stored))
}
