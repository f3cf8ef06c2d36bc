//! The contract in the plainest words: lists that are searched from one end to the other.
//!
//! It shares no code with any store. Time only goes forward here, so what has expired is forgotten before each step.

mod thread;

use threadkeep_core::{
    Access, Batch, Change, ChangePage, CommitOutcome, Conflict, Document, DocumentOwner, DocumentWrite, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, Kind, Map, Message, MessageId, MessageQuery, OpenThread, Opened, OrderBy,
    Owner, Positions, Result, Scope, StoreError, Take, TenantId, Thread, ThreadId, ThreadOrder, Timestamp, Written,
};

use self::thread::names_twice;

#[derive(Default)]
pub(super) struct Model {
    threads: Vec<ModelThread>,
    deleted: Vec<(TenantId, ThreadId, Timestamp)>,
    documents: Vec<(TenantId, DocumentOwner, Document)>,
    /// The last version given to each document, forgotten by nothing.
    versions: Vec<(TenantId, DocumentName, u64)>,
}

type DocumentName = (DocumentOwner, threadkeep_core::Namespace, String);

struct ModelThread {
    tenant: TenantId,
    /// Its `message_count` is counted when it is read.
    thread: Thread,
    messages: Vec<Message>,
    tombstones: Vec<(u64, MessageId)>,
    documents: Vec<Document>,
    records: Vec<Record>,
    log: Vec<Change>,
}

struct Record {
    key: IdempotencyKey,
    fingerprint: Fingerprint,
    outcome: CommitOutcome,
    at: Timestamp,
}

