//! Who drives runs in this process, so that a run whose driver was dropped is known to be free at once.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How long a driver is believed to be there without a sign of life.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// How often it gives one.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// All runs of this process, whichever agent drives them: two agents may share a thread.
static DRIVERS: LazyLock<Drivers> = LazyLock::new(Drivers::default);

#[derive(Default)]
struct Drivers {
    /// How many here drive a turn or try to: one gets it, and the others go.
    turns: Mutex<HashMap<String, usize>>,
    left: Notify,
}

/// A run that this process drives, for as long as this lives. It begins before the run is taken, or another one here would
/// think that its driver is gone.
#[derive(Debug)]
pub(crate) struct Driving {
    turn: String,
}

impl Driving {
    pub(crate) fn begin(turn: &str) -> Self {
        *turns().entry(turn.to_owned()).or_default() += 1;
        Self { turn: turn.to_owned() }
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        let mut turns = turns();
        if let Some(count) = turns.get_mut(&self.turn) {
            *count -= 1;
            if *count == 0 {
                turns.remove(&self.turn);
            }
        }
        drop(turns);
        DRIVERS.left.notify_waiters();
    }
}

/// Whether this process drives a turn.
pub(crate) fn is_driven_here(turn: &str) -> bool {
    turns().contains_key(turn)
}

/// Waits until some run of this process is over, or for a moment.
pub(crate) async fn wait_a_moment(moment: Duration) {
    tokio::select! {
        () = DRIVERS.left.notified() => {}
        () = tokio::time::sleep(moment) => {}
    }
}

fn turns() -> MutexGuard<'static, HashMap<String, usize>> {
    DRIVERS.turns.lock().unwrap_or_else(PoisonError::into_inner)
}
