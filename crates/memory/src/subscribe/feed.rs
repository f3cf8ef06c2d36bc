use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use threadkeep_core::{MonotonicTime, Runtime, Scope, TaggedNumber, ThreadId};
use tokio::sync::watch;

use super::feeds::Feeds;
use super::log::CommitUpdate;

/// Maximum number of buffered commits.
const MAX_BUFFERED: usize = 64;
/// Maximum total size of buffered commits, in bytes.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;
/// How long a commit stays buffered. Later, subscribers read it from the log.
const BUFFER_LIFETIME: Duration = Duration::from_secs(1);

/// State that the subscribers to one thread in one scope share.
///
/// A feed buffers the newest commits for a short time, and tracks the last known change number. It returns buffered commits only
/// if they include the last known change, because a commit that is missing from the buffer may have removed content.
pub(super) struct Feed {
    pub(super) scope: Scope,
    pub(super) thread: ThreadId,
    feeds: Weak<Feeds>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    /// Signals that the feed may have changed.
    signals: watch::Sender<()>,
    /// Locked while one subscriber reads the log on behalf of all.
    pub(super) reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The newest commits, oldest first, without a gap.
    buffer: VecDeque<BufferedCommit>,
    bytes: usize,
    /// The last known change number of the thread.
    known_change: u64,
    /// The number of the last change that removed content. Earlier commits are not buffered.
    removed_before: u64,
    /// Incremented when the thread may have changed in an unknown way.
    invalidations: u64,
    /// The last read of the log.
    last_read: Option<LogRead>,
    /// Number of unfinished commits by this `Memory` in the feed's scope.
    pending_commits: usize,
}

struct BufferedCommit {
    update: CommitUpdate,
    buffered_at: MonotonicTime,
}

/// A read of the log that found no change after `after`.
#[derive(Clone, Copy)]
pub(super) struct LogRead {
    after: TaggedNumber,
    /// The value of `invalidations` in the feed when the read started.
    invalidations: u64,
    at: MonotonicTime,
}

impl LogRead {
    /// Replaces the change after which the log was read.
    pub(super) fn with_change(self, after: TaggedNumber) -> Self {
        Self { after, ..self }
    }
}

/// The outcome of a commit by this `Memory`.
#[derive(Clone)]
pub(super) enum OwnCommit {
    /// The commit succeeded. The update describes it completely.
    Update(CommitUpdate),
    /// The commit succeeded with this change number.
    NumberOnly(u64),
    /// The commit succeeded with this change number, and removed content.
    Removal(u64),
    /// The commit may have succeeded.
    Unknown,
    /// The commit failed.
    Failed,
}

/// What a feed knows about the commits after a change.
pub(super) enum Buffered {
    /// All commits after the change.
    Commits(Vec<CommitUpdate>),
    /// There are no commits after the change.
    UpToDate,
    /// The commits are not known, so the log has to be read.
    Unknown,
}

impl Feed {
    pub(super) fn new(scope: Scope, thread: ThreadId, feeds: &Arc<Feeds>) -> Self {
        let (runtime, signals) = (Arc::clone(feeds.runtime()), watch::Sender::new(()));
        let feeds = Arc::downgrade(feeds);
        Self { scope, thread, feeds, runtime, state: Mutex::default(), signals, reading: tokio::sync::Mutex::default() }
    }

    pub(super) fn signals(&self) -> watch::Receiver<()> {
        self.signals.subscribe()
    }

    /// Returns the commits after a change, if they are known. A read of the log is valid for `poll_interval`.
    pub(super) fn commits_after(&self, after: TaggedNumber, poll_interval: Duration) -> Buffered {
        let now = self.runtime.now();
        let mut state = self.lock();
        state.drop_outdated(now);
        if state.has_all_after(after) {
            let commits = state.buffer.iter().filter(|commit| commit.number() > after.number);
            return Buffered::Commits(commits.map(|commit| commit.update.clone()).collect());
        }
        let is_read = state.last_read.is_some_and(|read| {
            read.after == after && read.invalidations == state.invalidations && read.at + poll_interval > now
        });
        if is_read && state.known_change <= after.number { Buffered::UpToDate } else { Buffered::Unknown }
    }

    /// Returns when the log has to be polled next.
    pub(super) fn next_poll(&self, after: TaggedNumber, poll_interval: Duration) -> MonotonicTime {
        let (now, last_read) = (self.runtime.now(), self.lock().last_read);
        let next = last_read.filter(|read| read.after == after).map(|read| read.at + poll_interval);
        next.filter(|next| *next > now).unwrap_or(now + poll_interval)
    }

    /// Whether a pending commit may fill a gap in the buffer.
    pub(super) fn may_fill_gap(&self, after: TaggedNumber) -> bool {
        let state = self.lock();
        state.pending_commits > 0 && state.known_change > after.number && !state.has_all_after(after)
    }

    /// Creates the record of a read of the log that starts now.
    pub(super) fn begin_read(&self, after: TaggedNumber) -> LogRead {
        LogRead { after, invalidations: self.lock().invalidations, at: self.runtime.now() }
    }

