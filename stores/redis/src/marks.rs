//! Brings the lists of tenants up to date after commits.
//!
//! The lists of a tenant are in another hash slot than its threads. Before a commit, a mark for its thread is placed in the tenant's slot, so
//! that readers of the lists look at the thread. After the commit, the lists are brought up to date, for many threads in one call, and the mark
//! is cleared. Consecutive commits to a thread share a mark. If this process ends, its marks remain, and readers
//! bring the lists up to date.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;
use threadkeep_core::{Owner, Result, TenantId, ThreadId};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, Notify};
use tokio::time::Instant;
use uuid::Uuid;

use crate::args::Args;
use crate::keys::owner_name;
use crate::row::Row;
use crate::shared::{Shared, WriteEffects};

/// How long a mark covers further commits. Much shorter than the time after which readers remove it.
const LEASE: Duration = Duration::from_secs(5);
/// How long commits are collected before the lists are brought up to date.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause after a failure.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);
/// The maximum number of threads in one call.
const MAX_THREADS: usize = 100;
/// The maximum number of tenants whose lists are brought up to date at the same time.
const MAX_TENANTS: usize = 16;
/// The number of locks for tenants.
const LOCKS: usize = 64;

/// The marks of this process.
pub(crate) struct Marks {
    tenants: Mutex<HashMap<TenantId, HashMap<ThreadId, Marked>>>,
    /// The number of the last commit. Lists are brought up to date in the order of commits.
    last: AtomicU64,
    changed: Arc<Notify>,
    /// One flush of a tenant at a time, so that a reader can wait for it.
    locks: Vec<AsyncMutex<()>>,
}

/// A thread with a mark, or with a commit that its tenant's lists do not have yet.
struct Marked {
    id: String,
    /// When the mark was placed; `None` if it was not.
    placed_at: Option<Instant>,
    /// Whether the mark states that text is removed.
    removes_text: bool,
    /// The number of writes that are in progress.
    in_flight: u32,
    /// Whether a write began since the last flush.
    is_used: bool,
    /// Whether writes follow each other closely, so the mark should stay.
    is_busy: bool,
    touch: Option<(u64, Touch)>,
}

impl Marked {
    fn new() -> Self {
        let id = Uuid::new_v4().simple().to_string();
        Self { id, placed_at: None, removes_text: false, in_flight: 0, is_used: false, is_busy: false, touch: None }
    }
}

/// What the lists need to know about a thread.
#[derive(Clone)]
pub(crate) struct Touch {
    thread: ThreadId,
    /// The number of the last write to the thread.
    number: u64,
    has_unindexed: bool,
    /// Identifies a removal of text.
    garbage: String,
    /// The owner, the state, the incarnation, `quiet`, when to sweep, whether it has a driver.
    middle: [String; 6],
    count: u64,
}

impl Touch {
    /// `row` is `None` if no trace of the thread remains.
    pub(crate) fn new(thread: ThreadId, row: Option<&Row>, effects: &WriteEffects) -> Self {
        let flag = |is_set: bool| if is_set { "1" } else { "0" }.to_owned();
        let garbage = if effects.removed_text { Uuid::new_v4().simple().to_string() } else { String::new() };
        let middle = match row {
            None => {
                let [owner, born, quiet, sweep_at] = [const { String::new() }; 4];
                [owner, "none".to_owned(), born, quiet, sweep_at, flag(false)]
            }
            Some(row) => [
                owner_name(&row.owner),
                row.state().to_owned(),
                row.born.clone(),
                if effects.is_quiet { "quiet" } else { "" }.to_owned(),
                row.sweep_at().map_or_else(String::new, |at| at.as_micros().to_string()),
                flag(row.is_driven),
            ],
        };
        let number = row.map_or(effects.last_write, |row| row.writes);
        let count = row.map_or(0, |row| row.count);
        Self { thread, number, has_unindexed: effects.has_unindexed, garbage, middle, count }
    }

    /// Merges two touches of a thread.
    fn merge(self, other: Self) -> Self {
        let has_unindexed = self.has_unindexed || other.has_unindexed;
        let (newer, older) = if other.number >= self.number { (other, self) } else { (self, other) };
        let garbage = if newer.garbage.is_empty() { older.garbage } else { newer.garbage };
        Self { has_unindexed, garbage, ..newer }
    }

    fn add_to(&self, args: &mut Args) {
        args.add(self.thread.to_string()).number(self.number);
        for text in &self.middle {
            args.add(text);
        }
        args.add(if self.has_unindexed { "1" } else { "0" }).add(&self.garbage).number(self.count);
    }
}

