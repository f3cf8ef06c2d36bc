//! How a thread changes: every check first, then every write.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{
    Access, Batch, Checksum, CommitOutcome, Conflict, DocumentName, Effect, EncodedBatch, Expected,
    IDEMPOTENCY_WINDOW_MS, Kind, MessageId, Positions, Result, Scope, StoreError, ThreadId, Timestamp, codec,
};

use crate::connection::Shared;
use crate::error;
use crate::residue::{self, Residue};
use crate::row::{self, ThreadRow, role_number};
use crate::watch::Writes;
use crate::{documents, index, owners, threads, writer};

pub(crate) async fn commit(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    batch: Batch,
    now: Timestamp,
) -> Result<CommitOutcome> {
    let encoded = batch.encode()?;
    if batch.is_empty() {
        return Ok(shared.read(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let (row, access) = threads::get_row(shared, connection, scope, thread, now)?;
            let outcome = Commit { connection, row, batch: &batch, encoded: &encoded, now }.run(access)?;
            transaction.commit()?;
            Ok(outcome)
        })?);
    }
    let (inside, caller) = (Arc::clone(shared), scope.clone());
    let urgency = batch.urgency;
    let (outcome, owner_no) = writer::write_by(shared, urgency, Writes::Threads, move |connection| {
        let (row, access) = threads::get_row(&inside, connection, &caller, thread, now)?;
        let outcome = Commit { connection, row, batch: &batch, encoded: &encoded, now }.run(access)?;
        Ok((outcome, row.owner_no))
    })
    .await?;
    if !outcome.replayed && shared.wake_ups.receiver_count() > 0 {
        let owner = shared.read(|connection| owners::by_number(connection, owner_no))?;
        threads::wake(shared, scope, &owner, thread, Some(outcome.change));
    }
    Ok(outcome)
}

/// A message that a commit touches.
struct Touched {
    id: MessageId,
    seq: u64,
    /// The stored content, for taking it out of the index.
    body: String,
    /// What stays when it is replaced.
    created_at: i64,
    external_id: Option<String>,
}

struct Commit<'a> {
    connection: &'a Connection,
    row: ThreadRow,
    batch: &'a Batch,
    encoded: &'a EncodedBatch,
    now: Timestamp,
}

