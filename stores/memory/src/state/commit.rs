//! How a thread changes: everything is checked, then everything is written.

use threadkeep_core::{
    Access, Batch, Checksum, CommitOutcome, Conflict, Document, DocumentName, DumpEntry, DumpedCommit, Effect,
    EncodedBatch, Kind, MessageId, NewMessage, PutDocument, Replacement, Result, Scope, StoreError, ThreadId,
    ThreadPatch, Timestamp, WakeUp, codec,
};

use super::{KeptThread, State, has_expired, is_beyond_window};

impl State {
    pub(crate) fn commit(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        batch: Batch,
        now: Timestamp,
    ) -> Result<(CommitOutcome, Option<WakeUp>)> {
        let encoded = batch.encode()?;
        let (kept, access) = self.reach(scope, id, now)?;
        if access != Access::Full && !batch.is_append_only() {
            return Err(StoreError::Denied("a user adds messages to a shared thread and changes nothing else"));
        }
        if let Some(outcome) = kept.find_replay(&batch, now)? {
            return Ok((outcome, None));
        }
        kept.check(&batch, now)?;
        let outcome = kept.outcome_of(&batch);
        if batch.is_empty() {
            return Ok((outcome, None));
        }
        let words = patched_words(kept, &batch.patch)?;

        let (tenant, owner, change) = (scope.tenant_id().clone(), kept.row.owner.clone(), Some(outcome.change));
        let wake_up = WakeUp::Thread { tenant, owner, thread: id, change };
        let stamp = self.next_stamp();
        let kept = self.tenants.get_mut(scope.tenant_id()).and_then(|tenant| tenant.threads.get_mut(&id));
        let kept = kept.ok_or(StoreError::NotFound(Kind::Thread))?;
        kept.row.body = words;
        kept.stamp = stamp;
        kept.apply(batch, encoded, outcome, now);
        Ok((outcome, Some(wake_up)))
    }
}

fn patched_words(kept: &KeptThread, patch: &ThreadPatch) -> Result<String> {
    if patch.title.is_none() && patch.metadata.is_none() && patch.state.is_none() {
        return Ok(kept.row.body.clone());
    }
    let mut words = codec::decode_thread(&kept.row.body)?;
    words.apply(patch.clone());
    Ok(codec::encode_thread(&words))
}

impl KeptThread {
    fn find_replay(&self, batch: &Batch, now: Timestamp) -> Result<Option<CommitOutcome>> {
        let record = self.commit_of_key.get(&batch.key).and_then(|change| self.commits.get(change));
        match record.filter(|record| !is_beyond_window(record.at, now)) {
            None => Ok(None),
            Some(record) if record.fingerprint != batch.fingerprint => Err(Conflict::IdempotencyKey.into()),
            Some(&DumpedCommit { change, first_seq, count, .. }) => {
                Ok(Some(CommitOutcome { change, first_seq, count, replayed: true }))
            }
        }
    }

    fn check(&self, batch: &Batch, now: Timestamp) -> Result<()> {
        if let Some(expected) = batch.expected {
            expected.check(self.row.positions)?;
        }
        for condition in &batch.require {
            condition.check(self.live_document(&condition.name, now).map(|document| document.version))?;
        }
        batch.append.iter().try_for_each(|message| self.check_new(message))?;
        let edited = batch.replace.iter().map(|replacement| replacement.id).chain(batch.erase.iter().copied());
        for id in edited {
            self.find_message_seq(id).ok_or(StoreError::NotFound(Kind::Message))?;
        }
        let end = self.row.positions.seq + batch.append.len() as u64 + 1;
        if batch.trim_below.is_some_and(|below| below > end) {
            return Err(StoreError::invalid("trim_below", "beyond the end of the thread"));
        }
        Ok(())
    }

    fn check_new(&self, message: &NewMessage) -> Result<()> {
        if let Some(&seq) = self.seq_of_id.get(&message.id) {
            return Err(Conflict::MessageId { id: message.id, seq }.into());
        }
        let external_id = message.external_id.as_ref();
        match external_id.and_then(|external_id| self.seq_of_external_id.get(external_id)) {
            Some(&seq) => Err(Conflict::ExternalId { seq }.into()),
            None => Ok(()),
        }
    }

