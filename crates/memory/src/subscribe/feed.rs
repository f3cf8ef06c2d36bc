use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use threadkeep_core::{MonotonicTime, Runtime, Scope, Tagged, ThreadId};
use tokio::sync::watch;

use super::feeds::Feeds;
use super::log::Told;

/// What a feed holds at most, for the moment in which its subscribers take it.
const HELD: usize = 64;
const HELD_BYTES: usize = 256 * 1024;
/// How long what is held counts as how things are. After that the log is asked.
const FRESH: Duration = Duration::from_secs(1);

/// What the subscribers to one thread in one scope share.
///
/// It holds the newest commits for a moment, and knows how far the thread is known to have come. It hands out what it
/// holds only while that reaches so far: a commit that it knows nothing of may have taken words away.
pub(super) struct Feed {
    pub(super) scope: Scope,
    pub(super) thread: ThreadId,
    feeds: Weak<Feeds>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    /// Tells that it is worth to look at the feed again.
    signals: watch::Sender<()>,
    /// Held while one subscriber reads for all.
    pub(super) reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The newest commits, oldest first, without a gap.
    held: VecDeque<Held>,
    bytes: usize,
    /// The last change that is known of.
    known: u64,
    /// What came before this change is not held any more, as that took words away.
    removed_before: u64,
    /// Grows when something may have happened that nobody can tell of.
    doubts: u64,
    /// The last look at the log.
    looked: Option<Look>,
    /// Commits of this manager in the feed's scope that have not ended.
    under_way: usize,
}

struct Held {
    told: Told,
    since: MonotonicTime,
}

/// A look at the log, which found nothing after a change.
#[derive(Clone, Copy)]
pub(super) struct Look {
    after: Tagged,
    doubts: u64,
    at: MonotonicTime,
}

impl Look {
    /// The same look, at another position.
    pub(super) fn at(self, after: Tagged) -> Self {
        Self { after, ..self }
    }
}

/// What became of a commit of this manager.
#[derive(Clone)]
pub(super) enum Made {
    /// It was made, and this is all of it.
    Told(Told),
    /// It was made, as this change.
    Change(u64),
    /// It was made, as this change, and took words away.
    Removal(u64),
    /// It may have been made.
    Perhaps,
    /// It was not made.
    Nothing,
}

/// What a subscriber is to do.
pub(super) enum Following {
    /// Tell these.
    Told(Vec<Told>),
    /// Wait: there is nothing.
    Nothing,
    /// Look at the log.
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

    /// What comes after a change, as far as that is known here; a look at the log counts for as long as `backstop`.
    pub(super) fn following(&self, after: Tagged, backstop: Duration) -> Following {
        let now = self.runtime.now();
        let mut state = self.lock();
        state.drop_outdated(now);
        if state.holds_all_after(after) {
            let following = state.held.iter().filter(|held| held.told.change.number > after.number);
            return Following::Told(following.map(|held| held.told.clone()).collect());
        }
        let has_looked = state
            .looked
            .is_some_and(|look| look.after == after && look.doubts == state.doubts && look.at + backstop > now);
        if has_looked && state.known <= after.number { Following::Nothing } else { Following::Unknown }
    }

    /// Until when there is no need to look of one's own accord.
    pub(super) fn next_look(&self, after: Tagged, backstop: Duration) -> MonotonicTime {
        let (now, looked) = (self.runtime.now(), self.lock().looked);
        let next = looked.filter(|look| look.after == after).map(|look| look.at + backstop);
        next.filter(|next| *next > now).unwrap_or(now + backstop)
    }

    /// Whether the commits after a change may be handed over yet.
    pub(super) fn may_be_filled(&self, after: Tagged) -> bool {
        let state = self.lock();
        state.under_way > 0 && state.known > after.number && !state.holds_all_after(after)
    }

    /// Begins a look at the log.
    pub(super) fn begin_look(&self, after: Tagged) -> Look {
        Look { after, doubts: self.lock().doubts, at: self.runtime.now() }
    }

    /// Takes in what a look found: commits up to the last one of the thread, or none.
    pub(super) fn end_look(&self, look: Look, found: &[Told]) {
        let mut state = self.lock();
        let last = found.last().map_or(look.after, |told| told.change);
        if state.looked.is_none_or(|earlier| earlier.at <= look.at) {
            state.looked = Some(Look { after: last, ..look });
        }
        state.known = state.known.max(last.number);
        let mut held: VecDeque<Held> = found.iter().map(|told| Held { told: told.clone(), since: look.at }).collect();
        held.extend(std::mem::take(&mut state.held).into_iter().filter(|held| held.told.change.number > last.number));
        state.bytes = 0;
        held.into_iter().for_each(|held| state.hold(held));
        state.advance(look.at);
    }

