//! The registry of drivers in this process. With it, a turn whose driver was dropped can be taken over immediately.
//!
//! A driver is what executes a turn. It holds a lease, which it renews: a driver in another process is considered alive until its
//! lease ends.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use threadkeep_core::{Processes, Timestamp};
use tokio::sync::watch;

use crate::Memory;

/// How long a driver on another machine is considered alive after it last renewed its lease.
pub const LEASE: Duration = Duration::from_secs(30);
/// How often a driver renews its lease.
pub const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// The drivers in this process. The registry is shared by all agents, because two agents may use the same thread.
static DRIVERS: LazyLock<Drivers> = LazyLock::new(Drivers::default);
/// The name of this process, which is the first part of its drivers' names.
static PROCESS: OnceLock<String> = OnceLock::new();

#[derive(Default)]
struct Drivers {
    names: Mutex<HashSet<String>>,
    started: AtomicU64,
    /// Notified when a driver is dropped.
    dropped: watch::Sender<()>,
}

/// Registers a driver until it is dropped. Create it before locking the thread, because otherwise others in this process would
/// consider the driver ended.
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
        lock_names().insert(name.clone());
        Self { name }
    }

    /// The unique name of the driver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        lock_names().remove(&self.name);
        DRIVERS.dropped.send_replace(());
    }
}

/// Whether the driver with this name, whose lease ends at `lease_until`, is considered alive.
#[must_use]
pub fn is_alive(memory: &Memory, name: &str, lease_until: Timestamp) -> bool {
    is_driving(memory, name).unwrap_or_else(|| memory.now() < lease_until)
}

/// Returns the end of a lease that is renewed now.
#[must_use]
pub fn lease_until(memory: &Memory) -> Timestamp {
    memory.now().plus_ms(i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX))
}

/// Returns a receiver that is notified when a driver of this process is dropped.
pub(super) fn watch_dropped() -> watch::Receiver<()> {
    DRIVERS.dropped.subscribe()
}

/// Whether the [`Driver`] with this name exists. For a driver in another process on this machine, `Some(false)` if the process
/// has ended. `None` if this is not known, for example for a driver on another machine.
#[must_use]
pub fn is_driving(memory: &Memory, name: &str) -> Option<bool> {
    let (process, _) = name.split_once('/')?;
    if PROCESS.get().map(String::as_str) == Some(process) {
        return Some(lock_names().contains(name));
    }
    memory.processes()?.has_ended(process).then_some(false)
}

/// Creates a unique name for this process. If the platform supports it, other processes on the machine can find out from the
/// name whether this process has ended.
fn process_name(memory: &Memory) -> String {
    let unique = memory.generate_message_id();
    match memory.processes().and_then(Processes::own_name) {
        Some(name) => format!("{name}:{unique}"),
        None => unique.to_string(),
    }
}

fn lock_names() -> MutexGuard<'static, HashSet<String>> {
    DRIVERS.names.lock().unwrap_or_else(PoisonError::into_inner)
}
