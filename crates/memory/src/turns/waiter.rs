//! TurnWaiter for a thread that another turn holds, or for a turn that another one drives.

use std::time::Duration;

use threadkeep_core::{MonotonicTime, Scope, ThreadId};
use tokio::sync::watch;

use super::drivers::{self, is_driving};
use crate::{Memory, Watch};

/// Between two looks at least, however often the thread changes.
const PAUSE: Duration = Duration::from_millis(50);
/// How often it is asked whether the holder's process is still there, which costs no call of the store: nothing wakes whoever
/// waits for a process that was killed.
const SIGN: Duration = Duration::from_secs(1);

/// Says when to look again whether a turn is over. Begin to wait before the look that decides about waiting.
#[derive(Debug)]
pub struct TurnWaiter {
    memory: Memory,
    watch: Watch,
    left: watch::Receiver<()>,
    looked_at: MonotonicTime,
}

impl TurnWaiter {
    /// Hears of what happens in the thread from this moment on.
    pub async fn begin(memory: &Memory, scope: &Scope, thread: ThreadId) -> Self {
        let left = drivers::left();
        let watch = memory.watch_thread(scope, thread).await;
        Self { memory: memory.clone(), watch, left, looked_at: memory.runtime().now() }
    }

    /// Waits until the thread may have changed, or until the driver of that name is known to be gone; for
    /// [`Watch::MAX_WAIT`] at most.
    pub async fn wait(&mut self, driver: Option<&str>) {
        let runtime = self.memory.runtime();
        let is_gone = || driver.is_some_and(|driver| is_driving(&self.memory, driver) == Some(false));
        loop {
            tokio::select! {
                () = self.watch.changed() => break,
                // The sender is never dropped.
                _ = self.left.changed() => {}
                () = runtime.sleep(SIGN) => {}
            }
            if is_gone() {
                break;
            }
        }
        runtime.sleep_until(self.looked_at + PAUSE).await;
        self.looked_at = runtime.now();
    }
}
