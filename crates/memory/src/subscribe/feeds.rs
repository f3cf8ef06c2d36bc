use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{Access, Batch, Runtime, Scope, Store, ThreadId, WakeUp, WakeUps};
use tokio::sync::watch;

use super::feed::Feed;
use super::own_commits::PendingCommit;
use super::watch::WatchTarget;
use crate::Memory;
use crate::task::Task;
use crate::thread_cache::removes_content;

/// The feeds of subscribed threads, the senders for watches, and the task that dispatches the store's wake-ups to them. All of
/// these exist only while they have subscribers.
pub(crate) struct Feeds {
    runtime: Arc<dyn Runtime>,
    registry: Mutex<Registry>,
    /// The number of feeds, so that a commit without subscribers needs no lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Registry {
    by_thread: HashMap<ThreadId, Vec<FeedEntry>>,
    watched: HashMap<WatchTarget, watch::Sender<()>>,
    dispatcher: Option<Task<()>>,
}

struct FeedEntry {
    scope: Scope,
    feed: Weak<Feed>,
}

impl Feeds {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { runtime, registry: Mutex::default(), count: AtomicUsize::new(0) }
    }

    pub(super) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Returns the feed for a thread in a scope. The feed receives wake-ups from now on.
    pub(super) async fn join(self: &Arc<Self>, memory: &Memory, scope: &Scope, thread: ThreadId) -> Arc<Feed> {
        let feed = self.feed_for(scope, thread);
        self.ensure_dispatching(memory).await;
        feed
    }

    /// Returns a receiver that is notified of wake-ups for a target from now on.
    pub(super) async fn watch(self: &Arc<Self>, memory: &Memory, target: &WatchTarget) -> watch::Receiver<()> {
        let receiver = {
            let mut registry = self.lock();
            registry.watched.entry(target.clone()).or_insert_with(|| watch::Sender::new(())).subscribe()
        };
        self.ensure_dispatching(memory).await;
        receiver
    }

    /// Removes the sender for a target if it has no receivers.
    pub(super) fn unwatch(&self, target: &WatchTarget) {
        let mut registry = self.lock();
        if registry.watched.get(target).is_some_and(|sender| sender.receiver_count() == 0) {
            registry.watched.remove(target);
        }
        registry.stop_if_idle();
    }

    async fn ensure_dispatching(self: &Arc<Self>, memory: &Memory) {
        if !self.is_dispatching() {
            let wake_ups = memory.store().wake_ups().await.ok();
            let mut registry = self.lock();
            // Another call may have started the task meanwhile.
            if !registry.is_dispatching() {
                let (store, poll_interval) = (Arc::downgrade(&memory.backend().store), memory.options().poll_interval);
                let runtime = Arc::clone(&self.runtime);
                let dispatching = dispatch_all(runtime, Arc::downgrade(self), store, wake_ups, poll_interval);
                registry.dispatcher = Some(Task::spawn(&*self.runtime, dispatching));
            }
        }
    }

    fn feed_for(self: &Arc<Self>, scope: &Scope, thread: ThreadId) -> Arc<Feed> {
        let mut registry = self.lock();
        let entries = registry.by_thread.entry(thread).or_default();
        let found = entries.iter().find(|entry| entry.scope == *scope && entry.feed.strong_count() > 0);
        if let Some(feed) = found.and_then(|entry| entry.feed.upgrade()) {
            return feed;
        }
        let feed = Arc::new(Feed::new(scope.clone(), thread, self));
        entries.push(FeedEntry { scope: scope.clone(), feed: Arc::downgrade(&feed) });
        self.count.fetch_add(1, Ordering::Release);
        feed
    }

    /// Removes the entries of a thread's dropped feeds.
    pub(super) fn remove_dropped(&self, thread: ThreadId) {
        let mut registry = self.lock();
        if let Some(entries) = registry.by_thread.get_mut(&thread) {
            let before = entries.len();
            entries.retain(|entry| entry.feed.strong_count() > 0);
            self.count.fetch_sub(before - entries.len(), Ordering::Release);
            if entries.is_empty() {
                registry.by_thread.remove(&thread);
            }
        }
        registry.stop_if_idle();
    }

    /// Informs the feeds of a thread that a commit starts. `None` if there are no feeds or the batch is empty.
    pub(crate) fn begin_commit(&self, scope: &Scope, thread: ThreadId, batch: &Batch) -> Option<PendingCommit> {
        let feeds = self.feeds_of_thread(scope, thread);
        if feeds.is_empty() || batch.is_empty() {
            return None;
        }
        // Buffered commits may contain the content that the batch removes.
        if removes_content(batch) {
            feeds.iter().for_each(|feed| feed.clear());
        }
        Some(PendingCommit::begin(scope, feeds, self.runtime.now()))
    }

    /// Invalidates the feeds of a thread that is changed by other means than a commit.
    pub(crate) fn invalidate(&self, scope: &Scope, thread: ThreadId) {
        self.feeds_of_thread(scope, thread).iter().for_each(|feed| feed.invalidate());
    }

    /// The feeds of a thread in any scope of the same tenant.
    fn feeds_of_thread(&self, scope: &Scope, thread: ThreadId) -> Vec<Arc<Feed>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let registry = self.lock();
        let entries = registry.by_thread.get(&thread).into_iter().flatten();
        let entries = entries.filter(|entry| entry.scope.tenant_id() == scope.tenant_id());
        entries.filter_map(|entry| entry.feed.upgrade()).collect()
    }

    fn dispatch(&self, wake_up: &WakeUp) {
        // The registry must not be locked while feeds are used, because dropping the last reference to a feed locks it.
        match wake_up {
            WakeUp::Unspecified => {
                self.lock().watched.values().for_each(notify);
                self.all_feeds().iter().for_each(|feed| feed.invalidate());
            }
            WakeUp::Record { tenant, owner, name } => {
                let target = WatchTarget::Record(tenant.clone(), owner.clone(), name.clone());
                self.lock().watched.get(&target).into_iter().for_each(notify);
            }
            WakeUp::Thread { tenant, owner, thread, change } => {
                let target = WatchTarget::Thread(tenant.clone(), *thread);
                self.lock().watched.get(&target).into_iter().for_each(notify);
                let feeds = self.feeds_of_thread(&Scope::Tenant(tenant.clone()), *thread);
                for feed in feeds.iter().filter(|feed| feed.scope.access(owner) != Access::None) {
                    match change {
                        Some(change) => feed.record_change(*change),
                        None => feed.invalidate(),
                    }
                }
            }
        }
    }

    fn all_feeds(&self) -> Vec<Arc<Feed>> {
        self.lock().by_thread.values().flatten().filter_map(|entry| entry.feed.upgrade()).collect()
    }

    fn is_dispatching(&self) -> bool {
        self.lock().is_dispatching()
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn is_dispatching(&mut self) -> bool {
        self.dispatcher.as_mut().is_some_and(|dispatcher| !dispatcher.has_ended())
    }

    /// Ends the task if there are no feeds or watches.
    fn stop_if_idle(&mut self) {
        if self.by_thread.is_empty() && self.watched.is_empty() {
            self.dispatcher = None;
        }
    }
}

fn notify(sender: &watch::Sender<()>) {
    sender.send_replace(());
}

/// Dispatches the store's wake-ups. If the store provides none or the stream ends, requests them again after a poll interval.
async fn dispatch_all(
    runtime: Arc<dyn Runtime>,
    feeds: Weak<Feeds>,
    store: Weak<dyn Store>,
    mut wake_ups: Option<WakeUps>,
    poll_interval: Duration,
) {
    loop {
        while let Some(stream) = &mut wake_ups {
            let (received, feeds) = (stream.next().await, feeds.upgrade());
            match (received, feeds) {
                (Some(wake_up), Some(feeds)) => feeds.dispatch(&wake_up),
                (None, _) => wake_ups = None,
                (_, None) => return,
            }
        }
        runtime.sleep(poll_interval).await;
        let Some(store) = store.upgrade() else { return };
        wake_ups = store.wake_ups().await.ok();
        match feeds.upgrade() {
            None => return,
            // Wake-ups may have been missed meanwhile.
            Some(feeds) if wake_ups.is_some() => feeds.dispatch(&WakeUp::Unspecified),
            Some(_) => {}
        }
    }
}