impl Commit<'_> {
    fn run(&self, access: Access) -> error::Result<CommitOutcome> {
        if access < Access::Full && !self.batch.is_append_only() {
            return Err(StoreError::Denied("changing a shared thread other than by adding messages").into());
        }
        if let Some(outcome) = self.find_replayed()? {
            return Ok(outcome);
        }
        self.batch.expected.map_or(Ok(()), |expected: Expected| expected.check(self.row.positions))?;
        self.check_documents()?;
        if self.batch.is_empty() {
            let Positions { seq, change, .. } = self.row.positions;
            return Ok(CommitOutcome { change, first_seq: seq + 1, count: 0, replayed: false });
        }
        self.check_appended()?;
        let replaced = self.batch.replace.iter().map(|replacement| self.get_touched(replacement.id));
        let replaced = replaced.collect::<error::Result<Vec<_>>>()?;
        let checksums = self.replaced_checksums(&replaced)?;
        let erased = self.batch.erase.iter().map(|id| self.get_touched(*id)).collect::<error::Result<Vec<_>>>()?;
        let seq = self.row.positions.seq + self.batch.append.len() as u64;
        let change = self.row.positions.change + 1;
        if self.batch.trim_below.is_some_and(|below| below > seq + 1) {
            return Err(StoreError::invalid("trim_below", "beyond the end of the thread").into());
        }
        if seq >= u64::from(u32::MAX) || change >= u64::from(u32::MAX) {
            let max = u64::from(u32::MAX);
            return Err(StoreError::LimitExceeded { limit: "positions of a thread", max, actual: seq }.into());
        }
        let words = self.patched_words()?;
        let replaced: Vec<_> = replaced.into_iter().zip(checksums).collect();
        self.write(&replaced, &erased, words, Positions { seq, change, first_seq: self.row.positions.first_seq })
    }

    /// The thread's new words, read before anything is written: they may turn out not to decode.
    fn patched_words(&self) -> error::Result<Option<String>> {
        let patch = &self.batch.patch;
        if patch.title.is_none() && patch.metadata.is_none() && patch.state.is_none() {
            return Ok(None);
        }
        let sql = "SELECT body FROM threads WHERE no = ?1";
        let body: String = self.connection.prepare_cached(sql)?.query_row([self.row.no], |row| row.get(0))?;
        let mut words = codec::decode_thread(&body)?;
        words.apply(patch.clone());
        Ok(Some(codec::encode_thread(&words)))
    }

    fn replaced_checksums(&self, replaced: &[Touched]) -> error::Result<Vec<Checksum>> {
        let new = self.batch.replace.iter().zip(&self.encoded.replace);
        let checksums = replaced.iter().zip(new).map(|(touched, (replacement, body))| {
            let created_at = row::timestamp(touched.created_at)?;
            Ok(replacement.checksum(created_at, touched.external_id.as_deref(), body))
        });
        checksums.collect()
    }

    fn place(&self) -> index::Place {
        index::Place { thread_no: self.row.no, owner_no: self.row.owner_no, tenant_no: self.row.tenant_no }
    }

    fn find_replayed(&self) -> error::Result<Option<CommitOutcome>> {
        let sql = "SELECT position, at, fingerprint, first_seq, count FROM commits WHERE position >> 32 = ?1 AND key = ?2 \
                   ORDER BY position DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.row.no, self.batch.key.to_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        if row::timestamp(row.get(1)?)?.plus_ms(IDEMPOTENCY_WINDOW_MS) <= self.now {
            return Ok(None);
        }
        if row.get::<_, i64>(2)? != i64::from_be_bytes(self.batch.fingerprint.0) {
            return Err(StoreError::from(Conflict::IdempotencyKey).into());
        }
        Ok(Some(CommitOutcome {
            change: row::position(row.get(0)?),
            first_seq: row::unsigned(row, 3)?,
            count: row::unsigned(row, 4)?,
            replayed: true,
        }))
    }

    fn check_documents(&self) -> error::Result<()> {
        for condition in &self.batch.require {
            let actual = documents::version_of_thread(self.connection, self.row.no, &condition.name, self.now)?;
            condition.check(actual)?;
        }
        Ok(())
    }

    fn check_appended(&self) -> error::Result<()> {
        for message in &self.batch.append {
            if let Some(key) = self.find_id(message.id)? {
                let seq = row::position(key);
                if seq >= self.row.positions.first_seq {
                    return Err(StoreError::from(Conflict::MessageId { id: message.id, seq }).into());
                }
            }
            let Some(external_id) = &message.external_id else { continue };
            let sql = "SELECT position FROM messages WHERE position >> 32 = ?1 AND external_id = ?2 AND external_id IS NOT NULL";
            let mut statement = self.connection.prepare_cached(sql)?;
            let key: Option<i64> =
                statement.query_row(params![self.row.no, external_id], |row| row.get(0)).optional()?;
            if let Some(seq) = key.map(row::position).filter(|seq| *seq >= self.row.positions.first_seq) {
                return Err(StoreError::from(Conflict::ExternalId { seq }).into());
            }
        }
        Ok(())
    }

    fn find_id(&self, id: MessageId) -> error::Result<Option<i64>> {
        let sql = "SELECT position FROM messages WHERE position >> 32 = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row(params![self.row.no, id.0.as_bytes()], |row| row.get(0)).optional()?)
    }

    fn get_touched(&self, id: MessageId) -> error::Result<Touched> {
        let sql = "SELECT position, body, created_at, external_id FROM messages WHERE position >> 32 = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.row.no, id.0.as_bytes()])?;
        if let Some(row) = rows.next()? {
            let seq = row::position(row.get(0)?);
            let body: Option<String> = row.get(1)?;
            if let Some(body) = body.filter(|_| seq >= self.row.positions.first_seq) {
                return Ok(Touched { id, seq, body, created_at: row.get(2)?, external_id: row.get(3)? });
            }
        }
        Err(StoreError::NotFound(Kind::Message).into())
    }

    fn write(
        &self,
        replaced: &[(Touched, Checksum)],
        erased: &[Touched],
        words: Option<String>,
        end: Positions,
    ) -> error::Result<CommitOutcome> {
        let change = end.change;
        let mut effects = Vec::new();
        self.remove_trimmed_namesakes()?;
        self.append()?;
        let new = self.batch.replace.iter().zip(&self.encoded.replace);
        for ((touched, checksum), (replacement, body)) in replaced.iter().zip(new) {
            let sql =
                "UPDATE messages SET body = ?2, role = ?3, checksum = ?4, revision = revision + 1 WHERE position = ?1";
            let key = row::key(self.row.no, touched.seq);
            let role = role_number(replacement.content.role);
            self.connection.prepare_cached(sql)?.execute(params![key, body, role, checksum.to_stored()])?;
            index::replace(self.connection, &self.place(), touched.seq, &touched.body, Some(body))?;
            effects.push(Effect::Replaced { seq: touched.seq, id: touched.id });
        }
        for touched in erased {
            let sql = "UPDATE messages SET body = NULL, role = NULL, external_id = NULL, checksum = NULL, revision = 0, \
                       created_at = ?2 WHERE position = ?1";
            let key = row::key(self.row.no, touched.seq);
            self.connection.prepare_cached(sql)?.execute(params![key, self.now.as_micros()])?;
            index::replace(self.connection, &self.place(), touched.seq, &touched.body, None)?;
            effects.push(Effect::Erased { seq: touched.seq, id: touched.id });
        }
        let (first_seq, trimmed) = self.trim(&mut effects)?;
        self.write_documents(change, &mut effects)?;
        let appended = self.batch.append.len() as u64;
        self.write_log(change, &effects)?;
        let message_count = (self.row.message_count + appended).saturating_sub(erased.len() as u64 + trimmed);
        self.write_thread(Positions { first_seq, ..end }, message_count, words)?;
        Ok(CommitOutcome { change, first_seq: self.row.positions.seq + 1, count: appended, replayed: false })
    }

    /// A trimmed message keeps its row until the sweep; its names are free again all the same.
    fn remove_trimmed_namesakes(&self) -> error::Result<()> {
        if self.row.positions.first_seq == 1 {
            return Ok(());
        }
        for message in &self.batch.append {
            let sql = "SELECT position FROM messages WHERE position >> 32 = ?1 AND (id = ?2 OR external_id = ?3)";
            let mut statement = self.connection.prepare_cached(sql)?;
            let keys = statement
                .query_map(params![self.row.no, message.id.0.as_bytes(), message.external_id], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            for key in keys {
                index::remove_message(self.connection, &self.place(), row::position(key))?;
            }
        }
        Ok(())
    }

    fn append(&self) -> error::Result<()> {
        let sql = "INSERT INTO messages (position, id, role, revision, created_at, external_id, body, checksum) \
                   VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let positions = self.row.positions.seq + 1..;
        let stored = self.encoded.append.iter().zip(&self.encoded.checksums);
        for ((message, (body, checksum)), seq) in self.batch.append.iter().zip(stored).zip(positions) {
            statement.execute(params![
                row::key(self.row.no, seq),
                message.id.0.as_bytes(),
                role_number(message.content.role),
                message.created_at.as_micros(),
                message.external_id,
                body,
                checksum.to_stored(),
            ])?;
        }
        Ok(())
    }

    /// Moves the beginning; the rows below are left to the sweep. Gives the new beginning and how many messages it cost.
    fn trim(&self, effects: &mut Vec<Effect>) -> error::Result<(u64, u64)> {
        let old = self.row.positions.first_seq;
        let Some(below) = self.batch.trim_below.filter(|below| *below > old) else { return Ok((old, 0)) };
        let sql = "SELECT count(*) FROM messages WHERE position >= ?1 AND position < ?2 AND body IS NOT NULL";
        let range = params![row::key(self.row.no, old), row::key(self.row.no, below)];
        let trimmed = self.connection.prepare_cached(sql)?.query_row(range, |row| row.get::<_, i64>(0))?;
        let sql = "INSERT INTO leftovers (thread_no, owner_no, tenant_no, below) \
                   SELECT no, owner_no, tenant_no, ?2 FROM threads WHERE no = ?1 \
                   ON CONFLICT DO UPDATE SET below = excluded.below";
        self.connection.prepare_cached(sql)?.execute(params![self.row.no, below as i64])?;
        effects.push(Effect::Trimmed { first_seq: below });
        Ok((below, trimmed.unsigned_abs()))
    }

    fn write_documents(&self, change: u64, effects: &mut Vec<Effect>) -> error::Result<()> {
        for put in &self.batch.put {
            documents::put_of_thread(self.connection, self.row.no, put, change)?;
            effects.push(Effect::DocumentPut { name: put.name.clone(), version: change });
        }
        for name in &self.batch.delete {
            if documents::delete_of_thread(self.connection, self.row.no, name, self.now)? {
                effects.push(Effect::DocumentDeleted { name: DocumentName::clone(name) });
            }
        }
        Ok(())
    }

    fn write_log(&self, change: u64, effects: &[Effect]) -> error::Result<()> {
        let mut effects = effects.to_vec();
        if !self.batch.patch.is_empty() {
            effects.push(Effect::Patched);
        }
        // Appending is told by the columns; most commits do nothing else.
        let effects = if effects.is_empty() {
            None
        } else {
            residue::note(self.connection, Residue::Pages)?;
            Some(threadkeep_core::JsonText::of(&effects)?)
        };
        let sql = "INSERT INTO commits (position, at, key, fingerprint, first_seq, count, effects) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.connection.prepare_cached(sql)?.execute(params![
            row::key(self.row.no, change),
            self.now.as_micros(),
            self.batch.key.to_bytes(),
            i64::from_be_bytes(self.batch.fingerprint.0),
            (self.row.positions.seq + 1) as i64,
            self.batch.append.len() as i64,
            effects.as_ref().map(threadkeep_core::JsonText::as_str),
        ])?;
        Ok(())
    }

    fn write_thread(&self, positions: Positions, message_count: u64, words: Option<String>) -> error::Result<()> {
        let sql = "UPDATE threads SET seq = ?2, change = ?3, first_seq = ?4, message_count = ?5, stamp = ?6, \
                   updated_at = max(updated_at, ?7) WHERE no = ?1";
        self.connection.prepare_cached(sql)?.execute(params![
            self.row.no,
            positions.seq as i64,
            positions.change as i64,
            positions.first_seq as i64,
            message_count as i64,
            threads::next_stamp(self.connection)?,
            self.now.as_micros(),
        ])?;
        if let Some(expires_at) = self.batch.patch.expires_at {
            let sql = "UPDATE threads SET expires_at = ?2 WHERE no = ?1";
            let expires_at = expires_at.map(Timestamp::as_micros);
            self.connection.prepare_cached(sql)?.execute(params![self.row.no, expires_at])?;
        }
        if let Some(words) = words {
            let sql = "UPDATE threads SET body = ?2 WHERE no = ?1";
            self.connection.prepare_cached(sql)?.execute(params![self.row.no, words])?;
        }
        Ok(())
    }
}
