//! Named collections, which an application fills. A collection of one owner is in one hash slot.
//!
//! Words and filters are looked up in a list of entries for each term. A search by meaning reads all vectors of the collection or, with
//! filters, those of the entries that pass.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Collection, Embedding, EntryHit, FieldFilter, IndexEntry, Map, Owner, Result, Scope, SearchAnswer, SearchQuery,
    StoreError, filter_terms, limits, similarity, text,
};

use crate::args::Args;
use crate::keys::{hashes_of, term_hash};
use crate::reply::{Reply, next};
use crate::search::{MAX_TERMS, rarity};
use crate::shared::Shared;

/// The maximum number of entries that are read per term.
const MAX_ENTRIES: usize = 4_000;

/// The maximum number of vector components that one search reads.
const MAX_COMPONENTS: u64 = 8_000_000;

/// The number of vectors that one call reads.
const VECTORS: usize = 1_000;

/// An entry as stored, without its embedding.
#[derive(Serialize, Deserialize)]
struct StoredEntry {
    id: String,
    text: String,
    fields: Map,
}

/// What a search of one collection finds.
struct Found {
    /// The number of entries.
    documents: u64,
    /// For each term, the number of entries, and the newest of them. With filters, only entries that pass count.
    terms: Vec<(u64, Vec<u32>)>,
    /// All entries that pass the filters, if the query needs them.
    passing: Vec<u32>,
}

