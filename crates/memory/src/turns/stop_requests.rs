//! Requests to stop a turn. They are stored in the turn's thread, so that they reach the driver in any instance.

use std::time::Duration;

use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, Scope, ThreadId};

use crate::{Memory, Result};

/// Pause between a wake-up and the read, because the turn's own commits cause many wake-ups.
const DEBOUNCE: Duration = Duration::from_millis(25);
/// How long a request is retained, in milliseconds: one hour.
const RETENTION_MS: i64 = 60 * 60 * 1000;

/// Asks the driver of a turn to stop the turn.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread; errors from the store.
pub async fn request_stop(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Result<()> {
    // A user may stop turns in a shared thread, but only the tenant may write its records.
    memory.get_thread(scope, thread).await?;
    let expires_at = Some(memory.now().plus_ms(RETENTION_MS));
    let put = PutRecord { name: stop_request_name(turn), value: JsonText::of(&true)?, expires_at };
    memory.batch().put(put).commit(&tenant_scope(scope), thread).await?;
    Ok(())
}

/// Waits until someone requests that the turn be stopped. Called by the turn's driver. Looks for a request at the start, after
/// changes in the thread, and at least every [`crate::Watch::MAX_WAIT`].
pub async fn wait_for_stop_request(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) {
    let (writer, name) = (tenant_scope(scope), stop_request_name(turn));
    let mut watch = memory.watch_thread(scope, thread).await;
    loop {
        memory.runtime().sleep(DEBOUNCE).await;
        // A store error is not a reason to stop the turn. The next read tries again.
        if let Ok(Some(_)) = memory.find_thread_record(&writer, thread, &name).await {
            return;
        }
        watch.changed().await;
    }
}

fn tenant_scope(scope: &Scope) -> Scope {
    Scope::Tenant(scope.tenant_id().clone())
}

fn stop_request_name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: format!("stop/{turn}") }
}
