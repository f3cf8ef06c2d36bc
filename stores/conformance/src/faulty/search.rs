use std::collections::BTreeMap;

use async_trait::async_trait;
use threadkeep_core::{
    CatchUp, Collection, IndexEntry, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, ThreadId, Timestamp,
    UnindexedThread,
};

use super::FaultyStore;

#[async_trait]
impl SearchIndex for FaultyStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        self.maybe_fail()?;
        let answer = self.inner.search.search(scope, query, now).await?;
        // An answer that reaches the limit omits older messages, which a lagging index would return instead of the newest ones.
        Ok(if answer.hits.len() < query.limit { self.simulate_lag(answer) } else { answer })
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        self.maybe_fail()?;
        self.inner.search.upsert(scope, collection, entries).await
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        self.maybe_fail()?;
        self.inner.search.remove(scope, collection, ids).await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        self.maybe_fail()?;
        self.inner.search.remove_collections(scope).await
    }

    async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        self.maybe_fail()?;
        self.inner.search.catch_up(limit).await
    }
}

impl FaultyStore {
    /// Removes the newest messages of some threads from an answer, as if they were not indexed yet.
    fn simulate_lag(&self, mut answer: SearchAnswer) -> SearchAnswer {
        let mut indexed: BTreeMap<ThreadId, u64> =
            answer.unindexed.iter().map(|behind| (behind.thread, behind.indexed_seq)).collect();
        let mut newest: BTreeMap<ThreadId, u64> = BTreeMap::new();
        for hit in &answer.hits {
            let seq = newest.entry(hit.thread).or_default();
            *seq = hit.seq.max(*seq);
        }
        for (thread, seq) in newest {
            let lag = self.random_below(4);
            if lag > 0 {
                let reached = seq.saturating_sub(lag);
                indexed.entry(thread).and_modify(|indexed| *indexed = reached.min(*indexed)).or_insert(reached);
            }
        }
        let is_indexed = |thread, seq| indexed.get(&thread).is_none_or(|indexed| seq <= *indexed);
        answer.hits.retain(|hit| is_indexed(hit.thread, hit.seq));
        answer.messages.retain(|(thread, message)| is_indexed(*thread, message.seq));
        answer.unindexed =
            indexed.into_iter().map(|(thread, indexed_seq)| UnindexedThread { thread, indexed_seq }).collect();
        answer
    }
}
