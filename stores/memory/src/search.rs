use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use threadkeep_core::{
    CatchUp, Collection, Embedding, FieldFilter, IndexEntry, Result, Scope, SearchAnswer, SearchHit, SearchIndex,
    SearchQuery, StoreError, ThreadOrder, ThreadQuery, Timestamp, limits, text,
};

use crate::MemoryStore;
use crate::state::State;
use crate::state::read::decode;

/// The maximum number of terms of a query. Further terms are ignored.
const MAX_TERMS: usize = 32;

#[async_trait]
impl SearchIndex for MemoryStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        ThreadQuery::new(ThreadOrder::Created, query.limit).check()?;
        query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
        FieldFilter::check_all(&query.filters)?;
        query.metadata.check()?;
        if query.collection != Collection::Messages {
            query.check_collection()?;
            return Ok(self.state().search_entries(scope, query.collection.name()?, query));
        }
        if query.vector.is_some() {
            return Err(StoreError::Unsupported("vector search over messages"));
        }
        if !query.filters.is_empty() {
            return Err(StoreError::Unsupported("filters over messages"));
        }
        Ok(search_messages(&self.state(), scope, query, now))
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        self.state().upsert_entries(scope, collection.name()?, entries)
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        limits::check_at_most("ids per call", ids.len(), limits::COMMIT_MESSAGES)?;
        Ok(self.state().remove_entries(scope, collection.name()?, ids))
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        Ok(self.state().remove_collections(scope))
    }

    async fn catch_up(&self, _limit: usize) -> Result<CatchUp> {
        Ok(CatchUp { indexed: 0, done: true })
    }
}

/// A message that contains at least one of the query's terms.
struct Match {
    hit: SearchHit,
    /// The matched terms, as indexes into the answer's frequencies.
    terms: Vec<usize>,
}

fn search_messages(state: &State, scope: &Scope, query: &SearchQuery, now: Timestamp) -> SearchAnswer {
    let mut answer = SearchAnswer { frequencies: vec![0; query.frequency_count()], ..SearchAnswer::default() };
    let mut matches = Vec::new();
    let searched = state.searched_threads(scope, query.thread, now);
    for (thread, stored) in searched.filter(|(_, stored)| stored.passes_filter(&query.metadata)) {
        for message in stored.entries.values().filter_map(decode).flatten() {
            answer.documents += 1;
            let terms = matched_terms(&message.plain_text(), query);
            for &term in &terms {
                answer.frequencies[term] += 1;
            }
            if !terms.is_empty() {
                matches.push(Match { hit: SearchHit { thread, seq: message.seq }, terms });
            }
        }
    }
    matches.sort_by_cached_key(|Match { hit, terms }| {
        (rarity_key(terms, &answer.frequencies), Reverse((hit.thread, hit.seq)))
    });
    answer.hits = matches.into_iter().take(query.limit).map(|found| found.hit).collect();
    answer
}

/// Returns the terms of a query that the text contains, as indexes into the answer's frequencies.
pub(crate) fn matched_terms(plain_text: &str, query: &SearchQuery) -> Vec<usize> {
    let indexed: BTreeSet<String> = text::indexed_terms(plain_text).into_iter().collect();
    let found = query.lookups(MAX_TERMS).filter(|(_, term)| indexed.contains(*term));
    let mut found: Vec<usize> = found.map(|(index, _)| index).collect();
    found.dedup();
    found
}

/// Returns a sort key that ranks matches of rarer terms first.
pub(crate) fn rarity_key(terms: &[usize], frequencies: &[u64]) -> Option<u64> {
    terms.iter().map(|term| frequencies[*term]).min()
}
