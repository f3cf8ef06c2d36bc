//! Commits: applies the changes that [`decide`] returns.

use std::ops::Range;

use threadkeep_core::decide::{
    CommitRecord, CommitTarget, Decision, Facts, Plan, ReplacedMessage, StoredMessageFacts, decide,
};
use threadkeep_core::{
    Batch, CommitOutcome, DumpEntry, DumpedCommit, EncodedBatch, IdempotencyKey, Kind, MessageId, NewMessage,
    PutRecord, Record, RecordName, Result, Scope, StoreError, TaggedNumber, ThreadId, Timestamp, WakeUp,
};

use super::{State, StoredThread, has_expired};

impl State {
    pub(crate) fn commit(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        batch: Batch,
        now: Timestamp,
    ) -> Result<(CommitOutcome, Option<WakeUp>)> {
        let encoded = batch.encode()?;
        let (stored, access) = self.find_live(scope, id, now)?;
        let target = CommitTarget { access, positions: stored.row.positions };
        let plan = match decide(&mut ThreadFacts { stored, now }, target, &batch, &encoded, now)? {
            Decision::Answer(outcome) => return Ok((outcome, None)),
            Decision::Write(plan) => *plan,
        };
        let (tenant, owner, outcome) = (scope.tenant_id().clone(), stored.row.owner.clone(), plan.outcome);
        let wake_up = WakeUp::Thread { tenant, owner, thread: id, change: Some(outcome.change) };
        let stamp = self.next_stamp();
        let stored = self.tenants.get_mut(scope.tenant_id()).and_then(|tenant| tenant.threads.get_mut(&id));
        let stored = stored.ok_or(StoreError::NotFound(Kind::Thread))?;
        stored.stamp = stamp;
        stored.write(plan, batch, encoded, now);
        Ok((outcome, Some(wake_up)))
    }
}

struct ThreadFacts<'a> {
    stored: &'a StoredThread,
    now: Timestamp,
}

impl Facts for ThreadFacts<'_> {
    type Error = StoreError;

    fn commit_record(&mut self, key: &IdempotencyKey) -> Result<Option<CommitRecord>> {
        let record = self.stored.change_of_key.get(key).and_then(|change| self.stored.commits.get(change));
        Ok(record.map(|&DumpedCommit { at, fingerprint, change, first_seq, count, .. }| CommitRecord {
            at,
            fingerprint,
            change,
            first_seq,
            count,
        }))
    }

    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>> {
        Ok(self.stored.live_record(name, self.now).map(Record::tagged))
    }

    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>> {
        Ok(self.stored.seq_of_id.get(&id).copied())
    }

    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>> {
        Ok(self.stored.seq_of_external_id.get(external_id).copied())
    }

    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>> {
        let entry = self.stored.seq_of_id.get(&id).and_then(|seq| self.stored.entries.get(seq));
        let Some(DumpEntry::Message { seq, created_at, external_id, body, .. }) = entry else { return Ok(None) };
        Ok(Some(StoredMessageFacts {
            seq: *seq,
            created_at_micros: created_at.as_micros(),
            external_id: external_id.clone(),
            body: body.clone(),
        }))
    }

    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64> {
        let entries = self.stored.entries.range(seqs).filter(|(_, entry)| matches!(entry, DumpEntry::Message { .. }));
        Ok(entries.count() as u64)
    }

    fn thread_body(&mut self) -> Result<String> {
        Ok(self.stored.row.body.clone())
    }
}

impl StoredThread {
    fn write(&mut self, plan: Plan, batch: Batch, encoded: EncodedBatch, now: Timestamp) {
        let Plan { outcome, positions, replaced, erased, trim_below, thread_body, effects, .. } = plan;
        let CommitOutcome { change, first_seq, count, .. } = outcome;
        let stored = encoded.append.into_iter().zip(encoded.checksums);
        for (seq, (message, (body, checksum))) in (first_seq..).zip(batch.append.into_iter().zip(stored)) {
            let NewMessage { id, external_id, created_at, content: _ } = message;
            let checksum = Some(checksum);
            self.insert_entry(DumpEntry::Message { seq, id, external_id, revision: 0, created_at, body, checksum });
        }
        for (replaced, body) in replaced.into_iter().zip(encoded.replace) {
            self.replace(&replaced, body);
        }
        for (id, StoredMessageFacts { seq, .. }) in batch.erase.into_iter().zip(erased) {
            self.remove_entry(seq);
            self.insert_entry(DumpEntry::Tombstone { seq, id, erased_at: now });
        }
        if let Some(below) = trim_below {
            (self.row.positions.first_seq..below).for_each(|seq| self.remove_entry(seq));
        }
        for PutRecord { name, value, expires_at } in batch.put {
            let RecordName { namespace, key } = name.clone();
            self.records
                .insert(name, Record { namespace, key, value, version: change, tag: positions.tag, expires_at });
        }
        for name in batch.delete {
            self.records.remove(&name);
        }
        self.row.body = thread_body.unwrap_or_else(|| std::mem::take(&mut self.row.body));
        self.row.expires_at = batch.patch.expires_at.unwrap_or(self.row.expires_at);
        self.row.positions = positions;
        self.row.updated_at = now;
        let (key, fingerprint) = (batch.key, batch.fingerprint);
        self.insert_commit(DumpedCommit { change, at: now, key, fingerprint, first_seq, count, effects });
    }

    fn replace(&mut self, replaced: &ReplacedMessage, new_body: String) {
        if let Some(DumpEntry::Message { body, revision, checksum, .. }) = self.entries.get_mut(&replaced.message.seq) {
            *checksum = Some(replaced.checksum);
            *body = new_body;
            *revision += 1;
        }
    }

    /// Returns the position of a message; `None` if it does not exist, or was erased or trimmed.
    pub(super) fn find_message_seq(&self, id: MessageId) -> Option<u64> {
        let seq = *self.seq_of_id.get(&id)?;
        matches!(self.entries.get(&seq), Some(DumpEntry::Message { .. })).then_some(seq)
    }

    /// Returns a record that has not expired.
    pub(super) fn live_record(&self, name: &RecordName, now: Timestamp) -> Option<&Record> {
        self.records.get(name).filter(|record| !has_expired(record.expires_at, now))
    }
}
