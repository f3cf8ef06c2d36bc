use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{MessageQuery, OnCorrupt, Role, Runtime, Scope, Tagged, ThreadId};
use tokio::sync::watch;

use super::feed::{Feed, Following};
use super::log::{Log, Read, Told};
use super::{Start, SubscribeOptions, ThreadUpdate, ThreadUpdates, UpdatesPage};
use crate::{Memory, Result};

/// How long a commit is waited for that another one has overtaken on its way here.
const FILLING: Duration = Duration::from_millis(10);
/// How long another subscriber's look at the log is waited for: perhaps nobody goes on with it.
const TURN: Duration = Duration::from_millis(50);

impl Memory {
    /// Subscribes to a thread: a stream of its commits in order, without a gap from where it begins.
    ///
    /// From the moment that this returns nothing is missed, whether or not the stream is looked at. While the store
    /// cannot be reached the stream waits. Hints may be lost: then a change is heard of after
    /// [`crate::MemoryOptions::backstop`] at the latest. What this manager commits in the same scope is told without a look
    /// at the store, for as long as the subscriber keeps up.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for too long a history.
    pub async fn subscribe(&self, scope: &Scope, thread: ThreadId, options: SubscribeOptions) -> Result<ThreadUpdates> {
        // Listening comes first: what happens while the thread is looked at has its hint waiting.
        let feed = self.feeds().join(self, scope, thread).await;
        let signals = feed.signals();
        let look = feed.begin_look(Tagged::default());
        let mut ready = VecDeque::new();
        let mut is_placed = true;
        let after = match options.start {
            Start::Now => {
                let change = self.get_thread(scope, thread).await?.positions.tagged();
                feed.end_look(look.at(change), &[]);
                change
            }
            Start::After(change) => {
                let stands_at = self.get_thread(scope, thread).await?.positions.tagged();
                is_placed = change.tag.is_none() || change.is_same(stands_at);
                if change.is_same(stands_at) { stands_at } else { change }
            }
            Start::Last(count) => {
                let (history, change) = self.history(scope, thread, count, &options.roles).await?;
                ready.push_back(Arc::new(history));
                change
            }
        };
        let log = Log { memory: self.clone(), scope: scope.clone(), thread };
        let subscription =
            Subscription { log, feed, signals, roles: options.roles, after, is_placed, ready, has_ended: false };
        let updates = futures::stream::unfold(subscription, |mut subscription| async move {
            let update = subscription.next().await?;
            Some((update, subscription))
        });
        Ok(updates.boxed())
    }

    /// Reads some of what happened in a thread after a position, as a subscriber to these roles hears it; nothing where
    /// nothing did. For those who follow many threads, each when it is known to have changed.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread.
    pub async fn updates_after(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        roles: &[Role],
    ) -> Result<Option<UpdatesPage>> {
        let log = Log { memory: self.clone(), scope: scope.clone(), thread };
        Ok(match log.read(after).await? {
            Read::Reset { positions } => {
                Some(UpdatesPage { updates: vec![ThreadUpdate::Reset { positions }], change: positions.tagged() })
            }
            Read::Commits { commits, .. } => commits.last().map(|last| UpdatesPage {
                updates: commits.iter().filter_map(|told| told.for_roles(roles)).map(Arc::unwrap_or_clone).collect(),
                change: last.change,
            }),
        })
    }

    async fn history(
        &self,
        scope: &Scope,
        thread: ThreadId,
        count: usize,
        roles: &[Role],
    ) -> Result<(ThreadUpdate, Tagged)> {
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
    /// Only messages of these; of all where there are none.
    roles: Vec<Role>,
    /// The last change that was told, or skipped for saying nothing to this subscriber.
    after: Tagged,
    /// Whether the log knows that position: a feed does not, and hands out what only follows it by number.
    is_placed: bool,
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
            // What is told from here on is looked at again.
            self.signals.mark_unchanged();
            match self.look().await {
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

    fn backstop(&self) -> Duration {
        self.log.memory.options().backstop
    }

    /// Waits for something to look at, but never for longer than the backstop.
    async fn wait(&mut self) {
        let deadline = self.feed.next_look(self.after, self.backstop());
        // An early return by the deadline only means that the log is looked at.
        let _ = self.log.memory.runtime().timeout_at(deadline, self.signals.changed()).await;
    }

    /// Takes what comes next. Says whether there was anything.
    async fn look(&mut self) -> Result<bool> {
        if let Some(found) = self.take_from_feed() {
            return Ok(found);
        }
        let deadline = self.runtime().now() + FILLING;
        while self.feed.may_be_filled(self.after) {
            if self.log.memory.runtime().timeout_at(deadline, self.signals.changed()).await.is_none() {
                break;
            }
        }
        let feed = Arc::clone(&self.feed);
        let _turn = self.runtime().timeout(TURN, feed.reading.lock()).await;
        // Whoever was here before has read for all.
        match self.take_from_feed() {
            Some(found) => Ok(found),
            // On the heap while it runs: whoever listens mostly waits, and pays for the largest that it may do.
            None => Box::pin(self.read()).await,
        }
    }

    /// Says whether there was anything; `None` where the log has to tell.
    fn take_from_feed(&mut self) -> Option<bool> {
        if !self.is_placed {
            return None;
        }
        match self.feed.following(self.after, self.backstop()) {
            Following::Told(commits) => {
                self.take(&commits);
                Some(true)
            }
            Following::Nothing => Some(false),
            Following::Unknown => None,
        }
    }

    async fn read(&mut self) -> Result<bool> {
        let look = self.feed.begin_look(self.after);
        let read = self.log.read(self.after).await?;
        self.is_placed = true;
        match read {
            Read::Reset { positions } => {
                self.feed.begin_anew(positions.change);
                self.after = positions.tagged();
                self.ready.push_back(Arc::new(ThreadUpdate::Reset { positions }));
                Ok(true)
            }
            Read::Commits { commits, positions } => {
                let last = commits.last().map_or(self.after, |told| told.change);
                if last.number >= positions.change {
                    self.feed.end_look(look, &commits);
                }
                self.take(&commits);
                Ok(!commits.is_empty())
            }
        }
    }

    fn take(&mut self, commits: &[Told]) {
        self.ready.extend(commits.iter().filter_map(|told| told.for_roles(&self.roles)));
        self.after = commits.last().map_or(self.after, |told| told.change);
    }
}
