use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, backup::Backup, params};
use threadkeep_core::{
    DrivenThread, Dump, Maintenance, Owner, Reason, Record, RecordOwner, Result, Snapshot, StoreError, SweepReport,
    TenantId, ThreadId, Timestamp, VerifyReport, limits,
};

use crate::connection::{Shared, lock, new_incarnation};
use crate::error;
use crate::snapshot::SqliteSnapshot;
use crate::{SqliteStore, dump, index, owners, private, records, snapshot, sweep, verify, writer};

/// The number of pages that are copied per step of a backup.
const BACKUP_PAGES: i32 = 1_000;

/// Runs long work on a blocking thread; outside of a tokio runtime, on the current thread.
pub(crate) async fn blocking<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
) -> Result<T> {
    let shared = Arc::clone(shared);
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime
            .spawn_blocking(move || work(&shared))
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable(Reason::Closed))),
        Err(_) => work(&shared),
    }
}

#[async_trait]
impl Maintenance for SqliteStore {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        limits::check_page(limit)?;
        let tenants = self.shared.read(|connection| {
            let sql = "SELECT tenant FROM owners WHERE user = '' AND tenant > ?1 ORDER BY tenant LIMIT ?2";
            let after = after.map_or("", TenantId::as_str);
            read_names(connection, sql, params![after, limit as i64])
        })?;
        tenants.into_iter().map(TenantId::from_stored).collect()
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        limits::check_page(limit)?;
        let names = self.shared.read(|connection| {
            let sql = "SELECT user FROM owners WHERE tenant = ?1 AND (?2 IS NULL OR user > ?2) ORDER BY user LIMIT ?3";
            read_names(connection, sql, params![tenant.as_str(), after.map(owners::stored_name), limit as i64])
        })?;
        Ok(names.into_iter().map(owners::parse_owner).collect::<error::Result<_>>()?)
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        limits::check_page(limit)?;
        Ok(records::list_driven_threads(&self.shared, after, limit, now)?)
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        Ok(dump::dump(&self.shared, tenant, thread, after, limit)?)
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let snapshot = blocking(&self.shared, move |shared| Ok(SqliteSnapshot::open(shared, now)?)).await?;
        Ok(Box::new(snapshot))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        let tenant = tenant.clone();
        blocking(&self.shared, move |shared| dump::restore(shared, &tenant, thread, &chunk)).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        let user = match owner {
            RecordOwner::Thread(_) => {
                return Err(StoreError::invalid("record owner", "a thread's records are restored with the thread"));
            }
            RecordOwner::User(user) => user.as_str().to_owned(),
            RecordOwner::Tenant => String::new(),
        };
        let tenant = tenant.clone();
        blocking(&self.shared, move |shared| {
            writer::write_blocking(shared, |connection| {
                let owner_no = owners::find_or_insert(shared, connection, tenant.as_str(), &user)?;
                records::raise_version(connection, record.version)?;
                records::put_owner_record(connection, owner_no, &record)
            })
        })
        .await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        blocking(&self.shared, move |shared| sweep::sweep(shared, now)).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        blocking(&self.shared, |shared| Ok(verify::verify(shared)?)).await
    }

    async fn repair(&self, _now: Timestamp) -> Result<()> {
        blocking(&self.shared, |shared| {
            writer::write_blocking(shared, verify::repair)?;
            while !index::catch_up(shared, usize::MAX)?.done {}
            Ok(())
        })
        .await
    }

    async fn compact(&self) -> Result<()> {
        blocking(&self.shared, |shared| {
            shared.check_writable()?;
            lock(&shared.writer).execute_batch("VACUUM").map_err(error::SqliteError::from)?;
            sweep::truncate_wal(shared)
        })
        .await
    }
}

fn read_names(connection: &Connection, sql: &str, arguments: impl rusqlite::Params) -> error::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(sql)?;
    let names = statement.query_map(arguments, |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// Copies the store into a new file, page by page. The copy gets a new incarnation, because the histories of the two files may diverge,
/// and the copy must not accept cursors of the original.
pub(crate) fn backup_to(shared: &Shared, target: &Path, mut progress: impl FnMut(u64, u64)) -> Result<()> {
    if target.exists() {
        return Err(StoreError::invalid("backup target", "the file already exists"));
    }
    let copied = shared.read(|source| {
        // Without a transaction, each write by another process would restart the copy.
        let transaction = source.unchecked_transaction()?;
        snapshot::start_read(source)?;
        private::create_file(target);
        let mut copy = Connection::open(target)?;
        let backup = Backup::new(source, &mut copy)?;
        loop {
            let step = backup.step(BACKUP_PAGES)?;
            let pages = backup.progress();
            progress(u64::try_from(pages.remaining).unwrap_or(0), u64::try_from(pages.pagecount).unwrap_or(0));
            match step {
                rusqlite::backup::StepResult::Done => break,
                rusqlite::backup::StepResult::More => {}
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        drop(backup);
        drop(transaction);
        let renewed = copy.execute("UPDATE marks SET value = ?1 WHERE name = 'incarnation'", [new_incarnation()]);
        match renewed.map_err(error::SqliteError::from) {
            // Damaged pages are copied like all others; reads of the copy report the damage.
            Err(error) if error.is_damage() => Ok(()),
            renewed => renewed.map(drop),
        }
    });
    if copied.is_err() {
        // A partial copy cannot be distinguished from a complete one.
        drop(std::fs::remove_file(target));
    }
    Ok(copied?)
}
