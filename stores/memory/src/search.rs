use std::collections::BTreeSet;

use async_trait::async_trait;
use threadkeep_core::{
    CatchUp, Collection, IndexEntry, Result, Scope, SearchAnswer, SearchHit, SearchIndex, SearchQuery, StoreError,
    ThreadOrder, ThreadQuery, Timestamp, text,
};

use crate::MemoryStore;
use crate::state::State;
use crate::state::read::decode;

/// As many of a query's terms are looked up.
const TERMS: usize = 32;

#[cfg_attr(not(target_arch = "wasm32"), async_trait)]
#[cfg_attr(target_arch = "wasm32", async_trait(?Send))]
impl SearchIndex for MemoryStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        ThreadQuery::new(ThreadOrder::Created, query.limit).check()?;
        if matches!(query.collection, Collection::Named(_)) {
            return Err(StoreError::Unsupported("named collections"));
        }
        if query.vector.is_some() {
            return Err(StoreError::Unsupported("vector search"));
        }
        Ok(find(&self.state(), scope, query, now))
    }

    async fn upsert(&self, _scope: &Scope, collection: &Collection, _entries: Vec<IndexEntry>) -> Result<()> {
        match collection {
            Collection::Messages => Err(StoreError::invalid("collection", "the store fills messages from its own log")),
            Collection::Named(_) => Err(StoreError::Unsupported("named collections")),
        }
    }

    async fn catch_up(&self, _limit: usize) -> Result<CatchUp> {
        Ok(CatchUp { indexed: 0, done: true })
    }
}

/// A message that holds some of the terms, by their places in the query.
struct Match {
    hit: SearchHit,
    terms: Vec<usize>,
}

fn find(state: &State, scope: &Scope, query: &SearchQuery, now: Timestamp) -> SearchAnswer {
    let mut answer = SearchAnswer { frequencies: vec![0; query.terms.len()], ..SearchAnswer::default() };
    let mut matches = Vec::new();
    for (thread, kept) in state.searched_threads(scope, query.thread, now) {
        for message in kept.entries.values().filter_map(decode).flatten() {
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
    let rarest = |found: &Match| found.terms.iter().map(|term| answer.frequencies[*term]).min();
    matches.sort_by_key(rarest);
    answer.hits = matches.into_iter().take(query.limit).map(|found| found.hit).collect();
    answer
}

fn matched_terms(plain_text: &str, query: &SearchQuery) -> Vec<usize> {
    let held: BTreeSet<String> = text::indexed_terms(plain_text).into_iter().collect();
    let asked = query.terms.iter().take(TERMS).enumerate();
    asked.filter(|(_, term)| held.contains(*term)).map(|(place, _)| place).collect()
}
