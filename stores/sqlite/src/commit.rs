//! Commits to a thread: writes the plan that `threadkeep_core::decide` makes from the stored [`facts`].

mod facts;

use std::sync::Arc;

use rusqlite::{Connection, params};
use threadkeep_core::decide::{CommitTarget, Decision, Plan, ReplacedMessage, StoredMessageFacts, decide};
use threadkeep_core::{Access, Batch, CommitOutcome, EncodedBatch, JsonText, Result, Scope, ThreadId, Timestamp};

use self::facts::RowFacts;
use crate::connection::Shared;
use crate::error;
use crate::residue::{self, Residue};
use crate::row::{self, ThreadRow};
use crate::watch::WriteKind;
use crate::{index, owners, records, threads, writer};

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
    let (store, caller) = (Arc::clone(shared), scope.clone());
    let sync_policy = batch.sync_policy;
    let (outcome, owner_no) = writer::write_with(shared, sync_policy, WriteKind::Threads, move |connection| {
        let (row, access) = threads::get_row(&store, connection, &caller, thread, now)?;
        let outcome = Commit { connection, row, batch: &batch, encoded: &encoded, now }.run(access)?;
        Ok((outcome, row.owner_no))
    })
    .await?;
    if !outcome.replayed && shared.wake_ups.receiver_count() > 0 {
        let owner = shared.read(|connection| owners::find_by_number(connection, owner_no))?;
        threads::send_wake_up(shared, scope, &owner, thread, Some(outcome.change));
    }
    Ok(outcome)
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
        let mut facts = RowFacts { connection: self.connection, row: &self.row, now: self.now };
        let target = CommitTarget { access, positions: self.row.positions };
        match decide(&mut facts, target, self.batch, self.encoded, self.now)? {
            Decision::Answer(outcome) => Ok(outcome),
            Decision::Write(plan) => self.write(&plan),
        }
    }

    fn numbers(&self) -> index::ThreadNumbers {
        index::ThreadNumbers { thread_no: self.row.number, owner_no: self.row.owner_no, tenant_no: self.row.tenant_no }
    }

    fn write(&self, plan: &Plan) -> error::Result<CommitOutcome> {
        for seq in &plan.stale {
            index::remove_message(self.connection, &self.numbers(), *seq)?;
        }
        self.append()?;
        self.replace(&plan.replaced)?;
        self.erase(&plan.erased)?;
        if let Some(below) = plan.trim_below {
            self.defer_trim(below)?;
        }
        for put in &self.batch.put {
            records::put_thread_record(self.connection, self.row.number, put, plan.outcome.tagged())?;
        }
        for name in &self.batch.delete {
            records::delete_thread_record(self.connection, self.row.number, name)?;
        }
        self.write_log(plan)?;
        self.write_thread(plan)?;
        Ok(plan.outcome)
    }

    fn append(&self) -> error::Result<()> {
        let sql = "INSERT INTO messages (position, id, role, revision, created_at, external_id, body, checksum) \
                   VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let positions = self.row.positions.seq + 1..;
        let stored = self.encoded.append.iter().zip(&self.encoded.checksums);
        for ((message, (body, checksum)), seq) in self.batch.append.iter().zip(stored).zip(positions) {
            statement.execute(params![
                row::key(self.row.number, seq),
                message.id.0.as_bytes(),
                message.content.role.to_stored(),
                message.created_at.as_micros(),
                message.external_id,
                body,
                checksum.to_stored(),
            ])?;
        }
        Ok(())
    }

    fn replace(&self, replaced: &[ReplacedMessage]) -> error::Result<()> {
        let sql =
            "UPDATE messages SET body = ?2, role = ?3, checksum = ?4, revision = revision + 1 WHERE position = ?1";
        let new = self.batch.replace.iter().zip(&self.encoded.replace);
        for (ReplacedMessage { message, checksum }, (replacement, body)) in replaced.iter().zip(new) {
            let key = row::key(self.row.number, message.seq);
            let role = replacement.content.role.to_stored();
            self.connection.prepare_cached(sql)?.execute(params![key, body, role, checksum.to_stored()])?;
            index::replace(self.connection, &self.numbers(), message.seq, &message.body, Some(body))?;
        }
        Ok(())
    }

    fn erase(&self, erased: &[StoredMessageFacts]) -> error::Result<()> {
        let sql = "UPDATE messages SET body = NULL, role = NULL, external_id = NULL, checksum = NULL, revision = 0, \
                   created_at = ?2 WHERE position = ?1";
        for message in erased {
            let key = row::key(self.row.number, message.seq);
            self.connection.prepare_cached(sql)?.execute(params![key, self.now.as_micros()])?;
            index::replace(self.connection, &self.numbers(), message.seq, &message.body, None)?;
        }
        Ok(())
    }

    fn defer_trim(&self, below: u64) -> error::Result<()> {
        let sql = "INSERT INTO leftovers (thread_no, owner_no, tenant_no, below) \
                   SELECT no, owner_no, tenant_no, ?2 FROM threads WHERE no = ?1 \
                   ON CONFLICT DO UPDATE SET below = excluded.below";
        self.connection.prepare_cached(sql)?.execute(params![self.row.number, below as i64])?;
        Ok(())
    }

    fn write_log(&self, plan: &Plan) -> error::Result<()> {
        // The columns `first_seq` and `count` describe appends; most commits have no other effects.
        let effects = if plan.effects.is_empty() {
            None
        } else {
            residue::record(self.connection, Residue::Pages)?;
            Some(JsonText::of(&plan.effects)?)
        };
        let CommitOutcome { change, first_seq, count, .. } = plan.outcome;
        let sql = "INSERT INTO commits (position, at, key, fingerprint, first_seq, count, effects) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.connection.prepare_cached(sql)?.execute(params![
            row::key(self.row.number, change),
            self.now.as_micros(),
            self.batch.key.to_bytes(),
            i64::from_be_bytes(self.batch.fingerprint.0),
            first_seq as i64,
            count as i64,
            effects.as_ref().map(JsonText::as_str),
        ])?;
        Ok(())
    }

    fn write_thread(&self, plan: &Plan) -> error::Result<()> {
        let sql = "UPDATE threads SET seq = ?2, change = ?3, first_seq = ?4, message_count = ?5, stamp = ?6, \
                   updated_at = max(updated_at, ?7) WHERE no = ?1";
        let message_count = (self.row.message_count + plan.outcome.count).saturating_sub(plan.removed);
        self.connection.prepare_cached(sql)?.execute(params![
            self.row.number,
            plan.positions.seq as i64,
            row::stored_change(plan.positions),
            plan.positions.first_seq as i64,
            message_count as i64,
            threads::next_stamp(self.connection)?,
            self.now.as_micros(),
        ])?;
        if let Some(expires_at) = self.batch.patch.expires_at {
            let sql = "UPDATE threads SET expires_at = ?2 WHERE no = ?1";
            let expires_at = expires_at.map(Timestamp::as_micros);
            self.connection.prepare_cached(sql)?.execute(params![self.row.number, expires_at])?;
        }
        if let Some(body) = &plan.thread_body {
            let sql = "UPDATE threads SET body = ?2 WHERE no = ?1";
            self.connection.prepare_cached(sql)?.execute(params![self.row.number, body])?;
        }
        Ok(())
    }
}