impl Shared {
    pub(crate) async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        let name = collection.name()?;
        IndexEntry::check_all(&entries)?;
        let (tenant, owner) = (scope.tenant_id(), scope.default_owner());
        self.register_owner(tenant, &owner).await?;
        let mut args = Args::new();
        for entry in entries {
            let terms = terms_of(&entry);
            let IndexEntry { id, text, fields, embedding } = entry;
            args.add(&id);
            let stored = StoredEntry { id, text, fields };
            args.add(serde_json::to_vec(&stored).map_err(|error| StoreError::invalid("entry", error.to_string()))?);
            args.add(embedding.as_ref().map(encode_embedding).unwrap_or_default());
            args.add(terms);
        }
        let names = format!("{}:c", self.keys.owner(tenant, &owner));
        let mut add = redis::cmd("ZADD");
        add.arg(names).arg(0).arg(name);
        // The name is added before and after the entries, because the collections may be removed in between.
        self.connections.run(&add, true).await?;
        self.connections.write("entries_put", &self.keys.collection(tenant, &owner, name), &args).await?;
        self.connections.run(&add, true).await?;
        self.note_removed_text(tenant).await
    }

    pub(crate) async fn remove_entries(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        let name = collection.name()?;
        limits::check_at_most("ids per call", ids.len(), limits::COMMIT_MESSAGES)?;
        let (tenant, owner) = (scope.tenant_id(), scope.default_owner());
        let mut args = Args::new();
        ids.iter().for_each(|id| {
            args.add(id);
        });
        let key = self.keys.collection(tenant, &owner, name);
        let removed = self.connections.write("entries_remove", &key, &args).await?.number()?;
        if removed > 0 {
            self.note_removed_text(tenant).await?;
        }
        Ok(removed)
    }

    pub(crate) async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        let (tenant, owner) = (scope.tenant_id(), scope.default_owner());
        let names = format!("{}:c", self.keys.owner(tenant, &owner));
        let (mut after, mut removed) = (None::<String>, 0);
        loop {
            let page = self.read_names(&names, after.as_deref(), limits::PAGE).await?;
            for name in &page {
                let key = self.keys.collection(tenant, &owner, name);
                removed += self.connections.write("entries_drop", &key, &Args::new()).await?.number()?;
                let mut remove = redis::cmd("ZREM");
                remove.arg(&names).arg(name);
                self.connections.run(&remove, true).await?;
                // Removes entries that were added before the name was removed: without the name, no later removal would find them.
                removed += self.connections.write("entries_drop", &key, &Args::new()).await?.number()?;
            }
            after = page.last().cloned();
            if page.len() < limits::PAGE {
                break;
            }
        }
        if removed > 0 {
            self.note_removed_text(tenant).await?;
        }
        Ok(removed)
    }

    pub(crate) async fn search_collection(&self, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
        let name = query.collection.name()?;
        query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
        FieldFilter::check_all(&query.filters)?;
        limits::check_page(query.limit)?;
        let mut owners = vec![Owner::Tenant];
        // A user's search includes the tenant's collection of the same name.
        owners.extend(Some(scope.default_owner()).filter(|owner| *owner != Owner::Tenant));
        let keys: Vec<String> =
            owners.iter().map(|owner| self.keys.collection(scope.tenant_id(), owner, name)).collect();
        let args = search_args(query);
        let mut documents = 0;
        let mut lists = vec![(0, Vec::new()); query.terms.len().min(MAX_TERMS)];
        let mut passing = Vec::new();
        for (collection, key) in keys.iter().enumerate() {
            let found = self.find_entries(key, &args).await?;
            documents += found.documents;
            for (list, (count, numbers)) in lists.iter_mut().zip(found.terms) {
                list.0 += count;
                list.1.extend(numbers.into_iter().map(|number| (collection, number)));
            }
            passing.extend(found.passing.into_iter().map(|number| (collection, number)));
        }
        let mut frequencies = vec![0; query.terms.len()];
        let mut scores: HashMap<(usize, u32), f64> = HashMap::new();
        for (term, (count, numbers)) in lists.into_iter().enumerate() {
            frequencies[term] = count;
            let rarity = rarity(documents, count);
            numbers.into_iter().for_each(|entry| *scores.entry(entry).or_default() += rarity);
        }
        if query.is_filter_only() {
            scores.extend(passing.iter().map(|entry| (*entry, 0.0)));
        }
        let mut selected = select_best(scores, query.limit);
        if let Some(vector) = &query.vector {
            let similarities = match query.filters.is_empty() {
                true => self.all_similarities(&keys, vector).await?,
                false => self.similarities(&keys, &passing, vector).await?,
            };
            let nearest = select_best(similarities, query.limit);
            selected.extend(nearest.into_iter().filter(|entry| !selected.contains(entry)).collect::<Vec<_>>());
        }
        let mut entries = Vec::new();
        for (collection, number) in selected {
            let hit = self.read_entry(&keys[collection], number, query).await?;
            entries.extend(hit.map(|hit| EntryHit { owner: owners[collection].clone(), ..hit }));
        }
        Ok(SearchAnswer { entries, documents, frequencies, ..SearchAnswer::default() })
    }

    /// Finds entries of a collection by their terms.
    async fn find_entries(&self, key: &str, args: &Args) -> Result<Found> {
        let mut reply = self.connections.read("entries_search", key, args).await?.items()?.into_iter();
        let documents = next(&mut reply)?.number()?;
        let mut terms = Vec::new();
        for list in next(&mut reply)?.items()? {
            let mut list = list.items()?.into_iter();
            let count = next(&mut list)?.number()?;
            terms.push((count, parse_numbers(&next(&mut list)?.bytes()?.unwrap_or_default())));
        }
        let passing = parse_numbers(&next(&mut reply)?.bytes()?.unwrap_or_default());
        Ok(Found { documents, terms, passing })
    }

    /// Compares a vector with all vectors of collections.
    async fn all_similarities(&self, keys: &[String], vector: &Embedding) -> Result<HashMap<(usize, u32), f64>> {
        let mut comparison = Comparison::new(vector);
        for (collection, key) in keys.iter().enumerate() {
            let mut cursor = "0".to_owned();
            loop {
                let mut scan = redis::cmd("HSCAN");
                scan.arg(format!("{key}:v")).arg(&cursor).arg("COUNT").arg(VECTORS);
                let mut reply = self.connections.run(&scan, false).await?.items()?.into_iter();
                cursor = next(&mut reply)?.text()?.unwrap_or_default();
                let mut items = next(&mut reply)?.items()?.into_iter();
                while let Some(number) = items.next() {
                    let number = u32::try_from(number.number()?).unwrap_or(0);
                    let stored = next(&mut items)?.bytes()?.unwrap_or_default();
                    comparison.add((collection, number), &stored)?;
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(comparison.similarities)
    }

    /// Compares a vector with the vectors of some entries.
    async fn similarities(
        &self,
        keys: &[String],
        entries: &[(usize, u32)],
        vector: &Embedding,
    ) -> Result<HashMap<(usize, u32), f64>> {
        let mut comparison = Comparison::new(vector);
        for entries in entries.chunk_by(|(collection, _), (other, _)| collection == other) {
            for entries in entries.chunks(VECTORS) {
                let mut read = redis::cmd("HMGET");
                read.arg(format!("{}:v", keys[entries[0].0]));
                entries.iter().for_each(|(_, number)| {
                    read.arg(number);
                });
                for (entry, stored) in entries.iter().zip(self.connections.look_up(&read).await?.items()?) {
                    comparison.add(*entry, &stored.bytes()?.unwrap_or_default())?;
                }
            }
        }
        Ok(comparison.similarities)
    }

    /// Reads an entry; `None` if it was removed meanwhile or does not pass the filters.
    async fn read_entry(&self, key: &str, number: u32, query: &SearchQuery) -> Result<Option<EntryHit>> {
        let mut read = redis::cmd("HGET");
        read.arg(format!("{key}:e")).arg(number);
        let Some(json) = self.connections.look_up(&read).await?.bytes()? else { return Ok(None) };
        let stored = serde_json::from_slice(&json);
        let stored: StoredEntry = stored.map_err(|error| StoreError::corrupt("entry", error.to_string()))?;
        // The terms of filters are hashes, so different values may share one.
        if !query.passes(&stored.fields) {
            return Ok(None);
        }
        let mut similarity = None;
        if let Some(vector) = &query.vector {
            let mut read = redis::cmd("HGET");
            read.arg(format!("{key}:v")).arg(number);
            let bytes = self.connections.look_up(&read).await?.bytes()?;
            similarity = bytes.and_then(|bytes| compare(&bytes, vector));
        }
        let StoredEntry { id, text, fields } = stored;
        Ok(Some(EntryHit { owner: Owner::Tenant, id, text, fields, similarity }))
    }
}

/// The similarities of a vector to stored vectors.
struct Comparison<'a> {
    vector: &'a Embedding,
    similarities: HashMap<(usize, u32), f64>,
    /// The number of components that were read.
    components: u64,
}

impl<'a> Comparison<'a> {
    fn new(vector: &'a Embedding) -> Self {
        Self { vector, similarities: HashMap::new(), components: 0 }
    }

    fn add(&mut self, entry: (usize, u32), stored: &[u8]) -> Result<()> {
        self.components += stored.len() as u64 / 4;
        if self.components > MAX_COMPONENTS {
            let limit = "vector components of a search";
            return Err(StoreError::LimitExceeded { limit, max: MAX_COMPONENTS, actual: self.components });
        }
        self.similarities.extend(compare(stored, self.vector).map(|similarity| (entry, similarity)));
        Ok(())
    }
}

/// The terms to index for an entry, as an index stores them.
fn terms_of(entry: &IndexEntry) -> Vec<u8> {
    hashes_of(text::indexed_terms(&entry.text).into_iter().chain(filter_terms(&entry.fields)))
}

/// The arguments of a search of one collection.
fn search_args(query: &SearchQuery) -> Args {
    let needs_passing = !query.filters.is_empty() && (query.is_filter_only() || query.vector.is_some());
    let mut args = Args::new();
    args.number(MAX_ENTRIES).number(u8::from(needs_passing));
    args.list(query.filters.iter().map(|filter| hashes_of(filter.terms())));
    query.terms.iter().take(MAX_TERMS).for_each(|term| {
        args.add(term_hash(term));
    });
    args
}

/// Parses a list of the numbers of entries.
fn parse_numbers(items: &[u8]) -> Vec<u32> {
    let (items, _) = items.as_chunks::<4>();
    items.iter().map(|item| u32::from_be_bytes(*item)).collect()
}

/// Returns the entries with the highest scores, the newest first among equals.
fn select_best(scores: HashMap<(usize, u32), f64>, limit: usize) -> Vec<(usize, u32)> {
    let mut ranked: Vec<((usize, u32), f64)> = scores.into_iter().collect();
    ranked.sort_by(|(entry, score), (other_entry, other)| other.total_cmp(score).then_with(|| other_entry.cmp(entry)));
    ranked.into_iter().take(limit).map(|(entry, _)| entry).collect()
}

/// Encodes an embedding as the name of its model, a zero byte and its components.
fn encode_embedding(embedding: &Embedding) -> Vec<u8> {
    let mut bytes = embedding.model.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(embedding.vector.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Returns the similarity of a stored embedding to another one; `None` if they are from different models.
fn compare(stored: &[u8], other: &Embedding) -> Option<f64> {
    let end = stored.iter().position(|byte| *byte == 0)?;
    if &stored[..end] != other.model.as_bytes() {
        return None;
    }
    let (numbers, _) = stored[end + 1..].as_chunks::<4>();
    let vector: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    similarity(&vector, &other.vector)
}