/// A write that is in progress. If it is dropped before [`Marking::finish`], the outcome is unknown, and its mark remains for readers.
pub(crate) struct Marking<'a> {
    marks: &'a Marks,
    tenant: &'a TenantId,
    thread: ThreadId,
    id: String,
    /// Whether the mark has to be placed first.
    pub(crate) is_missing: bool,
    /// Whether the write removes text.
    removes_text: bool,
    began_at: Instant,
    is_finished: bool,
}

impl Marking<'_> {
    /// Returns the field of the mark and its content, for placing it.
    pub(crate) fn mark(&self, owner: &Owner) -> (String, String) {
        (mark_field(self.thread, &self.id), mark_content(Some(owner), self.removes_text))
    }

    /// Notes that the mark was placed.
    pub(crate) fn placed(&self) {
        if !self.is_missing {
            return;
        }
        let mut tenants = self.marks.tenants();
        let marked = tenants.get_mut(self.tenant).and_then(|threads| threads.get_mut(&self.thread));
        if let Some(marked) = marked.filter(|marked| marked.id == self.id) {
            marked.placed_at = Some(self.began_at);
            marked.removes_text = self.removes_text;
        }
    }

    /// Ends the write. `touch` is `None` if nothing was written.
    pub(crate) fn finish(mut self, touch: Option<Touch>) {
        self.is_finished = true;
        let mut tenants = self.marks.tenants();
        let marked = tenants.get_mut(self.tenant).and_then(|threads| threads.get_mut(&self.thread));
        let Some(marked) = marked else { return };
        marked.in_flight = marked.in_flight.saturating_sub(1);
        if let Some(touch) = touch {
            let number = self.marks.last.fetch_add(1, Ordering::Relaxed);
            let merged = match marked.touch.take() {
                Some((_, earlier)) => earlier.merge(touch),
                None => touch,
            };
            marked.touch = Some((number, merged));
        }
        drop(tenants);
        self.marks.changed.notify_one();
    }
}

impl Drop for Marking<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let mut tenants = self.marks.tenants();
        let marked = tenants.get_mut(self.tenant).and_then(|threads| threads.get_mut(&self.thread));
        if let Some(marked) = marked {
            marked.in_flight = marked.in_flight.saturating_sub(1);
            if marked.id == self.id {
                // The mark with the former id is left to readers.
                marked.id = Uuid::new_v4().simple().to_string();
                marked.placed_at = None;
            }
        }
        drop(tenants);
        self.marks.changed.notify_one();
    }
}

/// What one flush of a tenant sends.
struct Batch<'a> {
    touches: Unsent<'a>,
    /// The fields of marks to clear.
    cleared: Vec<String>,
}

/// What the lists do not know yet about threads, in the order of the numbers of their commits. If the flush fails or is cancelled, the
/// rest is put back for the next one. Its marks remain in the tenant's slot.
struct Unsent<'a> {
    marks: &'a Marks,
    tenant: &'a TenantId,
    touches: Vec<(u64, Touch)>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.touches.is_empty() {
            return;
        }
        let mut tenants = self.marks.tenants();
        let threads = tenants.entry(self.tenant.clone()).or_default();
        for (number, touch) in self.touches.drain(..) {
            let marked = threads.entry(touch.thread).or_insert_with(Marked::new);
            marked.touch = Some(match marked.touch.take() {
                Some((later_number, later)) => (later_number, touch.merge(later)),
                None => (number, touch),
            });
        }
    }
}

impl Marks {
    pub(crate) fn new() -> Self {
        Self {
            tenants: Mutex::default(),
            last: AtomicU64::default(),
            changed: Arc::default(),
            locks: (0..LOCKS).map(|_| AsyncMutex::new(())).collect(),
        }
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantId, HashMap<ThreadId, Marked>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn lock(&self, tenant: &TenantId) -> AsyncMutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        tenant.hash(&mut hasher);
        self.locks[usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or(0)].lock().await
    }

