//! A background thread per store. While no commits arrive, it indexes new messages, merges segments of the search index and removes
//! leftovers. It also detects commits by other processes, and truncates the write-ahead log if a concurrent reader prevented a sweep
//! from truncating it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::Connection;
use threadkeep_core::WakeUp;

use crate::connection::{Shared, lock};
use crate::{index, sweep};

/// The interval of polling for commits by other processes while there are subscribers.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time without commits after which the index catches up. Also the polling interval while there are no subscribers.
const IDLE_INTERVAL: Duration = Duration::from_millis(200);
/// The number of messages that are indexed between checks for new commits.
const MESSAGES_PER_STEP: usize = 500;

pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.options.read_only {
        return;
    }
    // Read before a caller can subscribe, so that every later commit by another process causes a wake-up.
    let version = data_version(&lock(&shared.writer));
    let shared = Arc::downgrade(shared);
    // If no thread can be started, the index catches up on request, and readers find other processes' commits by polling.
    let thread = std::thread::Builder::new().name("threadkeep-sqlite-background".to_owned());
    drop(thread.spawn(move || run(&shared, version)));
}

fn run(shared: &Weak<Shared>, mut version: Option<i64>) {
    let (mut activity, mut idle) = (0, Duration::ZERO);
    // Checking for segments to merge takes the write lock, so this happens only once after a commit.
    let mut is_merged = false;
    let mut since_truncation = IDLE_INTERVAL;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let has_subscribers = shared.wake_ups.receiver_count() > 0;
        // The thread also polls without subscribers, because a client that subscribes between polls must be notified of all later
        // commits.
        detect_external_commits(&shared, &mut version);
        let current = shared.activity.load(Ordering::Relaxed);
        if current != activity {
            (activity, idle, is_merged) = (current, Duration::ZERO, false);
        } else if idle >= IDLE_INTERVAL && shared.options.background {
            catch_up(&shared, activity);
            is_merged = is_merged || merge(&shared, activity);
        }
        let is_truncation_due = shared.is_wal_truncation_due.load(Ordering::Relaxed);
        if since_truncation >= IDLE_INTERVAL && shared.options.background && is_truncation_due {
            since_truncation = Duration::ZERO;
            truncate_wal(&shared);
        }
        drop(shared);
        let pause = if has_subscribers { POLL_INTERVAL } else { IDLE_INTERVAL };
        std::thread::sleep(pause);
        idle = idle.saturating_add(pause);
        since_truncation = since_truncation.saturating_add(pause);
    }
}

/// Sends a wake-up if another process has committed. A connection's `data_version` changes when any other connection commits, and
/// this process writes only through `writer`.
fn detect_external_commits(shared: &Shared, version: &mut Option<i64>) {
    let Ok(connection) = shared.writer.try_lock() else { return };
    let current = data_version(&connection);
    drop(connection);
    if version.is_some() && current != *version {
        // A sweep by the other process may have been unable to truncate the write-ahead log.
        shared.is_wal_truncation_due.store(true, Ordering::Relaxed);
        // Sending fails only without subscribers.
        drop(shared.wake_ups.send(WakeUp::Unspecified));
    }
    *version = current;
}

fn data_version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}

/// Indexes messages and removes leftovers in small steps until a commit arrives. Errors are ignored: a search or a sweep
/// repeats the work and reports them.
fn catch_up(shared: &Shared, activity: u64) {
    let is_idle = || shared.activity.load(Ordering::Relaxed) == activity;
    while is_idle() && index::catch_up(shared, MESSAGES_PER_STEP).is_ok_and(|step| !step.done && step.indexed > 0) {}
    while is_idle() && sweep::remove_leftovers(shared, MESSAGES_PER_STEP / 5).is_ok_and(|step| step.may_have_more) {}
}

/// Merges segments of the index until a commit arrives. Returns whether no segments are left to merge.
fn merge(shared: &Shared, activity: u64) -> bool {
    while shared.activity.load(Ordering::Relaxed) == activity {
        match index::merge_segments(shared) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Truncates the write-ahead log unless a reader or writer prevents it.
fn truncate_wal(shared: &Shared) {
    // The flag is cleared first, so that a request during the truncation is not lost.
    shared.is_wal_truncation_due.store(false, Ordering::Relaxed);
    if !sweep::finish_wal_truncation(shared).unwrap_or(false) {
        shared.is_wal_truncation_due.store(true, Ordering::Relaxed);
    }
}
