//! The SQLite store against the suite.

use std::path::PathBuf;

use async_trait::async_trait;
use tempfile::TempDir;
use threadkeep_core::Backend;
use threadkeep_store_conformance::{Abilities, Factory, Instance, conformance_tests, property_test};
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

struct InFile;

/// The suite asks for many stores; what a power cut would take is tested elsewhere.
fn options() -> SqliteOptions {
    SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() }
}

#[async_trait]
impl Factory for InFile {
    async fn create(&self) -> Box<dyn Instance> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = SqliteStore::open(folder.path().join("store.db"), options()).expect("a new store");
        Box::new(Open { store, folder })
    }

    fn abilities(&self) -> Abilities {
        Abilities { durable: true, named_collections: true, compaction: true }
    }
}

struct Open {
    store: SqliteStore,
    folder: TempDir,
}

#[async_trait]
impl Instance for Open {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { store, folder } = *self;
        drop(store);
        let store = SqliteStore::open(folder.path().join("store.db"), options()).expect("the same store");
        Box::new(Open { store, folder })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.store.files()
    }
}

async fn in_file() -> Option<InFile> {
    Some(InFile)
}

// S1.40
conformance_tests!(crate::in_file);

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    property_test(&InFile, 64).await;
}