    /// Begins a write to a thread.
    pub(crate) fn begin<'a>(&'a self, tenant: &'a TenantId, thread: ThreadId, removes_text: bool) -> Marking<'a> {
        let began_at = Instant::now();
        let mut tenants = self.tenants();
        let marked = match tenants.get_mut(tenant) {
            Some(threads) => threads.entry(thread).or_insert_with(Marked::new),
            None => tenants.entry(tenant.clone()).or_default().entry(thread).or_insert_with(Marked::new),
        };
        let is_missing = marked.placed_at.is_none_or(|at| began_at.duration_since(at) > LEASE)
            || removes_text && !marked.removes_text;
        marked.in_flight += 1;
        marked.is_busy |= marked.placed_at.is_some();
        marked.is_used = true;
        let id = marked.id.clone();
        // A mark that is replaced keeps its statement about earlier commits.
        let removes_text = removes_text || marked.placed_at.is_some() && marked.removes_text;
        Marking { marks: self, tenant, thread, id, is_missing, removes_text, began_at, is_finished: false }
    }

    /// Takes what has to be sent. Threads without further writes are dropped, and their marks are cleared.
    fn take<'a>(&'a self, tenant: &'a TenantId) -> Batch<'a> {
        let mut touches = Vec::new();
        let mut cleared = Vec::new();
        let unsent = |touches| Unsent { marks: self, tenant, touches };
        let mut tenants = self.tenants();
        let Some(threads) = tenants.get_mut(tenant) else { return Batch { touches: unsent(touches), cleared } };
        threads.retain(|thread, marked| {
            touches.extend(marked.touch.take());
            let is_kept = marked.in_flight > 0 || marked.is_used && marked.is_busy;
            marked.is_used = false;
            if !is_kept && marked.placed_at.is_some() {
                cleared.push(mark_field(*thread, &marked.id));
            }
            is_kept
        });
        if threads.is_empty() {
            tenants.remove(tenant);
        }
        drop(tenants);
        touches.sort_by_key(|(number, _)| *number);
        Batch { touches: unsent(touches), cleared }
    }
}

/// The field of a mark.
pub(crate) fn mark_field(thread: ThreadId, id: &str) -> String {
    format!("{thread}/{id}")
}

/// A mark as its readers see it.
pub(crate) struct ReadMark {
    pub(crate) thread: ThreadId,
    /// When it was placed, in seconds.
    pub(crate) at: u64,
    /// Whether its writer removes text.
    pub(crate) removes_text: bool,
    /// The name of the thread's owner; empty if unknown.
    pub(crate) owner: String,
}

/// The content of a mark, after its time.
pub(crate) fn mark_content(owner: Option<&Owner>, removes_text: bool) -> String {
    format!("{}{}", if removes_text { 'r' } else { '-' }, owner.map(owner_name).unwrap_or_default())
}

/// Parses a mark; `None` if it has another form.
pub(crate) fn parse_mark(field: &str, value: &str) -> Option<ReadMark> {
    let (thread, _) = field.split_once('/')?;
    let (at, content) = value.split_once(':')?;
    let removes_text = content.starts_with('r');
    let owner = content.get(1..)?.to_owned();
    Some(ReadMark { thread: thread.parse().ok()?, at: at.parse().ok()?, removes_text, owner })
}

impl Shared {
    /// Brings the lists of a tenant up to date with the commits by this process.
    pub(crate) async fn flush(&self, tenant: &TenantId) -> Result<()> {
        self.flush_with(tenant, None, None).await
    }

    /// Brings the lists of a tenant up to date with the commits by this process, then with another write, and clears its mark.
    pub(crate) async fn flush_with(&self, tenant: &TenantId, last: Option<Touch>, mark: Option<String>) -> Result<()> {
        let _lock = self.marks.lock(tenant).await;
        let Batch { touches: mut unsent, mut cleared } = self.marks.take(tenant);
        let touches: Vec<Touch> = unsent.touches.iter().map(|(_, touch)| touch.clone()).chain(last).collect();
        cleared.extend(mark);
        let is_small = touches.len() <= MAX_THREADS && cleared.len() <= MAX_THREADS;
        let with_first = if is_small { std::mem::take(&mut cleared) } else { Vec::new() };
        for part in touches.chunks(MAX_THREADS) {
            self.touch(tenant, part, &with_first).await?;
            unsent.touches.drain(..part.len().min(unsent.touches.len()));
        }
        if touches.is_empty() {
            cleared.extend(with_first);
        }
        for part in cleared.chunks(MAX_THREADS) {
            self.touch(tenant, &[], part).await?;
        }
        Ok(())
    }

    /// Brings the lists of a tenant up to date with threads, and clears marks.
    pub(crate) async fn touch(&self, tenant: &TenantId, touches: &[Touch], cleared: &[String]) -> Result<()> {
        let mut args = Args::new();
        args.add(self.history()).list(cleared);
        for touch in touches {
            touch.add_to(&mut args);
        }
        self.connections.write("touch", &self.keys.tenant(tenant), &args).await.map(|_| ())
    }
}

