//! What goes on while nobody commits: the index catches up, and leftovers go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::pool::Shared;
use crate::{index, sweep};

/// How long nobody must have committed here before anything is begun.
const QUIET: Duration = Duration::from_millis(200);
/// Messages indexed, and leftovers removed, between two looks at whether somebody commits.
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
                tokio::time::sleep(QUIET).await;
                let Some(shared) = weak.upgrade() else { return };
                if shared.activity.load(Ordering::Relaxed) == before {
                    tidy(&shared, before).await;
                    break;
                }
            }
        }
    });
}

/// One small step after the other, until somebody commits. A failure is met again, and told, by whoever asks.
async fn tidy(shared: &Shared, activity: u64) {
    let is_quiet = || shared.activity.load(Ordering::Relaxed) == activity;
    while is_quiet() && index::catch_up(shared, STEP).await.is_ok_and(|step| !step.done && step.indexed > 0) {}
    while is_quiet() && sweep::remove_leftovers(shared, STEP).await.is_ok_and(|step| step.more) {}
}
