mod filter;

use async_trait::async_trait;

use crate::{Map, Message, MetadataFilter, Owner, Portable, Result, Scope, StoreError, ThreadId, Timestamp, limits};

pub use filter::{FieldFilter, filter_terms};

/// A full-text index that returns candidates for ranking. It may lag behind the store; answers list the threads that are not fully
/// indexed, so that the caller can search their newest messages itself.
///
/// The collection of messages is filled by the backend. Other collections are filled by [`SearchIndex::upsert`], belong to the scope
/// that fills them, and are created with their first entry. They are derived data and not part of dumps: their owner has to fill them
/// again. The scope is part of the index, not a filter on its results. Backends do not rank: they return a limited number of
/// candidates with the statistics for ranking, the same in every backend.
#[async_trait]
pub trait SearchIndex: Portable + std::fmt::Debug {
    /// Finds entries that contain at least one term of the query. Entries with rarer terms come first. Messages with the same terms
    /// come in the order of their positions in their thread, newest first.
    ///
    /// For messages, the threads to which the scope has full access are searched: a user's own threads, or all threads of a tenant. If
    /// the query names a thread, that thread is searched if the scope may read it. Erased, trimmed, deleted and expired messages are
    /// never returned. In a named collection, a tenant searches the tenant's entries, and a user searches the user's and the tenant's
    /// entries; an unknown collection is empty. If the query has a vector, the entries with a term are followed by the entries nearest
    /// to the vector, at most `limit`. Filters are part of the lookup: only entries that pass them count towards the frequencies and
    /// the limit. With filters and without terms, the entries that pass the filters are found, in no particular order. Terms that
    /// [`crate::text::indexed_terms`] cannot produce are allowed; their results are unspecified. A vector or a filter for messages is
    /// `Unsupported`, and so are named collections in backends without them.
    ///
    /// With a filter on metadata, hits and unindexed threads come only from threads that pass it. `documents` and `frequencies` may
    /// also count the messages of other threads in the scope. In a named collection, such a filter is `Unsupported`, and so are
    /// alternatives.
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer>;

    /// Adds entries to the scope's part of a named collection, all or nothing. Replaces entries with the same id. Searches find the new
    /// entries immediately. [`Collection::Messages`] is `Invalid`. For the limits, see [`IndexEntry::check_all`].
    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()>;

    /// Removes at most [`limits::COMMIT_MESSAGES`] entries from the scope's part of a named collection, and returns how many existed.
    /// After a sweep, no byte of the removed entries remains in the backend's files.
    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64>;

    /// Removes all entries that the scope added to named collections, and the names of the collections, and returns how many entries
    /// existed. Messages, and entries of other scopes in collections with the same name, are not removed. A backend without
    /// collections returns 0. The removal works in bounded steps, between which other writers can run; entries that they add meanwhile
    /// may remain. Idempotent: after a failure, the same call removes the rest. After a sweep, no byte of the entries remains in the
    /// backend's files.
    async fn remove_collections(&self, scope: &Scope) -> Result<u64>;

    /// Indexes up to approximately `limit` messages that are not indexed yet.
    async fn catch_up(&self, limit: usize) -> Result<CatchUp>;
}

/// A collection of entries to search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collection {
    /// The messages of all threads.
    Messages,
    /// A collection of the application, such as the documents of a library.
    Named(String),
}

impl Collection {
    /// Returns the name of a named collection.
    ///
    /// # Errors
    /// `Invalid` for messages, and for a name that is empty or contains a control character, `LimitExceeded` for more than 200 bytes.
    pub fn name(&self) -> Result<&str> {
        match self {
            Self::Messages => {
                Err(StoreError::invalid("collection", "must be named; the store itself indexes messages"))
            }
            Self::Named(name) => limits::check_name("collection", name).map(|()| name.as_str()),
        }
    }
}

