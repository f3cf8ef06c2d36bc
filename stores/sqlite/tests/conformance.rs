//! Runs the store conformance suite on the SQLite store.

use std::path::PathBuf;

use async_trait::async_trait;
use tempfile::TempDir;
use threadkeep_core::Backend;
use threadkeep_store_conformance::{Capabilities, Factory, Instance, conformance_tests, property_test};
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

struct SqliteFactory;

/// Returns options without syncs, because the suite creates many stores and does not test power failures.
fn options() -> SqliteOptions {
    SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() }
}

#[async_trait]
impl Factory for SqliteFactory {
    async fn create(&self) -> Box<dyn Instance> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = SqliteStore::open(folder.path().join("store.db"), options()).expect("a new store");
        Box::new(SqliteInstance { store, folder })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durable: true,
            named_collections: true,
            compaction: true,
            snapshots: threadkeep_core::Consistency::Store,
        }
    }
}

struct SqliteInstance {
    store: SqliteStore,
    folder: TempDir,
}

#[async_trait]
impl Instance for SqliteInstance {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { store, folder } = *self;
        drop(store);
        let store = SqliteStore::open(folder.path().join("store.db"), options()).expect("the same store");
        Box::new(SqliteInstance { store, folder })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.store.files()
    }
}

async fn factory() -> Option<SqliteFactory> {
    Some(SqliteFactory)
}

// S1.40
conformance_tests!(crate::factory);

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    property_test(&SqliteFactory, 64).await;
}
