//! Runs the conformance suite on the in-memory store.

use std::path::PathBuf;

use async_trait::async_trait;
use threadkeep_core::Backend;
use threadkeep_store_conformance::{Capabilities, Factory, Instance, conformance_tests, property_test};
use threadkeep_store_memory::MemoryStore;

struct MemoryFactory;

#[async_trait]
impl Factory for MemoryFactory {
    async fn create(&self) -> Box<dyn Instance> {
        Box::new(MemoryInstance(MemoryStore::open()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durable: false,
            named_collections: true,
            compaction: false,
            snapshots: threadkeep_core::Consistency::Store,
        }
    }
}

struct MemoryInstance(Backend);

#[async_trait]
impl Instance for MemoryInstance {
    fn backend(&self) -> Backend {
        self.0.clone()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        unreachable!("the store is not durable")
    }

    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

async fn factory() -> Option<MemoryFactory> {
    Some(MemoryFactory)
}

// S1.40
conformance_tests!(crate::factory);

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    property_test(&MemoryFactory, 64).await;
}
