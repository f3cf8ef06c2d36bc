use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::server::{Server, connect};

/// A separate database for a test. It is removed in the background after it is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    name: String,
    cleanup: Option<CleanupWorker>,
    /// The SQL that empties the database for reuse. If `None`, the database is removed instead.
    reset_sql: Option<&'static str>,
}

impl Database {
    pub(crate) async fn create(server: &Server) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("threadkeep_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let client = connect(&server.url("postgres")).await.expect("the server responds");
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        client.batch_execute(&sql).await.expect("a new database");
        Self { url: server.url(&name), name, cleanup: Some(server.cleanup.clone()), reset_sql: None }
    }

    pub(crate) fn reusable(server: &Server, name: String, reset_sql: &'static str) -> Self {
        Self { url: server.url(&name), name, cleanup: Some(server.cleanup.clone()), reset_sql: Some(reset_sql) }
    }

    /// Returns the URL of the database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the name of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name and prevents the removal of the database.
    pub(crate) fn into_name(mut self) -> String {
        self.cleanup = None;
        std::mem::take(&mut self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(cleanup) = &self.cleanup {
            // If the worker has ended, the database is removed with the server.
            drop(cleanup.dropped.send((std::mem::take(&mut self.name), self.reset_sql)));
        }
    }
}

/// Empties or removes dropped databases in the background, so that tests do not wait for it.
#[derive(Clone, Debug)]
pub(crate) struct CleanupWorker {
    dropped: Sender<(String, Option<&'static str>)>,
    emptied: Arc<Mutex<Vec<String>>>,
}

impl CleanupWorker {
    pub(crate) fn new(base_url: String) -> Self {
        let (dropped, names) = channel::<(String, Option<&'static str>)>();
        let emptied = Arc::new(Mutex::new(Vec::new()));
        let reusable = Arc::clone(&emptied);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            for (name, reset_sql) in names {
                let is_emptied = runtime.block_on(async {
                    match reset_sql {
                        Some(sql) => reset(&format!("{base_url}/{name}"), sql).await.is_ok(),
                        None => false,
                    }
                });
                if is_emptied {
                    reusable.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                    continue;
                }
                // A database that cannot be removed now is removed with the server.
                drop(runtime.block_on(remove(&format!("{base_url}/postgres"), &name)));
            }
        });
        Self { dropped, emptied }
    }

    pub(crate) fn take_emptied(&self) -> Option<String> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Waits until the database has no active connection, then empties it.
async fn reset(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let client = connect(url).await?;
    let active = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' \
                  AND pid <> pg_backend_pid()";
    while !client.query(active, &[]).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.batch_execute(sql).await
}

async fn remove(url: &str, name: &str) -> Result<(), tokio_postgres::Error> {
    connect(url).await?.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await
}
