//! Stopping a turn from outside, whichever instance drives it: what says so lies in its thread.

use std::time::Duration;

use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, Scope, ThreadId};

use crate::{Memory, Result};

/// How long after a hint it is looked: the commits of the turn itself are hints too, and what comes together is one look.
const PAUSE: Duration = Duration::from_millis(25);
/// How long a wish to stop stands.
const KEPT_MS: i64 = 60 * 60 * 1000;

/// Asks whoever drives a turn to stop it.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread; those of the store.
pub async fn request_stop(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Result<()> {
    // A user may ask in a shared thread, and may not write its records: this one is the application's.
    memory.get_thread(scope, thread).await?;
    let expires_at = Some(memory.now().plus_ms(KEPT_MS));
    let put = PutRecord { name: name(turn), value: JsonText::of(&true)?, expires_at };
    memory.batch().put(put).commit(&writer(scope), thread).await?;
    Ok(())
}

/// Waits until somebody asked for a turn to stop, for whoever drives it. It looks a moment after it began and after the
/// thread changed, and now and then by itself ([`crate::Watch::MAX_WAIT`]).
pub async fn wait_for_stop_request(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) {
    let (writer, name) = (writer(scope), name(turn));
    let mut watch = memory.watch_thread(scope, thread).await;
    loop {
        memory.runtime().sleep(PAUSE).await;
        // A store that cannot be asked at the moment is no reason to stop.
        if let Ok(Some(_)) = memory.find_thread_record(&writer, thread, &name).await {
            return;
        }
        watch.changed().await;
    }
}

fn writer(scope: &Scope) -> Scope {
    Scope::Tenant(scope.tenant_id().clone())
}

fn name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: format!("stop/{turn}") }
}
