//! One listener to one thread: its updates in order, heartbeats between them, and an end with a reason.

use std::sync::Arc;

use futures::StreamExt;
use threadkeep::ThreadId;
use threadkeep::memory::ThreadUpdates;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::json::{EndJson, UpdateJson};
use super::telling::{Telling, Tellings};
use crate::app::App;
use crate::security::Caller;

/// Updates that wait for a reader at most.
const WAITING: usize = 16;

/// What a listener is sent.
#[derive(Debug)]
pub(super) enum Signal {
    Update(Arc<Telling>),
    /// Nothing has happened, and the stream lives.
    Heartbeat,
}

/// Reads updates on behalf of a listener until there is a reason to end, which is the last signal.
///
/// At most a few updates wait for a reader. One that takes nothing for too long is dropped; the last update that went
/// out is where it resumes. Others feel nothing of it, as each has a task of its own.
pub(super) fn listen(app: &App, caller: &Caller, thread: ThreadId, updates: ThreadUpdates) -> mpsc::Receiver<Signal> {
    // One place more is kept for the end.
    let (sender, receiver) = mpsc::channel(WAITING + 1);
    let listener = Listener { app: app.clone(), caller: caller.clone(), thread, sender, heard: None, last: None };
    tokio::spawn(listener.run(updates));
    receiver
}

struct Listener {
    app: App,
    caller: Caller,
    thread: ThreadId,
    sender: mpsc::Sender<Signal>,
    heard: Option<u64>,
    /// Held until the next one, so that whoever hears the same finds it written.
    last: Option<Arc<Telling>>,
}

impl Listener {
    async fn run(mut self, mut updates: ThreadUpdates) {
        let Ok(last_place) = self.sender.clone().try_reserve_owned() else { return };
        if let Some(reason) = self.pump(&mut updates).await {
            let end = UpdateJson::End(EndJson { reason, resume_after: self.heard });
            last_place.send(Signal::Update(Arc::new(Telling::of(&end))));
        }
    }

    /// Sends what happens; gives the reason to end, where the thread's own end was none.
    async fn pump(&mut self, updates: &mut ThreadUpdates) -> Option<&'static str> {
        let heartbeat = self.app.options().heartbeat;
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let app = self.app.clone();
        let mut stopped = std::pin::pin!(app.stopped());
        loop {
            let signal = tokio::select! {
                biased;
                () = &mut stopped => return Some("shutdown"),
                () = self.sender.closed() => return None,
                update = updates.next() => match update {
                    None => return None,
                    Some(Err(error)) => {
                        tracing::warn!(%error, "a stream of events failed");
                        return Some("failed");
                    }
                    Some(Ok(update)) => match Tellings::tell(&self.app, &self.caller, self.thread, update).await {
                        None => continue,
                        Some(told) => {
                            self.last = Some(Arc::clone(&told)).filter(|told| told.is_shared());
                            Signal::Update(told)
                        }
                    },
                },
                _ = beats.tick() => {
                    if !self.caller.is_still_good(&self.app).await {
                        return Some("key_revoked");
                    }
                    Signal::Heartbeat
                }
            };
            let change = if let Signal::Update(told) = &signal { told.change() } else { None };
            let sending = self.sender.reserve();
            match tokio::time::timeout(self.app.options().slow_reader, sending).await {
                Err(_) => return Some("slow_reader"),
                Ok(Err(_)) => return None,
                Ok(Ok(place)) => place.send(signal),
            }
            self.heard = change.or(self.heard);
        }
    }
}