    fn outcome_of(&self, batch: &Batch) -> CommitOutcome {
        let positions = self.row.positions;
        let change = if batch.is_empty() { positions.change } else { positions.change + 1 };
        CommitOutcome { change, first_seq: positions.seq + 1, count: batch.append.len() as u64, replayed: false }
    }

    fn apply(&mut self, batch: Batch, encoded: EncodedBatch, outcome: CommitOutcome, now: Timestamp) {
        let CommitOutcome { change, first_seq, count, .. } = outcome;
        let mut effects = Vec::new();
        self.append(batch.append, encoded.append.into_iter().zip(encoded.checksums));
        for (replacement, body) in batch.replace.iter().zip(encoded.replace) {
            effects.extend(self.replace(replacement, body));
        }
        for id in batch.erase {
            effects.extend(self.erase(id, now));
        }
        effects.extend(batch.trim_below.and_then(|below| self.trim(below)));
        for put in batch.put {
            effects.push(self.put(put, change));
        }
        for name in batch.delete {
            effects.extend(self.delete(name, now));
        }
        if !batch.patch.is_empty() {
            effects.push(Effect::Patched);
            if let Some(expires_at) = batch.patch.expires_at {
                self.row.expires_at = expires_at;
            }
        }
        self.row.positions.change = change;
        self.row.updated_at = now;
        let (key, fingerprint) = (batch.key, batch.fingerprint);
        self.insert_commit(DumpedCommit { change, at: now, key, fingerprint, first_seq, count, effects });
    }

    fn append(&mut self, messages: Vec<NewMessage>, stored: impl Iterator<Item = (String, Checksum)>) {
        for (message, (body, checksum)) in messages.into_iter().zip(stored) {
            let NewMessage { id, external_id, created_at, content: _ } = message;
            self.row.positions.seq += 1;
            let seq = self.row.positions.seq;
            let checksum = Some(checksum);
            self.insert_entry(DumpEntry::Message { seq, id, external_id, revision: 0, created_at, body, checksum });
        }
    }

    fn replace(&mut self, replacement: &Replacement, new_body: String) -> Option<Effect> {
        let id = replacement.id;
        let seq = self.find_message_seq(id)?;
        if let Some(DumpEntry::Message { body, revision, external_id, created_at, checksum, .. }) =
            self.entries.get_mut(&seq)
        {
            *checksum = Some(replacement.checksum(*created_at, external_id.as_deref(), &new_body));
            *body = new_body;
            *revision += 1;
        }
        Some(Effect::Replaced { seq, id })
    }

    fn erase(&mut self, id: MessageId, now: Timestamp) -> Option<Effect> {
        let seq = self.find_message_seq(id)?;
        self.remove_entry(seq);
        self.insert_entry(DumpEntry::Tombstone { seq, id, erased_at: now });
        Some(Effect::Erased { seq, id })
    }

    fn trim(&mut self, below: u64) -> Option<Effect> {
        let first_seq = self.row.positions.first_seq;
        if below <= first_seq {
            return None;
        }
        for seq in first_seq..below {
            self.remove_entry(seq);
        }
        self.row.positions.first_seq = below;
        Some(Effect::Trimmed { first_seq: below })
    }

    fn put(&mut self, put: PutDocument, version: u64) -> Effect {
        let PutDocument { name, value, expires_at } = put;
        let DocumentName { namespace, key } = name.clone();
        self.documents.insert(name.clone(), Document { namespace, key, value, version, expires_at });
        Effect::DocumentPut { name, version }
    }

    fn delete(&mut self, name: DocumentName, now: Timestamp) -> Option<Effect> {
        let removed = self.documents.remove(&name)?;
        (!has_expired(removed.expires_at, now)).then_some(Effect::DocumentDeleted { name })
    }

    /// Where a message stands that is neither erased nor trimmed.
    pub(super) fn find_message_seq(&self, id: MessageId) -> Option<u64> {
        let seq = *self.seq_of_id.get(&id)?;
        matches!(self.entries.get(&seq), Some(DumpEntry::Message { .. })).then_some(seq)
    }

    pub(super) fn live_document(&self, name: &DocumentName, now: Timestamp) -> Option<&Document> {
        self.documents.get(name).filter(|document| !has_expired(document.expires_at, now))
    }
}
