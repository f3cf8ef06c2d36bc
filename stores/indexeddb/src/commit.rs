//! Commits: reads the facts that [`decide`] may ask for in one step, and writes the plan that it returns.

use std::collections::HashMap;
use std::ops::Range;

use futures::future::{try_join, try_join_all, try_join3};
use threadkeep_core::decide::{CommitRecord, CommitTarget, Decision, Facts, Plan, StoredMessageFacts, decide};
use threadkeep_core::{
    Batch, CommitOutcome, DumpEntry, DumpedCommit, EncodedBatch, IdempotencyKey, MessageId, NewMessage, PutRecord,
    Record, RecordName, RecordOwner, Result, Scope, TaggedNumber, TenantId, ThreadId, Timestamp, WakeUp,
};

use crate::idb::Transaction;
use crate::keys::{self, index};
use crate::rows::{
    Counters, RecordRow, ThreadRow, check_live, has_expired, parse_commit, parse_entry, write_commit, write_entry,
};

/// How many rows are read at once to count messages.
const COUNTED: usize = 256;

pub(crate) async fn commit(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    batch: Batch,
    encoded: EncodedBatch,
    now: Timestamp,
) -> Result<(CommitOutcome, Option<WakeUp>)> {
    let tenant = scope.tenant_id();
    let ((row, mut counters), mut facts) = try_join(
        try_join(ThreadRow::find(transaction, tenant, id), Counters::read(transaction)),
        FactsRead::read(transaction, tenant, id, &batch, now),
    )
    .await?;
    let (mut row, access) = check_live(row, scope, now)?;
    let positions = row.thread.positions;
    facts.thread_body.clone_from(&row.thread.body);
    if let Some(below) = batch.trim_below {
        let counted = positions.first_seq..below.min(positions.seq + 1);
        facts.counted = (counted.clone(), count_messages(transaction, tenant, id, counted).await?);
    }
    let target = CommitTarget { access, positions };
    let plan = match decide(&mut facts, target, &batch, &encoded, now)? {
        Decision::Answer(outcome) => return Ok((outcome, None)),
        Decision::Write(plan) => *plan,
    };
    let outcome = plan.outcome;
    row.stamp = counters.next_stamp();
    counters.write(transaction)?;
    let owner = row.thread.owner.clone();
    write(transaction, row, &facts, plan, batch, encoded, now)?;
    let wake_up = WakeUp::Thread { tenant: tenant.clone(), owner, thread: id, change: Some(outcome.change) };
    Ok((outcome, Some(wake_up)))
}

fn write(
    transaction: &Transaction,
    mut row: ThreadRow,
    facts: &FactsRead,
    plan: Plan,
    batch: Batch,
    encoded: EncodedBatch,
    now: Timestamp,
) -> Result<()> {
    let Plan { outcome, positions, replaced, erased, trim_below, removed, thread_body, effects, .. } = plan;
    let CommitOutcome { change, first_seq, count, .. } = outcome;
    let (tenant, id) = (row.tenant.clone(), row.id);
    let stored = encoded.append.into_iter().zip(encoded.checksums);
    for (seq, (message, (body, checksum))) in (first_seq..).zip(batch.append.into_iter().zip(stored)) {
        let NewMessage { id: message_id, external_id, created_at, content } = message;
        let entry = DumpEntry::Message {
            seq,
            id: message_id,
            external_id,
            revision: 0,
            created_at,
            body,
            checksum: Some(checksum),
        };
        write_entry(transaction, &tenant, id, &entry, Some(&content))?;
    }
    for ((replaced, replacement), new_body) in replaced.iter().zip(&batch.replace).zip(encoded.replace) {
        if let Some(mut entry) = facts.entries.get(&replacement.id).cloned() {
            if let DumpEntry::Message { body, revision, checksum, .. } = &mut entry {
                (*body, *checksum) = (new_body, Some(replaced.checksum));
                *revision += 1;
            }
            write_entry(transaction, &tenant, id, &entry, Some(&replacement.content))?;
        }
    }
    for (message_id, StoredMessageFacts { seq, .. }) in batch.erase.into_iter().zip(erased) {
        let tombstone = DumpEntry::Tombstone { seq, id: message_id, erased_at: now };
        write_entry(transaction, &tenant, id, &tombstone, None)?;
    }
    if let Some(below) = trim_below {
        transaction.delete_range(&keys::entries(&tenant, id, row.thread.positions.first_seq, below))?;
    }
    for PutRecord { name: RecordName { namespace, key }, value, expires_at } in batch.put {
        let record = Record { namespace, key, value, version: change, tag: positions.tag, expires_at };
        RecordRow { tenant: tenant.clone(), owner: RecordOwner::Thread(id), record }.write(transaction)?;
    }
    for name in batch.delete {
        transaction.delete(&keys::thread_record(&tenant, id, &name))?;
    }
    row.messages = (row.messages + count).saturating_sub(removed);
    row.thread.body = thread_body.unwrap_or(row.thread.body);
    row.thread.expires_at = batch.patch.expires_at.unwrap_or(row.thread.expires_at);
    row.thread.positions = positions;
    row.thread.updated_at = now;
    row.write(transaction)?;
    let Batch { key, fingerprint, .. } = batch;
    write_commit(
        transaction,
        &tenant,
        id,
        &DumpedCommit { change, at: now, key, fingerprint, first_seq, count, effects },
    )
}