/// An entry of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// Its id in the collection.
    pub id: String,
    /// The text to index.
    pub text: String,
    /// Data that is returned with the entry.
    pub fields: Map,
    /// The embedding of the text, for queries with a vector.
    pub embedding: Option<Embedding>,
}

impl IndexEntry {
    /// Checks the entries against the limits that all backends share: at most [`limits::COMMIT_MESSAGES`] entries with
    /// [`limits::COMMIT_BYTES`] of text, distinct ids of at most [`limits::KEY_BYTES`], embeddings of finite numbers.
    ///
    /// # Errors
    /// `LimitExceeded` if a limit is exceeded, `Invalid` for any other reason.
    pub fn check_all(entries: &[Self]) -> Result<()> {
        limits::check_count("entries per call", entries.len(), limits::COMMIT_MESSAGES)?;
        let bytes = entries.iter().map(|entry| entry.text.len()).sum();
        limits::check_count("total bytes of entry text", bytes, limits::COMMIT_BYTES)?;
        let ids: std::collections::BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        if ids.len() < entries.len() {
            return Err(StoreError::invalid("entry id", "appears twice in one call"));
        }
        entries.iter().try_for_each(Self::check)
    }

    fn check(&self) -> Result<()> {
        limits::check_key("entry id", &self.id)?;
        limits::check_text("entry text", &self.text)?;
        limits::check_map("entry fields", &self.fields)?;
        self.embedding.as_ref().map_or(Ok(()), Embedding::check)
    }
}

/// A vector that an embedding model computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The model. Vectors of different models are never compared.
    pub model: String,
    /// The vector.
    pub vector: Vec<f32>,
}

impl Embedding {
    /// Checks that the model has a valid name and the vector has 1 to [`limits::DIMENSIONS`] finite numbers.
    ///
    /// # Errors
    /// `LimitExceeded` if the name or the vector is too long, `Invalid` for any other reason.
    pub fn check(&self) -> Result<()> {
        limits::check_name("embedding model", &self.model)?;
        limits::check_count("embedding dimensions", self.vector.len(), limits::DIMENSIONS)?;
        if self.vector.is_empty() {
            return Err(StoreError::invalid("embedding", "empty"));
        }
        self.vector.iter().try_for_each(|number| limits::check_number("embedding", f64::from(*number)))
    }

    /// Returns the cosine similarity of two embeddings, from -1 to 1. `None` if they are of different models, or if their vectors
    /// cannot be compared ([`similarity`]).
    #[must_use]
    pub fn similarity(&self, other: &Self) -> Option<f64> {
        if self.model == other.model { similarity(&self.vector, &other.vector) } else { None }
    }
}

/// Returns the cosine similarity of two vectors, from -1 to 1. `None` if their dimensions differ, or if one of them is the zero vector
/// or contains a number that is not finite.
#[must_use]
pub fn similarity(a: &[f32], b: &[f32]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let dot_product =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    let lengths = (dot_product(a, a) * dot_product(b, b)).sqrt();
    (lengths > 0.0 && lengths.is_finite()).then(|| (dot_product(a, b) / lengths).clamp(-1.0, 1.0))
}

/// A search query.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuery {
    /// The collection to search.
    pub collection: Collection,
    /// Terms as [`crate::text::indexed_terms`] produces them. At most 32 are looked up.
    pub terms: Vec<String>,
    /// Lists of alternative terms, such as the words with a prefix. Each list counts as one more term: the messages with any term of
    /// the list contain it. At most 32 terms of all lists together are looked up. Empty for a named collection.
    pub alternatives: Vec<Vec<String>>,
    /// An embedding whose nearest entries are also returned.
    pub vector: Option<Embedding>,
    /// Conditions, all of which an entry of a named collection must meet.
    pub filters: Vec<FieldFilter>,
    /// Only messages of threads whose metadata passes. Empty for a named collection.
    pub metadata: MetadataFilter,
    /// Only messages of this thread.
    pub thread: Option<ThreadId>,
    /// The maximum number of hits (1 to 1,000).
    pub limit: usize,
    /// Whether the answer should contain the messages of the hits, if the backend can read them together with the index.
    pub reads_messages: bool,
}