    /// Buffers the commits that a read found, which end with the thread's last commit. The list may be empty.
    pub(super) fn end_read(&self, read: LogRead, found: &[CommitUpdate]) {
        let mut state = self.lock();
        let last = found.last().map_or(read.after, |update| update.change);
        if state.last_read.is_none_or(|earlier| earlier.at <= read.at) {
            state.last_read = Some(LogRead { after: last, ..read });
        }
        state.known_change = state.known_change.max(last.number);
        let found = found.iter().map(|update| BufferedCommit { update: update.clone(), buffered_at: read.at });
        let mut commits: VecDeque<BufferedCommit> = found.collect();
        commits.extend(std::mem::take(&mut state.buffer).into_iter().filter(|commit| commit.number() > last.number));
        state.bytes = 0;
        commits.into_iter().for_each(|commit| state.push(commit));
        state.advance_last_read(read.at);
    }

    /// Clears the feed after the store was restored. The thread is now at `change`.
    pub(super) fn reset(&self, change: u64) {
        let mut state = self.lock();
        state.clear();
        (state.known_change, state.removed_before, state.last_read) = (change, 0, None);
    }

    /// Records a commit of which only the change number is known.
    pub(super) fn record_change(&self, change: u64) {
        let mut state = self.lock();
        let is_new = change > state.known_change;
        state.known_change = state.known_change.max(change);
        // The change is probably the result of a pending commit, which signals when it ends.
        let is_pending = state.pending_commits > 0;
        drop(state);
        if is_new && !is_pending {
            self.signals.send_replace(());
        }
    }

    /// Discards the buffer, because the thread may have changed in an unknown way.
    pub(super) fn invalidate(&self) {
        let mut state = self.lock();
        state.clear();
        state.invalidations += 1;
        drop(state);
        self.signals.send_replace(());
    }

    /// Clears the buffer.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Records the start of a commit by this `Memory` in the feed's scope.
    pub(super) fn begin_commit(&self) {
        self.lock().pending_commits += 1;
    }

    /// Records the end of a commit by this `Memory` that started at `started_at`, in the feed's scope or another one.
    pub(super) fn end_commit(&self, commit: OwnCommit, is_in_feed_scope: bool, started_at: MonotonicTime) {
        let mut state = self.lock();
        state.pending_commits -= usize::from(is_in_feed_scope);
        match commit {
            OwnCommit::Update(update) => {
                state.known_change = state.known_change.max(update.change.number);
                state.push(BufferedCommit { update, buffered_at: self.runtime.now() });
                state.advance_last_read(started_at);
            }
            OwnCommit::NumberOnly(change) => state.known_change = state.known_change.max(change),
            OwnCommit::Removal(change) => {
                state.clear();
                state.known_change = state.known_change.max(change);
                state.removed_before = state.removed_before.max(change);
            }
            OwnCommit::Unknown => {
                state.clear();
                state.invalidations += 1;
            }
            OwnCommit::Failed => {}
        }
        drop(state);
        // Signals even after a failure, because a subscriber may be waiting for the commit.
        self.signals.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The buffer is compared with the known change before it is used, so a panic while it was locked does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BufferedCommit {
    fn number(&self) -> u64 {
        self.update.change.number
    }
}

impl State {
    /// Whether there are commits after a change, and the buffer contains all of them.
    fn has_all_after(&self, after: TaggedNumber) -> bool {
        let after = after.number;
        let (first, last) = (self.buffer.front(), self.buffer.back());
        first.is_some_and(|first| first.number() <= after + 1)
            && last.is_some_and(|last| last.number() > after && last.number() >= self.known_change)
    }

    fn push(&mut self, commit: BufferedCommit) {
        let change = commit.number();
        let is_replaced = |earlier: &BufferedCommit| {
            earlier.number() == change && !earlier.update.change.may_be_same(commit.update.change)
        };
        if change < self.removed_before || commit.update.bytes > MAX_BUFFERED_BYTES {
            return;
        }
        if self.buffer.iter().any(is_replaced) {
            // After a failover the store assigned the number twice, so the log has to be read.
            self.clear();
            self.invalidations += 1;
            return;
        }
        let first = self.buffer.front().map(BufferedCommit::number);
        let last = self.buffer.back().map(BufferedCommit::number);
        match first.zip(last) {
            Some((first, _)) if change + 1 == first => {
                self.bytes += commit.update.bytes;
                self.buffer.push_front(commit);
            }
            Some((_, last)) if change <= last => return,
            Some((_, last)) if change == last + 1 => {
                self.bytes += commit.update.bytes;
                self.buffer.push_back(commit);
            }
            _ => {
                self.clear();
                self.bytes = commit.update.bytes;
                self.buffer.push_back(commit);
            }
        }
        while self.buffer.len() > MAX_BUFFERED || self.bytes > MAX_BUFFERED_BYTES {
            self.drop_first();
        }
    }

    /// Extends the last read to the end of the buffer, if the buffer continues where the read ended. This is valid because
    /// consecutive change numbers prove that there is no commit between them.
    fn advance_last_read(&mut self, at: MonotonicTime) {
        let (Some(read), Some(first), Some(last)) = (&mut self.last_read, self.buffer.front(), self.buffer.back())
        else {
            return;
        };
        if first.number() <= read.after.number + 1 && last.number() > read.after.number {
            *read = LogRead { after: last.update.change, at: read.at.max(at), ..*read };
        }
    }

    fn drop_outdated(&mut self, now: MonotonicTime) {
        while self.buffer.front().is_some_and(|commit| commit.buffered_at + BUFFER_LIFETIME <= now) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(commit) = self.buffer.pop_front() {
            self.bytes -= commit.update.bytes;
        }
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.bytes = 0;
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(feeds) = self.feeds.upgrade() {
            feeds.remove_dropped(self.thread);
        }
    }
}
