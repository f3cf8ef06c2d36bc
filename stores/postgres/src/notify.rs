//! Notifies other instances of changed threads and records, in batches after the commits. Notifications are not part of
//! the commits' transactions, because PostgreSQL serialises the commits of transactions that notify.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use threadkeep_core::{Owner, RecordName, TenantId, ThreadId, WakeUp};
use tokio::sync::Notify;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::options::Listen;
use crate::pool::{Parameter, Shared};
use crate::row::{self, get};

/// The maximum size of a payload; PostgreSQL's limit is just below 8,000 bytes.
const PAYLOAD_BYTES: usize = 7_500;
/// The maximum number of pending wake-ups. If there are more, one [`WakeUp::Unspecified`] replaces them all.
const MAX_PENDING: usize = 10_000;
/// The encoding of [`WakeUp::Unspecified`].
const UNSPECIFIED: &str = "*";
/// Replaces the thread id in a wake-up for an owner's record.
const RECORD: &str = "document";
/// The interval between notifications. A notification costs the server and each listener about as much as a commit.
const BATCH_INTERVAL: Duration = Duration::from_millis(3);
/// The interval while there are no listeners. The first wake-up for a new listener may be delayed by this time.
const IDLE_BATCH_INTERVAL: Duration = Duration::from_millis(25);

/// Wake-ups waiting to be sent.
pub(crate) struct Outbox {
    /// Identifies the sender, so that an instance ignores its own notifications.
    instance: Uuid,
    /// The newest change of each encoded subject; `None` if the change is unknown.
    pending: Mutex<HashMap<String, Option<u64>>>,
    filled: Arc<Notify>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { instance: Uuid::new_v4(), pending: Mutex::default(), filled: Arc::default() }
    }
}

impl Outbox {
    pub(crate) fn put(&self, wake_up: &WakeUp) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= MAX_PENDING {
            pending.clear();
            pending.insert(UNSPECIFIED.to_owned(), None);
        } else {
            let (subject, change) = encode(wake_up);
            let newest = pending.entry(subject).or_insert(change);
            *newest = newest.zip(change).map(|(newest, change)| newest.max(change));
        }
        self.filled.notify_one();
    }

    fn take_payloads(&self) -> Vec<String> {
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let mut payloads: Vec<String> = Vec::new();
        for (subject, change) in pending {
            let line = change.map_or(subject.clone(), |change| format!("{subject}\t{change}"));
            match payloads.last_mut() {
                Some(payload) if payload.len() + line.len() < PAYLOAD_BYTES => {
                    payload.push('\n');
                    payload.push_str(&line);
                }
                _ => payloads.push(format!("{}\n{line}", self.instance)),
            }
        }
        payloads
    }

    /// Decodes a payload; returns nothing for a payload from this instance.
    pub(crate) fn decode(&self, payload: &str) -> Vec<WakeUp> {
        let mut lines = payload.split('\n');
        if lines.next() == Some(&self.instance.to_string()) {
            return Vec::new();
        }
        lines.map(|line| parse(line).unwrap_or(WakeUp::Unspecified)).collect()
    }
}

pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.options.listen == Listen::Off {
        return;
    }
    let (weak, filled) = (Arc::downgrade(shared), Arc::clone(&shared.outbox.filled));
    shared.spawn(async move {
        loop {
            filled.notified().await;
            let Some(shared) = weak.upgrade() else { return };
            let has_listeners = send(&shared).await;
            drop(shared);
            tokio::time::sleep(if has_listeners { BATCH_INTERVAL } else { IDLE_BATCH_INTERVAL }).await;
        }
    });
}

