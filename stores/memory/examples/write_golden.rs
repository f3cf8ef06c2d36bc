//! Writes the golden files of the current format: `cargo run --example write_golden -- FOLDER`.
//!
//! Use this program only for a format that has no golden files yet. Existing golden files are never changed.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use threadkeep_core::Backend;
use threadkeep_store_conformance::{Capabilities, Factory, Instance, write_golden};
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
        self
    }

    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| std::io::Error::other("usage: write_golden FOLDER"))?;
    write_golden(&MemoryFactory, Path::new(&folder)).await
}
