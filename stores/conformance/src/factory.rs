use std::path::PathBuf;

use async_trait::async_trait;
use threadkeep_core::Backend;

/// Makes the stores that the suite runs over.
#[async_trait]
pub trait Factory: Send + Sync {
    /// Makes a fresh, empty store that shares nothing with any other.
    async fn create(&self) -> Box<dyn Instance>;

    /// What stores of this kind can do beyond what all can.
    fn abilities(&self) -> Abilities;
}

#[async_trait]
impl<F: Factory + ?Sized> Factory for &F {
    async fn create(&self) -> Box<dyn Instance> {
        (**self).create().await
    }

    fn abilities(&self) -> Abilities {
        (**self).abilities()
    }
}

/// One store under test, with whatever it stands on. Dropping it may remove its data.
#[async_trait]
pub trait Instance: Send + Sync {
    /// The open store.
    fn backend(&self) -> Backend;

    /// Closes the store and opens the same data again; the suite holds no other handle by then. Called only where
    /// [`Abilities::durable`] is set.
    async fn reopen(self: Box<Self>) -> Box<dyn Instance>;

    /// Every file that may hold bytes of this store; empty where there is none.
    fn files(&self) -> Vec<PathBuf>;
}

/// What a kind of store can do. What is not set must answer `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Its data outlives the process.
    pub durable: bool,
    /// `upsert` takes collections other than messages, and `search` finds in them by words and by vectors.
    pub named_collections: bool,
    /// `compact` has space to give back.
    pub compaction: bool,
}
