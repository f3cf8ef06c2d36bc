use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::server::{Server, connect};

/// A database of a test's own. It is gone soon after it is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    name: String,
    janitor: Option<Janitor>,
    /// How it is emptied, where it is lent.
    empty: Option<&'static str>,
}

impl Database {
    pub(crate) async fn create(server: &Server) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("threadkeep_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let client = connect(&server.url("postgres")).await.expect("the server answers");
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        client.batch_execute(&sql).await.expect("a new database");
        Self { url: server.url(&name), name, janitor: Some(server.janitor.clone()), empty: None }
    }

    pub(crate) fn lent(server: &Server, name: String, empty: &'static str) -> Self {
        Self { url: server.url(&name), name, janitor: Some(server.janitor.clone()), empty: Some(empty) }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn keep(mut self) -> String {
        self.janitor = None;
        std::mem::take(&mut self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(janitor) = &self.janitor {
            // Without a janitor it goes with the server.
            drop(janitor.dropped.send((std::mem::take(&mut self.name), self.empty)));
        }
    }
}

/// Tidies up in the background: a test has nothing to wait for.
#[derive(Clone, Debug)]
pub(crate) struct Janitor {
    dropped: Sender<(String, Option<&'static str>)>,
    emptied: Arc<Mutex<Vec<String>>>,
}

impl Janitor {
    pub(crate) fn new(base_url: String) -> Self {
        let (dropped, names) = channel::<(String, Option<&'static str>)>();
        let emptied = Arc::new(Mutex::new(Vec::new()));
        let ready = Arc::clone(&emptied);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            for (name, empty) in names {
                let is_emptied = runtime.block_on(async {
                    match empty {
                        Some(sql) => make_empty(&format!("{base_url}/{name}"), sql).await.is_ok(),
                        None => false,
                    }
                });
                if is_emptied {
                    ready.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                    continue;
                }
                // What is left here goes with the server.
                drop(runtime.block_on(remove(&format!("{base_url}/postgres"), &name)));
            }
        });
        Self { dropped, emptied }
    }

    pub(crate) fn take_emptied(&self) -> Option<String> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Waits until nobody is at work there any more, then empties it.
async fn make_empty(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let client = connect(url).await?;
    let at_work = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' \
                   AND pid <> pg_backend_pid()";
    while !client.query(at_work, &[]).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.batch_execute(sql).await
}

async fn remove(url: &str, name: &str) -> Result<(), tokio_postgres::Error> {
    connect(url).await?.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await
}
