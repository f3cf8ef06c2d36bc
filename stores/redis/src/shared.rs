//! Reads and writes threads: the code and the state that all parts of the store share.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use threadkeep_core::{
    DumpEntry, Kind, Owner, Reason, Record, RecordName, Result, Scope, StoreError, TenantId, ThreadId, Timestamp,
    WakeUp,
};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify, RwLock, broadcast};
use uuid::Uuid;

use crate::args::Args;
use crate::connection::Connections;
use crate::durability::Durability;
use crate::encoding::decode_entry;
use crate::keys::{Keys, owner_name, record_field};
use crate::known_rows::KnownRows;
use crate::marks::{Marks, Touch, mark_content, mark_field};
use crate::options::RedisOptions;
use crate::reply::{Reply, next, required_text};
use crate::row::Row;
use crate::wake_ups::{self, Outbox, SentNumbers};

/// The number of locks for the threads that this process writes.
const LOCKS: usize = 256;
/// The maximum number of attempts of a write while other processes write to the same thread.
const MAX_CONFLICTS: u32 = 200;
/// The maximum number of names of tenants and owners that are remembered.
const MAX_NAMES: usize = 100_000;

/// Repeats an attempt until no other process interferes. The attempt returns `None` if another process did.
macro_rules! until_written {
    ($attempt:expr) => {{
        let mut attempts = crate::shared::Attempts::default();
        loop {
            let written: threadkeep_core::Result<Option<_>> = async { $attempt }.await;
            match written {
                Err(error) => break Err(error),
                Ok(Some(written)) => break Ok(written),
                Ok(None) => {
                    if let Err(error) = attempts.pause().await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(crate) use until_written;

/// Counts the attempts of a write.
#[derive(Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// Waits before the next attempt, with increasing delays and jitter, so that processes do not collide again.
    pub(crate) async fn pause(&mut self) -> Result<()> {
        if self.0 == MAX_CONFLICTS {
            return Err(StoreError::unavailable(Reason::Busy));
        }
        let pause = u64::from(Uuid::new_v4().as_bytes()[0]) * u64::from(self.0.min(16)) * 8;
        tokio::time::sleep(Duration::from_micros(pause)).await;
        self.0 += 1;
        Ok(())
    }
}

pub(crate) struct Shared {
    pub(crate) connections: Connections,
    pub(crate) keys: Keys,
    /// Distinguishes this store's cursors from those of others.
    pub(crate) incarnation: String,
    /// Changes with each failover; also part of cursors.
    pub(crate) history: std::sync::RwLock<String>,
    /// Wake-ups for the subscribers of this handle.
    pub(crate) wake_ups: broadcast::Sender<wake_ups::Numbered>,
    /// Identifies this handle among the senders of wake-ups.
    pub(crate) instance: String,
    /// The numbers of the wake-ups that this handle sends.
    pub(crate) sent: SentNumbers,
    /// Signals that messages have to be indexed.
    pub(crate) unindexed: Notify,
    /// The tenants to which this process has written since the index last caught up.
    pub(crate) written: Mutex<HashSet<TenantId>>,
    /// Writers in this process wait for each other here instead of repeating their calls.
    locks: Vec<AsyncMutex<()>>,
    /// Names that are known to be in the lists of tenants and owners.
    names: Mutex<HashSet<String>>,
    /// What the servers do with acknowledged commits, as last seen.
    durability: std::sync::RwLock<Durability>,
    /// The replication ids of primaries that this process has seen.
    pub(crate) primaries: Mutex<HashSet<String>>,
    /// Locked for writing while the index is deleted, so that no thread is marked as indexed in the deleted index.
    pub(crate) index_lock: RwLock<()>,
    /// The marks of this process's commits.
    pub(crate) marks: Marks,
    /// Threads as this process last read or wrote them.
    pub(crate) rows: KnownRows,
    /// Wake-ups that are sent in the background.
    pub(crate) outbox: Outbox,
}

/// A thread and parts of it, as of one instant.
pub(crate) struct View {
    pub(crate) revision: String,
    pub(crate) row: Row,
    /// Positions and rows.
    pub(crate) rows: Vec<(u64, Vec<u8>)>,
    /// Where to continue reading rows; `None` at the end.
    pub(crate) next: Option<u64>,
    pub(crate) records: Vec<Option<Record>>,
    pub(crate) lists: Vec<Vec<Record>>,
}

/// Which rows and records of a thread to read.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) rows: Option<RowRange>,
    pub(crate) records: Vec<RecordName>,
    /// Bounds in the syntax of Redis, and a limit.
    pub(crate) lists: Vec<(Vec<u8>, Vec<u8>, usize)>,
}

#[derive(Clone, Copy)]
pub(crate) struct RowRange {
    pub(crate) is_newest_first: bool,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) limit: usize,
    pub(crate) bytes: usize,
    pub(crate) with_tombstones: bool,
}

impl Request {
    pub(crate) fn row() -> Self {
        Self { rows: None, records: Vec::new(), lists: Vec::new() }
    }

    pub(crate) fn rows(rows: RowRange) -> Self {
        Self { rows: Some(rows), ..Self::row() }
    }

    fn to_args(&self) -> Args {
        let mut args = Args::new();
        match self.rows {
            None => args.add("").number(0).number(0).number(0).number(0).add(""),
            Some(rows) => args
                .add(if rows.is_newest_first { "newest" } else { "oldest" })
                .number(rows.first)
                .number(rows.last)
                .number(rows.limit)
                .number(rows.bytes)
                .add(if rows.with_tombstones { "all" } else { "" }),
        };
        args.list(self.records.iter().map(record_field));
        for (from, to, limit) in &self.lists {
            args.add(from).add(to).number(limit);
        }
        args
    }
}

impl Shared {
    pub(crate) fn new(connections: Connections, keys: Keys, incarnation: String, durability: Durability) -> Self {
        let (wake_ups, _) = broadcast::channel(wake_ups::CAPACITY);
        Self {
            connections,
            keys,
            incarnation,
            history: std::sync::RwLock::default(),
            wake_ups,
            instance: Uuid::new_v4().simple().to_string(),
            sent: SentNumbers::default(),
            unindexed: Notify::new(),
            written: Mutex::default(),
            locks: (0..LOCKS).map(|_| AsyncMutex::new(())).collect(),
            names: Mutex::default(),
            durability: std::sync::RwLock::new(durability),
            primaries: Mutex::default(),
            index_lock: RwLock::default(),
            marks: Marks::new(),
            rows: KnownRows::default(),
            outbox: Outbox::default(),
        }
    }

    pub(crate) fn options(&self) -> &RedisOptions {
        self.connections.options()
    }

    /// Returns what the servers do with acknowledged commits, as last seen.
    pub(crate) fn durability(&self) -> Durability {
        let durability = self.durability.read().unwrap_or_else(PoisonError::into_inner).clone();
        Durability { lost_parts: self.connections.known_losses(), ..durability }
    }

    pub(crate) fn note_durability(&self, note: impl FnOnce(&mut Durability)) {
        note(&mut self.durability.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Forgets which names are in the lists of tenants and owners.
    pub(crate) fn forget_names(&self) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) async fn lock(&self, thread: ThreadId) -> MutexGuard<'_, ()> {
        let number = usize::from(thread.0.as_bytes()[15]) % LOCKS;
        self.locks[number].lock().await
    }

    /// Reads a thread; `None` if nothing is stored under the id.
    pub(crate) async fn read(&self, tenant: &TenantId, thread: ThreadId, request: &Request) -> Result<Option<View>> {
        self.read_at(&self.keys.thread(tenant, thread), request).await
    }

    /// Reads a thread whose keys begin with `base`.
    pub(crate) async fn read_at(&self, base: &str, request: &Request) -> Result<Option<View>> {
        let reply = self.connections.read("read", base, &request.to_args()).await?;
        let mut parts = reply.items()?.into_iter();
        let Some(revision) = parts.next() else { return Ok(None) };
        let revision = required_text(revision)?;
        let row = Row::parse(&required_text(next(&mut parts)?)?)?;
        let rows = parse_rows(next(&mut parts)?)?;
        let continuation = required_text(next(&mut parts)?)?;
        let records = next(&mut parts)?.items()?.into_iter().map(parse_record).collect::<Result<_>>()?;
        let lists = next(&mut parts)?.items()?;
        let lists = lists.into_iter().map(|list| {
            let mut list = list.items()?.into_iter();
            next(&mut list)?;
            let values = next(&mut list)?.items()?;
            Ok(values.into_iter().map(parse_record).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        });
        let lists = lists.collect::<Result<_>>()?;
        let next = continuation.parse().ok();
        Ok(Some(View { revision, row, rows, next, records, lists }))
    }

    /// Reads the row of a thread that exists in the scope.
    pub(crate) async fn read_accessible(
        &self,
        scope: &Scope,
        thread: ThreadId,
        request: &Request,
        now: Timestamp,
    ) -> Result<View> {
        let view = self.read(scope.tenant_id(), thread, request).await?;
        let view = view.filter(|view| view.row.accessible(scope, now).is_some());
        let view = view.ok_or(StoreError::NotFound(Kind::Thread))?;
        self.rows.note_read(scope.tenant_id(), thread, &view.revision, &view.row);
        Ok(view)
    }

    /// Writes a thread if its revision is `expected` (`None` if nothing is stored), and brings the lists up to date. Returns whether it was
    /// written.
    pub(crate) async fn write(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        expected: Option<&str>,
        row: Option<&Row>,
        writes: Writes,
        effects: WriteEffects,
    ) -> Result<bool> {
        self.rows.remove(tenant, thread);
        self.register_tenant(tenant).await?;
        let mark = mark_field(thread, &writes.revision);
        let content = mark_content(row.map(|row| &row.owner), effects.removed_text);
        let args = Args::new().with(&mark).with(&content);
        self.connections.write_awaited("mark", &self.keys.tenant(tenant), &args).await?;
        let base = self.keys.thread(tenant, thread);
        let args = writes.into_args(&base, expected, row);
        let is_written = self.connections.write_awaited("apply", &format!("{base}:t"), &args).await?.number()? == 1;
        if !is_written {
            let _ = self.touch(tenant, &[], &[mark]).await;
            return Ok(false);
        }
        if effects.has_unindexed {
            self.note_unindexed(tenant);
        }
        let touch = self.flush_with(tenant, Some(Touch::new(thread, row, &effects)), Some(mark));
        let wake = self.wake(effects.wake_up.as_ref());
        // The thread is written. If one of these fails, the mark remains, and readers bring the lists up to date.
        let _ = futures::future::join(touch, wake).await;
        Ok(true)
    }

    /// Writes a commit. The lists are brought up to date later; the thread has a mark until they are.
    ///
    /// `function` returns 1 if it has written the commit. Its last arguments are commands; on one node, those that mark the thread and wake
    /// subscribers are added to them.
    pub(crate) async fn write_commit(
        &self,
        (tenant, thread): (&TenantId, ThreadId),
        (function, key): (&str, &str),
        mut args: Args,
        row: &Row,
        effects: &WriteEffects,
    ) -> Result<bool> {
        self.register_tenant(tenant).await?;
        let marking = self.marks.begin(tenant, thread, effects.removed_text);
        let tenant_key = self.keys.tenant(tenant);
        let is_cluster = self.options().is_cluster;
        let mut mark = None;
        if marking.is_missing {
            let (field, content) = marking.mark(&row.owner);
            if is_cluster {
                let args = Args::new().with(field).with(content);
                mark = Some((tenant_key.as_str(), self.connections.function("FCALL", "mark", &tenant_key, &args)));
            } else {
                args.number(4).add("MARK").add(&tenant_key).add(field).add(content);
            }
        }
        let wake_up = effects.wake_up.as_ref().filter(|_| !is_cluster).map(|wake_up| (wake_up, self.sent.begin()));
        if let Some((wake_up, number)) = &wake_up {
            let text = wake_ups::encode(wake_up, &self.instance, number.value());
            args.number(3).add("PUBLISH").add(self.keys.channel()).add(text);
        }
        let call = self.connections.function("FCALL", function, key, &args);
        let is_written = self.connections.write_marked(mark, key, call).await?.number()? == 1;
        if is_cluster || is_written {
            marking.placed();
        }
        marking.finish(is_written.then(|| Touch::new(thread, Some(row), effects)));
        if is_written {
            if effects.has_unindexed {
                self.note_unindexed(tenant);
            }
            if is_cluster {
                self.queue_wake_up(effects.wake_up.clone());
            }
        }
        Ok(is_written)
    }

    pub(crate) fn note_unindexed(&self, tenant: &TenantId) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.contains(tenant) {
            written.insert(tenant.clone());
        }
        drop(written);
        self.unindexed.notify_one();
    }

    /// Sends a wake-up in the background. It may be lost.
    fn queue_wake_up(&self, wake_up: Option<WakeUp>) {
        let Some(wake_up) = wake_up else { return };
        self.outbox.push(wake_up, self.sent.begin().value());
    }

    async fn wake(&self, wake_up: Option<&WakeUp>) -> Result<()> {
        let Some(wake_up) = wake_up else { return Ok(()) };
        let text = wake_ups::encode(wake_up, &self.instance, self.sent.begin().value());
        self.publish(wake_ups::channel_number(wake_up), text).await
    }

    /// Publishes wake-ups, one in each line. A single node has only one channel.
    pub(crate) async fn publish(&self, channel: u8, text: String) -> Result<()> {
        let mut publish = if self.options().is_cluster {
            // Only the nodes of the channel's slot receive it.
            redis::cmd("SPUBLISH").arg(self.keys.shard_channel(channel)).take()
        } else {
            redis::cmd("PUBLISH").arg(self.keys.channel()).take()
        };
        publish.arg(text);
        self.connections.run_unchecked(&publish).await.map(|_| ())
    }

    /// Sends a wake-up. It may be lost.
    pub(crate) async fn send_wake_up(&self, wake_up: &WakeUp) {
        let _ = self.wake(Some(wake_up)).await;
    }

    /// Adds a tenant to the list of tenants before its first write.
    pub(crate) async fn register_tenant(&self, tenant: &TenantId) -> Result<()> {
        self.add_name(tenant.as_str().to_owned(), &self.keys.tenants(), tenant.as_str()).await
    }

    /// Adds an owner to the list of owners before its first record or entry.
    pub(crate) async fn register_owner(&self, tenant: &TenantId, owner: &Owner) -> Result<()> {
        self.register_tenant(tenant).await?;
        let name = owner_name(owner);
        let list = format!("{}:o", self.keys.tenant(tenant));
        self.add_name(format!("{}\0{name}", tenant.as_str()), &list, &name).await
    }

    async fn add_name(&self, known_as: String, list: &str, name: &str) -> Result<()> {
        if self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(&known_as) {
            return Ok(());
        }
        let mut add = redis::cmd("ZADD");
        add.arg(list).arg(0).arg(name);
        self.connections.run(&add, true).await?;
        // This process does not write the name again, so replicas must have it. A separate key in the same slot, because the list is not a hash.
        self.connections.await_replicas(&format!("{list}:b")).await?;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(known_as);
        Ok(())
    }

    /// Records that text was removed, so that the next sweep removes it from the server's files.
    pub(crate) async fn note_removed_text(&self, tenant: &TenantId) -> Result<()> {
        let mut note = redis::cmd("HSET");
        note.arg(format!("{}:n", self.keys.tenant(tenant))).arg("garbage").arg(Uuid::new_v4().simple().to_string());
        self.connections.run(&note, true).await.map(|_| ())
    }
}

/// The effects of a write to a thread outside the thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteEffects {
    pub(crate) has_unindexed: bool,
    pub(crate) removed_text: bool,
    /// The number of the write that removed the last trace of the thread.
    pub(crate) last_write: u64,
    /// Whether subscribers need not see the write.
    pub(crate) is_quiet: bool,
    pub(crate) wake_up: Option<WakeUp>,
}

/// The maximum number of words of one Redis command in a function call.
const MAX_WORDS: usize = 1_000;

/// Commands that a function runs together if the thread has the expected revision.
pub(crate) struct Writes {
    pub(crate) revision: String,
    commands: Args,
}

impl Writes {
    pub(crate) fn new() -> Self {
        Self { revision: Uuid::new_v4().simple().to_string(), commands: Args::new() }
    }

    /// Adds a command: its name, the key and its further words.
    pub(crate) fn command<T: AsRef<[u8]>>(&mut self, name: &str, key: &str, words: impl IntoIterator<Item = T>) {
        let words: Vec<T> = words.into_iter().collect();
        for words in words.chunks(MAX_WORDS).filter(|words| !words.is_empty()) {
            self.commands.number(words.len() + 2).add(name).add(key);
            for word in words {
                self.commands.add(word);
            }
        }
    }

    /// Removes a key.
    pub(crate) fn unlink(&mut self, key: &str) {
        self.commands.number(2).add("UNLINK").add(key);
    }

    /// Renames a key, if it exists.
    pub(crate) fn rename(&mut self, key: &str, new: &str) {
        self.commands.number(3).add("MOVE").add(key).add(new);
    }

    pub(crate) fn put_record(&mut self, base: &str, record: &Record) {
        let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
        let field = record_field(&name);
        let json = serde_json::to_vec(record).unwrap_or_default();
        self.command("HSET", &format!("{base}:d"), [field.clone(), json]);
        self.command("ZADD", &format!("{base}:n"), [b"0".to_vec(), field]);
    }

    pub(crate) fn remove_record(&mut self, base: &str, name: &RecordName) {
        let field = record_field(name);
        self.command("HDEL", &format!("{base}:d"), [&field]);
        self.command("ZREM", &format!("{base}:n"), [&field]);
    }

    pub(crate) fn into_parts(self) -> (String, Args) {
        (self.revision, self.commands)
    }

    /// Returns the arguments of the function `apply`.
    pub(crate) fn into_args(self, base: &str, expected: Option<&str>, row: Option<&Row>) -> Args {
        let mut args = Args::new();
        args.add(expected.unwrap_or_default()).add(&self.revision);
        match row {
            Some(row) => {
                self.add_row(base, row, &mut args);
                if row.gaps.is_empty() {
                    args.number(3).add("HDEL").add(format!("{base}:t")).add("gaps");
                } else {
                    let gaps = serde_json::to_string(&row.gaps).unwrap_or_default();
                    args.number(4).add("HSET").add(format!("{base}:t")).add("gaps").add(gaps);
                }
            }
            None => {
                args.number(2).add("UNLINK").add(format!("{base}:t"));
            }
        }
        args.append(&self.commands);
        args
    }

    fn add_row(&self, base: &str, row: &Row, args: &mut Args) {
        let positions = row.positions();
        args.number(10).add("HSET").add(format!("{base}:t")).add("rev").add(&self.revision);
        args.add("row").add(row.to_text());
        args.add("seq").number(positions.seq).add("first").number(positions.first_seq);
    }
}

pub(crate) fn parse_rows(reply: Value) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut items = reply.items()?.into_iter();
    let mut rows = Vec::with_capacity(items.len() / 2);
    while let Some(seq) = items.next() {
        rows.push((seq.number()?, next(&mut items)?.bytes()?.unwrap_or_default()));
    }
    Ok(rows)
}

pub(crate) fn parse_record(value: Value) -> Result<Option<Record>> {
    let Some(bytes) = value.bytes()? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes).map_err(|error| StoreError::corrupt("record", error.to_string()))?;
    Ok(Some(record))
}

/// Decodes rows.
pub(crate) fn parse_entries(rows: &[(u64, Vec<u8>)]) -> impl Iterator<Item = (u64, Result<DumpEntry>)> {
    rows.iter().map(|(seq, bytes)| (*seq, decode_entry(*seq, bytes)))
}