/// Counts the messages in a range of positions.
pub(crate) async fn count_messages(
    transaction: &Transaction,
    tenant: &TenantId,
    id: ThreadId,
    seqs: Range<u64>,
) -> Result<u64> {
    let (mut count, mut range) = (0, keys::entries(tenant, id, seqs.start, seqs.end));
    loop {
        let texts = transaction.range(&range, COUNTED).await?;
        let Some(last) = texts.last() else { return Ok(count) };
        let last = keys::entry(tenant, id, parse_entry(last)?.seq());
        for text in &texts {
            count += u64::from(matches!(parse_entry(text)?, DumpEntry::Message { .. }));
        }
        range = range.after(&last);
    }
}

/// The facts that a batch may need. They are read together, because each step of a transaction takes a round trip.
struct FactsRead {
    commit: Option<DumpedCommit>,
    records: HashMap<RecordName, TaggedNumber>,
    /// The messages and tombstones that the batch names by id.
    entries: HashMap<MessageId, DumpEntry>,
    seq_of_external_id: HashMap<String, u64>,
    /// The messages in the range that the batch trims.
    counted: (Range<u64>, u64),
    thread_body: String,
}

impl FactsRead {
    async fn read(
        transaction: &Transaction,
        tenant: &TenantId,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<Self> {
        let idempotency_key = index::idempotency(tenant, thread, &batch.key);
        let same_key = index::equal(&idempotency_key);
        let commits = transaction.range_indexed(&same_key, usize::MAX);
        let names = batch.require.iter().map(|condition| &condition.name).chain(&batch.delete);
        let records = try_join_all(names.map(async |name| {
            let text = transaction.get(&keys::thread_record(tenant, thread, name)).await?;
            Ok((name.clone(), text.map(|text| RecordRow::parse(&text)).transpose()?))
        }));
        let appended = batch.append.iter().map(|message| message.id);
        let ids =
            appended.chain(batch.replace.iter().map(|replacement| replacement.id)).chain(batch.erase.iter().copied());
        let entries = try_join_all(ids.map(async |id| {
            let text = transaction.get_indexed(&index::message(tenant, thread, id)).await?;
            Ok((id, text.map(|text| parse_entry(&text)).transpose()?))
        }));
        let external_ids = batch.append.iter().filter_map(|message| message.external_id.as_ref());
        let externals = try_join_all(external_ids.map(async |external_id| {
            let text = transaction.get_indexed(&index::external(tenant, thread, external_id)).await?;
            Ok((external_id.clone(), text.map(|text| parse_entry(&text)).transpose()?))
        }));
        let (commits, (records, entries, externals)) =
            try_join(commits, try_join3(records, entries, externals)).await?;
        let live = records.into_iter().filter_map(|(name, row)| Some((name, row?.record)));
        Ok(Self {
            commit: commits.last().map(|text| parse_commit(text)).transpose()?,
            records: live
                .filter(|(_, record)| !has_expired(record.expires_at, now))
                .map(|(name, record)| (name, record.tagged()))
                .collect(),
            entries: entries.into_iter().filter_map(|(id, entry)| Some((id, entry?))).collect(),
            seq_of_external_id: externals.into_iter().filter_map(|(id, entry)| Some((id, entry?.seq()))).collect(),
            counted: (0..0, 0),
            thread_body: String::new(),
        })
    }
}

impl Facts for FactsRead {
    type Error = threadkeep_core::StoreError;

    fn commit_record(&mut self, _: &IdempotencyKey) -> Result<Option<CommitRecord>> {
        Ok(self.commit.as_ref().map(|&DumpedCommit { at, fingerprint, change, first_seq, count, .. }| CommitRecord {
            at,
            fingerprint,
            change,
            first_seq,
            count,
        }))
    }

    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>> {
        Ok(self.records.get(name).copied())
    }

    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>> {
        Ok(self.entries.get(&id).map(DumpEntry::seq))
    }

    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>> {
        Ok(self.seq_of_external_id.get(external_id).copied())
    }

    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>> {
        let Some(DumpEntry::Message { seq, created_at, external_id, body, .. }) = self.entries.get(&id) else {
            return Ok(None);
        };
        Ok(Some(StoredMessageFacts {
            seq: *seq,
            created_at_micros: created_at.as_micros(),
            external_id: external_id.clone(),
            body: body.clone(),
        }))
    }

    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64> {
        let (range, count) = &self.counted;
        debug_assert_eq!(*range, seqs, "the batch trims another range than was counted");
        Ok(*count)
    }

    fn thread_body(&mut self) -> Result<String> {
        Ok(self.thread_body.clone())
    }
}
