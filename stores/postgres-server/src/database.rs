use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::server::{Server, connect};

/// A database of a test's own. It is gone soon after it is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    name: String,
    janitor: Option<Janitor>,
}

impl Database {
    pub(crate) async fn create(server: &Server, template: Option<&str>) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("threadkeep_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let client = connect(&server.url("postgres")).await.expect("the server answers");
        let template = template.unwrap_or("template0");
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'");
        client.batch_execute(&sql).await.expect("a new database");
        Self { url: server.url(&name), name, janitor: Some(server.janitor.clone()) }
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
            drop(janitor.dropped.send(self.name.clone()));
        }
    }
}

/// Drops databases in the background: a test has nothing to wait for.
#[derive(Clone, Debug)]
pub(crate) struct Janitor {
    dropped: Sender<String>,
}

impl Janitor {
    pub(crate) fn new(url: &str) -> Self {
        let (dropped, names) = channel::<String>();
        let url = url.to_owned();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            for name in names {
                runtime.block_on(async {
                    if let Ok(client) = connect(&url).await {
                        // What is left here goes with the server.
                        drop(client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await);
                    }
                });
            }
        });
        Self { dropped }
    }
}
