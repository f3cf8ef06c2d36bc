//! Who drives runs in this process, so that a run whose driver was dropped is known to be free at once.

use std::collections::HashSet;
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
    turns: Mutex<HashSet<String>>,
    left: Notify,
}

/// A run that this process drives, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Driving {
    turn: String,
}

impl Driving {
    pub(crate) fn begin(turn: &str) -> Self {
        turns().insert(turn.to_owned());
        Self { turn: turn.to_owned() }
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        turns().remove(&self.turn);
        DRIVERS.left.notify_waiters();
    }
}

/// Whether this process drives a turn.
pub(crate) fn is_driven_here(turn: &str) -> bool {
    turns().contains(turn)
}

/// Waits until some run of this process is over, or for a moment.
pub(crate) async fn wait_a_moment(moment: Duration) {
    tokio::select! {
        () = DRIVERS.left.notified() => {}
        () = tokio::time::sleep(moment) => {}
    }
}

fn turns() -> MutexGuard<'static, HashSet<String>> {
    DRIVERS.turns.lock().unwrap_or_else(PoisonError::into_inner)
}
