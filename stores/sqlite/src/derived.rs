use std::sync::Arc;

use threadkeep_core::{
    Access, DerivedWrite, PutRecord, Result, Scope, StoreError, SyncPolicy, ThreadId, Timestamp, WriteOutcome,
};

use crate::connection::Shared;
use crate::watch::WriteKind;
use crate::{records, threads, writer};

/// Writes a derived record of a thread. Changes nothing else in the thread.
pub(crate) async fn write(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    write: DerivedWrite,
    now: Timestamp,
) -> Result<WriteOutcome> {
    write.check()?;
    let (store, caller) = (Arc::clone(shared), scope.clone());
    writer::write_with(shared, SyncPolicy::Deferred, WriteKind::Threads, move |connection| {
        let (row, access) = threads::get_row(&store, connection, &caller, thread, now)?;
        if access < Access::Full {
            return Err(StoreError::Denied("changing a shared thread other than by adding messages").into());
        }
        let (name, version) = (write.name(), write.version());
        let actual = records::thread_record_version(connection, row.number, &name, now)?;
        write.check_against(row.positions, actual)?;
        let put = PutRecord { name, value: write.value, expires_at: None };
        let outcome = WriteOutcome { version, tag: row.positions.tag };
        records::put_thread_record(connection, row.number, &put, outcome.tagged())?;
        Ok(outcome)
    })
    .await
}
