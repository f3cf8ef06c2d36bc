//! Requests to stop a turn, stored in its thread, so that they reach the driver in any instance.

use std::time::Duration;

use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, Scope, ThreadId};

use crate::{Memory, Result};

/// Pause between a wake-up and the read: debounces wake-ups, which the turn's own commits cause too.
const DEBOUNCE: Duration = Duration::from_millis(25);
/// How long a request is retained.
const RETENTION_MS: i64 = 60 * 60 * 1000;

/// Requests the driver of a turn to stop it.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread; those of the store.
pub async fn request_stop(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Result<()> {
    // A user may stop turns in a shared thread, but only the tenant may write its records.
    memory.get_thread(scope, thread).await?;
    let expires_at = Some(memory.now().plus_ms(RETENTION_MS));
    let put = PutRecord { name: name(turn), value: JsonText::of(&true)?, expires_at };
    memory.batch().put(put).commit(&writer(scope), thread).await?;
    Ok(())
}

/// Waits until a stop of the turn is requested. Called by its driver. Reads the request at the start, after changes of the thread,
/// and at least every [`crate::Watch::MAX_WAIT`].
pub async fn wait_for_stop_request(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) {
    let (writer, name) = (writer(scope), name(turn));
    let mut watch = memory.watch_thread(scope, thread).await;
    loop {
        memory.runtime().sleep(DEBOUNCE).await;
        // An error of the store is not a reason to stop: the next read tries again.
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
