//! Waiting for a turn that another caller or instance executes.

use std::time::Duration;

use threadkeep_core::{MonotonicTime, Scope, ThreadId};
use tokio::sync::watch;

use super::drivers::{self, is_driving};
use crate::{Memory, Watch};

/// Minimum time between returns of [`TurnWaiter::wait`], regardless of how often the thread changes.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// How often the waiter checks whether the driver's process is alive, because no wake-up reports a killed process. The check does
/// not call the store.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until a turn may have ended. Create the waiter before reading the state that decides whether to wait.
#[derive(Debug)]
pub struct TurnWaiter {
    memory: Memory,
    watch: Watch,
    /// Notified when a driver in this process is dropped.
    dropped_drivers: watch::Receiver<()>,
    returned_at: MonotonicTime,
}

impl TurnWaiter {
    /// Creates a waiter that is notified of changes in a thread from now on.
    pub async fn begin(memory: &Memory, scope: &Scope, thread: ThreadId) -> Self {
        let dropped_drivers = drivers::watch_dropped();
        let watch = memory.watch_thread(scope, thread).await;
        Self { memory: memory.clone(), watch, dropped_drivers, returned_at: memory.runtime().now() }
    }

    /// Waits until the thread may have changed or the driver with this name is known to have ended, for at most
    /// [`Watch::MAX_WAIT`].
    pub async fn wait(&mut self, driver: Option<&str>) {
        let runtime = self.memory.runtime();
        let has_ended = || driver.is_some_and(|driver| is_driving(&self.memory, driver) == Some(false));
        loop {
            tokio::select! {
                () = self.watch.changed() => break,
                // The sender is never dropped.
                _ = self.dropped_drivers.changed() => {}
                () = runtime.sleep(PROCESS_CHECK_INTERVAL) => {}
            }
            if has_ended() {
                break;
            }
        }
        runtime.sleep_until(self.returned_at + MIN_INTERVAL).await;
        self.returned_at = runtime.now();
    }
}
