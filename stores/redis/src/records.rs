//! Records of threads, users and tenants.

use threadkeep_core::{
    Access, Conflict, DerivedWrite, Kind, Namespace, Owner, Record, RecordName, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, StoreError, TaggedNumber, TenantId, ThreadId, ThreadRead, ThreadRef, ThreadView, Timestamp, WakeUp,
    WriteOutcome, limits,
};

use crate::args::Args;
use crate::keys::{record_field, record_owner};
use crate::messages::first_range;
use crate::reply::Reply;
use crate::row::has_expired;
use crate::shared::{Request, Shared, View, Writes, parse_record, until_written};

/// The revision and the version counter of an owner's records.
struct OwnerState {
    revision: String,
    version: u64,
    record: Option<Record>,
}

impl Shared {
    pub(crate) async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        let name = RecordName { namespace: namespace.clone(), key: key.to_owned() };
        let record = match owner {
            RecordOwner::Thread(thread) => {
                let request = Request { records: vec![name], ..Request::row() };
                let view = self.read(scope.tenant_id(), *thread, &request).await?;
                let view = view.filter(|view| view.row.accessible(scope, now).is_some());
                view.and_then(|view| view.records.into_iter().next().flatten())
            }
            owner => match record_owner(owner).filter(|owner| scope.access(owner) != Access::None) {
                None => None,
                Some(owner) => {
                    let mut read = redis::cmd("HGET");
                    read.arg(format!("{}:d", self.keys.owner(scope.tenant_id(), &owner))).arg(record_field(&name));
                    parse_record(self.connections.look_up(&read).await?)?
                }
            },
        };
        Ok(record.filter(|record| !has_expired(record.expires_at, now)))
    }

    pub(crate) async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        query.check()?;
        let base = match &query.owner {
            RecordOwner::Thread(thread) => {
                let view = self.read(scope.tenant_id(), *thread, &Request::row()).await?;
                if view.is_none_or(|view| view.row.accessible(scope, now).is_none()) {
                    return Ok(Vec::new());
                }
                self.keys.thread(scope.tenant_id(), *thread)
            }
            owner => match record_owner(owner).filter(|owner| scope.access(owner) != Access::None) {
                None => return Ok(Vec::new()),
                Some(owner) => self.keys.owner(scope.tenant_id(), &owner),
            },
        };
        let mut found = Vec::new();
        let mut from = lower_bound(query);
        loop {
            let (page, last) = self.read_records(&base, &from, &upper_bound(query), limits::PAGE).await?;
            found.extend(page.into_iter().filter(|record| is_included(record, query, now)));
            match last {
                Some(last) if found.len() < query.limit => from = [b"(".as_slice(), &last].concat(),
                _ => break,
            }
        }
        found.truncate(query.limit);
        Ok(found)
    }

    /// Reads records in order of their names. If there may be more, also returns the last name.
    pub(crate) async fn read_records(
        &self,
        base: &str,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<(Vec<Record>, Option<Vec<u8>>)> {
        let mut list = redis::cmd("ZRANGEBYLEX");
        list.arg(format!("{base}:n")).arg(from).arg(to).arg("LIMIT").arg(0).arg(limit);
        let names = self.connections.look_up(&list).await?.items()?.into_iter().map(Reply::bytes);
        let names: Vec<Vec<u8>> = names.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        if names.is_empty() {
            return Ok((Vec::new(), None));
        }
        let mut read = redis::cmd("HMGET");
        read.arg(format!("{base}:d")).arg(&names);
        let records = self.connections.look_up(&read).await?.items()?.into_iter().map(parse_record);
        let records = records.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let last = names.last().filter(|_| names.len() == limit).cloned();
        Ok((records, last))
    }

    pub(crate) async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        write.check()?;
        let owner = check_write_access(scope, &write.owner)?;
        let tenant = scope.tenant_id();
        self.register_owner(tenant, &owner).await?;
        let base = self.keys.owner(tenant, &owner);
        let name = RecordName { namespace: write.namespace.clone(), key: write.key.clone() };
        let outcome = until_written!({
            let state = self.read_owner(&base, &name).await?;
            let actual = state.record.as_ref().filter(|record| !has_expired(record.expires_at, now));
            let actual = actual.map(|record| record.version);
            if write.expected.is_some_and(|expected| expected != actual.unwrap_or(0)) {
                let (namespace, key) = (write.namespace.clone(), write.key.clone());
                let actual = actual.map(TaggedNumber::from);
                return Err(Conflict::Record { namespace, key, actual }.into());
            }
            let mut writes = Writes::new();
            let version = state.version + 1;
            match &write.value {
                None => writes.remove_record(&base, &name),
                Some(value) => writes.put_record(
                    &base,
                    &Record {
                        namespace: write.namespace.clone(),
                        key: write.key.clone(),
                        value: value.clone(),
                        version,
                        tag: None,
                        expires_at: write.expires_at,
                    },
                ),
            }
            let is_written = self.write_owner(&base, &state, version, writes).await?;
            let version = if write.value.is_some() { version } else { 0 };
            Ok(is_written.then_some(WriteOutcome { version, tag: None }))
        })?;
        self.note_expiry(tenant, &owner, write.expires_at.filter(|_| write.value.is_some())).await?;
        self.note_removed_text(tenant).await?;
        if let Some(wake_up) = WakeUp::of_record(scope, &write) {
            self.send_wake_up(&wake_up).await;
        }
        Ok(outcome)
    }

    async fn read_owner(&self, base: &str, name: &RecordName) -> Result<OwnerState> {
        let mut read = redis::cmd("HMGET");
        read.arg(format!("{base}:v")).arg("rev").arg("version");
        let mut fields = self.connections.look_up(&read).await?.items()?.into_iter();
        let revision = fields.next().map(Reply::text).transpose()?.flatten().unwrap_or_default();
        let version = fields.next().map(Reply::text).transpose()?.flatten().and_then(|text| text.parse().ok());
        let mut read = redis::cmd("HGET");
        read.arg(format!("{base}:d")).arg(record_field(name));
        let record = parse_record(self.connections.look_up(&read).await?)?;
        Ok(OwnerState { revision, version: version.unwrap_or(0), record })
    }

    async fn write_owner(&self, base: &str, state: &OwnerState, version: u64, mut writes: Writes) -> Result<bool> {
        writes.command("HSET", &format!("{base}:v"), ["version", &version.to_string()]);
        let args = writes.into_plain_args(&state.revision);
        Ok(self.connections.write_awaited("apply", &format!("{base}:v"), &args).await?.number()? == 1)
    }

    /// Stores, for the sweep, when the next record of an owner expires.
    async fn note_expiry(&self, tenant: &TenantId, owner: &Owner, expires_at: Option<Timestamp>) -> Result<()> {
        let Some(expires_at) = expires_at else { return Ok(()) };
        let mut note = redis::cmd("ZADD");
        note.arg(format!("{}:e", self.keys.tenant(tenant))).arg("LT").arg(expires_at.as_micros());
        note.arg(crate::keys::owner_name(owner));
        self.connections.run(&note, true).await.map(|_| ())
    }

    pub(crate) async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: &Record) -> Result<()> {
        let Some(owner) = record_owner(owner) else {
            return Err(StoreError::invalid("record owner", "a thread's records are restored with the thread"));
        };
        self.register_owner(tenant, &owner).await?;
        let base = self.keys.owner(tenant, &owner);
        let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
        until_written!({
            let state = self.read_owner(&base, &name).await?;
            let mut writes = Writes::new();
            writes.put_record(&base, record);
            // Later writes must not reuse a version of the source store.
            let version = state.version.max(record.version);
            Ok(self.write_owner(&base, &state, version, writes).await?.then_some(()))
        })?;
        self.note_expiry(tenant, &owner, record.expires_at).await
    }

    /// Removes the expired records of an owner. Returns how many there were.
    pub(crate) async fn sweep_records(&self, tenant: &TenantId, owner: &Owner, now: Timestamp) -> Result<u64> {
        let base = self.keys.owner(tenant, owner);
        let (mut from, mut removed) = (b"-".to_vec(), 0);
        loop {
            let (page, last) = self.read_records(&base, &from, b"+", limits::PAGE).await?;
            for record in page.into_iter().filter(|record| has_expired(record.expires_at, now)) {
                let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
                removed += until_written!({
                    let state = self.read_owner(&base, &name).await?;
                    if state.record.as_ref().is_none_or(|found| !has_expired(found.expires_at, now)) {
                        return Ok(Some(0));
                    }
                    let mut writes = Writes::new();
                    writes.remove_record(&base, &name);
                    Ok(self.write_owner(&base, &state, state.version, writes).await?.then_some(1))
                })?;
            }
            match last {
                Some(last) => from = [b"(".as_slice(), &last].concat(),
                None => return Ok(removed),
            }
        }
    }

    pub(crate) async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: &DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        write.check()?;
        let _lock = self.lock(thread).await;
        until_written!({
            let name = write.name();
            let request = Request { records: vec![name.clone()], ..Request::row() };
            let view = self.read_accessible(scope, thread, &request, now).await?;
            if view.row.accessible(scope, now).is_none_or(|(_, access)| access < Access::Full) {
                return Err(StoreError::Denied("changing a shared thread other than by adding messages"));
            }
            let View { revision, row, records, .. } = view;
            let actual = records.into_iter().flatten().find(|record| !has_expired(record.expires_at, now));
            let positions = row.positions();
            write.check_against(positions, actual.as_ref().map(Record::tagged))?;
            let RecordName { namespace, key } = name;
            let (value, version, tag) = (write.value.clone(), write.version(), positions.tag);
            let mut writes = Writes::new();
            let base = self.keys.thread(scope.tenant_id(), thread);
            writes.put_record(&base, &Record { namespace, key, value, version, tag, expires_at: None });
            if actual.is_some() {
                self.note_removed_text(scope.tenant_id()).await?;
            }
            let is_written = self.write_quietly(scope.tenant_id(), thread, &revision, &row, writes).await?;
            Ok(is_written.then_some(WriteOutcome { version, tag }))
        })
    }

    /// Writes a thread without effects on lists and subscribers.
    pub(crate) async fn write_quietly(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        expected: &str,
        row: &crate::row::Row,
        writes: Writes,
    ) -> Result<bool> {
        let base = self.keys.thread(tenant, thread);
        let args = writes.into_args(&base, Some(expected), Some(row));
        Ok(self.connections.write("apply", &format!("{base}:t"), &args).await?.number()? == 1)
    }

    pub(crate) async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        read.check()?;
        let tenant = scope.tenant_id();
        let id = match thread {
            ThreadRef::Id(id) => Some(*id),
            ThreadRef::Key(owner, key) => self.find_id(tenant, owner, key).await?,
        };
        let Some(id) = id else { return Ok(None) };
        until_written!(self.try_read_thread(scope, id, thread, read, now).await)
    }

    async fn try_read_thread(
        &self,
        scope: &Scope,
        id: ThreadId,
        named: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<Option<ThreadView>>> {
        let is_own = |query: &&RecordQuery| query.owner == RecordOwner::Thread(id);
        let own = read.lists.iter().filter(is_own);
        let request = Request {
            rows: read.messages.as_ref().map(first_range),
            records: read.records.clone(),
            lists: own.map(|query| (lower_bound(query), upper_bound(query), limits::PAGE)).collect(),
        };
        let view = self.read(scope.tenant_id(), id, &request).await?;
        let Some(mut view) = view.filter(|view| is_named(view, named, scope, now)) else { return Ok(Some(None)) };
        let thread = view.row.to_thread(id)?;
        let is_live = |record: &Record| !has_expired(record.expires_at, now);
        let records = std::mem::take(&mut view.records).into_iter().map(|record| record.filter(is_live)).collect();
        let (mut own, mut lists) = (std::mem::take(&mut view.lists).into_iter(), Vec::new());
        for query in &read.lists {
            let list = if is_own(&query) { own.next().unwrap_or_default() } else { Vec::new() };
            let is_complete = is_own(&query) && list.len() < limits::PAGE;
            let list = if is_complete {
                list.into_iter().filter(|record| is_included(record, query, now)).take(query.limit).collect()
            } else {
                self.list_records(scope, query, now).await?
            };
            lists.push(list);
        }
        let page = match &read.messages {
            None => None,
            Some(query) => match self.finish_page(scope, id, query, view).await? {
                Some(page) => Some(page),
                None => return Ok(None),
            },
        };
        Ok(Some(Some(ThreadView { thread, page, records, lists })))
    }
}

