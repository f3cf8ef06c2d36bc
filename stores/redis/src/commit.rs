//! Commits: reads what the decision needs, decides in [`threadkeep_core::decide`], and writes if nothing changed in between.
//!
//! A commit to a thread that this process has cached does not read first: it decides by the cached state, and the function that writes it
//! checks that this state is still current.

use std::collections::HashMap;
use std::ops::Range;

use threadkeep_core::decide::{CommitRecord, CommitTarget, Decision, Facts, Plan, StoredMessageFacts, decide};
use threadkeep_core::{
    Batch, CommitOutcome, DumpEntry, DumpedCommit, EncodedBatch, IdempotencyKey, Kind, MessageId, Owner, Record,
    RecordName, Result, Scope, StoreError, TaggedNumber, TenantId, ThreadId, Timestamp, WakeUp,
};

use crate::args::Args;
use crate::encoding::{decode_commit, decode_entry, encode_commit, encode_entry};
use crate::keys::record_field;
use crate::known_rows::KnownRow;
use crate::reply::{Reply, next, required_text};
use crate::row::{Row, has_expired};
use crate::shared::{Shared, WriteEffects, Writes, parse_record, until_written};

/// A commit as the store receives it.
#[derive(Clone, Copy)]
struct CommitRequest<'a> {
    scope: &'a Scope,
    thread: ThreadId,
    batch: &'a Batch,
    encoded: &'a EncodedBatch,
    now: Timestamp,
}

/// Returns the effects of a commit outside its thread.
fn write_effects(request: &CommitRequest<'_>, owner: &Owner, change: u64, has_stale: bool) -> WriteEffects {
    let CommitRequest { scope, thread, batch, .. } = *request;
    let (tenant, owner) = (scope.tenant_id().clone(), owner.clone());
    WriteEffects {
        has_unindexed: !(batch.append.is_empty() && batch.replace.is_empty() && batch.erase.is_empty()),
        removed_text: !batch.is_append_only() || has_stale,
        wake_up: Some(WakeUp::Thread { tenant, owner, thread, change: Some(change) }),
        ..WriteEffects::default()
    }
}

