//! What goes on while nobody commits: the index catches up and is put in order, leftovers go, and commits of other processes are noticed.
//! A log that a sweep could not empty, as somebody was reading an older state, is emptied once that reader has left.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::Connection;
use threadkeep_core::WakeUp;

use crate::connection::{Shared, lock};
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
    // Read before anybody can listen: what another process writes from now on must be told.
    let version = data_version(&lock(&shared.writer));
    let shared = Arc::downgrade(shared);
    // Without a thread the index catches up when it is asked, and other processes' commits are found by polling.
    drop(std::thread::Builder::new().name("threadkeep-sqlite-keeper".to_owned()).spawn(move || keep(&shared, version)));
}

fn keep(shared: &Weak<Shared>, mut version: Option<i64>) {
    let (mut activity, mut quiet) = (0, Duration::ZERO);
    // Asking whether there is anything to merge takes the lock of writers: once is enough after each commit.
    let mut is_merged = false;
    let mut since_finish = QUIET;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let is_listened_to = shared.wake_ups.receiver_count() > 0;
        // Also while nobody listens: who comes between two looks must hear of what was written between them.
        notice_others(&shared, &mut version);
        let seen = shared.activity.load(Ordering::Relaxed);
        if seen != activity {
            (activity, quiet, is_merged) = (seen, Duration::ZERO, false);
        } else if quiet >= QUIET && shared.options.background {
            tidy(&shared, activity);
            is_merged = is_merged || merge(&shared, activity);
        }
        if since_finish >= QUIET && shared.options.background && shared.is_log_due.load(Ordering::Relaxed) {
            since_finish = Duration::ZERO;
            finish_log(&shared);
        }
        drop(shared);
        let pause = if is_listened_to { LISTENING } else { QUIET };
        std::thread::sleep(pause);
        quiet = quiet.saturating_add(pause);
        since_finish = since_finish.saturating_add(pause);
    }
}

/// SQLite counts, per connection, the commits of all others. Seen from the writer these are other processes.
fn notice_others(shared: &Shared, version: &mut Option<i64>) {
    let Ok(connection) = shared.writer.try_lock() else { return };
    let seen = data_version(&connection);
    drop(connection);
    if version.is_some() && seen != *version {
        // Another process may have left the log to us.
        shared.is_log_due.store(true, Ordering::Relaxed);
        // Nobody listening any more is no failure.
        drop(shared.wake_ups.send(WakeUp::Anything));
    }
    *version = seen;
}

fn data_version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}

/// One small step after the other, until somebody commits. A failure is met again, and told, by whoever asks.
fn tidy(shared: &Shared, activity: u64) {
    let is_quiet = || shared.activity.load(Ordering::Relaxed) == activity;
    while is_quiet() && index::catch_up(shared, STEP).is_ok_and(|step| !step.done && step.indexed > 0) {}
    while is_quiet() && sweep::remove_leftovers(shared, STEP / 5).is_ok_and(|step| step.more) {}
}

/// Merges segments of the index until somebody commits. Says whether there are none left to merge.
fn merge(shared: &Shared, activity: u64) -> bool {
    while shared.activity.load(Ordering::Relaxed) == activity {
        match index::tidy(shared) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Empties the log if that is due and nobody is in the way.
fn finish_log(shared: &Shared) {
    // Cleared first: what is noted meanwhile sets it again.
    shared.is_log_due.store(false, Ordering::Relaxed);
    if !sweep::finish_write_ahead_log(shared).unwrap_or(false) {
        shared.is_log_due.store(true, Ordering::Relaxed);
    }
}
