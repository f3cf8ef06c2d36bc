//! Who drives turns in this process, so that a turn whose driver was dropped is known to be free at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use threadkeep_core::{Processes, Timestamp};
use tokio::sync::watch;

use crate::Memory;

/// How long a driver is believed to be there without a sign of life.
pub const LEASE: Duration = Duration::from_secs(30);
/// How often it gives one.
pub const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// All drivers of this process, whichever agent they belong to: two agents may share a thread.
static DRIVERS: LazyLock<Drivers> = LazyLock::new(Drivers::default);
/// The name of this process among those that drive runs.
static PROCESS: OnceLock<String> = OnceLock::new();

#[derive(Default)]
struct Drivers {
    names: Mutex<HashSet<String>>,
    begun: AtomicU64,
    /// Tells that a driver left.
    left: watch::Sender<()>,
}

/// A driver of a thread, for as long as this lives. It begins before the thread is taken, or another one here would think that
/// the thread's driver is gone.
#[derive(Debug)]
pub struct Driver {
    name: String,
}

impl Driver {
    /// Begins to drive.
    #[must_use]
    pub fn begin(memory: &Memory) -> Self {
        let process = PROCESS.get_or_init(|| process_name(memory));
        let name = format!("{process}/{}", DRIVERS.begun.fetch_add(1, Ordering::Relaxed));
        names().insert(name.clone());
        Self { name }
    }

    /// The name under which it drives, like no other one's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        names().remove(&self.name);
        DRIVERS.left.send_replace(());
    }
}

/// Whether a driver is believed to be there, who said so last until an instant.
#[must_use]
pub fn is_alive(memory: &Memory, name: &str, lease_until: Timestamp) -> bool {
    is_driving(memory, name).unwrap_or_else(|| memory.now() < lease_until)
}

/// Until when a driver that gives a sign now is believed to be there.
#[must_use]
pub fn lease_until(memory: &Memory) -> Timestamp {
    memory.now().plus_ms(i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX))
}

/// Tells from now on when a driver of this process left.
pub(super) fn left() -> watch::Receiver<()> {
    DRIVERS.left.subscribe()
}

/// Whether the [`Driver`] of that name is still there, or its process at least; `None` where that cannot be known, as on
/// another machine.
#[must_use]
pub fn is_driving(memory: &Memory, name: &str) -> Option<bool> {
    let (process, _) = name.split_once('/')?;
    if PROCESS.get().map(String::as_str) == Some(process) {
        return Some(names().contains(name));
    }
    memory.processes()?.has_ended(process).then_some(false)
}

/// The name of this process, like no other one's, and recognised by others of its machine where that can be.
fn process_name(memory: &Memory) -> String {
    let unique = memory.mint_message_id();
    match memory.processes().and_then(Processes::own_name) {
        Some(name) => format!("{name}:{unique}"),
        None => unique.to_string(),
    }
}

fn names() -> MutexGuard<'static, HashSet<String>> {
    DRIVERS.names.lock().unwrap_or_else(PoisonError::into_inner)
}