/// Sends pending wake-ups. Returns whether there may be listeners.
async fn send(shared: &Shared) -> bool {
    let payloads = shared.outbox.take_payloads();
    if payloads.is_empty() {
        return true;
    }
    let values: [Parameter<'_>; 1] = [(&payloads, Type::TEXT_ARRAY)];
    // Errors are ignored: subscribers also poll at long intervals.
    let rows = shared.call("SELECT threadkeep.tell($1)", &values).await;
    let has_listeners = rows.ok().and_then(|rows| rows.first().and_then(|row| get(row, 0).ok()));
    has_listeners.unwrap_or(true)
}

/// Encodes a wake-up as a subject and a change. Names contain no control characters, so tabs and line feeds are separators.
fn encode(wake_up: &WakeUp) -> (String, Option<u64>) {
    match wake_up {
        WakeUp::Thread { tenant, owner, thread, change } => {
            (format!("{tenant}\t{thread}\t{}", row::owner_name(owner)), *change)
        }
        // An instance of version 0.1 decodes this as `Unspecified`, because it is not a thread id.
        WakeUp::Record { tenant, owner, name: RecordName { namespace, key } } => {
            (format!("{tenant}\t{RECORD}\t{}\t{namespace}\t{key}", row::owner_name(owner)), None)
        }
        WakeUp::Unspecified => (UNSPECIFIED.to_owned(), None),
    }
}

fn parse(line: &str) -> Option<WakeUp> {
    let mut parts = line.split('\t');
    let tenant = TenantId::from_stored(parts.next()?).ok()?;
    let subject = parts.next()?;
    let owner: Owner = row::owner(parts.next()?).ok()?;
    if subject == RECORD {
        let (namespace, key) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
        return Some(WakeUp::Record { tenant, owner, name: RecordName { namespace, key } });
    }
    let thread: ThreadId = subject.parse().ok()?;
    let change = parts.next().map(str::parse).transpose().ok()?;
    Some(WakeUp::Thread { tenant, owner, thread, change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake_up(number: u128, change: Option<u64>) -> WakeUp {
        WakeUp::Thread {
            tenant: TenantId::new("acme").unwrap(),
            owner: if number.is_multiple_of(2) { Owner::Tenant } else { row::owner("zoë").unwrap() },
            thread: ThreadId(Uuid::from_u128(number)),
            change,
        }
    }

    #[test]
    fn payloads_decode_on_other_instances_only() {
        let (one, other) = (Outbox::default(), Outbox::default());
        // Two wake-ups for a thread are merged into the newer change, or an unknown change if one of them is unknown.
        let merged = |number: u128| (!number.is_multiple_of(3)).then_some(7);
        for number in 0..500 {
            one.put(&wake_up(number, merged(number)));
            one.put(&wake_up(number, Some(number as u64 % 7)));
        }
        let payloads = one.take_payloads();
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let decoded: Vec<WakeUp> = payloads.iter().flat_map(|payload| other.decode(payload)).collect();
        assert_eq!(decoded.len(), 500);
        assert!((0..500).all(|number| decoded.contains(&wake_up(number, merged(number)))));
        assert_eq!(payloads.iter().flat_map(|payload| one.decode(payload)).count(), 0);
        assert_eq!(one.take_payloads(), Vec::<String>::new());
    }

    #[test]
    fn too_many_wake_ups_become_one_unspecified_wake_up() {
        let (one, other) = (Outbox::default(), Outbox::default());
        (0..=MAX_PENDING as u128).for_each(|number| one.put(&wake_up(number, None)));
        assert_eq!(other.decode(&one.take_payloads()[0]), [WakeUp::Unspecified]);
        let name = RecordName { namespace: "system/openai.background".parse().unwrap(), key: "resp 1".to_owned() };
        let (tenant, owner) = (TenantId::new("acme").unwrap(), row::owner("zoë").unwrap());
        let record = WakeUp::Record { tenant, owner, name };
        one.put(&record);
        assert_eq!(other.decode(&one.take_payloads()[0]), [record]);
        assert_eq!(other.decode("unknown\nnonsense"), [WakeUp::Unspecified]);
    }
}
