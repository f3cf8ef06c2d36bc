//! What goes on while nobody commits: the index catches up, leftovers go, and commits of other processes are noticed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use threadkeep_core::WakeUp;

use crate::connection::Shared;
use crate::{index, sweep};

/// How often another process's commits are looked for, while somebody listens.
const LISTENING: Duration = Duration::from_millis(50);
/// How long nobody must have committed before the index catches up.
const QUIET: Duration = Duration::from_millis(200);
/// Messages indexed, and leftovers removed, between two looks at whether somebody commits.
const STEP: usize = 500;

pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.options.read_only {
        return;
    }
    let shared = Arc::downgrade(shared);
    // Without a thread the index catches up when it is asked, and other processes' commits are found by polling.
    drop(std::thread::Builder::new().name("threadkeep-sqlite-keeper".to_owned()).spawn(move || keep(&shared)));
}

fn keep(shared: &Weak<Shared>) {
    let (mut version, mut activity, mut quiet) = (None, 0, Duration::ZERO);
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let is_listened_to = shared.wake_ups.receiver_count() > 0;
        if is_listened_to {
            notice_others(&shared, &mut version);
        } else {
            version = None;
        }
        let seen = shared.activity.load(Ordering::Relaxed);
        if seen != activity {
            (activity, quiet) = (seen, Duration::ZERO);
        } else if quiet >= QUIET && shared.options.background {
            tidy(&shared, activity);
        }
        drop(shared);
        let pause = if is_listened_to { LISTENING } else { QUIET };
        std::thread::sleep(pause);
        quiet = quiet.saturating_add(pause);
    }
}

/// SQLite counts, per connection, the commits of all others. Seen from the writer these are other processes.
fn notice_others(shared: &Shared, version: &mut Option<i64>) {
    let Ok(connection) = shared.writer.try_lock() else { return };
    let seen = connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok();
    drop(connection);
    if version.is_some() && seen != *version {
        // Nobody listening any more is no failure.
        drop(shared.wake_ups.send(WakeUp::Anything));
    }
    *version = seen;
}

/// One small step after the other, until somebody commits. A failure is met again, and told, by whoever asks.
fn tidy(shared: &Shared, activity: u64) {
    let is_quiet = || shared.activity.load(Ordering::Relaxed) == activity;
    while is_quiet() && index::catch_up(shared, STEP).is_ok_and(|step| !step.done && step.indexed > 0) {}
    while is_quiet() && sweep::remove_leftovers(shared, STEP / 5).is_ok_and(|step| step.more) {}
}
