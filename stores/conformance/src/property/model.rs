//! A simple model of the contract: vectors with linear search.
//!
//! It shares no code with the stores. Time never goes back in a sequence, so expired data is removed before each operation.

use threadkeep_core::{
    Access, Batch, Change, ChangePage, ChangeTag, CommitOutcome, Conflict, DerivedWrite, Effect, Expected, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, Kind, Map, Message, MessageId, MessageQuery, Namespace, OpenOutcome,
    OpenThread, OrderBy, Owner, Positions, RangeEnd, Record, RecordOwner, RecordState, RecordWrite, Result, Scope,
    StoreError, TaggedNumber, TenantId, Thread, ThreadId, ThreadOrder, Timestamp, WriteOutcome,
};

use super::operation::DERIVED_KEY;
use crate::fixtures::tag_of;

#[derive(Default)]
pub(super) struct Model {
    threads: Vec<ModelThread>,
    deleted: Vec<(TenantId, ThreadId, Timestamp)>,
    records: Vec<(TenantId, RecordOwner, Record)>,
    /// All versions that were assigned to records. Versions are never removed from this list.
    versions: Vec<(TenantId, RecordName, u64)>,
}

type RecordName = (RecordOwner, Namespace, String);

struct ModelThread {
    tenant: TenantId,
    /// `message_count` is not maintained; it is computed by [`ModelThread::with_message_count`].
    thread: Thread,
    messages: Vec<Message>,
    tombstones: Vec<(u64, MessageId)>,
    records: Vec<Record>,
    past_commits: Vec<PastCommit>,
    log: Vec<Change>,
}

struct PastCommit {
    key: IdempotencyKey,
    fingerprint: Fingerprint,
    outcome: CommitOutcome,
    at: Timestamp,
}

fn is_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

fn is_in_window(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(IDEMPOTENCY_WINDOW_MS) >= now
}

fn thread_not_found() -> StoreError {
    StoreError::NotFound(Kind::Thread)
}

impl Model {
    /// Removes expired threads and records, and ids and idempotency records older than the window.
    pub(super) fn remove_expired(&mut self, now: Timestamp) {
        self.threads.retain(|thread| !is_expired(thread.thread.expires_at, now));
        self.deleted.retain(|(_, _, at)| is_in_window(*at, now));
        self.records.retain(|(_, _, record)| !is_expired(record.expires_at, now));
        for thread in &mut self.threads {
            thread.records.retain(|record| !is_expired(record.expires_at, now));
            thread.past_commits.retain(|past| is_in_window(past.at, now));
        }
    }

    pub(super) fn sweep(&mut self, now: Timestamp) {
        for thread in &mut self.threads {
            let old = thread.log.iter().take_while(|change| !is_in_window(change.at, now)).count();
            thread.log.drain(..old);
        }
    }

    pub(super) fn positions(&self, tenant: &TenantId, id: ThreadId) -> Positions {
        let found = self.threads.iter().find(|thread| thread.tenant == *tenant && thread.thread.id == id);
        found.map_or(Positions::BEGINNING, |thread| thread.thread.positions)
    }

    fn index_of(&self, scope: &Scope, id: ThreadId) -> Result<(usize, Access)> {
        let index =
            self.threads.iter().position(|thread| thread.tenant == *scope.tenant_id() && thread.thread.id == id);
        let index = index.ok_or_else(thread_not_found)?;
        match scope.access(&self.threads[index].thread.owner) {
            Access::None => Err(thread_not_found()),
            access => Ok((index, access)),
        }
    }

    fn read(&self, scope: &Scope, id: ThreadId) -> Result<&ModelThread> {
        self.index_of(scope, id).map(|(index, _)| &self.threads[index])
    }

