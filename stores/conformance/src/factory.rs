use std::path::PathBuf;

use async_trait::async_trait;
use threadkeep_core::{Backend, Consistency};

/// Creates the stores that the suite tests.
#[async_trait]
pub trait Factory: Send + Sync {
    /// Creates an empty store that shares no data with other stores.
    async fn create(&self) -> Box<dyn Instance>;

    /// Returns the optional features of these stores.
    fn capabilities(&self) -> Capabilities;
}

#[async_trait]
impl<F: Factory + ?Sized> Factory for &F {
    async fn create(&self) -> Box<dyn Instance> {
        (**self).create().await
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }
}

/// A store under test and its files or server. Dropping it may remove the data.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Returns the open store.
    fn backend(&self) -> Backend;

    /// Closes the store and opens its data again. The suite drops all other handles first. Called only if
    /// [`Capabilities::durable`] is set.
    async fn reopen(self: Box<Self>) -> Box<dyn Instance>;

    /// Returns all files that may contain data of this store; none for a store without files.
    fn files(&self) -> Vec<PathBuf>;
}

/// The optional features of a store. The methods of a feature that is not set must return `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The data outlives the process.
    pub durable: bool,
    /// `upsert` accepts named collections, and `search` searches them by words and by vectors.
    pub named_collections: bool,
    /// `compact` reclaims space.
    pub compaction: bool,
    /// What a snapshot contains as of one instant.
    pub snapshots: Consistency,
}
