//! Runs the conformance suite on the in-memory store.

use std::path::PathBuf;

use async_trait::async_trait;
use threadkeep_core::Backend;
use threadkeep_store_conformance::{Abilities, Factory, Instance, conformance_tests, property_test};
use threadkeep_store_memory::MemoryStore;

struct InMemory;

#[async_trait]
impl Factory for InMemory {
    async fn create(&self) -> Box<dyn Instance> {
        Box::new(Open(MemoryStore::open()))
    }

    fn abilities(&self) -> Abilities {
        Abilities { durable: false, named_collections: true, compaction: false }
    }
}

struct Open(Backend);

#[async_trait]
impl Instance for Open {
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

async fn in_memory() -> Option<InMemory> {
    Some(InMemory)
}

// S1.40
conformance_tests!(crate::in_memory);

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    property_test(&InMemory, 64).await;
}
