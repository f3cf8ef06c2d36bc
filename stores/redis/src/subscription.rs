//! Receives the wake-ups of all instances.
//!
//! A node publishes them on one channel. In a cluster, they are published on several channels, each in a hash slot of its own, so that only
//! the nodes of that slot receive them (sharded pub/sub). An instance subscribes to all channels, each at the primary of its slot. When a
//! slot has moved, a replica has taken over, or a connection is lost, it subscribes again, and its subscribers read what they may have
//! missed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{PushInfo, PushKind, Value};
use threadkeep_core::WakeUp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

use crate::keys::CHANNELS;
use crate::shared::Shared;
use crate::wake_ups::decode_all;

/// The pause before resubscribing after a lost subscription.
const PAUSE: Duration = Duration::from_millis(200);
/// The interval at which a connection is tested: a broken connection looks like one on which nothing is published.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// The number of a connection, and what a node has pushed over it.
type Pushed = (u64, PushInfo);

/// A connection to a node, over which it publishes.
#[derive(Clone)]
struct Link {
    number: u64,
    connection: MultiplexedConnection,
    _pings: Arc<Pings>,
}

/// The task that tests a connection. Ends when it is dropped.
struct Pings(AbortHandle);

impl Drop for Pings {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    fn new(number: u64, connection: MultiplexedConnection, pushes: UnboundedSender<Pushed>) -> Self {
        let mut tested = connection.clone();
        let pings = tokio::spawn(async move {
            loop {
                tokio::time::sleep(PING_INTERVAL).await;
                if tested.req_packed_command(&redis::cmd("PING")).await.is_err() {
                    let _ = pushes.send((number, PushInfo { kind: PushKind::Disconnection, data: Vec::new() }));
                    return;
                }
            }
        });
        Self { number, connection, _pings: Arc::new(Pings(pings.abort_handle())) }
    }
}

/// An attempt to subscribe to channels: the channels with their URLs and connections.
type Attempt = JoinHandle<Vec<(String, String, Link)>>;

/// The subscriptions of one instance.
struct Subscription {
    channels: Vec<String>,
    /// By URL.
    links: HashMap<String, Link>,
    /// The URLs of the nodes of the channels to which the instance is subscribed.
    places: HashMap<String, String>,
    pushes: UnboundedSender<Pushed>,
    attempt: Option<Attempt>,
    /// The number of the next connection.
    next: u64,
    /// Connections and channels that were lost while an attempt was running.
    lost_links: HashSet<u64>,
    lost_channels: HashSet<String>,
}

impl Subscription {
    fn new(channels: Vec<String>) -> (Self, UnboundedReceiver<Pushed>) {
        let (pushes, receiver) = unbounded_channel();
        let subscription = Self {
            channels,
            links: HashMap::new(),
            places: HashMap::new(),
            pushes,
            attempt: None,
            next: 0,
            lost_links: HashSet::new(),
            lost_channels: HashSet::new(),
        };
        (subscription, receiver)
    }

    fn is_complete(&self) -> bool {
        self.places.len() == self.channels.len()
    }

    /// Begins to subscribe to the channels that are missing.
    fn attempt(&mut self, shared: Arc<Shared>) {
        let missing: Vec<String> =
            self.channels.iter().filter(|name| !self.places.contains_key(*name)).cloned().collect();
        let first = self.next;
        self.next += missing.len() as u64;
        let (links, pushes) = (self.links.clone(), self.pushes.clone());
        self.lost_links.clear();
        self.lost_channels.clear();
        self.attempt = Some(tokio::spawn(async move { subscribe(&shared, missing, links, first, pushes).await }));
    }

    /// Adopts what an attempt has established. Returns whether it established anything.
    fn finish(&mut self, established: Vec<(String, String, Link)>) -> bool {
        self.attempt = None;
        let mut has_new = false;
        for (channel, url, link) in established {
            if !self.lost_links.contains(&link.number) && !self.lost_channels.contains(&channel) {
                self.links.insert(url.clone(), link);
                self.places.insert(channel, url);
                has_new = true;
            }
        }
        has_new
    }

