use async_trait::async_trait;

use crate::{Map, Portable, Result, Scope, ThreadId, Timestamp};

/// Finds candidates. Derived from the log, so it may lag; it says by how much, and the caller makes up the rest.
///
/// Messages are a collection that the backend fills from its own log. Other collections are filled by
/// [`SearchIndex::upsert`]. The scope is part of the index, not a filter over its results. Final ranking is not the
/// backend's: it gives bounded candidates and the statistics to rank them with, the same everywhere.
#[cfg_attr(not(target_arch = "wasm32"), async_trait)]
#[cfg_attr(target_arch = "wasm32", async_trait(?Send))]
pub trait SearchIndex: Portable + std::fmt::Debug {
    /// Finds entries that hold at least one of the query's terms, those with the rarer terms first.
    ///
    /// Only what the scope reads in full is searched: a user's own threads, for a tenant all of them; and a thread that
    /// the query names, where the scope may read it. Erased, trimmed,
    /// deleted and expired messages are never among the hits. A term that no analysis
    /// gives is no error and no syntax; what it finds is not said. A vector without an index for it, and an unknown collection, are `Unsupported`.
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer>;

    /// Puts entries into a collection other than messages, over those with the same id. Messages are `Invalid`: they come
    /// from the log alone.
    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()>;

    /// Indexes at most about `limit` messages that are not yet.
    async fn catch_up(&self, limit: usize) -> Result<CatchUp>;
}

/// What is searched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collection {
    /// The messages of all threads.
    Messages,
    /// An application's documents.
    Named(String),
}

/// An entry of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// Its id in the collection.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What comes back with it.
    pub fields: Map,
    /// Where its meaning lies.
    pub embedding: Option<Embedding>,
}

/// A point in a model's space of meanings.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The model that made it; points of two models are never compared.
    pub model: String,
    /// The point.
    pub vector: Vec<f32>,
}

/// What to look for.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuery {
    /// In which collection.
    pub collection: Collection,
    /// Analysed terms, of those that [`crate::text::indexed_terms`] gives for a text; at most 32 are looked up.
    pub terms: Vec<String>,
    /// A meaning to be near to.
    pub vector: Option<Embedding>,
    /// Only this thread's messages.
    pub thread: Option<ThreadId>,
    /// At most so many hits (1 to 1,000).
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// The candidates.
    pub hits: Vec<SearchHit>,
    /// How many entries the searched part of the collection holds, about.
    pub documents: u64,
    /// For each of the query's terms, how many of them hold it (counted up to a bound); 0 for those not looked up.
    pub frequencies: Vec<u64>,
    /// What is not indexed yet, of what the query searches.
    pub behind: Vec<Behind>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The thread.
    pub thread: ThreadId,
    /// The position in it.
    pub seq: u64,
}

/// A thread whose newest messages are not indexed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The thread.
    pub thread: ThreadId,
    /// The last position that is indexed.
    pub indexed_seq: u64,
}

/// How far the index came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// Messages indexed by this call.
    pub indexed: u64,
    /// Whether nothing is left.
    pub done: bool,
}
