use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{MessageQuery, OnCorrupt, Role, Runtime, Scope, TaggedNumber, ThreadId};
use tokio::sync::watch;

use super::feed::{Buffered, Feed};
use super::log::{CommitUpdate, Log, LogPage};
use super::{Start, SubscribeOptions, ThreadUpdate, ThreadUpdates, UpdatesPage};
use crate::{Memory, Result};

/// How long to wait for a pending commit that may fill a gap in the buffer, before reading the log instead.
const PENDING_COMMIT_WAIT: Duration = Duration::from_millis(10);
/// Maximum time to wait for another subscriber's read of the log. That subscriber may no longer be polled.
const OTHER_READ_WAIT: Duration = Duration::from_millis(50);

impl Memory {
    /// Subscribes to a thread. Returns a stream of its commits, in order and without gaps.
    ///
    /// After this returns, no commit is missed, even if the stream is not polled for a while. While the store is unavailable, the
    /// stream waits. If a wake-up is lost, a change is reported after [`crate::MemoryOptions::poll_interval`] at the latest.
    /// Commits by this `Memory` in the same scope are usually reported without reading the store.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` if [`Start::Last`] requests too many messages.
    pub async fn subscribe(&self, scope: &Scope, thread: ThreadId, options: SubscribeOptions) -> Result<ThreadUpdates> {
        // The feed is joined before the thread is read, so that a change after the read is signalled.
        let feed = self.feeds().join(self, scope, thread).await;
        let signals = feed.signals();
        let read = feed.begin_read(TaggedNumber::default());
        let mut ready = VecDeque::new();
        let mut is_start_in_log = true;
        let after = match options.start {
            Start::Now => {
                let change = self.get_thread(scope, thread).await?.positions.tagged();
                feed.end_read(read.with_change(change), &[]);
                change
            }
            Start::After(change) => {
                let current = self.get_thread(scope, thread).await?.positions.tagged();
                is_start_in_log = change.tag.is_none() || change.may_be_same(current);
                if change.may_be_same(current) { current } else { change }
            }
            Start::Last(count) => {
                let (history, change) = self.read_history(scope, thread, count, &options.roles).await?;
                ready.push_back(Arc::new(history));
                change
            }
        };
        let log = Log { memory: self.clone(), scope: scope.clone(), thread };
        let subscription =
            Subscription { log, feed, signals, roles: options.roles, after, is_start_in_log, ready, has_ended: false };
        let updates = futures::stream::unfold(subscription, |mut subscription| async move {
            let update = subscription.next().await?;
            Some((update, subscription))
        });
        Ok(updates.boxed())
    }

    /// Reads a page of a thread's updates after a change, restricted to messages with these roles (all if empty). `None` if the
    /// thread has not changed. Intended for callers that watch many threads and read a thread when it has changed.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread.
    pub async fn updates_after(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        roles: &[Role],
    ) -> Result<Option<UpdatesPage>> {
        let log = Log { memory: self.clone(), scope: scope.clone(), thread };
        Ok(match log.read(after).await? {
            LogPage::Reset { positions } => {
                Some(UpdatesPage { updates: vec![ThreadUpdate::Reset { positions }], change: positions.tagged() })
            }
            LogPage::Commits { commits, .. } => commits.last().map(|last| UpdatesPage {
                updates: commits
                    .iter()
                    .filter_map(|commit| commit.for_roles(roles))
                    .map(Arc::unwrap_or_clone)
                    .collect(),
                change: last.change,
            }),
        })
    }

    /// Finds the update for one commit of a thread, with the current versions of its messages. Returns `None` if the change log does not
    /// have the commit.
    ///
    /// # Errors
    /// `NotFound` if the scope cannot access the thread.
    pub async fn find_update(
        &self,
        scope: &Scope,
        thread: ThreadId,
        change: TaggedNumber,
    ) -> Result<Option<ThreadUpdate>> {
        let Some(previous) = change.number.checked_sub(1) else { return Ok(None) };
        let log = Log { memory: self.clone(), scope: scope.clone(), thread };
        let LogPage::Commits { commits, .. } = log.read_at_most(previous.into(), 1).await? else { return Ok(None) };
        let found = commits.into_iter().find(|commit| commit.change.may_be_same(change));
        Ok(found.map(|commit| Arc::unwrap_or_clone(commit.update)))
    }

