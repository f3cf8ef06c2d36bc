//! Search. Each message has its terms as index keys, so the index never lags. Collections are scanned.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::try_join_all;
use threadkeep_core::{
    Access, Embedding, EntryHit, IndexEntry, Owner, Result, Scope, SearchAnswer, SearchHit, SearchQuery, ThreadId,
    Timestamp, WakeUp, text,
};

use crate::idb::Transaction;
use crate::keys::{self, index};
use crate::rows::{CollectionRow, KnownOwner, ThreadRow, parse, to_text};

/// The maximum number of terms of a query. Further terms are ignored.
const MAX_TERMS: usize = 32;
const BATCH: usize = 256;
/// The maximum number of keys that are read to count the messages with any term of a list. Above it, messages with several of these terms
/// are counted several times, which only affects scores.
const MAX_COUNTED: u64 = 4_096;

pub(crate) async fn search_messages(
    transaction: &Transaction,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> Result<SearchAnswer> {
    let SearchedThreads { searched, is_whole_tenant } = searched_threads(transaction, scope, query, now).await?;
    let mut answer = SearchAnswer { frequencies: vec![0; query.frequency_count()], ..SearchAnswer::default() };
    answer.documents = searched.values().sum();
    let lookups = query.lookups(MAX_TERMS).map(|(index, term)| (index, index::term(scope.tenant_id(), term)));
    let lookups: Vec<(usize, Vec<u8>)> = lookups.collect();
    // The usual case in a browser.
    if is_whole_tenant && let Some(newest) = find_newest(transaction, &lookups, query.limit, &searched, &answer).await?
    {
        return Ok(newest);
    }
    let found = try_join_all(lookups.iter().map(|(_, key)| transaction.keys_indexed(key))).await?;
    // The matched terms of each message, as indexes into the frequencies. A message can have several terms of a list.
    let mut matches: BTreeMap<(ThreadId, u64), Vec<usize>> = BTreeMap::new();
    for ((index, _), keys) in lookups.iter().zip(&found) {
        for (thread, seq) in keys.iter().filter_map(|key| keys::parse_entry(key)) {
            if searched.contains_key(&thread) {
                let terms = matches.entry((thread, seq)).or_default();
                if terms.last() != Some(index) {
                    answer.frequencies[*index] += 1;
                    terms.push(*index);
                }
            }
        }
    }
    // Newest first; the sort is stable.
    let mut matches: Vec<_> = matches.into_iter().rev().collect();
    matches.sort_by_key(|(_, terms)| rarity_key(terms, &answer.frequencies));
    let hits = matches.into_iter().take(query.limit).map(|((thread, seq), _)| SearchHit { thread, seq });
    answer.hits = hits.collect();
    Ok(answer)
}

/// Finds the candidates among all messages of a tenant without reading the keys of all matches: counts them, and reads the newest matches
/// of the rarest terms. `None` if some of these are in other threads, such as one that is being restored.
async fn find_newest(
    transaction: &Transaction,
    lookups: &[(usize, Vec<u8>)],
    limit: usize,
    searched: &HashMap<ThreadId, u64>,
    empty: &SearchAnswer,
) -> Result<Option<SearchAnswer>> {
    let mut answer = empty.clone();
    let counts = try_join_all(lookups.iter().map(|(_, key)| transaction.count_indexed(key))).await?;
    let mut by_index: BTreeMap<usize, Vec<(&[u8], u64)>> = BTreeMap::new();
    for ((index, key), count) in lookups.iter().zip(counts).filter(|(_, count)| *count > 0) {
        by_index.entry(*index).or_default().push((key, count));
    }
    let mut by_frequency: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for (index, terms) in by_index {
        let sum: u64 = terms.iter().map(|(_, count)| count).sum();
        let keys: Vec<&[u8]> = terms.iter().map(|(key, _)| *key).collect();
        let frequency = if keys.len() > 1 && sum <= MAX_COUNTED {
            let found = try_join_all(keys.iter().map(|key| transaction.keys_indexed(key))).await?;
            found.into_iter().flatten().collect::<HashSet<_>>().len() as u64
        } else {
            sum.min(answer.documents)
        };
        answer.frequencies[index] = frequency;
        by_frequency.entry(frequency).or_default().extend(keys);
    }
    let mut seen = HashSet::new();
    for keys in by_frequency.values() {
        // At most as many of these are hits already as are not needed any more.
        let found = try_join_all(keys.iter().map(|key| transaction.last_keys_indexed(key, limit))).await?;
        let found = found.iter().flatten().filter_map(|key| keys::parse_entry(key));
        let mut new: Vec<(ThreadId, u64)> = found.filter(|place| seen.insert(*place)).collect();
        if new.iter().any(|(thread, _)| !searched.contains_key(thread)) {
            return Ok(None);
        }
        new.sort_unstable_by(|a, b| b.cmp(a));
        new.truncate(limit - answer.hits.len());
        answer.hits.extend(new.into_iter().map(|(thread, seq)| SearchHit { thread, seq }));
        if answer.hits.len() == limit {
            break;
        }
    }
    Ok(Some(answer))
}

/// The threads that a search includes.
struct SearchedThreads {
    /// The numbers of their messages.
    searched: HashMap<ThreadId, u64>,
    /// Whether these are all threads of the tenant with messages.
    is_whole_tenant: bool,
}

/// Returns the threads that a search includes: those with full access, or the requested thread if the scope can read it.
async fn searched_threads(
    transaction: &Transaction,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> Result<SearchedThreads> {
    let tenant = scope.tenant_id();
    let is_searched = |row: &ThreadRow| {
        let min_access = if query.thread.is_some() { Access::Append } else { Access::Full };
        row.is_live(now) && scope.access(&row.thread.owner) >= min_access && row.passes_filter(&query.metadata)
    };
    if let Some(thread) = query.thread {
        let row = ThreadRow::find(transaction, tenant, thread).await?;
        let searched = row.filter(is_searched).map(|row| (row.id, row.messages)).into_iter().collect();
        return Ok(SearchedThreads { searched, is_whole_tenant: false });
    }
    let (mut searched, mut is_whole_tenant, mut range) = (HashMap::new(), true, keys::threads_of(tenant));
    loop {
        let texts = transaction.range(&range, BATCH).await?;
        let mut last = None;
        for text in texts {
            let row = ThreadRow::parse(&text)?;
            last = Some(row.id);
            if is_searched(&row) {
                searched.insert(row.id, row.messages);
            } else if row.messages > 0 {
                is_whole_tenant = false;
            }
        }
        let Some(last) = last else { return Ok(SearchedThreads { searched, is_whole_tenant }) };
        range = range.after(&keys::thread(tenant, last));
    }
}

/// Returns a sort key that ranks matches of rarer terms first.
fn rarity_key(terms: &[usize], frequencies: &[u64]) -> Option<u64> {
    terms.iter().map(|term| frequencies[*term]).min()
}

pub(crate) fn upsert_entries(
    transaction: &Transaction,
    scope: &Scope,
    collection: &str,
    entries: Vec<IndexEntry>,
) -> Result<((), Option<WakeUp>)> {
    let (tenant, owner) = (scope.tenant_id(), scope.default_owner());
    KnownOwner::add(transaction, tenant, &owner)?;
    for IndexEntry { id, text, fields, embedding } in entries {
        let key = keys::collection_entry(tenant, &owner, collection, &id);
        let embedding = embedding.map(|Embedding { model, vector }| (model, vector));
        let row = CollectionRow { owner: owner.clone(), id, text, fields, embedding };
        transaction.put(&key, &to_text(&row)?, &[])?;
    }
    Ok(((), None))
}

pub(crate) async fn remove_entries(
    transaction: &Transaction,
    scope: &Scope,
    collection: &str,
    ids: &[String],
) -> Result<(u64, Option<WakeUp>)> {
    let (tenant, owner) = (scope.tenant_id(), scope.default_owner());
    let mut removed = 0;
    for id in ids {
        let key = keys::collection_entry(tenant, &owner, collection, id);
        if transaction.get(&key).await?.is_some() {
            transaction.delete(&key)?;
            removed += 1;
        }
    }
    Ok((removed, None))
}

pub(crate) async fn remove_collections(transaction: &Transaction, scope: &Scope) -> Result<(u64, Option<WakeUp>)> {
    let range = keys::collections(scope.tenant_id(), &scope.default_owner());
    let removed = transaction.keys(&range, usize::MAX).await?.len() as u64;
    transaction.delete_range(&range)?;
    Ok((removed, None))
}

/// An entry with its matched terms and its similarity to the query's vector.
#[derive(Clone)]
struct Candidate {
    hit: EntryHit,
    terms: Vec<usize>,
}

pub(crate) async fn search_entries(
    transaction: &Transaction,
    scope: &Scope,
    collection: &str,
    query: &SearchQuery,
) -> Result<SearchAnswer> {
    let mut answer = SearchAnswer { frequencies: vec![0; query.terms.len()], ..SearchAnswer::default() };
    let mut candidates = Vec::new();
    let owner = scope.default_owner();
    let owners = if owner == Owner::Tenant { vec![owner] } else { vec![Owner::Tenant, owner] };
    for owner in &owners {
        let mut range = keys::collection(scope.tenant_id(), owner, collection);
        loop {
            let texts = transaction.range(&range, BATCH).await?;
            let mut last = None;
            for text in texts {
                let row: CollectionRow = parse("collection entry", &text)?;
                last = Some(keys::collection_entry(scope.tenant_id(), owner, collection, &row.id));
                answer.documents += 1;
                if query.passes(&row.fields) {
                    candidates.push(Candidate::new(row, query, &mut answer.frequencies));
                }
            }
            let Some(last) = last else { break };
            range = range.after(&last);
        }
    }
    candidates.sort_by_key(|candidate| rarity_key(&candidate.terms, &answer.frequencies));
    let (by_terms, mut by_vector): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| !candidate.terms.is_empty() || query.is_filter_only());
    by_vector.extend(by_terms.iter().skip(query.limit).cloned());
    by_vector.retain(|candidate| candidate.hit.similarity.is_some());
    let similarity = |candidate: &Candidate| candidate.hit.similarity.unwrap_or(-1.0);
    by_vector.sort_by(|a, b| similarity(b).total_cmp(&similarity(a)));
    let hits = by_terms.into_iter().take(query.limit).chain(by_vector.into_iter().take(query.limit));
    answer.entries = hits.map(|candidate| candidate.hit).collect();
    Ok(answer)
}

impl Candidate {
    fn new(row: CollectionRow, query: &SearchQuery, frequencies: &mut [u64]) -> Self {
        let CollectionRow { owner, id, text, fields, embedding } = row;
        let indexed = text::indexed_terms(&text);
        let terms = query.terms.iter().take(MAX_TERMS).enumerate();
        let terms: Vec<usize> = terms.filter(|(_, term)| indexed.contains(*term)).map(|(index, _)| index).collect();
        for term in &terms {
            frequencies[*term] += 1;
        }
        let embedding = embedding.map(|(model, vector)| Embedding { model, vector });
        let vectors = query.vector.as_ref().zip(embedding.as_ref());
        let similarity = vectors.and_then(|(query_vector, vector)| query_vector.similarity(vector));
        Self { hit: EntryHit { owner, id, text, fields, similarity }, terms }
    }
}
