use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use threadkeep_core::{MonotonicTime, Runtime, Scope, TaggedNumber, ThreadId};
use tokio::sync::watch;

use super::feeds::Feeds;
use super::log::CommitUpdate;

/// Maximum number of buffered commits, and of their bytes.
const MAX_BUFFERED: usize = 64;
const MAX_BUFFERED_BYTES: usize = 256 * 1024;
/// How long a commit stays buffered. After that, the log is read.
const BUFFER_LIFETIME: Duration = Duration::from_secs(1);

/// What the subscribers to one thread in one scope share.
///
/// It buffers the newest commits for a short time, and tracks the last change that is known. It returns buffered commits only if
/// they reach that change, because a commit that is missing from the buffer may have removed content.
pub(super) struct Feed {
    pub(super) scope: Scope,
    pub(super) thread: ThreadId,
    feeds: Weak<Feeds>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    /// Signals that the feed may have changed.
    signals: watch::Sender<()>,
    /// Locked while one subscriber reads the log for all.
    pub(super) reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The newest commits, oldest first, without a gap.
    buffer: VecDeque<BufferedCommit>,
    bytes: usize,
    /// The last change that is known.
    known_change: u64,
    /// The last change that removed content. Commits before it are not buffered.
    removed_before: u64,
    /// Grows when the thread may have changed in an unknown way.
    invalidations: u64,
    /// The last read of the log.
    last_read: Option<LogRead>,
    /// Number of unfinished commits of this manager in the feed's scope.
    pending_commits: usize,
}

struct BufferedCommit {
    update: CommitUpdate,
    since: MonotonicTime,
}

/// A read of the log that found no change after `after`.
#[derive(Clone, Copy)]
pub(super) struct LogRead {
    after: TaggedNumber,
    /// The feed's invalidations when the read started.
    invalidations: u64,
    at: MonotonicTime,
}

impl LogRead {
    /// The same read with another position.
    pub(super) fn with_position(self, after: TaggedNumber) -> Self {
        Self { after, ..self }
    }
}

/// The outcome of a commit of this manager.
#[derive(Clone)]
pub(super) enum OwnCommit {
    /// Committed, and completely described by this update.
    Known(CommitUpdate),
    /// Committed as this change.
    Change(u64),
    /// Committed as this change, which removed content.
    Removal(u64),
    /// Possibly committed.
    Unknown,
    /// Not committed.
    Failed,
}

/// What a feed knows about the commits after a change.
pub(super) enum Buffered {
    /// All of them.
    Commits(Vec<CommitUpdate>),
    /// There are none.
    UpToDate,
    /// The log has to be read.
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

    /// The commits after a change, as far as they are known here. A read of the log is valid for `poll_interval`.
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

    /// When the log has to be polled next.
    pub(super) fn next_poll(&self, after: TaggedNumber, poll_interval: Duration) -> MonotonicTime {
        let (now, last_read) = (self.runtime.now(), self.lock().last_read);
        let next = last_read.filter(|read| read.after == after).map(|read| read.at + poll_interval);
        next.filter(|next| *next > now).unwrap_or(now + poll_interval)
    }

    /// Whether an unfinished commit may complete the buffer.
    pub(super) fn may_be_completed(&self, after: TaggedNumber) -> bool {
        let state = self.lock();
        state.pending_commits > 0 && state.known_change > after.number && !state.has_all_after(after)
    }

    /// Starts a read of the log.
    pub(super) fn begin_read(&self, after: TaggedNumber) -> LogRead {
        LogRead { after, invalidations: self.lock().invalidations, at: self.runtime.now() }
    }

    /// Buffers the commits that a read found, up to the last one of the thread, or none.
    pub(super) fn end_read(&self, read: LogRead, found: &[CommitUpdate]) {
        let mut state = self.lock();
        let last = found.last().map_or(read.after, |update| update.change);
        if state.last_read.is_none_or(|earlier| earlier.at <= read.at) {
            state.last_read = Some(LogRead { after: last, ..read });
        }
        state.known_change = state.known_change.max(last.number);
        let found = found.iter().map(|update| BufferedCommit { update: update.clone(), since: read.at });
        let mut commits: VecDeque<BufferedCommit> = found.collect();
        commits.extend(std::mem::take(&mut state.buffer).into_iter().filter(|commit| commit.number() > last.number));
        state.bytes = 0;
        commits.into_iter().for_each(|commit| state.push(commit));
        state.advance_last_read(read.at);
    }

    /// Starts again at a change, after a reset of the store.
    pub(super) fn reset(&self, change: u64) {
        let mut state = self.lock();
        state.clear();
        (state.known_change, state.removed_before, state.last_read) = (change, 0, None);
    }

    /// Notes a commit of which only the change is known.
    pub(super) fn note_change(&self, change: u64) {
        let mut state = self.lock();
        let is_new = change > state.known_change;
        state.known_change = state.known_change.max(change);
        // The change is most likely that of a pending commit, which signals when it ends.
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

    /// Notes the start of a commit of this manager in the feed's scope.
    pub(super) fn begin_commit(&self) {
        self.lock().pending_commits += 1;
    }

    /// Notes the end of a commit of this manager that started at `started_at`, in the feed's scope or another one.
    pub(super) fn end_commit(&self, commit: OwnCommit, is_of_scope: bool, started_at: MonotonicTime) {
        let mut state = self.lock();
        state.pending_commits -= usize::from(is_of_scope);
        match commit {
            OwnCommit::Known(update) => {
                state.known_change = state.known_change.max(update.change.number);
                state.push(BufferedCommit { update, since: self.runtime.now() });
                state.advance_last_read(started_at);
            }
            OwnCommit::Change(change) => state.known_change = state.known_change.max(change),
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
        // The buffer is checked against the known change, so a panic while it was locked does no harm.
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
            // The store failed over and assigned the number twice, so the log has to be read.
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

    /// Moves the position of the last read to the end of the buffer, if the buffer continues from it: a commit proves that there
    /// was no other one between it and the one before it.
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
        while self.buffer.front().is_some_and(|commit| commit.since + BUFFER_LIFETIME <= now) {
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
