//! The drivers of turns in this process, so that a turn whose driver was dropped can be taken over immediately.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use threadkeep_core::{Processes, Timestamp};
use tokio::sync::watch;

use crate::Memory;

/// How long a driver of another machine counts as alive after it last renewed its lease.
pub const LEASE: Duration = Duration::from_secs(30);
/// How often a driver renews its lease.
pub const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// All drivers of this process, of all agents: two agents may share a thread.
static DRIVERS: LazyLock<Drivers> = LazyLock::new(Drivers::default);
/// The name of this process.
static PROCESS: OnceLock<String> = OnceLock::new();

#[derive(Default)]
struct Drivers {
    names: Mutex<HashSet<String>>,
    started: AtomicU64,
    /// Notified when a driver is dropped.
    dropped: watch::Sender<()>,
}

/// Registers a driver of a turn while it exists. Create it before locking the thread, or others in this process would take the
/// driver for gone.
#[derive(Debug)]
pub struct Driver {
    name: String,
}

impl Driver {
    /// Registers a new driver.
    #[must_use]
    pub fn begin(memory: &Memory) -> Self {
        let process = PROCESS.get_or_init(|| process_name(memory));
        let name = format!("{process}/{}", DRIVERS.started.fetch_add(1, Ordering::Relaxed));
        names().insert(name.clone());
        Self { name }
    }

    /// Its unique name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        names().remove(&self.name);
        DRIVERS.dropped.send_replace(());
    }
}

/// Whether a driver with a lease until `lease_until` counts as alive.
#[must_use]
pub fn is_alive(memory: &Memory, name: &str, lease_until: Timestamp) -> bool {
    is_driving(memory, name).unwrap_or_else(|| memory.now() < lease_until)
}

/// The end of a lease that is renewed now.
#[must_use]
pub fn lease_until(memory: &Memory) -> Timestamp {
    memory.now().plus_ms(i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX))
}

/// Returns a receiver that is notified when a driver of this process is dropped.
pub(super) fn dropped() -> watch::Receiver<()> {
    DRIVERS.dropped.subscribe()
}

/// Whether the [`Driver`] with this name exists. For another process of this machine, `Some(false)` if the process has ended.
/// `None` if it is unknown, as for other machines.
#[must_use]
pub fn is_driving(memory: &Memory, name: &str) -> Option<bool> {
    let (process, _) = name.split_once('/')?;
    if PROCESS.get().map(String::as_str) == Some(process) {
        return Some(names().contains(name));
    }
    memory.processes()?.has_ended(process).then_some(false)
}

/// A unique name for this process, which other processes of the machine can look up if the platform supports that.
fn process_name(memory: &Memory) -> String {
    let unique = memory.generate_message_id();
    match memory.processes().and_then(Processes::own_name) {
        Some(name) => format!("{name}:{unique}"),
        None => unique.to_string(),
    }
}

fn names() -> MutexGuard<'static, HashSet<String>> {
    DRIVERS.names.lock().unwrap_or_else(PoisonError::into_inner)
}