/// Whether a thread exists in the scope and has the key by which it was found.
fn is_named(view: &View, thread: &ThreadRef, scope: &Scope, now: Timestamp) -> bool {
    let is_named = match thread {
        ThreadRef::Id(_) => true,
        ThreadRef::Key(owner, key) => crate::threads::is_thread_with_key(&view.row, owner, key, now),
    };
    is_named && view.row.accessible(scope, now).is_some()
}

fn lower_bound(query: &RecordQuery) -> Vec<u8> {
    let name = |namespace: &Namespace, key: &str| {
        record_field(&RecordName { namespace: namespace.clone(), key: key.to_owned() })
    };
    let after = query.after.as_ref().map(|(namespace, key)| [b"(".as_slice(), &name(namespace, key)].concat());
    let start = query.namespace.as_ref().map(|namespace| name(namespace, &query.key_prefix));
    match (after, start) {
        (Some(after), Some(start)) if after[1..] < start[..] => [b"[".as_slice(), &start].concat(),
        (Some(after), _) => after,
        (None, Some(start)) => [b"[".as_slice(), &start].concat(),
        (None, None) => b"-".to_vec(),
    }
}

fn upper_bound(query: &RecordQuery) -> Vec<u8> {
    match &query.namespace {
        None => b"+".to_vec(),
        // Names contain no byte 255.
        Some(namespace) => {
            let name = RecordName { namespace: namespace.clone(), key: query.key_prefix.clone() };
            [b"(".as_slice(), &record_field(&name), b"\xff"].concat()
        }
    }
}

fn is_included(record: &Record, query: &RecordQuery, now: Timestamp) -> bool {
    !has_expired(record.expires_at, now)
        && query.namespace.as_ref().is_none_or(|namespace| *namespace == record.namespace)
        && record.key.starts_with(&query.key_prefix)
}

fn check_write_access(scope: &Scope, owner: &RecordOwner) -> Result<Owner> {
    let Some(owner) = record_owner(owner) else { return Err(StoreError::NotFound(Kind::Record)) };
    match scope.access(&owner) {
        Access::Full => Ok(owner),
        Access::Append => Err(StoreError::Denied("writing the tenant's records")),
        Access::None => Err(StoreError::NotFound(Kind::Record)),
    }
}

impl Writes {
    /// Returns the arguments of the function `apply` for keys other than a thread's.
    pub(crate) fn into_plain_args(self, expected: &str) -> Args {
        let (revision, commands) = self.into_parts();
        let mut args = Args::new().with(expected).with(revision);
        args.append(&commands);
        args
    }
}
