use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::decide::{CommitRecord, Facts, StoredMessageFacts};
use threadkeep_core::{Fingerprint, IdempotencyKey, MessageId, RecordName, TaggedNumber, Timestamp};

use crate::error::{Result, SqliteError};
use crate::records;
use crate::row::{self, ThreadRow};

/// Facts about one thread that are read from the tables.
pub(super) struct RowFacts<'a> {
    pub(super) connection: &'a Connection,
    pub(super) row: &'a ThreadRow,
    pub(super) now: Timestamp,
}

impl Facts for RowFacts<'_> {
    type Error = SqliteError;

    fn commit_record(&mut self, key: &IdempotencyKey) -> Result<Option<CommitRecord>> {
        let sql = "SELECT position, at, fingerprint, first_seq, count FROM commits WHERE position >> 32 = ?1 AND key = ?2 \
                   ORDER BY position DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.row.number, key.to_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(CommitRecord {
            change: row::position_of_key(row.get(0)?),
            at: row::timestamp(row.get(1)?)?,
            fingerprint: Fingerprint(row.get::<_, i64>(2)?.to_be_bytes()),
            first_seq: row::unsigned(row, 3)?,
            count: row::unsigned(row, 4)?,
        }))
    }

    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>> {
        records::thread_record_version(self.connection, self.row.number, name, self.now)
    }

    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>> {
        let sql = "SELECT position FROM messages WHERE position >> 32 = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = statement.query_row(params![self.row.number, id.0.as_bytes()], |row| row.get(0)).optional()?;
        Ok(key.map(row::position_of_key))
    }

    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>> {
        let sql =
            "SELECT position FROM messages WHERE position >> 32 = ?1 AND external_id = ?2 AND external_id IS NOT NULL";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = statement.query_row(params![self.row.number, external_id], |row| row.get(0)).optional()?;
        Ok(key.map(row::position_of_key))
    }

    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>> {
        let sql = "SELECT position, body, created_at, external_id FROM messages \
                   WHERE position >> 32 = ?1 AND id = ?2 AND body IS NOT NULL";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.row.number, id.0.as_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(StoredMessageFacts {
            seq: row::position_of_key(row.get(0)?),
            body: row.get(1)?,
            created_at_micros: row.get(2)?,
            external_id: row.get(3)?,
        }))
    }

    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64> {
        let sql = "SELECT count(*) FROM messages WHERE position >= ?1 AND position < ?2 AND body IS NOT NULL";
        let range = params![row::key(self.row.number, seqs.start), row::key(self.row.number, seqs.end)];
        let count = self.connection.prepare_cached(sql)?.query_row(range, |row| row.get::<_, i64>(0))?;
        Ok(count.unsigned_abs())
    }

    fn thread_body(&mut self) -> Result<String> {
        let sql = "SELECT body FROM threads WHERE no = ?1";
        Ok(self.connection.prepare_cached(sql)?.query_row([self.row.number], |row| row.get(0))?)
    }
}