impl SearchQuery {
    /// Whether the query finds all entries that pass its filters: it has filters and no terms.
    #[must_use]
    pub fn is_filter_only(&self) -> bool {
        self.terms.is_empty() && !self.filters.is_empty()
    }

    /// Checks that a query for a named collection has neither a filter on the metadata of threads nor alternatives.
    ///
    /// # Errors
    /// `Unsupported` if it has one of them.
    pub fn check_collection(&self) -> Result<()> {
        if !self.metadata.is_empty() {
            return Err(StoreError::Unsupported("metadata filters in named collections"));
        }
        if !self.alternatives.is_empty() {
            return Err(StoreError::Unsupported("alternative terms in named collections"));
        }
        Ok(())
    }

    /// Returns the number of [`SearchAnswer::frequencies`]: one for each term, and one for each list of alternatives.
    #[must_use]
    pub fn frequency_count(&self) -> usize {
        self.terms.len() + self.alternatives.len()
    }

    /// Returns the terms to look up, each with the index of its frequency: at most `max` terms, and at most `max` alternatives.
    pub fn lookups(&self, max: usize) -> impl Iterator<Item = (usize, &String)> {
        let lists = self.alternatives.iter().zip(self.terms.len()..);
        let alternatives = lists.flat_map(|(list, index)| list.iter().map(move |term| (index, term)));
        self.terms.iter().take(max).enumerate().chain(alternatives.take(max))
    }

    /// Whether an entry with these fields passes all filters.
    #[must_use]
    pub fn passes(&self, fields: &Map) -> bool {
        self.filters.iter().all(|filter| filter.passes(fields))
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// The candidates among messages.
    pub hits: Vec<SearchHit>,
    /// The messages of some of these candidates, from the same snapshot, if the query asks for them. Backends need not return any.
    pub messages: Vec<(ThreadId, Message)>,
    /// The candidates of a named collection.
    pub entries: Vec<EntryHit>,
    /// The approximate number of entries in the searched part of the collection.
    pub documents: u64,
    /// For each term of the query, and then for each list of alternatives, the number of entries that contain it, counted up to a
    /// limit; 0 for terms that were not looked up.
    pub frequencies: Vec<u64>,
    /// The searched threads whose newest messages are not indexed yet.
    pub unindexed: Vec<UnindexedThread>,
}

/// A candidate among messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The thread.
    pub thread: ThreadId,
    /// The position in the thread.
    pub seq: u64,
}

/// A candidate of a named collection.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryHit {
    /// The owner of the entry.
    pub owner: Owner,
    /// Its id in the collection.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The data stored with it.
    pub fields: Map,
    /// The cosine similarity to the vector of the query, if both have embeddings of the same model.
    pub similarity: Option<f64>,
}

/// A thread with messages that are not indexed yet: those after `indexed_seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnindexedThread {
    /// The thread.
    pub thread: ThreadId,
    /// The last indexed position.
    pub indexed_seq: u64,
}

/// The progress of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// Messages indexed by this call.
    pub indexed: u64,
    /// Whether all messages are indexed.
    pub done: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_is_the_cosine_if_vectors_are_comparable() {
        assert_eq!(similarity(&[3.0, 0.0], &[1.0, 0.0]), Some(1.0));
        assert_eq!(similarity(&[1.0, 0.0], &[0.0, 2.0]), Some(0.0));
        for (a, b) in
            [(vec![1.0], vec![1.0, 2.0]), (vec![0.0], vec![1.0]), (vec![f32::NAN], vec![1.0]), (vec![], vec![])]
        {
            assert_eq!(similarity(&a, &b), None);
        }
    }
}