    pub(super) fn open_thread(&mut self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        if scope.access(&open.owner) == Access::None {
            return Err(thread_not_found());
        }
        let in_tenant = |thread: &&ModelThread| thread.tenant == *scope.tenant_id();
        if open.key.is_some() {
            let by_key = |thread: &&ModelThread| thread.thread.key == open.key && thread.thread.owner == open.owner;
            if let Some(existing) = self.threads.iter().filter(in_tenant).find(by_key) {
                return Ok(OpenOutcome { thread: existing.with_message_count(), created: false });
            }
        }
        if let Some(existing) = self.threads.iter().filter(in_tenant).find(|thread| thread.thread.id == open.id) {
            if scope.access(&existing.thread.owner) == Access::None {
                return Err(thread_not_found());
            }
            if open.key.is_some() {
                return Err(Conflict::Thread.into());
            }
            return Ok(OpenOutcome { thread: existing.with_message_count(), created: false });
        }
        if self.deleted.iter().any(|(tenant, id, _)| tenant == scope.tenant_id() && *id == open.id) {
            return Err(thread_not_found());
        }
        let thread = Thread {
            id: open.id,
            owner: open.owner.clone(),
            key: open.key.clone(),
            title: None,
            metadata: Map::new(),
            state: Map::new(),
            positions: Positions::BEGINNING,
            message_count: 0,
            created_at: now,
            updated_at: now,
            expires_at: open.expires_at,
        };
        self.threads.push(ModelThread {
            tenant: scope.tenant_id().clone(),
            thread: thread.clone(),
            messages: Vec::new(),
            tombstones: Vec::new(),
            records: Vec::new(),
            past_commits: Vec::new(),
            log: Vec::new(),
        });
        Ok(OpenOutcome { thread, created: true })
    }

