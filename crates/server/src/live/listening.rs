//! One listener to one thread: its updates in order, and an end with a reason.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use threadkeep::core::Tagged;
use threadkeep::memory::ThreadUpdates;
use threadkeep::{ThreadId, ThreadUpdate};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::json::{EndJson, UpdateJson};
use super::telling::{Telling, Tellings};
use crate::app::App;
use crate::security::Caller;

/// A listener, and how its door writes what it hears.
pub(super) struct Listener<T> {
    pub(super) app: App,
    pub(super) caller: Arc<Caller>,
    pub(super) thread: ThreadId,
    /// To whoever writes to the client. What does not fit is not read from the thread yet.
    pub(super) outgoing: mpsc::Sender<T>,
    pub(super) write: fn(&Telling, ThreadId) -> T,
    /// What shows that a silent stream lives. A door that looks by itself whether client and key are still there has none.
    pub(super) heartbeat: Option<T>,
}

impl<T: Clone + Send> Listener<T> {
    /// Tells updates until there is a reason to end, which is told last, or the client is gone.
    ///
    /// A client that takes nothing for too long is dropped; the last update that went out is where it resumes. Others feel
    /// nothing of it, as each has a task of its own.
    pub(super) async fn run(self, mut updates: ThreadUpdates) {
        let mut heard = None;
        let Some(reason) = self.pump(&mut updates, &mut heard).await else { return };
        drop(updates);
        let end = Telling::of(&UpdateJson::End(EndJson::new(reason, heard)));
        // A client that is gone hears nothing.
        drop(self.outgoing.send((self.write)(&end, self.thread)).await);
    }

    /// Sends what happens; gives the reason to end, where the thread's own end was none.
    async fn pump(&self, updates: &mut ThreadUpdates, heard: &mut Option<Tagged>) -> Option<&'static str> {
        let mut beats = self.heartbeat.as_ref().map(|_| beats(self.app.options().heartbeat));
        let mut stopped = std::pin::pin!(self.app.stopped());
        // Held until the next one, so that whoever hears the same finds it written.
        let mut _last = None;
        loop {
            let (told, change) = tokio::select! {
                biased;
                () = &mut stopped => return Some("shutdown"),
                () = self.outgoing.closed() => return None,
                update = updates.next() => match update {
                    None => return None,
                    Some(Err(error)) => {
                        tracing::warn!(%error, "a stream of events failed");
                        return Some("failed");
                    }
                    Some(Ok(update)) => {
                        let Some(told) = self.telling(update).await else { continue };
                        let written = ((self.write)(&told, self.thread), told.change());
                        _last = Some(told).filter(|told| told.is_shared());
                        written
                    }
                },
                () = tick(&mut beats) => {
                    // On the heap while it runs, as a listener mostly waits.
                    if !Box::pin(self.caller.is_still_good(&self.app)).await {
                        return Some("key_revoked");
                    }
                    let Some(heartbeat) = self.heartbeat.clone() else { continue };
                    (heartbeat, None)
                }
            };
            match tokio::time::timeout(self.app.options().slow_reader, self.outgoing.reserve()).await {
                Err(_) => return Some("slow_reader"),
                Ok(Err(_)) => return None,
                Ok(Ok(place)) => place.send(told),
            }
            *heard = change.or(*heard);
        }
    }

    async fn telling(&self, update: Arc<ThreadUpdate>) -> Option<Arc<Telling>> {
        Box::pin(Tellings::tell(&self.app, &self.caller.scope, self.thread, update)).await
    }
}

fn beats(heartbeat: Duration) -> Interval {
    let mut beats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

async fn tick(beats: &mut Option<Interval>) {
    match beats {
        Some(beats) => drop(beats.tick().await),
        None => std::future::pending().await,
    }
}