    /// Returns the published text, if the pushed value contains one. Records lost connections and channels.
    fn receive(&mut self, (number, push): Pushed) -> Option<Vec<u8>> {
        let text = |value: Option<&Value>| match value {
            Some(Value::BulkString(bytes)) => bytes.clone(),
            Some(Value::SimpleString(text)) => text.clone().into_bytes(),
            _ => Vec::new(),
        };
        match push.kind {
            PushKind::Message | PushKind::SMessage => return Some(text(push.data.get(1))),
            PushKind::Disconnection => {
                self.lost_links.insert(number);
                self.links.retain(|_, link| link.number != number);
            }
            // The slot of the channel has moved to another node.
            PushKind::Unsubscribe | PushKind::SUnsubscribe => {
                let channel = String::from_utf8_lossy(&text(push.data.first())).into_owned();
                self.places.remove(&channel);
                self.lost_channels.insert(channel);
            }
            _ => {}
        }
        self.places.retain(|_, url| self.links.contains_key(url));
        self.links.retain(|url, _| self.places.values().any(|place| place == url));
        None
    }
}

/// Subscribes to channels. Returns those that succeeded.
async fn subscribe(
    shared: &Shared,
    channels: Vec<String>,
    mut links: HashMap<String, Link>,
    first: u64,
    pushes: UnboundedSender<Pushed>,
) -> Vec<(String, String, Link)> {
    let mut established = Vec::new();
    for (number, channel) in (first..).zip(channels) {
        let sender = || {
            let pushes = pushes.clone();
            move |push| pushes.send((number, push))
        };
        let open = |url: &str| links.get(url).map(|link| link.connection.clone());
        let Ok((url, connection)) = shared.connections.subscribe(&channel, open, sender).await else { continue };
        let link = links.entry(url.clone()).or_insert_with(|| Link::new(number, connection, pushes.clone())).clone();
        established.push((channel, url, link));
    }
    established
}

fn channels(shared: &Shared) -> Vec<String> {
    if shared.options().is_cluster {
        (0..CHANNELS).map(|number| shared.keys.shard_channel(number)).collect()
    } else {
        vec![shared.keys.channel()]
    }
}

/// Receives wake-ups from the first subscriber until the store is closed. `is_listening` becomes true with the first complete subscription.
pub(crate) async fn listen(shared: Weak<Shared>, is_listening: watch::Sender<bool>) {
    let Some(strong) = shared.upgrade() else { return };
    let (sender, own) = (strong.wake_ups.downgrade(), strong.instance.clone());
    let (began, timeout) = (Instant::now(), strong.options().connect_timeout);
    let (mut subscription, mut receiver) = Subscription::new(channels(&strong));
    drop(strong);
    let mut is_first = true;
    let mut pause = tokio::time::interval(PAUSE);
    pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(pushed) = receiver.recv() => {
                let Some(text) = subscription.receive(pushed) else { continue };
                let Some(sender) = sender.upgrade() else { return };
                for wake_up in decode_all(&text, &own) {
                    let _ = sender.send(wake_up);
                }
            }
            established = finished(&mut subscription.attempt) => {
                let Some(sender) = sender.upgrade() else { return };
                // Subscribers wait for the first attempt, but not longer than the timeout.
                let may_have_missed = !is_first || began.elapsed() >= timeout;
                if subscription.finish(established) && may_have_missed {
                    let _ = sender.send((WakeUp::Unspecified, u64::MAX));
                }
                is_first = false;
                if subscription.is_complete() {
                    is_listening.send_replace(true);
                }
            }
            _ = pause.tick() => {
                let Some(strong) = shared.upgrade() else { return };
                if !subscription.is_complete() && subscription.attempt.is_none() {
                    subscription.attempt(strong);
                }
            }
        }
    }
}

/// Waits for the attempt. If there is none, never returns.
async fn finished(attempt: &mut Option<Attempt>) -> Vec<(String, String, Link)> {
    match attempt {
        Some(attempt) => attempt.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}
