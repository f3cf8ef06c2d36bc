//! Wake-ups between instances, through pub/sub: on one channel of a single node, or on several channels of a cluster (`subscription`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use futures::stream;
use serde::{Deserialize, Serialize};
use threadkeep_core::{Namespace, Owner, RecordName, TenantId, ThreadId, WakeUp, WakeUps};
use tokio::sync::broadcast::{Sender, error::RecvError};
use tokio::sync::mpsc;

use crate::keys::{CHANNELS, owner_name, parse_owner};
use crate::shared::Shared;

/// The maximum number of unread wake-ups of a subscriber. Beyond that, the subscriber gets one [`WakeUp::Unspecified`] instead.
pub(crate) const CAPACITY: usize = 1024;
/// The maximum number of wake-ups that are sent at the same time.
const MAX_BATCH: usize = 64;

/// A wake-up with its number among those that this handle has sent; `u64::MAX` if another instance sent it.
pub(crate) type Numbered = (WakeUp, u64);

#[derive(Serialize, Deserialize)]
struct Text {
    /// The instance that sent it, and its number among those of the instance.
    from: String,
    number: u64,
    tenant: TenantId,
    owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<(Namespace, String)>,
}

pub(crate) fn encode(wake_up: &WakeUp, from: &str, number: u64) -> String {
    let text = |tenant: &TenantId, owner: &Owner| Text {
        from: from.to_owned(),
        number,
        tenant: tenant.clone(),
        owner: owner_name(owner),
        thread: None,
        change: None,
        record: None,
    };
    let text = match wake_up {
        WakeUp::Unspecified => return String::new(),
        WakeUp::Thread { tenant, owner, thread, change } => {
            Text { thread: Some(*thread), change: *change, ..text(tenant, owner) }
        }
        WakeUp::Record { tenant, owner, name } => {
            Text { record: Some((name.namespace.clone(), name.key.clone())), ..text(tenant, owner) }
        }
    };
    serde_json::to_string(&text).unwrap_or_default()
}

/// Decodes the wake-ups of one published message, one in each line.
pub(crate) fn decode_all<'a>(text: &'a [u8], own: &'a str) -> impl Iterator<Item = Numbered> + 'a {
    text.split(|byte| *byte == b'\n').map(move |line| decode(line, own))
}

fn decode(text: &[u8], own: &str) -> Numbered {
    let Ok(Text { from, number, tenant, owner, thread, change, record }) = serde_json::from_slice(text) else {
        return (WakeUp::Unspecified, u64::MAX);
    };
    let wake_up = match (parse_owner(&owner), thread, record) {
        (Some(owner), Some(thread), _) => WakeUp::Thread { tenant, owner, thread, change },
        (Some(owner), None, Some((namespace, key))) => {
            WakeUp::Record { tenant, owner, name: RecordName { namespace, key } }
        }
        _ => WakeUp::Unspecified,
    };
    (wake_up, if from == own { number } else { u64::MAX })
}

/// The number of the channel of a wake-up in a cluster. Every instance subscribes to all channels.
pub(crate) fn channel_number(wake_up: &WakeUp) -> u8 {
    match wake_up {
        WakeUp::Thread { thread, .. } => thread.0.as_bytes()[15] % CHANNELS,
        WakeUp::Unspecified | WakeUp::Record { .. } => 0,
    }
}

/// Subscribes to later wake-ups. Those that this handle sent earlier may still arrive, and are skipped. A subscriber that lags
/// receives [`WakeUp::Unspecified`].
pub(crate) fn subscribe(sender: &Sender<Numbered>, sent: u64) -> WakeUps {
    Box::pin(stream::unfold(sender.subscribe(), move |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok((_, number)) if number <= sent => {}
                Ok((wake_up, _)) => return Some((wake_up, receiver)),
                Err(RecvError::Lagged(_)) => return Some((WakeUp::Unspecified, receiver)),
                Err(RecvError::Closed) => return None,
            }
        }
    }))
}

/// The numbers of the wake-ups that a handle sends.
#[derive(Default)]
pub(crate) struct SentNumbers(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    last: u64,
    /// The numbers of commits that are in progress.
    in_progress: BTreeSet<u64>,
}

/// The number of a wake-up whose commit is in progress while this value lives.
pub(crate) struct SentNumber<'a> {
    numbers: &'a SentNumbers,
    value: u64,
}

impl SentNumbers {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns the next number. A commit that sends its wake-up keeps the value until it ends.
    pub(crate) fn begin(&self) -> SentNumber<'_> {
        let mut numbers = self.numbers();
        numbers.last += 1;
        let value = numbers.last;
        numbers.in_progress.insert(value);
        SentNumber { numbers: self, value }
    }

    /// Returns the highest number up to which all commits have ended. A later subscriber need not see their wake-ups.
    pub(crate) fn all_ended(&self) -> u64 {
        let numbers = self.numbers();
        numbers.in_progress.first().map_or(numbers.last, |first| first - 1)
    }
}

impl SentNumber<'_> {
    pub(crate) fn value(&self) -> u64 {
        self.value
    }
}

impl Drop for SentNumber<'_> {
    fn drop(&mut self) {
        self.numbers.numbers().in_progress.remove(&self.value);
    }
}

/// Wake-ups that are sent in the background.
pub(crate) struct Outbox {
    queue: mpsc::Sender<Numbered>,
    receiver: Mutex<Option<mpsc::Receiver<Numbered>>>,
    /// Whether wake-ups were dropped because too many were waiting.
    has_overflowed: AtomicBool,
}

impl Default for Outbox {
    fn default() -> Self {
        let (queue, receiver) = mpsc::channel(CAPACITY);
        Self { queue, receiver: Mutex::new(Some(receiver)), has_overflowed: AtomicBool::new(false) }
    }
}

impl Outbox {
    pub(crate) fn push(&self, wake_up: WakeUp, number: u64) {
        if self.queue.try_send((wake_up, number)).is_err() {
            self.has_overflowed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the receiving end, once.
    pub(crate) fn take_receiver(&self) -> Option<mpsc::Receiver<Numbered>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Sends the wake-ups in the outbox until the store is closed.
pub(crate) async fn send(shared: Weak<Shared>, mut outbox: mpsc::Receiver<Numbered>) {
    let mut batch = Vec::new();
    while outbox.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let Some(shared) = shared.upgrade() else { return };
        if shared.outbox.has_overflowed.swap(false, Ordering::Relaxed) {
            batch.push((WakeUp::Unspecified, u64::MAX));
        }
        let mut texts: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for (wake_up, number) in &batch {
            let text = encode(wake_up, &shared.instance, *number);
            texts.entry(channel_number(wake_up)).or_default().push(text);
        }
        let sent = texts.iter().map(|(channel, texts)| shared.publish(*channel, texts.join("\n")));
        // If sending fails, subscribers find the changes when they next poll.
        let _ = futures::future::join_all(sent).await;
        batch.clear();
    }
}