    pub(super) fn commit(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<CommitOutcome> {
        if has_duplicates(batch) {
            return Err(StoreError::invalid("batch", "contains duplicate names"));
        }
        let (index, access) = self.index_of(scope, id)?;
        if access == Access::Append && !batch.is_append_only() {
            return Err(StoreError::Denied("append only"));
        }
        let thread = &mut self.threads[index];
        if let Some(past) = thread.past_commits.iter().find(|past| past.key == batch.key) {
            if past.fingerprint != batch.fingerprint {
                return Err(Conflict::IdempotencyKey.into());
            }
            return Ok(CommitOutcome { replayed: true, ..past.outcome });
        }
        thread.check(batch)?;
        Ok(thread.apply(batch, now))
    }

    pub(super) fn delete_thread(&mut self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<()> {
        let (index, access) = self.index_of(scope, id)?;
        if access == Access::Append {
            return Err(StoreError::Denied("deleting a shared thread"));
        }
        self.threads.remove(index);
        self.deleted.push((scope.tenant_id().clone(), id, now));
        Ok(())
    }

    pub(super) fn find_thread(&self, scope: &Scope, id: ThreadId) -> Option<Thread> {
        self.read(scope, id).ok().map(ModelThread::with_message_count)
    }

    pub(super) fn list_threads(&self, scope: &Scope, order: ThreadOrder) -> Vec<Thread> {
        let in_tenant = self.threads.iter().filter(|thread| thread.tenant == *scope.tenant_id());
        let in_scope = in_tenant.filter(|thread| scope.access(&thread.thread.owner) == Access::Full);
        let mut threads: Vec<Thread> = in_scope.map(ModelThread::with_message_count).collect();
        match order {
            ThreadOrder::Created => threads.sort_by_key(|thread| thread.created_at),
            ThreadOrder::Recent => threads.sort_by_key(|thread| std::cmp::Reverse(thread.updated_at)),
        }
        threads
    }

    pub(super) fn list_messages(
        &self,
        scope: &Scope,
        id: ThreadId,
        query: &MessageQuery,
    ) -> Result<(Vec<Message>, bool, Positions)> {
        let thread = self.read(scope, id)?;
        let mut messages: Vec<Message> = thread.messages.clone();
        messages.retain(|message| query.roles.is_empty() || query.roles.contains(&message.content.role));
        messages.retain(|message| match query.before {
            None => true,
            Some(threadkeep_core::Bound::Seq(seq)) => message.seq < seq,
            Some(threadkeep_core::Bound::Time(time)) => message.created_at < time,
        });
        messages.retain(|message| match query.after {
            None => true,
            Some(threadkeep_core::Bound::Seq(seq)) => message.seq > seq,
            Some(threadkeep_core::Bound::Time(time)) => message.created_at > time,
        });
        if query.order == OrderBy::Time {
            messages.sort_by_key(|message| message.created_at);
        }
        let more = messages.len() > query.limit;
        if query.take == RangeEnd::Newest {
            messages.reverse();
            messages.truncate(query.limit);
            messages.reverse();
        } else {
            messages.truncate(query.limit);
        }
        Ok((messages, more, thread.thread.positions))
    }

    pub(super) fn list_changes(&self, scope: &Scope, id: ThreadId, after: TaggedNumber) -> Result<ChangePage> {
        let thread = self.read(scope, id)?;
        let positions = thread.thread.positions;
        let matches_tag = |tag| {
            let logged = thread.log.iter().find(|change| change.change == after.number).and_then(|change| change.tag);
            Some(tag) == if after.number == positions.change { positions.tag } else { logged }
        };
        let changes: Vec<Change> = thread.log.iter().filter(|change| change.change > after.number).cloned().collect();
        let is_complete = Some(changes.len() as u64) == positions.change.checked_sub(after.number);
        if !is_complete || !after.tag.is_none_or(matches_tag) {
            return Ok(ChangePage::Reset { positions });
        }
        Ok(ChangePage::Changes { changes, positions })
    }

    pub(super) fn list_records(&self, scope: &Scope, owner: &RecordOwner) -> Vec<Record> {
        let mut records: Vec<Record> = match owner {
            RecordOwner::Thread(id) => self.read(scope, *id).map(|thread| thread.records.clone()).unwrap_or_default(),
            owner if access_to(scope, owner) == Access::None => Vec::new(),
            owner => {
                let owned = self
                    .records
                    .iter()
                    .filter(|(tenant, record_owner, _)| tenant == scope.tenant_id() && record_owner == owner);
                owned.map(|(_, _, record)| record.clone()).collect()
            }
        };
        records.sort_by_key(|record| (record.namespace.clone(), record.key.clone()));
        records
    }

    pub(super) fn record_version(&self, tenant: &TenantId, write: &RecordWrite) -> Option<u64> {
        let found = self.records.iter().find(|(record_tenant, owner, record)| {
            record_tenant == tenant
                && *owner == write.owner
                && record.namespace == write.namespace
                && record.key == write.key
        });
        found.map(|(_, _, record)| record.version)
    }

    pub(super) fn derived_version(&self, tenant: &TenantId, id: ThreadId) -> Option<TaggedNumber> {
        let thread = self.threads.iter().find(|thread| thread.tenant == *tenant && thread.thread.id == id)?;
        thread.records.iter().find(|record| is_derived(record)).map(Record::tagged)
    }

    pub(super) fn write_derived(&mut self, scope: &Scope, id: ThreadId, write: &DerivedWrite) -> Result<WriteOutcome> {
        let (index, access) = self.index_of(scope, id)?;
        if access != Access::Full {
            return Err(StoreError::Denied("changing a shared thread"));
        }
        let actual = self.derived_version(scope.tenant_id(), id);
        let thread = &mut self.threads[index];
        let positions = thread.thread.positions;
        if !is_met(write.at_change, positions.change, positions.tag) {
            return Err(Conflict::Change { expected: write.at_change, actual: positions.tagged() }.into());
        }
        let (namespace, key) = (Namespace::derived(), DERIVED_KEY.to_owned());
        let is_expected = match (write.expected, actual) {
            (Some(expected), Some(actual)) => is_met(expected, actual.number, actual.tag),
            (expected, actual) => expected.is_none() && actual.is_none(),
        };
        if !is_expected {
            return Err(Conflict::Record { namespace, key, actual }.into());
        }
        let (change, tag) = (positions.change, positions.tag);
        let version = (actual.map_or(0, |version| version.number >> 32) + 1) * (1 << 32) + change;
        thread.records.retain(|record| !is_derived(record));
        thread.records.push(Record { namespace, key, value: write.value.clone(), version, tag, expires_at: None });
        Ok(WriteOutcome { version, tag })
    }

    /// Compares a store's answer to a write with the expected one, and adopts the version that the store assigned.
    pub(super) fn check_write(
        &mut self,
        scope: &Scope,
        write: &RecordWrite,
        answer: Result<WriteOutcome>,
    ) -> Result<(), String> {
        let tenant = scope.tenant_id();
        let actual = self.record_version(tenant, write);
        let refused = match access_to(scope, &write.owner) {
            Access::None => Some(StoreError::NotFound(Kind::Record)),
            Access::Append => Some(StoreError::Denied("writing a record of the tenant")),
            Access::Full if write.expected.is_some_and(|expected| expected != actual.unwrap_or(0)) => {
                let (namespace, key) = (write.namespace.clone(), write.key.clone());
                let actual = actual.map(TaggedNumber::from);
                Some(Conflict::Record { namespace, key, actual }.into())
            }
            Access::Full => None,
        };
        if let Some(error) = refused {
            return super::compare(answer, Err(error));
        }
        let version = answer.map_err(|error| format!("the store rejected a valid write: {error:?}"))?.version;
        self.records.retain(|(record_tenant, owner, record)| {
            record_tenant != tenant
                || *owner != write.owner
                || record.namespace != write.namespace
                || record.key != write.key
        });
        let Some(value) = write.value.clone() else {
            return if version == 0 { Ok(()) } else { Err(format!("a deletion returned version {version}")) };
        };
        self.check_version(tenant, write, version)?;
        let (namespace, key, expires_at) = (write.namespace.clone(), write.key.clone(), write.expires_at);
        let record = Record { namespace, key, value, version, tag: None, expires_at };
        self.records.push((tenant.clone(), write.owner.clone(), record));
        Ok(())
    }

    fn check_version(&mut self, tenant: &TenantId, write: &RecordWrite, version: u64) -> Result<(), String> {
        let name = (write.owner.clone(), write.namespace.clone(), write.key.clone());
        let last = self
            .versions
            .iter()
            .filter(|(record_tenant, record, _)| record_tenant == tenant && *record == name)
            .map(|(_, _, last)| *last);
        if version <= last.max().unwrap_or(0) {
            return Err(format!("version {version} is not greater than an earlier one"));
        }
        self.versions.push((tenant.clone(), name, version));
        Ok(())
    }
}

impl ModelThread {
    fn with_message_count(&self) -> Thread {
        Thread { message_count: self.messages.len() as u64, ..self.thread.clone() }
    }

    fn find(&self, id: MessageId) -> Result<usize> {
        self.messages.iter().position(|message| message.id == id).ok_or(StoreError::NotFound(Kind::Message))
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        let positions = self.thread.positions;
        match batch.expected {
            Some(Expected::Seq(expected)) if expected != positions.seq => {
                return Err(Conflict::Seq { expected, actual: positions.seq }.into());
            }
            Some(Expected::Change(expected)) if !is_met(expected, positions.change, positions.tag) => {
                return Err(Conflict::Change {
                    expected,
                    actual: TaggedNumber { number: positions.change, tag: positions.tag },
                }
                .into());
            }
            _ => {}
        }
        for condition in &batch.require {
            let (namespace, key) = (&condition.name.namespace, &condition.name.key);
            let actual = self.records.iter().find(|record| record.namespace == *namespace && record.key == *key);
            let (tag, actual) = (actual.and_then(|record| record.tag), actual.map(|record| record.version));
            let is_condition_met = match condition.state {
                RecordState::Absent => actual.is_none(),
                RecordState::Version(version) => actual.is_some_and(|actual| is_met(version, actual, tag)),
            };
            let actual = actual.map(|number| TaggedNumber { number, tag });
            if !is_condition_met {
                return Err(Conflict::Record { namespace: namespace.clone(), key: key.clone(), actual }.into());
            }
        }
        for message in &batch.append {
            let by_id = self.messages.iter().any(|stored| stored.id == message.id);
            let by_tombstone = self.tombstones.iter().any(|(_, id)| *id == message.id);
            let by_external_id = self
                .messages
                .iter()
                .any(|stored| stored.external_id.is_some() && stored.external_id == message.external_id);
            if by_id || by_tombstone || by_external_id {
                return Err(Conflict::MessageId { id: message.id, seq: 0 }.into());
            }
        }
        for id in batch.replace.iter().map(|message| message.id).chain(batch.erase.iter().copied()) {
            self.find(id)?;
        }
        if batch.trim_below.is_some_and(|below| below > positions.seq + batch.append.len() as u64 + 1) {
            return Err(StoreError::invalid("trim_below", "beyond the end"));
        }
        Ok(())
    }

    fn apply(&mut self, batch: &Batch, now: Timestamp) -> CommitOutcome {
        let Positions { seq, change, tag, .. } = self.thread.positions;
        let count = batch.append.len() as u64;
        if batch.is_empty() {
            return CommitOutcome { change, tag, first_seq: seq + 1, count: 0, replayed: false };
        }
        let (change, tag) = (change + 1, tag_of(batch));
        let outcome = CommitOutcome { change, tag, first_seq: seq + 1, count, replayed: false };
        let mut effects = Vec::new();
        if count > 0 {
            effects.push(Effect::Appended { first_seq: seq + 1, count });
        }
        for (message, seq) in batch.append.iter().zip(seq + 1..) {
            self.messages.push(Message {
                seq,
                id: message.id,
                external_id: message.external_id.clone(),
                revision: 0,
                created_at: message.created_at,
                content: message.content.clone(),
            });
        }
        for replacement in &batch.replace {
            for message in self.messages.iter_mut().filter(|message| message.id == replacement.id) {
                message.content = replacement.content.clone();
                message.revision += 1;
                effects.push(Effect::Replaced { seq: message.seq, id: message.id });
            }
        }
        for id in &batch.erase {
            if let Ok(index) = self.find(*id) {
                let seq = self.messages.remove(index).seq;
                self.tombstones.push((seq, *id));
                effects.push(Effect::Erased { seq, id: *id });
            }
        }
        self.thread.positions.seq += count;
        self.trim(batch.trim_below, &mut effects);
        self.change_records(batch, &outcome, &mut effects);
        if !batch.patch.is_empty() {
            effects.push(Effect::Patched);
            if let Some(title) = &batch.patch.title {
                self.thread.title.clone_from(title);
            }
            if let Some(expires_at) = batch.patch.expires_at {
                self.thread.expires_at = expires_at;
            }
        }
        (self.thread.positions.change, self.thread.positions.tag) = (change, tag);
        self.thread.updated_at = now;
        self.log.push(Change { change, tag, at: now, effects });
        self.past_commits.push(PastCommit { key: batch.key.clone(), fingerprint: batch.fingerprint, outcome, at: now });
        outcome
    }

    fn trim(&mut self, below: Option<u64>, effects: &mut Vec<Effect>) {
        let Some(below) = below.filter(|below| *below > self.thread.positions.first_seq) else { return };
        self.messages.retain(|message| message.seq >= below);
        self.tombstones.retain(|(seq, _)| *seq >= below);
        self.thread.positions.first_seq = below;
        effects.push(Effect::Trimmed { first_seq: below });
    }

    fn change_records(&mut self, batch: &Batch, outcome: &CommitOutcome, effects: &mut Vec<Effect>) {
        let &CommitOutcome { change, tag, .. } = outcome;
        for put in &batch.put {
            let (namespace, key) = (put.name.namespace.clone(), put.name.key.clone());
            self.records.retain(|record| record.namespace != namespace || record.key != key);
            let (value, expires_at) = (put.value.clone(), put.expires_at);
            self.records.push(Record { namespace, key, value, version: change, tag, expires_at });
            effects.push(Effect::RecordPut { name: put.name.clone(), version: change });
        }
        for name in &batch.delete {
            let before = self.records.len();
            self.records.retain(|record| record.namespace != name.namespace || record.key != name.key);
            if self.records.len() < before {
                effects.push(Effect::RecordDeleted { name: name.clone() });
            }
        }
    }
}

fn is_derived(record: &Record) -> bool {
    record.namespace == Namespace::derived() && record.key == DERIVED_KEY
}

/// Whether a number and a tag match the expected ones. Tags are compared only if both are known.
fn is_met(expected: TaggedNumber, number: u64, tag: Option<ChangeTag>) -> bool {
    expected.number == number && (expected.tag.is_none() || tag.is_none() || expected.tag == tag)
}

fn access_to(scope: &Scope, owner: &RecordOwner) -> Access {
    match owner {
        RecordOwner::Tenant => scope.access(&Owner::Tenant),
        RecordOwner::User(user) => scope.access(&Owner::User(user.clone())),
        RecordOwner::Thread(_) => Access::None,
    }
}

fn has_duplicates(batch: &Batch) -> bool {
    let messages: Vec<MessageId> = batch
        .append
        .iter()
        .map(|message| message.id)
        .chain(batch.replace.iter().map(|message| message.id))
        .chain(batch.erase.iter().copied())
        .collect();
    let external: Vec<_> = batch.append.iter().filter_map(|message| message.external_id.as_ref()).collect();
    let records: Vec<_> = batch.put.iter().map(|put| &put.name).chain(&batch.delete).collect();
    contains_duplicates(&messages) || contains_duplicates(&external) || contains_duplicates(&records)
}

fn contains_duplicates<T: PartialEq>(names: &[T]) -> bool {
    names.iter().enumerate().any(|(index, name)| names[..index].contains(name))
}
