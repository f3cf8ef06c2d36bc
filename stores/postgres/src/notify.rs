//! Tells other instances which threads changed: after the commit, many at once, and outside its transaction, where a
//! notification would make every commit of the database wait for every other.

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

/// Bytes of one notification; PostgreSQL takes less than 8,000.
const PAYLOAD_BYTES: usize = 7_500;
/// Threads that wait to be told of; of more, it is told that anything may have changed.
const PENDING: usize = 10_000;
const ANYTHING: &str = "*";
/// Stands in place of a thread where a record of an owner is meant.
const RECORD: &str = "document";
/// What comes so soon after a notification goes with the next one. Each costs the server, and whoever hears it, about as much
/// as a commit does.
const GATHERING: Duration = Duration::from_millis(3);
/// As long as nobody listens; whoever begins to may hear its first hint so much later.
const GATHERING_UNHEARD: Duration = Duration::from_millis(25);

/// Hints on their way out.
pub(crate) struct Outbox {
    /// Who sends: an instance knows its own changes already.
    instance: Uuid,
    /// By what a hint is about, up to which change; `None` where that is unknown.
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
        if pending.len() >= PENDING {
            pending.clear();
            pending.insert(ANYTHING.to_owned(), None);
        } else {
            let (about, change) = line(wake_up);
            let told = pending.entry(about).or_insert(change);
            *told = told.zip(change).map(|(told, change)| told.max(change));
        }
        self.filled.notify_one();
    }

    fn take(&self) -> Vec<String> {
        let lines = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let mut payloads: Vec<String> = Vec::new();
        for (about, change) in lines {
            let line = change.map_or(about.clone(), |change| format!("{about}\t{change}"));
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

    /// What another instance told; nothing of what this one did.
    pub(crate) fn read(&self, payload: &str) -> Vec<WakeUp> {
        let mut lines = payload.split('\n');
        if lines.next() == Some(&self.instance.to_string()) {
            return Vec::new();
        }
        lines.map(|line| parse(line).unwrap_or(WakeUp::Anything)).collect()
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
            let is_heard = send(&shared).await;
            drop(shared);
            tokio::time::sleep(if is_heard { GATHERING } else { GATHERING_UNHEARD }).await;
        }
    });
}

/// Says whether anybody listens, as far as is known.
async fn send(shared: &Shared) -> bool {
    let payloads = shared.outbox.take();
    if payloads.is_empty() {
        return true;
    }
    let values: [Parameter<'_>; 1] = [(&payloads, Type::TEXT_ARRAY)];
    // Hints that are lost are made up for by those who look now and then.
    let rows = shared.call("SELECT threadkeep.tell($1)", &values).await;
    let answer = rows.ok().and_then(|rows| rows.first().and_then(|row| get(row, 0).ok()));
    answer.unwrap_or(true)
}

// Names hold no control characters, so a tab and a line feed part them.
fn line(wake_up: &WakeUp) -> (String, Option<u64>) {
    match wake_up {
        WakeUp::Thread { tenant, owner, thread, change } => {
            (format!("{tenant}\t{thread}\t{}", row::owner_name(owner)), *change)
        }
        // To an instance of version 0.1 this is anything, as no thread is called so.
        WakeUp::Record { tenant, owner, name: RecordName { namespace, key } } => {
            (format!("{tenant}\t{RECORD}\t{}\t{namespace}\t{key}", row::owner_name(owner)), None)
        }
        WakeUp::Anything => (ANYTHING.to_owned(), None),
    }
}

fn parse(line: &str) -> Option<WakeUp> {
    let mut parts = line.split('\t');
    let tenant = TenantId::from_stored(parts.next()?).ok()?;
    let about = parts.next()?;
    let owner: Owner = row::owner(parts.next()?).ok()?;
    if about == RECORD {
        let (namespace, key) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
        return Some(WakeUp::Record { tenant, owner, name: RecordName { namespace, key } });
    }
    let thread: ThreadId = about.parse().ok()?;
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
    fn what_one_instance_puts_another_reads() {
        let (one, other) = (Outbox::default(), Outbox::default());
        // Of what comes twice the later is told, and that nobody knows it where one does not.
        let told = |number: u128| (!number.is_multiple_of(3)).then_some(7);
        for number in 0..500 {
            one.put(&wake_up(number, told(number)));
            one.put(&wake_up(number, Some(number as u64 % 7)));
        }
        let payloads = one.take();
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let read: Vec<WakeUp> = payloads.iter().flat_map(|payload| other.read(payload)).collect();
        assert_eq!(read.len(), 500);
        assert!((0..500).all(|number| read.contains(&wake_up(number, told(number)))));
        assert_eq!(payloads.iter().flat_map(|payload| one.read(payload)).count(), 0);
        assert_eq!(one.take(), Vec::<String>::new());
    }

    #[test]
    fn too_many_are_anything() {
        let (one, other) = (Outbox::default(), Outbox::default());
        (0..=PENDING as u128).for_each(|number| one.put(&wake_up(number, None)));
        assert_eq!(other.read(&one.take()[0]), [WakeUp::Anything]);
        let name = RecordName { namespace: "system/openai.background".parse().unwrap(), key: "resp 1".to_owned() };
        let (tenant, owner) = (TenantId::new("acme").unwrap(), row::owner("zoë").unwrap());
        let record = WakeUp::Record { tenant, owner, name };
        one.put(&record);
        assert_eq!(other.read(&one.take()[0]), [record]);
        assert_eq!(other.read("somebody\nnonsense"), [WakeUp::Anything]);
    }
}
