//! A client's subscription to a thread, which sends the updates of the thread in order, and finally an end with a reason.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use threadkeep::core::TaggedNumber;
use threadkeep::memory::ThreadUpdates;
use threadkeep::{ThreadId, ThreadUpdate};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::encoding::{EncodedUpdate, UpdateCache};
use super::json::{EndJson, UpdateJson};
use super::notices::{Notices, next_notice};
use crate::app::App;
use crate::security::Caller;

/// A subscription whose updates are sent as `T`.
pub(super) struct Subscription<T> {
    pub(super) app: App,
    pub(super) caller: Arc<Caller>,
    pub(super) thread: ThreadId,
    /// The queue to the client's connection. While it is full, no updates are read.
    pub(super) outgoing: mpsc::Sender<T>,
    pub(super) write: fn(&EncodedUpdate, ThreadId) -> T,
    /// A message that is sent periodically to keep an idle stream alive. `None` if the connection has its own heartbeat and key
    /// check.
    pub(super) heartbeat: Option<T>,
    /// The notices that are sent in addition to the updates of the thread.
    pub(super) notices: Option<Notices>,
}

impl<T: Clone + Send> Subscription<T> {
    /// Sends updates until there is a reason to end, which is sent last, or until the client disconnects.
    ///
    /// A client that stops reading for too long is disconnected, and can resume after the last update that was sent. Other
    /// clients are not affected, because each subscription has its own task.
    pub(super) async fn run(mut self, mut updates: ThreadUpdates) {
        let mut last_change = None;
        let Some(reason) = self.send_updates(&mut updates, &mut last_change).await else { return };
        drop(updates);
        let end = EncodedUpdate::of(&UpdateJson::End(EndJson::new(reason, last_change)));
        // Sending fails after the client has disconnected.
        drop(self.outgoing.send((self.write)(&end, self.thread)).await);
    }

    /// Sends updates. Returns the reason to end; `None` if there are no more updates or the connection ended.
    async fn send_updates(
        &mut self,
        updates: &mut ThreadUpdates,
        last_change: &mut Option<TaggedNumber>,
    ) -> Option<&'static str> {
        let mut beats = self.heartbeat.as_ref().map(|_| heartbeat_interval(self.app.options().heartbeat));
        let mut stopped = std::pin::pin!(self.app.stopped());
        // Keeps the last update in the cache until the next one, so that other subscriptions reuse its encoding.
        let mut _last = None;
        let mut notices = self.notices.take();
        loop {
            let (message, change) = tokio::select! {
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
                        let Some(encoded) = self.encode(update).await else { continue };
                        let message = ((self.write)(&encoded, self.thread), encoded.change());
                        _last = Some(encoded).filter(|encoded| encoded.is_shared());
                        message
                    }
                },
                notice = next_notice(&mut notices) => ((self.write)(&notice, self.thread), None),
                () = tick(&mut beats) => {
                    // Boxed, because the check is rare and the future of an idle subscription should stay small.
                    if !Box::pin(self.caller.is_still_valid(&self.app)).await {
                        return Some("key_revoked");
                    }
                    let Some(heartbeat) = self.heartbeat.clone() else { continue };
                    (heartbeat, None)
                }
            };
            match tokio::time::timeout(self.app.options().slow_reader, self.outgoing.reserve()).await {
                Err(_) => return Some("slow_reader"),
                Ok(Err(_)) => return None,
                Ok(Ok(permit)) => permit.send(message),
            }
            *last_change = change.or(*last_change);
        }
    }

    async fn encode(&self, update: Arc<ThreadUpdate>) -> Option<Arc<EncodedUpdate>> {
        Box::pin(UpdateCache::encode(&self.app, &self.caller.scope, self.thread, update)).await
    }
}

fn heartbeat_interval(heartbeat: Duration) -> Interval {
    let mut beats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// Waits for the next heartbeat; forever without an interval.
async fn tick(beats: &mut Option<Interval>) {
    match beats {
        Some(beats) => drop(beats.tick().await),
        None => std::future::pending().await,
    }
}
