use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{Access, Batch, Runtime, Scope, Store, ThreadId, WakeUp, WakeUps};
use tokio::sync::watch;

use super::feed::Feed;
use super::handed::UnderWay;
use super::watch::Watched;
use crate::Memory;
use crate::tails::takes_words_away;
use crate::task::Task;

/// The feeds of those who listen, by thread, whoever only waits for something to happen, and the task that passes the store's
/// wake-ups on to all of them.
///
/// Both are there for as long as somebody listens.
pub(crate) struct Feeds {
    runtime: Arc<dyn Runtime>,
    registry: Mutex<Registry>,
    /// How many feeds there are, so that a commit which nobody listens to asks no more than that.
    count: AtomicUsize,
}

#[derive(Default)]
struct Registry {
    by_thread: HashMap<ThreadId, Vec<Place>>,
    watched: HashMap<Watched, watch::Sender<()>>,
    router: Option<Task<()>>,
}

struct Place {
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

    /// The feed of a thread in a scope. From this moment on it hears of what happens.
    pub(super) async fn join(self: &Arc<Self>, memory: &Memory, scope: &Scope, thread: ThreadId) -> Arc<Feed> {
        let feed = self.feed(scope, thread);
        self.ensure_routing(memory).await;
        feed
    }

    /// Hints about one thing, from this moment on.
    pub(super) async fn watch(self: &Arc<Self>, memory: &Memory, watched: &Watched) -> watch::Receiver<()> {
        let hints = {
            let mut registry = self.lock();
            registry.watched.entry(watched.clone()).or_insert_with(|| watch::Sender::new(())).subscribe()
        };
        self.ensure_routing(memory).await;
        hints
    }

    /// Forgets what nobody waits for any more.
    pub(super) fn unwatch(&self, watched: &Watched) {
        let mut registry = self.lock();
        if registry.watched.get(watched).is_some_and(|sender| sender.receiver_count() == 0) {
            registry.watched.remove(watched);
        }
        registry.rest();
    }

    async fn ensure_routing(self: &Arc<Self>, memory: &Memory) {
        if !self.is_routing() {
            let wake_ups = memory.store().wake_ups().await.ok();
            let mut registry = self.lock();
            // Of two who were here at once, one is enough.
            if !registry.is_routing() {
                let (store, backstop) = (Arc::downgrade(&memory.backend().store), memory.options().backstop);
                let runtime = Arc::clone(&self.runtime);
                let routing = route(runtime, Arc::downgrade(self), store, wake_ups, backstop);
                registry.router = Some(Task::spawn(&*self.runtime, routing));
            }
        }
    }

    fn feed(self: &Arc<Self>, scope: &Scope, thread: ThreadId) -> Arc<Feed> {
        let mut registry = self.lock();
        let places = registry.by_thread.entry(thread).or_default();
        let found = places.iter().find(|place| place.scope == *scope && place.feed.strong_count() > 0);
        if let Some(feed) = found.and_then(|place| place.feed.upgrade()) {
            return feed;
        }
        let feed = Arc::new(Feed::new(scope.clone(), thread, self));
        places.push(Place { scope: scope.clone(), feed: Arc::downgrade(&feed) });
        self.count.fetch_add(1, Ordering::Release);
        feed
    }

    /// Makes room where a feed was whose last subscriber went.
    pub(super) fn leave(&self, thread: ThreadId) {
        let mut registry = self.lock();
        if let Some(places) = registry.by_thread.get_mut(&thread) {
            let before = places.len();
            places.retain(|place| place.feed.strong_count() > 0);
            self.count.fetch_sub(before - places.len(), Ordering::Release);
            if places.is_empty() {
                registry.by_thread.remove(&thread);
            }
        }
        registry.rest();
    }

    /// Tells the feeds of a thread that a commit begins; `None` where nobody listens.
    pub(crate) fn begin(&self, scope: &Scope, thread: ThreadId, batch: &Batch) -> Option<UnderWay> {
        let feeds = self.of_thread(scope, thread);
        if feeds.is_empty() || batch.is_empty() {
            return None;
        }
        // Nobody shall be told words that are gone by then.
        if takes_words_away(batch) {
            feeds.iter().for_each(|feed| feed.forget());
        }
        Some(UnderWay::begin(scope, feeds, self.runtime.now()))
    }

    /// Something happened to a thread that is no commit.
    pub(crate) fn doubt(&self, scope: &Scope, thread: ThreadId) {
        self.of_thread(scope, thread).iter().for_each(|feed| feed.doubt());
    }

    /// The feeds of a thread in any scope of the same tenant.
    fn of_thread(&self, scope: &Scope, thread: ThreadId) -> Vec<Arc<Feed>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let registry = self.lock();
        let places = registry.by_thread.get(&thread).into_iter().flatten();
        let places = places.filter(|place| place.scope.tenant_id() == scope.tenant_id());
        places.filter_map(|place| place.feed.upgrade()).collect()
    }

    fn pass_on(&self, wake_up: &WakeUp) {
        // The registry is let go of first: a feed whose last subscriber went meanwhile takes it to leave.
        match wake_up {
            WakeUp::Anything => {
                self.lock().watched.values().for_each(hint);
                self.all().iter().for_each(|feed| feed.doubt());
            }
            WakeUp::Record { tenant, owner, name } => {
                let watched = Watched::Record(tenant.clone(), owner.clone(), name.clone());
                self.lock().watched.get(&watched).into_iter().for_each(hint);
            }
            WakeUp::Thread { tenant, owner, thread, change } => {
                let watched = Watched::Thread(tenant.clone(), *thread);
                self.lock().watched.get(&watched).into_iter().for_each(hint);
                let feeds = self.of_thread(&Scope::Tenant(tenant.clone()), *thread);
                for feed in feeds.iter().filter(|feed| feed.scope.access(owner) != Access::None) {
                    match change {
                        Some(change) => feed.note(*change),
                        None => feed.doubt(),
                    }
                }
            }
        }
    }

    fn all(&self) -> Vec<Arc<Feed>> {
        self.lock().by_thread.values().flatten().filter_map(|place| place.feed.upgrade()).collect()
    }

    fn is_routing(&self) -> bool {
        self.lock().is_routing()
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn is_routing(&mut self) -> bool {
        self.router.as_mut().is_some_and(|router| !router.has_ended())
    }

    /// Ends the task once nobody is there to hear of anything.
    fn rest(&mut self) {
        if self.by_thread.is_empty() && self.watched.is_empty() {
            self.router = None;
        }
    }
}

fn hint(watching: &watch::Sender<()>) {
    watching.send_replace(());
}

/// Passes wake-ups on, and listens again after a while where the store gives none or ends them.
async fn route(
    runtime: Arc<dyn Runtime>,
    feeds: Weak<Feeds>,
    store: Weak<dyn Store>,
    mut wake_ups: Option<WakeUps>,
    backstop: Duration,
) {
    loop {
        while let Some(listening) = &mut wake_ups {
            let (heard, feeds) = (listening.next().await, feeds.upgrade());
            match (heard, feeds) {
                (Some(wake_up), Some(feeds)) => feeds.pass_on(&wake_up),
                (None, _) => wake_ups = None,
                (_, None) => return,
            }
        }
        runtime.sleep(backstop).await;
        let Some(store) = store.upgrade() else { return };
        wake_ups = store.wake_ups().await.ok();
        match feeds.upgrade() {
            None => return,
            // Nobody knows what was not heard of.
            Some(feeds) if wake_ups.is_some() => feeds.pass_on(&WakeUp::Anything),
            Some(_) => {}
        }
    }
}
