//! Runs a background task for each store. While no commits arrive, the task indexes new messages and removes leftovers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::pool::Shared;
use crate::{index, sweep};

/// The time without commits by this instance after which the task starts.
const IDLE_INTERVAL: Duration = Duration::from_millis(200);
/// The number of messages indexed, or of leftovers removed, between checks for new commits.
const STEP: usize = 500;

pub(crate) fn start(shared: &Arc<Shared>) {
    if !shared.options.background {
        return;
    }
    let (weak, active) = (Arc::downgrade(shared), Arc::clone(&shared.active));
    shared.spawn(async move {
        loop {
            active.notified().await;
            loop {
                let Some(before) = weak.upgrade().map(|shared| shared.activity.load(Ordering::Relaxed)) else { return };
                tokio::time::sleep(IDLE_INTERVAL).await;
                let Some(shared) = weak.upgrade() else { return };
                if shared.activity.load(Ordering::Relaxed) == before {
                    catch_up(&shared, before).await;
                    break;
                }
            }
        }
    });
}

/// Indexes messages and removes leftovers in small steps until a commit arrives. Errors are ignored: a search or a sweep
/// repeats the work and reports them.
async fn catch_up(shared: &Shared, activity: u64) {
    let is_idle = || shared.activity.load(Ordering::Relaxed) == activity;
    while is_idle() && index::catch_up(shared, STEP).await.is_ok_and(|step| !step.done && step.indexed > 0) {}
    while is_idle() && sweep::remove_leftovers(shared, STEP).await.is_ok_and(|step| step.more) {}
}