    async fn read_history(
        &self,
        scope: &Scope,
        thread: ThreadId,
        count: usize,
        roles: &[Role],
    ) -> Result<(ThreadUpdate, TaggedNumber)> {
        let newest = MessageQuery::newest(count);
        let query = MessageQuery { roles: roles.to_vec(), on_corrupt: OnCorrupt::Report, ..newest };
        let page = self.messages(scope, thread, &query).await?;
        let (messages, corrupt, positions) = (page.messages, page.corrupt, page.positions);
        Ok((ThreadUpdate::History { messages, corrupt, positions }, positions.tagged()))
    }
}

struct Subscription {
    log: Log,
    feed: Arc<Feed>,
    signals: watch::Receiver<()>,
    /// Only messages with these roles; empty for all roles.
    roles: Vec<Role>,
    /// The last change that was returned or skipped.
    after: TaggedNumber,
    /// Whether the log is known to contain `after`, with the same tag. If not, the feed is not used, because it compares only
    /// change numbers.
    is_start_in_log: bool,
    ready: VecDeque<Arc<ThreadUpdate>>,
    has_ended: bool,
}

impl Subscription {
    async fn next(&mut self) -> Option<Result<Arc<ThreadUpdate>>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Some(Ok(update));
            }
            if self.has_ended {
                return None;
            }
            // Signals are marked as seen before the read, so that a signal during the read causes another read.
            self.signals.mark_unchanged();
            match self.advance().await {
                Ok(true) => {}
                Ok(false) => self.wait().await,
                Err(error) if error.is_retryable() => self.wait().await,
                Err(error) if error.is_thread_not_found() => {
                    self.has_ended = true;
                    return Some(Ok(Arc::new(ThreadUpdate::Deleted)));
                }
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
        }
    }

    fn runtime(&self) -> &dyn Runtime {
        self.log.memory.runtime()
    }

    fn poll_interval(&self) -> Duration {
        self.log.memory.options().poll_interval
    }

    /// Waits for a signal, for at most the poll interval.
    async fn wait(&mut self) {
        let deadline = self.feed.next_poll(self.after, self.poll_interval());
        // If there is no signal by the deadline, the log is polled.
        let _ = self.log.memory.runtime().timeout_at(deadline, self.signals.changed()).await;
    }

    /// Reads the next commits from the feed or the log. Returns whether there were any.
    async fn advance(&mut self) -> Result<bool> {
        if let Some(found) = self.take_from_feed() {
            return Ok(found);
        }
        let deadline = self.runtime().now() + PENDING_COMMIT_WAIT;
        while self.feed.may_fill_gap(self.after) {
            if self.log.memory.runtime().timeout_at(deadline, self.signals.changed()).await.is_none() {
                break;
            }
        }
        let feed = Arc::clone(&self.feed);
        let _reading = self.runtime().timeout(OTHER_READ_WAIT, feed.reading.lock()).await;
        // Another subscriber's read may have filled the feed.
        match self.take_from_feed() {
            Some(found) => Ok(found),
            // The future is boxed, which keeps that of a waiting subscription small.
            None => Box::pin(self.read_log()).await,
        }
    }

    /// Takes the next commits from the feed. Returns whether there were any; `None` if the log has to be read.
    fn take_from_feed(&mut self) -> Option<bool> {
        if !self.is_start_in_log {
            return None;
        }
        match self.feed.commits_after(self.after, self.poll_interval()) {
            Buffered::Commits(commits) => {
                self.add_ready(&commits);
                Some(true)
            }
            Buffered::UpToDate => Some(false),
            Buffered::Unknown => None,
        }
    }

    /// Reads the next commits from the log, and buffers them in the feed. Returns whether there were any.
    async fn read_log(&mut self) -> Result<bool> {
        let read = self.feed.begin_read(self.after);
        let page = self.log.read(self.after).await?;
        self.is_start_in_log = true;
        match page {
            LogPage::Reset { positions } => {
                self.feed.reset(positions.change);
                self.after = positions.tagged();
                self.ready.push_back(Arc::new(ThreadUpdate::Reset { positions }));
                Ok(true)
            }
            LogPage::Commits { commits, positions } => {
                let last = commits.last().map_or(self.after, |commit| commit.change);
                if last.number >= positions.change {
                    self.feed.end_read(read, &commits);
                }
                self.add_ready(&commits);
                Ok(!commits.is_empty())
            }
        }
    }

    fn add_ready(&mut self, commits: &[CommitUpdate]) {
        self.ready.extend(commits.iter().filter_map(|commit| commit.for_roles(&self.roles)));
        self.after = commits.last().map_or(self.after, |commit| commit.change);
    }
}