impl Shared {
    pub(crate) async fn commit(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<CommitOutcome> {
        let encoded = batch.encode()?;
        let request = CommitRequest { scope, thread, batch, encoded: &encoded, now };
        let _lock = self.lock(thread).await;
        if let Some(known) = self.rows.take(scope.tenant_id(), thread)
            && let Some(outcome) = self.try_commit_directly(&request, known).await?
        {
            return Ok(outcome);
        }
        until_written!(self.try_commit(&request).await)
    }

    /// Commits without reading first: assumes that the thread is as this process knows it, and that the idempotency key and the ids of the
    /// messages are new. Returns `None` if nothing was written.
    async fn try_commit_directly(&self, request: &CommitRequest<'_>, known: KnownRow) -> Result<Option<CommitOutcome>> {
        let CommitRequest { scope, thread, batch, encoded, now } = *request;
        let Some(mut facts) = PrefetchedFacts::assumed(batch, &known, now) else { return Ok(None) };
        let Some((stored, access)) = known.row.accessible(scope, now) else { return Ok(None) };
        let target = CommitTarget { access, positions: stored.positions };
        // If there is a conflict, the cached state may be out of date.
        let Ok(Decision::Write(plan)) = decide(&mut facts, target, batch, encoded, now) else { return Ok(None) };
        let outcome = plan.outcome;
        let tenant = scope.tenant_id();
        let base = self.keys.thread(tenant, thread);
        let effects = write_effects(request, &known.row.owner, outcome.change, false);
        let row = known.row.clone();
        let mut commit = Commit { base: &base, row, writes: Writes::new(), batch, encoded, facts: &facts, now };
        let new = commit.write(*plan, &[]);
        let Commit { row, mut writes, .. } = commit;
        put_external_ids(&mut writes, &base, &new.messages);
        // A commit that only appends changes no gaps.
        let (revision, commands) = writes.into_parts();
        let args = new.into_args((&known.revision, &revision), &row, &commands);
        if !self.write_commit((tenant, thread), ("commit", &base), args, &row, &effects).await? {
            return Ok(None);
        }
        self.rows.note_commit((tenant, thread), Some(known), (revision, row), batch, outcome.tagged());
        Ok(Some(outcome))
    }

    /// Reads, decides and writes. Returns `None` if another process wrote to the thread meanwhile.
    async fn try_commit(&self, request: &CommitRequest<'_>) -> Result<Option<CommitOutcome>> {
        let CommitRequest { scope, thread, batch, encoded, now } = *request;
        let tenant = scope.tenant_id();
        let base = self.keys.thread(tenant, thread);
        let Some((revision, row, mut facts)) = self.read_facts(&base, batch, now).await? else {
            return Err(StoreError::NotFound(Kind::Thread));
        };
        let Some((stored, access)) = row.accessible(scope, now) else {
            return Err(StoreError::NotFound(Kind::Thread));
        };
        let target = CommitTarget { access, positions: stored.positions };
        let plan = match decide(&mut facts, target, batch, encoded, now)? {
            Decision::Answer(outcome) => {
                if outcome.replayed {
                    // The replicas may not have the original commit yet.
                    self.connections.await_replicas(&format!("{base}:t")).await?;
                }
                return Ok(Some(outcome));
            }
            Decision::Write(plan) => *plan,
        };
        let outcome = plan.outcome;
        let stale = self.read_entries(&base, plan.stale.iter().copied().collect()).await?;
        let effects = write_effects(request, &row.owner, outcome.change, !stale.is_empty());
        let mut commit = Commit { base: &base, row, writes: Writes::new(), batch, encoded, facts: &facts, now };
        let new = commit.write(plan, &stale);
        let Commit { row, mut writes, .. } = commit;
        put_entries(&mut writes, &base, &new.messages);
        put_commit(&mut writes, &base, &new.commit);
        let written = writes.revision.clone();
        let args = writes.into_args(&base, Some(&revision), Some(&row));
        let key = format!("{base}:t");
        if !self.write_commit((tenant, thread), ("apply", &key), args, &row, &effects).await? {
            return Ok(None);
        }
        self.rows.note_commit((tenant, thread), None, (written, row), batch, outcome.tagged());
        Ok(Some(outcome))
    }

    async fn read_facts(
        &self,
        base: &str,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<Option<(String, Row, PrefetchedFacts)>> {
        let names: Vec<&RecordName> = batch
            .require
            .iter()
            .map(|condition| &condition.name)
            .chain(batch.put.iter().map(|put| &put.name))
            .chain(&batch.delete)
            .collect();
        let external: Vec<&str> = batch.append.iter().filter_map(|message| message.external_id.as_deref()).collect();
        let edited: Vec<MessageId> =
            batch.replace.iter().map(|new| new.id).chain(batch.erase.iter().copied()).collect();
        let mut args = Args::new();
        args.add(batch.key.to_bytes()).add(batch.trim_below.map_or_else(String::new, |below| below.to_string()));
        args.list(batch.append.iter().map(|message| message.id.0.as_bytes().as_slice()));
        args.list(&external);
        args.list(names.iter().map(|name| record_field(name)));
        args.list(edited.iter().map(|id| id.0.as_bytes().as_slice()));
        let mut parts = self.connections.read("facts", base, &args).await?.items()?.into_iter();
        let Some(revision) = parts.next() else { return Ok(None) };
        let revision = required_text(revision)?;
        let row = Row::parse(&required_text(next(&mut parts)?)?)?;
        let commit = next(&mut parts)?.bytes()?.map(|commit| decode_commit(&commit)).transpose()?;
        let mut facts = PrefetchedFacts {
            commit,
            erased: next(&mut parts)?.number()?,
            gaps: row.gaps.clone(),
            body: row.thread.as_ref().map(|thread| thread.body.clone()).unwrap_or_default(),
            ..PrefetchedFacts::default()
        };
        for (message, seq) in batch.append.iter().zip(next(&mut parts)?.items()?) {
            facts.ids.extend(optional_number(seq)?.map(|seq| (message.id, seq)));
        }
        for (id, seq) in external.into_iter().zip(next(&mut parts)?.items()?) {
            facts.external_ids.extend(optional_number(seq)?.map(|seq| (id.to_owned(), seq)));
        }
        for (name, record) in names.into_iter().zip(next(&mut parts)?.items()?) {
            let record = parse_record(record)?.filter(|record| !has_expired(record.expires_at, now));
            facts.versions.extend(record.map(|record| (name.clone(), record.tagged())));
        }
        let seqs = next(&mut parts)?.items()?;
        for ((id, seq), entry) in edited.into_iter().zip(seqs).zip(next(&mut parts)?.items()?) {
            let Some(seq) = optional_number(seq)? else { continue };
            facts.ids.insert(id, seq);
            let Some(entry) = entry.bytes()? else { continue };
            facts.messages.insert(id, decode_entry(seq, &entry)?);
        }
        Ok(Some((revision, row, facts)))
    }

    /// Reads the rows at positions; missing ones are omitted.
    pub(crate) async fn read_entries(&self, base: &str, seqs: Vec<u64>) -> Result<Vec<DumpEntry>> {
        let mut entries = Vec::new();
        for seqs in seqs.chunks(500) {
            let mut read = redis::cmd("HMGET");
            read.arg(format!("{base}:m"));
            seqs.iter().for_each(|seq| {
                read.arg(*seq);
            });
            let rows = self.connections.look_up(&read).await?.items()?;
            for (seq, row) in seqs.iter().zip(rows) {
                let entry = row.bytes()?.map(|row| decode_entry(*seq, &row)).transpose()?;
                entries.extend(entry);
            }
        }
        Ok(entries)
    }
}

fn optional_number(value: redis::Value) -> Result<Option<u64>> {
    match value {
        redis::Value::Nil | redis::Value::Boolean(false) => Ok(None),
        value => value.number().map(Some),
    }
}

/// The facts that the decision about one batch needs, read in advance.
#[derive(Default)]
struct PrefetchedFacts {
    commit: Option<DumpedCommit>,
    versions: HashMap<RecordName, TaggedNumber>,
    ids: HashMap<MessageId, u64>,
    external_ids: HashMap<String, u64>,
    messages: HashMap<MessageId, DumpEntry>,
    /// The number of tombstones among the messages to trim.
    erased: u64,
    gaps: Vec<(u64, u64)>,
    body: String,
}

impl PrefetchedFacts {
    /// Returns the facts for a commit that assumes that its key and its ids are new; `None` if it has to read more.
    fn assumed(batch: &Batch, known: &KnownRow, now: Timestamp) -> Option<Self> {
        if !batch.replace.is_empty() || !batch.erase.is_empty() || batch.trim_below.is_some() {
            return None;
        }
        let mut versions = HashMap::new();
        for name in batch.require.iter().map(|condition| &condition.name).chain(&batch.delete) {
            versions.extend(known.version(name, now)?.map(|version| (name.clone(), version)));
        }
        let body = known.row.thread.as_ref()?.body.clone();
        Some(Self { versions, body, gaps: known.row.gaps.clone(), ..Self::default() })
    }
}

impl Facts for PrefetchedFacts {
    type Error = StoreError;

    fn commit_record(&mut self, _key: &IdempotencyKey) -> Result<Option<CommitRecord>> {
        Ok(self.commit.as_ref().map(|&DumpedCommit { at, fingerprint, change, first_seq, count, .. }| CommitRecord {
            at,
            fingerprint,
            change,
            first_seq,
            count,
        }))
    }

    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>> {
        Ok(self.versions.get(name).copied())
    }

    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>> {
        Ok(self.ids.get(&id).copied())
    }

    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>> {
        Ok(self.external_ids.get(external_id).copied())
    }

    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>> {
        let Some(DumpEntry::Message { seq, created_at, external_id, body, .. }) = self.messages.get(&id) else {
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
        let lost =
            self.gaps.iter().map(|(first, last)| (last + 1).min(seqs.end).saturating_sub((*first).max(seqs.start)));
        Ok((seqs.end.saturating_sub(seqs.start)).saturating_sub(self.erased + lost.sum::<u64>()))
    }

    fn thread_body(&mut self) -> Result<String> {
        Ok(self.body.clone())
    }
}

/// What every commit writes besides the row: its new messages and its entry of the change log.
struct NewEntries {
    messages: Vec<DumpEntry>,
    commit: DumpedCommit,
}

impl NewEntries {
    /// Returns the arguments of the function `commit`.
    fn into_args(self, (expected, revision): (&str, &str), row: &Row, commands: &Args) -> Args {
        let Self { messages, commit } = self;
        let positions = row.positions();
        let mut args = Args::new();
        args.add(expected).add(revision).add(row.to_text()).number(positions.seq).number(positions.first_seq);
        args.add(commit.key.to_bytes()).number(commit.change).add(encode_commit(&commit));
        args.number(messages.len());
        for message in &messages {
            if let DumpEntry::Message { id, seq, .. } = message {
                args.add(id.0.as_bytes()).number(seq).add(encode_entry(message));
            }
        }
        args.list(external_ids(&messages).map(|(id, _)| id));
        args.append(commands);
        args
    }
}

/// Translates a plan into commands, except for the new entries.
struct Commit<'a> {
    base: &'a str,
    row: Row,
    writes: Writes,
    batch: &'a Batch,
    encoded: &'a EncodedBatch,
    facts: &'a PrefetchedFacts,
    now: Timestamp,
}

impl Commit<'_> {
    fn write(&mut self, plan: Plan, stale: &[DumpEntry]) -> NewEntries {
        let CommitOutcome { change, first_seq, count, .. } = plan.outcome;
        for entry in stale {
            self.remove_stale(entry);
        }
        self.replace(&plan);
        self.erase(&plan);
        self.write_records(&plan);
        self.row.writes += 1;
        self.row.count = (self.row.count + count).saturating_sub(plan.removed);
        if self.row.log_at.is_none() {
            (self.row.log_from, self.row.log_at) = (change, Some(self.now));
        }
        if let Some(thread) = &mut self.row.thread {
            if let Some(body) = plan.thread_body {
                thread.body = body;
            }
            thread.expires_at = self.batch.patch.expires_at.unwrap_or(thread.expires_at);
            thread.positions = plan.positions;
            thread.updated_at = thread.updated_at.max(self.now);
        }
        let messages = self.new_messages(first_seq);
        let commit = DumpedCommit {
            change,
            at: self.now,
            key: self.batch.key.clone(),
            fingerprint: self.batch.fingerprint,
            first_seq,
            count,
            effects: plan.effects,
        };
        NewEntries { messages, commit }
    }

    fn remove_stale(&mut self, entry: &DumpEntry) {
        remove_entry(&mut self.writes, self.base, entry);
        self.note_edit(entry);
    }

    /// Keeps the text of a message that is removed or replaced until it is removed from the index.
    fn note_edit(&mut self, entry: &DumpEntry) {
        let DumpEntry::Message { seq, body, .. } = entry else { return };
        self.writes.command("RPUSH", &format!("{}:p", self.base), [format!("{seq}\n{body}")]);
        self.row.edited = Some(self.row.edited.map_or(*seq, |edited| edited.min(*seq)));
    }

    fn new_messages(&self, first_seq: u64) -> Vec<DumpEntry> {
        let contents = self.encoded.append.iter().zip(&self.encoded.checksums);
        (first_seq..)
            .zip(self.batch.append.iter().zip(contents))
            .map(|(seq, (message, (body, checksum)))| DumpEntry::Message {
                seq,
                id: message.id,
                external_id: message.external_id.clone(),
                revision: 0,
                created_at: message.created_at,
                body: body.clone(),
                checksum: Some(*checksum),
            })
            .collect()
    }

    fn replace(&mut self, plan: &Plan) {
        let replacements = self.batch.replace.iter().zip(&self.encoded.replace).zip(&plan.replaced);
        for ((new, body), replaced) in replacements {
            let Some(old) = self.facts.messages.get(&new.id) else { continue };
            self.note_edit(old);
            let mut entry = old.clone();
            if let DumpEntry::Message { body: stored, revision, checksum, .. } = &mut entry {
                stored.clone_from(body);
                *revision += 1;
                *checksum = Some(replaced.checksum);
            }
            put_entries(&mut self.writes, self.base, &[entry]);
        }
    }

    fn erase(&mut self, plan: &Plan) {
        for (id, erased) in self.batch.erase.iter().zip(&plan.erased) {
            if let Some(old) = self.facts.messages.get(id) {
                self.note_edit(old);
            }
            if let Some(external_id) = &erased.external_id {
                self.writes.command("HDEL", &format!("{}:x", self.base), [external_id]);
            }
            let entry = DumpEntry::Tombstone { seq: erased.seq, id: *id, erased_at: self.now };
            put_entries(&mut self.writes, self.base, &[entry]);
        }
    }

    fn write_records(&mut self, plan: &Plan) {
        let version = plan.outcome.tagged();
        for put in &self.batch.put {
            let RecordName { namespace, key } = put.name.clone();
            let (value, expires_at) = (put.value.clone(), put.expires_at);
            let record = Record { namespace, key, value, version: version.number, tag: version.tag, expires_at };
            self.writes.put_record(self.base, &record);
            self.row.note_record(&record);
            self.row.is_driven |= put.name == RecordName::driver();
        }
        for name in &self.batch.delete {
            self.writes.remove_record(self.base, name);
            self.row.is_driven &= *name != RecordName::driver();
        }
    }
}

impl Row {
    /// Updates `records_expire_at` with the expiry of a record.
    pub(crate) fn note_record(&mut self, record: &Record) {
        self.records_expire_at = self.records_expire_at.into_iter().chain(record.expires_at).min();
    }
}

/// Writes messages and tombstones.
pub(crate) fn put_entries(writes: &mut Writes, base: &str, entries: &[DumpEntry]) {
    let (mut rows, mut ids, mut tombstones) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let seq = entry.seq().to_string().into_bytes();
        match entry {
            DumpEntry::Message { id, .. } => ids.extend([id.0.as_bytes().to_vec(), seq.clone()]),
            DumpEntry::Tombstone { id, .. } => {
                ids.extend([id.0.as_bytes().to_vec(), seq.clone()]);
                tombstones.extend([seq.clone(), seq.clone()]);
            }
            DumpEntry::Lost { .. } => continue,
        }
        rows.extend([seq, encode_entry(entry)]);
    }
    writes.command("HSET", &format!("{base}:m"), rows);
    writes.command("HSET", &format!("{base}:i"), ids);
    put_external_ids(writes, base, entries);
    writes.command("ZADD", &format!("{base}:e"), tombstones);
}