fn is_over(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

fn is_remembered(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(IDEMPOTENCY_WINDOW_MS) >= now
}

fn no_thread() -> StoreError {
    StoreError::NotFound(Kind::Thread)
}

impl Model {
    /// Forgets what is as if it had never been.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.threads.retain(|it| !is_over(it.thread.expires_at, now));
        self.deleted.retain(|(_, _, at)| is_remembered(*at, now));
        self.documents.retain(|(_, _, document)| !is_over(document.expires_at, now));
        for thread in &mut self.threads {
            thread.documents.retain(|document| !is_over(document.expires_at, now));
            thread.records.retain(|record| is_remembered(record.at, now));
        }
    }

    pub(super) fn sweep(&mut self, now: Timestamp) {
        for thread in &mut self.threads {
            let old = thread.log.iter().take_while(|change| !is_remembered(change.at, now)).count();
            thread.log.drain(..old);
        }
    }

    pub(super) fn positions(&self, tenant: &TenantId, id: ThreadId) -> Positions {
        let found = self.threads.iter().find(|it| it.tenant == *tenant && it.thread.id == id);
        found.map_or(Positions { seq: 0, change: 0, first_seq: 1 }, |it| it.thread.positions)
    }

    fn place(&self, scope: &Scope, id: ThreadId) -> Result<(usize, Access)> {
        let place = self.threads.iter().position(|it| it.tenant == *scope.tenant_id() && it.thread.id == id);
        let place = place.ok_or_else(no_thread)?;
        match scope.access(&self.threads[place].thread.owner) {
            Access::None => Err(no_thread()),
            access => Ok((place, access)),
        }
    }

    fn read(&self, scope: &Scope, id: ThreadId) -> Result<&ModelThread> {
        self.place(scope, id).map(|(place, _)| &self.threads[place])
    }

    pub(super) fn open_thread(&mut self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<Opened> {
        if scope.access(&open.owner) == Access::None {
            return Err(no_thread());
        }
        let ours = |it: &&ModelThread| it.tenant == *scope.tenant_id();
        if open.key.is_some() {
            let claimed =
                self.threads.iter().filter(ours).find(|it| it.thread.key == open.key && it.thread.owner == open.owner);
            if let Some(claimed) = claimed {
                return Ok(Opened { thread: claimed.seen(), created: false });
            }
        }
        if let Some(there) = self.threads.iter().filter(ours).find(|it| it.thread.id == open.id) {
            if scope.access(&there.thread.owner) == Access::None {
                return Err(no_thread());
            }
            if open.key.is_some() {
                return Err(Conflict::Thread.into());
            }
            return Ok(Opened { thread: there.seen(), created: false });
        }
        if self.deleted.iter().any(|(tenant, id, _)| tenant == scope.tenant_id() && *id == open.id) {
            return Err(no_thread());
        }
        let thread = Thread {
            id: open.id,
            owner: open.owner.clone(),
            key: open.key.clone(),
            title: None,
            metadata: Map::new(),
            state: Map::new(),
            positions: Positions { seq: 0, change: 0, first_seq: 1 },
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
            documents: Vec::new(),
            records: Vec::new(),
            log: Vec::new(),
        });
        Ok(Opened { thread, created: true })
    }

    pub(super) fn commit(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<CommitOutcome> {
        if names_twice(batch) {
            return Err(StoreError::invalid("batch", "names something twice"));
        }
        let (place, access) = self.place(scope, id)?;
        if access == Access::Append && !batch.is_append_only() {
            return Err(StoreError::Denied("append only"));
        }
        let thread = &mut self.threads[place];
        if let Some(record) = thread.records.iter().find(|record| record.key == batch.key) {
            if record.fingerprint != batch.fingerprint {
                return Err(Conflict::IdempotencyKey.into());
            }
            return Ok(CommitOutcome { replayed: true, ..record.outcome });
        }
        thread.check(batch)?;
        Ok(thread.apply(batch, now))
    }

    pub(super) fn delete_thread(&mut self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<()> {
        let (place, access) = self.place(scope, id)?;
        if access == Access::Append {
            return Err(StoreError::Denied("shared"));
        }
        self.threads.remove(place);
        self.deleted.push((scope.tenant_id().clone(), id, now));
        Ok(())
    }

    pub(super) fn find_thread(&self, scope: &Scope, id: ThreadId) -> Option<Thread> {
        self.read(scope, id).ok().map(ModelThread::seen)
    }

    pub(super) fn list_threads(&self, scope: &Scope, order: ThreadOrder) -> Vec<Thread> {
        let own = self.threads.iter().filter(|it| it.tenant == *scope.tenant_id());
        let own = own.filter(|it| scope.access(&it.thread.owner) == Access::Full);
        let mut threads: Vec<Thread> = own.map(ModelThread::seen).collect();
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
        let it = self.read(scope, id)?;
        let mut messages: Vec<Message> = it.messages.clone();
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
        if query.take == Take::Newest {
            messages.reverse();
            messages.truncate(query.limit);
            messages.reverse();
        } else {
            messages.truncate(query.limit);
        }
        Ok((messages, more, it.thread.positions))
    }

    pub(super) fn list_changes(&self, scope: &Scope, id: ThreadId, after: u64) -> Result<ChangePage> {
        let it = self.read(scope, id)?;
        let positions = it.thread.positions;
        let changes: Vec<Change> = it.log.iter().filter(|change| change.change > after).cloned().collect();
        if after > positions.change || changes.len() as u64 != positions.change - after {
            return Ok(ChangePage::Reset { positions });
        }
        Ok(ChangePage::Changes { changes, positions })
    }

    pub(super) fn list_documents(&self, scope: &Scope, owner: &DocumentOwner) -> Vec<Document> {
        let mut documents: Vec<Document> = match owner {
            DocumentOwner::Thread(id) => self.read(scope, *id).map(|it| it.documents.clone()).unwrap_or_default(),
            owner if access_to(scope, owner) == Access::None => Vec::new(),
            owner => {
                let own = self.documents.iter().filter(|(tenant, of, _)| tenant == scope.tenant_id() && of == owner);
                own.map(|(_, _, document)| document.clone()).collect()
            }
        };
        documents.sort_by_key(|document| (document.namespace.clone(), document.key.clone()));
        documents
    }

    pub(super) fn document_version(&self, tenant: &TenantId, write: &DocumentWrite) -> Option<u64> {
        let found = self.documents.iter().find(|(of, owner, document)| {
            of == tenant && *owner == write.owner && document.namespace == write.namespace && document.key == write.key
        });
        found.map(|(_, _, document)| document.version)
    }

    /// Compares what a store answered to a write, and takes over the version that it gave.
    pub(super) fn check_write(
        &mut self,
        scope: &Scope,
        write: &DocumentWrite,
        answer: Result<Written>,
    ) -> Result<(), String> {
        let tenant = scope.tenant_id();
        let actual = self.document_version(tenant, write);
        let refused = match access_to(scope, &write.owner) {
            Access::None => Some(StoreError::NotFound(Kind::Document)),
            Access::Append => Some(StoreError::Denied("the tenant's")),
            Access::Full if write.expected.is_some_and(|expected| expected != actual.unwrap_or(0)) => {
                let (namespace, key) = (write.namespace.clone(), write.key.clone());
                Some(Conflict::Document { namespace, key, actual }.into())
            }
            Access::Full => None,
        };
        if let Some(error) = refused {
            return super::same(answer, Err(error));
        }
        let version = answer.map_err(|error| format!("the store refuses a write: {error:?}"))?.version;
        self.documents.retain(|(of, owner, document)| {
            of != tenant || *owner != write.owner || document.namespace != write.namespace || document.key != write.key
        });
        let Some(value) = write.value.clone() else {
            return if version == 0 { Ok(()) } else { Err(format!("a deletion has version {version}")) };
        };
        self.check_version(tenant, write, version)?;
        let (namespace, key, expires_at) = (write.namespace.clone(), write.key.clone(), write.expires_at);
        let document = Document { namespace, key, value, version, expires_at };
        self.documents.push((tenant.clone(), write.owner.clone(), document));
        Ok(())
    }

    fn check_version(&mut self, tenant: &TenantId, write: &DocumentWrite, version: u64) -> Result<(), String> {
        let name = (write.owner.clone(), write.namespace.clone(), write.key.clone());
        let last = self.versions.iter().filter(|(of, it, _)| of == tenant && *it == name).map(|(_, _, last)| *last);
        if version <= last.max().unwrap_or(0) {
            return Err(format!("version {version} came back"));
        }
        self.versions.push((tenant.clone(), name, version));
        Ok(())
    }
}

fn access_to(scope: &Scope, owner: &DocumentOwner) -> Access {
    match owner {
        DocumentOwner::Tenant => scope.access(&Owner::Tenant),
        DocumentOwner::User(user) => scope.access(&Owner::User(user.clone())),
        DocumentOwner::Thread(_) => Access::None,
    }
}
