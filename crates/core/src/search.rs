use async_trait::async_trait;

use crate::{Map, Owner, Portable, Result, Scope, StoreError, ThreadId, Timestamp, limits};

/// Finds candidates. Derived from the log, so it may lag; it says by how much, and the caller makes up the rest.
///
/// Messages are a collection that the backend fills from its own log. Other collections are filled by
/// [`SearchIndex::upsert`], belong to the scope that fills them, and come into being with their first entry. They are
/// derived too: no dump holds them, whoever filled one fills it again. The scope is part of the index, not a filter over
/// its results. Final ranking is not the backend's: it gives bounded candidates and the statistics to rank them with, the
/// same everywhere.
#[async_trait]
pub trait SearchIndex: Portable + std::fmt::Debug {
    /// Finds entries that hold at least one of the query's terms, those with the rarer terms first.
    ///
    /// Of messages only what the scope reads in full is searched: a user's own threads, for a tenant all of them; and
    /// a thread that the query names, where the scope may read it. Erased, trimmed, deleted and expired messages are never
    /// among the hits. Of a named collection a tenant searches its own entries, a user its own and its tenant's; one that
    /// holds nothing finds nothing. With a vector the entries nearest to it come after those with a term, at most as many
    /// again as the limit. A term that no analysis gives is no error and no syntax; what it finds is not said. A vector for
    /// messages is `Unsupported`, and so are named collections where a backend keeps none.
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer>;

    /// Puts entries into the scope's part of a collection other than messages, over those with the same id, all or none;
    /// they are found at once. Messages are `Invalid`: they come from the log alone. See [`IndexEntry::check_all`] for the
    /// bounds.
    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()>;

    /// Removes entries (at most [`limits::COMMIT_MESSAGES`]) from the scope's part of a collection other than messages, and
    /// says how many there were. After a sweep no byte of them is in the backend's files.
    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64>;

    /// Removes everything that the scope itself put into named collections, with the collections' names, and returns how many
    /// entries there were. Entries of other scopes stay, in collections of the same name too; messages are not touched.
    /// A backend that keeps no collections returns 0. It works in bounded steps, so other writers are let in between, and
    /// what they add meanwhile may stay. Idempotent: after a failure the same call removes the rest. After a sweep no byte
    /// of the entries is in the backend's files.
    async fn remove_collections(&self, scope: &Scope) -> Result<u64>;

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

impl Collection {
    /// The collection's name, for what only named collections can do.
    ///
    /// # Errors
    /// `Invalid` for messages, and for a name that is empty, too long or holds a control character.
    pub fn name(&self) -> Result<&str> {
        match self {
            Self::Messages => Err(StoreError::invalid("collection", "messages are indexed from the log alone")),
            Self::Named(name) => limits::check_name("collection", name).map(|()| name.as_str()),
        }
    }
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

impl IndexEntry {
    /// Checks what every backend must be able to keep: at most [`limits::COMMIT_MESSAGES`] entries of
    /// [`limits::COMMIT_BYTES`] together, ids as short as keys and each once, embeddings of finite numbers.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded`, with what was wrong.
    pub fn check_all(entries: &[Self]) -> Result<()> {
        limits::check_count("entries of one call", entries.len(), limits::COMMIT_MESSAGES)?;
        let bytes = entries.iter().map(|entry| entry.text.len()).sum();
        limits::check_count("text of all entries", bytes, limits::COMMIT_BYTES)?;
        let ids: std::collections::BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        if ids.len() < entries.len() {
            return Err(StoreError::invalid("entry id", "given twice in one call"));
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

/// A point in a model's space of meanings.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The model that made it; points of two models are never compared.
    pub model: String,
    /// The point.
    pub vector: Vec<f32>,
}

impl Embedding {
    /// Checks that it is a point: a model with a name, 1 to [`limits::DIMENSIONS`] finite numbers.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded`, with what was wrong.
    pub fn check(&self) -> Result<()> {
        limits::check_name("embedding model", &self.model)?;
        limits::check_count("dimensions of an embedding", self.vector.len(), limits::DIMENSIONS)?;
        if self.vector.is_empty() {
            return Err(StoreError::invalid("embedding", "empty"));
        }
        self.vector.iter().try_for_each(|number| limits::check_number("embedding", f64::from(*number)))
    }

    /// The cosine of the angle between two points, from -1 to 1. `None` where they are of two models or lengths, or one
    /// of them is the origin.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> Option<f64> {
        if self.model == other.model { similarity(&self.vector, &other.vector) } else { None }
    }
}

/// The cosine of the angle between two vectors, from -1 to 1. `None` where their lengths differ or one has no direction.
#[must_use]
pub fn similarity(one: &[f32], other: &[f32]) -> Option<f64> {
    if one.len() != other.len() {
        return None;
    }
    let product = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    let lengths = (product(one, one) * product(other, other)).sqrt();
    (lengths > 0.0 && lengths.is_finite()).then(|| (product(one, other) / lengths).clamp(-1.0, 1.0))
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
    /// The candidates among messages.
    pub hits: Vec<SearchHit>,
    /// The candidates of a named collection.
    pub entries: Vec<EntryHit>,
    /// How many entries the searched part of the collection holds, about.
    pub documents: u64,
    /// For each of the query's terms, how many of them hold it (counted up to a bound); 0 for those not looked up.
    pub frequencies: Vec<u64>,
    /// What is not indexed yet, of what the query searches.
    pub behind: Vec<UnindexedThread>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The thread.
    pub thread: ThreadId,
    /// The position in it.
    pub seq: u64,
}

/// A candidate of a named collection.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryHit {
    /// Whose part of the collection it stands in.
    pub owner: Owner,
    /// Its id there.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What was kept with it.
    pub fields: Map,
    /// The cosine to the query's vector, where both have one of the same model.
    pub similarity: Option<f64>,
}

/// A thread whose newest messages are not indexed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnindexedThread {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_is_a_cosine_or_nothing() {
        assert_eq!(similarity(&[3.0, 0.0], &[1.0, 0.0]), Some(1.0));
        assert_eq!(similarity(&[1.0, 0.0], &[0.0, 2.0]), Some(0.0));
        for (one, other) in
            [(vec![1.0], vec![1.0, 2.0]), (vec![0.0], vec![1.0]), (vec![f32::NAN], vec![1.0]), (vec![], vec![])]
        {
            assert_eq!(similarity(&one, &other), None);
        }
    }
}