    /// The thread stands where it stands, whatever was known of it.
    pub(super) fn begin_anew(&self, change: u64) {
        let mut state = self.lock();
        state.forget();
        (state.known, state.removed_before, state.looked) = (change, 0, None);
    }

    /// A commit was made that nothing else is known of.
    pub(super) fn note(&self, change: u64) {
        let mut state = self.lock();
        let is_new = change > state.known;
        state.known = state.known.max(change);
        // What is under way signals when it ends, and is most likely this one.
        let waits = state.under_way > 0;
        drop(state);
        if is_new && !waits {
            self.signals.send_replace(());
        }
    }

    /// Something may have happened.
    pub(super) fn doubt(&self) {
        let mut state = self.lock();
        state.forget();
        state.doubts += 1;
        drop(state);
        self.signals.send_replace(());
    }

    /// Lets go of what is held.
    pub(super) fn forget(&self) {
        self.lock().forget();
    }

    /// A commit of this manager begins in the feed's scope.
    pub(super) fn begin_commit(&self) {
        self.lock().under_way += 1;
    }

    /// A commit of this manager has ended that began at some moment, in the feed's scope or in another.
    pub(super) fn end_commit(&self, made: Made, is_of_scope: bool, began: MonotonicTime) {
        let mut state = self.lock();
        state.under_way -= usize::from(is_of_scope);
        match made {
            Made::Told(told) => {
                state.known = state.known.max(told.change.number);
                state.hold(Held { told, since: self.runtime.now() });
                state.advance(began);
            }
            Made::Change(change) => state.known = state.known.max(change),
            Made::Removal(change) => {
                state.forget();
                state.known = state.known.max(change);
                state.removed_before = state.removed_before.max(change);
            }
            Made::Perhaps => {
                state.forget();
                state.doubts += 1;
            }
            Made::Nothing => {}
        }
        drop(state);
        // Also for nothing: somebody may have waited for it.
        self.signals.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever a feed says is checked against what is known, and the log has the last word.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether everything after a change is here, and is something.
    fn holds_all_after(&self, after: Tagged) -> bool {
        let after = after.number;
        let first = self.held.front().map(|held| held.told.change.number);
        let last = self.held.back().map(|held| held.told.change.number);
        first.is_some_and(|first| first <= after + 1) && last.is_some_and(|last| last > after && last >= self.known)
    }

    fn hold(&mut self, held: Held) {
        let change = held.told.change.number;
        if change < self.removed_before || held.told.bytes > HELD_BYTES {
            return;
        }
        if self
            .held
            .iter()
            .any(|known| known.told.change.number == change && !known.told.change.is_same(held.told.change))
        {
            // A number that was given twice: the store failed over, and the log has to say to what.
            self.forget();
            self.doubts += 1;
            return;
        }
        let first = self.held.front().map(|held| held.told.change.number);
        let last = self.held.back().map(|held| held.told.change.number);
        match first.zip(last) {
            Some((first, _)) if change + 1 == first => {
                self.bytes += held.told.bytes;
                self.held.push_front(held);
            }
            Some((_, last)) if change <= last => return,
            Some((_, last)) if change == last + 1 => {
                self.bytes += held.told.bytes;
                self.held.push_back(held);
            }
            _ => {
                self.forget();
                self.bytes = held.told.bytes;
                self.held.push_back(held);
            }
        }
        while self.held.len() > HELD || self.bytes > HELD_BYTES {
            self.drop_first();
        }
    }

    /// Moves the last look on to the end of what is held, if that goes on from it: a commit proves that nothing else was made
    /// before it since the one that it follows.
    fn advance(&mut self, at: MonotonicTime) {
        let (Some(look), Some(first), Some(last)) = (&mut self.looked, self.held.front(), self.held.back()) else {
            return;
        };
        if first.told.change.number <= look.after.number + 1 && last.told.change.number > look.after.number {
            *look = Look { after: last.told.change, at: look.at.max(at), ..*look };
        }
    }

    fn drop_outdated(&mut self, now: MonotonicTime) {
        while self.held.front().is_some_and(|held| held.since + FRESH <= now) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(held) = self.held.pop_front() {
            self.bytes -= held.told.bytes;
        }
    }

    fn forget(&mut self) {
        self.held.clear();
        self.bytes = 0;
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(feeds) = self.feeds.upgrade() {
            feeds.leave(self.thread);
        }
    }
}