/// Returns the external ids of messages with their positions.
fn external_ids(entries: &[DumpEntry]) -> impl Iterator<Item = (&str, u64)> {
    entries.iter().filter_map(|entry| match entry {
        DumpEntry::Message { external_id: Some(id), seq, .. } => Some((id.as_str(), *seq)),
        _ => None,
    })
}

fn put_external_ids(writes: &mut Writes, base: &str, entries: &[DumpEntry]) {
    let words = external_ids(entries).flat_map(|(id, seq)| [id.to_owned(), seq.to_string()]);
    writes.command("HSET", &format!("{base}:x"), words);
}

/// Removes a message or tombstone, and its ids.
pub(crate) fn remove_entry(writes: &mut Writes, base: &str, entry: &DumpEntry) {
    let seq = entry.seq().to_string();
    match entry {
        DumpEntry::Message { id, external_id, .. } => {
            writes.command("HDEL", &format!("{base}:i"), [id.0.as_bytes()]);
            if let Some(external_id) = external_id {
                writes.command("HDEL", &format!("{base}:x"), [external_id]);
            }
        }
        DumpEntry::Tombstone { id, .. } => {
            writes.command("HDEL", &format!("{base}:i"), [id.0.as_bytes()]);
            writes.command("ZREM", &format!("{base}:e"), [&seq]);
        }
        DumpEntry::Lost { .. } => {}
    }
    writes.command("HDEL", &format!("{base}:m"), [seq]);
}

/// Writes an entry of the change log, which is also the idempotency record.
pub(crate) fn put_commit(writes: &mut Writes, base: &str, commit: &DumpedCommit) {
    let change = commit.change.to_string().into_bytes();
    writes.command("HSET", &format!("{base}:c"), [change.clone(), encode_commit(commit)]);
    writes.command("HSET", &format!("{base}:k"), [commit.key.to_bytes(), change]);
}

/// Returns a tenant's wake-up for a thread that was opened, deleted or restored.
pub(crate) fn thread_wake_up(tenant: &TenantId, row: &Row, thread: ThreadId) -> WakeUp {
    WakeUp::Thread { tenant: tenant.clone(), owner: row.owner.clone(), thread, change: None }
}
