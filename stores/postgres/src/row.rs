//! Converts rows into core types.

use threadkeep_core::{
    ChangeTag, CorruptRow, Effect, JsonText, Message, MessageId, Owner, Positions, StoreError, TaggedNumber, Thread,
    ThreadId, ThreadKey, Timestamp, UserId, codec,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::Result;

/// The columns of [`thread`], for a table alias `t`.
macro_rules! thread_columns {
    () => {
        "t.id, t.owner, t.key, t.body, t.seq, t.change, t.first_seq, t.tag, t.message_count, t.created_at, t.updated_at, \
         t.expires_at"
    };
}
pub(crate) use thread_columns;

pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    Ok(row
        .try_get(column)
        .map_err(|_| StoreError::corrupt("row", format!("column {column} has an unexpected type")))?)
}

pub(crate) fn unsigned(row: &Row, column: usize) -> Result<u64> {
    let number: i64 = get(row, column)?;
    Ok(u64::try_from(number)
        .map_err(|_| StoreError::corrupt("number", format!("column {column} is negative: {number}")))?)
}

/// Converts a number for a query. A number beyond the range of `bigint` becomes the largest `bigint`, which matches
/// nothing.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Combines a change or a version with its tag, which it reads from a column.
pub(crate) fn tagged(row: &Row, number: i64, column: usize) -> Result<TaggedNumber> {
    Ok(TaggedNumber { number: number.unsigned_abs(), tag: tag(row, column)? })
}

pub(crate) fn stored_tag(tagged: TaggedNumber) -> Option<i32> {
    tagged.tag.map(ChangeTag::to_stored)
}

pub(crate) fn timestamp(row: &Row, column: usize) -> Result<Timestamp> {
    instant(get(row, column)?)
}

pub(crate) fn instant(micros: i64) -> Result<Timestamp> {
    Ok(Timestamp::from_micros(micros).map_err(|_| StoreError::corrupt("instant", "outside its range"))?)
}

pub(crate) fn tag(row: &Row, column: usize) -> Result<Option<ChangeTag>> {
    Ok(get::<Option<i32>>(row, column)?.map(ChangeTag::from_stored))
}

/// Reads a thread's positions from four consecutive columns: `seq`, `change`, `first_seq` and `tag`.
pub(crate) fn positions(row: &Row, first_column: usize) -> Result<Positions> {
    Ok(Positions {
        seq: unsigned(row, first_column)?,
        change: unsigned(row, first_column + 1)?,
        first_seq: unsigned(row, first_column + 2)?,
        tag: tag(row, first_column + 3)?,
    })
}

/// Returns the name of an owner in the tables: the user, or `""` for the tenant.
pub(crate) fn owner_name(owner: &Owner) -> &str {
    match owner {
        Owner::Tenant => "",
        Owner::User(user) => user.as_str(),
    }
}

/// Parses an owner from its name in the tables.
pub(crate) fn owner(name: &str) -> Result<Owner> {
    Ok(if name.is_empty() { Owner::Tenant } else { Owner::User(UserId::new(name)?) })
}

pub(crate) fn thread(row: &Row, first_column: usize) -> Result<Thread> {
    let column = |number: usize| first_column + number;
    let body = codec::decode_thread(get(row, column(3))?)?;
    let key: Option<String> = get(row, column(2))?;
    let expires_at: Option<i64> = get(row, column(11))?;
    Ok(Thread {
        id: ThreadId(get(row, column(0))?),
        owner: owner(get(row, column(1))?)?,
        key: key.map(ThreadKey::new).transpose()?,
        title: body.title,
        metadata: body.metadata,
        state: body.state,
        positions: positions(row, column(4))?,
        message_count: unsigned(row, column(8))?,
        created_at: timestamp(row, column(9))?,
        updated_at: timestamp(row, column(10))?,
        expires_at: expires_at.map(instant).transpose()?,
    })
}

/// The columns of [`message`], for a table alias `m`.
macro_rules! message_columns {
    () => {
        "m.seq, m.id, m.external_id, m.revision, m.created_at, m.body"
    };
}
pub(crate) use message_columns;

/// Reads a message. Returns a [`CorruptRow`] for a message that cannot be decoded, so that the caller can continue.
pub(crate) fn message(row: &Row, first_column: usize) -> Result<Message, CorruptRow> {
    let seq = unsigned(row, first_column).unwrap_or(0);
    decode_message(row, first_column, seq)
        .map_err(|error| CorruptRow { seq, detail: StoreError::from(error).to_string() })
}

fn decode_message(row: &Row, first_column: usize, seq: u64) -> Result<Message> {
    let column = |number: usize| first_column + number;
    let revision: i32 = get(row, column(3))?;
    Ok(Message {
        seq,
        id: MessageId(get(row, column(1))?),
        external_id: get(row, column(2))?,
        revision: revision.unsigned_abs(),
        created_at: timestamp(row, column(4))?,
        content: codec::decode_content(get(row, column(5))?)?,
    })
}

/// Decodes the effects of a commit, except [`Effect::Appended`].
pub(crate) fn decode_effects(effects: Option<String>) -> Result<Vec<Effect>> {
    let Some(effects) = effects else { return Ok(Vec::new()) };
    let text = JsonText::new(effects).map_err(|_| StoreError::corrupt("change log", "not JSON"))?;
    Ok(text.read()?)
}
