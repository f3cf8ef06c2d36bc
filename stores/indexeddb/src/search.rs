//! Search. Each message has its terms as index keys, so the index never lags. Collections are scanned.

use std::collections::{BTreeMap, HashMap};

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

pub(crate) async fn search_messages(
    transaction: &Transaction,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> Result<SearchAnswer> {
    let searched = searched_threads(transaction, scope, query, now).await?;
    let mut answer = SearchAnswer { frequencies: vec![0; query.frequency_count()], ..SearchAnswer::default() };
    answer.documents = searched.values().sum();
    let lookups = query.lookups(MAX_TERMS).map(|(index, term)| (index, index::term(scope.tenant_id(), term)));
    let lookups: Vec<(usize, Vec<u8>)> = lookups.collect();
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

/// Returns the threads that a search includes, with the numbers of their messages: those with full access, or the requested thread
/// if the scope can read it.
async fn searched_threads(
    transaction: &Transaction,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> Result<HashMap<ThreadId, u64>> {
    let tenant = scope.tenant_id();
    let is_searched = |row: &ThreadRow| {
        let min_access = if query.thread.is_some() { Access::Append } else { Access::Full };
        row.is_live(now) && scope.access(&row.thread.owner) >= min_access && row.passes_filter(&query.metadata)
    };
    if let Some(thread) = query.thread {
        let row = ThreadRow::find(transaction, tenant, thread).await?;
        return Ok(row.filter(is_searched).map(|row| (row.id, row.messages)).into_iter().collect());
    }
    let (mut searched, mut range) = (HashMap::new(), keys::threads_of(tenant));
    loop {
        let texts = transaction.range(&range, BATCH).await?;
        let mut last = None;
        for text in texts {
            let row = ThreadRow::parse(&text)?;
            last = Some(row.id);
            if is_searched(&row) {
                searched.insert(row.id, row.messages);
            }
        }
        let Some(last) = last else { return Ok(searched) };
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