/// Brings the lists up to date with commits until the store is closed.
pub(crate) async fn follow(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let tenants: Vec<TenantId> = strong.marks.tenants().keys().cloned().collect();
        if tenants.is_empty() {
            let changed = Arc::clone(&strong.marks.changed);
            drop(strong);
            // Wakes up periodically to check whether the store is closed.
            let _ = tokio::time::timeout(PAUSE_AFTER_ERROR, changed.notified()).await;
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let mut has_failed = false;
        for tenants in tenants.chunks(MAX_TENANTS) {
            let flushed = join_all(tenants.iter().map(|tenant| strong.flush(tenant))).await;
            has_failed |= flushed.iter().any(Result::is_err);
        }
        drop(strong);
        tokio::time::sleep(if has_failed { PAUSE_AFTER_ERROR } else { PAUSE }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant() -> TenantId {
        TenantId::new("acme").unwrap()
    }

    fn thread() -> ThreadId {
        "018f0000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn touch(number: u64, has_unindexed: bool) -> Touch {
        let effects = WriteEffects { has_unindexed, last_write: number, ..WriteEffects::default() };
        Touch::new(thread(), None, &effects)
    }

    /// Takes the touches of a batch, as if they were sent.
    fn sent(mut batch: Batch<'_>) -> impl Iterator<Item = Touch> {
        std::mem::take(&mut batch.touches.touches).into_iter().map(|(_, touch)| touch)
    }

    #[test]
    fn mark_covers_following_commits_until_none_follows() {
        let (marks, tenant) = (Marks::new(), tenant());
        let first = marks.begin(&tenant, thread(), false);
        assert!(first.is_missing);
        first.placed();
        first.finish(Some(touch(1, true)));
        let second = marks.begin(&tenant, thread(), false);
        assert!(!second.is_missing);
        let batch = marks.take(&tenant);
        assert_eq!((batch.cleared.len(), sent(batch).count()), (0, 1), "a write is in progress");
        second.finish(Some(touch(2, false)));
        assert_eq!(marks.take(&tenant).cleared.len(), 1, "no write followed");
        assert!(marks.begin(&tenant, thread(), false).is_missing);
    }

    #[test]
    fn abandoned_write_leaves_its_mark_to_readers() {
        let (marks, tenant) = (Marks::new(), tenant());
        let write = marks.begin(&tenant, thread(), false);
        write.placed();
        drop(write);
        let batch = marks.take(&tenant);
        assert!(batch.touches.touches.is_empty() && batch.cleared.is_empty());
        assert!(marks.begin(&tenant, thread(), false).is_missing);
    }

    #[test]
    fn failed_flush_loses_no_touch() {
        let (marks, tenant) = (Marks::new(), tenant());
        marks.begin(&tenant, thread(), false).finish(Some(touch(1, true)));
        let batch = marks.take(&tenant);
        marks.begin(&tenant, thread(), false).finish(Some(touch(2, false)));
        drop(batch);
        assert_eq!(
            sent(marks.take(&tenant)).map(|touch| (touch.number, touch.has_unindexed)).collect::<Vec<_>>(),
            [(2, true)]
        );
        assert_eq!(sent(marks.take(&tenant)).count(), 0, "what was sent is not put back");
    }

    #[test]
    fn failed_flush_keeps_the_order_of_commits() {
        let (marks, tenant) = (Marks::new(), tenant());
        let threads: Vec<ThreadId> = (0..20)
            .rev()
            .map(|number| format!("018f0000-0000-7000-8000-0000000000{number:02}").parse().unwrap())
            .collect();
        for thread in &threads {
            let touch = Touch { thread: *thread, ..touch(1, false) };
            marks.begin(&tenant, *thread, false).finish(Some(touch));
        }
        drop(marks.take(&tenant));
        assert_eq!(sent(marks.take(&tenant)).map(|touch| touch.thread).collect::<Vec<_>>(), threads);
    }

    #[test]
    fn marks_are_parsed() {
        let owner = Owner::User(threadkeep_core::UserId::new("ana:b").unwrap());
        let field = mark_field(thread(), "m");
        let mark = parse_mark(&field, &format!("17:{}", mark_content(Some(&owner), true))).unwrap();
        assert_eq!((mark.thread, mark.at, mark.removes_text, mark.owner.as_str()), (thread(), 17, true, "u/ana:b"));
        assert!(parse_mark("x", "1:-").is_none());
    }
}
