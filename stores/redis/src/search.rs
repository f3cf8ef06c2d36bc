//! Searches messages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::try_join_all;
use threadkeep_core::{
    Collection, Owner, Result, Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, ThreadOrder,
    ThreadQuery, Timestamp, UnindexedThread, limits,
};

use crate::args::Args;
use crate::index::postings::{five, read_five, read_postings};
use crate::keys::{
    EVERYONE, INDEX_PARTS, Incarnation, MessageTerm, incarnation, index_part, message_term, owner_hash, owner_name,
    parts_of_owner,
};
use crate::reply::{Reply, next};
use crate::row::Row;
use crate::shared::{Request, Shared, View};

/// The maximum number of positions that are read per term and part of the index.
const MAX_POSITIONS: usize = 4_000;
/// The maximum number of terms of a query; further terms are ignored.
pub(crate) const MAX_TERMS: usize = 32;
/// The factor by which more positions are read if only those in some threads are used.
const FILTERED_FACTOR: usize = 8;
/// The maximum number of terms, and of messages, that one call looks up, so that other calls do not wait long.
const TERMS_PER_CALL: usize = 4;
const MESSAGES_PER_CALL: usize = 2_000;
/// The maximum number of messages that a caller is expected to read from threads that are not fully indexed. If there are more, the
/// index catches up first.
const MAX_UNINDEXED: u64 = 1_000;
/// The maximum number of threads selected by a metadata filter that are looked up by their incarnations. If more pass, the whole scope is
/// looked up.
const MAX_FILTERED_THREADS: usize = 1_000;

/// A part of the index to search.
struct Lookup {
    part: u32,
    owner: [u8; 8],
    /// The incarnations of the threads to search; empty for all threads of the owner.
    only: Vec<Incarnation>,
}

/// The reply of one part of the index.
struct PartAnswer {
    /// For each term, the number of positions, and the newest of them as pairs of thread number and position.
    terms: Vec<(u64, Vec<(u32, u32)>)>,
    /// The threads by number, with their incarnations.
    threads: HashMap<u32, (ThreadId, Incarnation)>,
}

/// The messages of one list with a term.
struct Listed {
    /// The number of all of them.
    count: u64,
    /// The numbers of the newest ones, the newest first.
    messages: Vec<u64>,
}

impl Shared {
    pub(crate) async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        query.metadata.check()?;
        if query.collection != Collection::Messages {
            query.check_collection()?;
            return self.search_collection(scope, query).await;
        }
        if query.vector.is_some() {
            return Err(StoreError::Unsupported("vector search over messages"));
        }
        if !query.filters.is_empty() {
            return Err(StoreError::Unsupported("filters over messages"));
        }
        limits::check_page(query.limit)?;
        let only = match query.thread {
            None => None,
            Some(thread) => {
                let view = self.read(scope.tenant_id(), thread, &Request::row()).await?;
                let is_searched =
                    |view: &View| view.row.accessible(scope, now).is_some() && view.row.has_metadata(&query.metadata);
                match view.filter(is_searched) {
                    Some(view) => Some((thread, view.row)),
                    None => {
                        let frequencies = vec![0; query.frequency_count()];
                        return Ok(SearchAnswer { frequencies, ..SearchAnswer::default() });
                    }
                }
            }
        };
        self.search_messages(scope, query, only.as_ref(), now).await
    }

    async fn search_messages(
        &self,
        scope: &Scope,
        query: &SearchQuery,
        only: Option<&(ThreadId, Row)>,
        now: Timestamp,
    ) -> Result<SearchAnswer> {
        // Unindexed threads are listed first, so that a message that is indexed meanwhile is not missed.
        let unindexed = self.unindexed_threads(scope, query, now).await?;
        let (indexes, terms): (Vec<usize>, Vec<MessageTerm>) =
            query.lookups(MAX_TERMS).map(|(index, term)| (index, message_term(term))).unzip();
        let lookups = self.lookups(scope, query, only, now).await?;
        let answers = try_join_all(lookups.iter().map(|lookup| self.search_part(scope, lookup, &terms))).await?;
        let documents = match only {
            Some((_, row)) => row.count,
            None => self.count_messages(scope).await?,
        };
        let mut frequencies = vec![0; query.frequency_count()];
        let mut scores: BTreeMap<(usize, u32, u32), f64> = BTreeMap::new();
        for (index, frequency) in frequencies.iter_mut().enumerate() {
            let places: Vec<usize> = (0..terms.len()).filter(|place| indexes[*place] == index).collect();
            let matches = matches_of(&places, &answers);
            // A message with several alternatives counts once, if it was read.
            let counts = places.iter().map(|place| answers.iter().map(|answer| answer.terms[*place].0).sum());
            *frequency = counts.max().unwrap_or(0).max(matches.len() as u64);
            let rarity = rarity(documents, *frequency);
            for position in matches {
                *scores.entry(position).or_default() += rarity;
            }
        }
        let mut ranked: Vec<((ThreadId, Incarnation, u64), f64)> = scores
            .into_iter()
            .filter_map(|((part, thread, seq), score)| {
                let (id, born) = answers[part].threads.get(&thread)?;
                Some(((*id, *born, u64::from(seq)), score))
            })
            .collect();
        ranked.sort_by(|(key, score), (other_key, other)| other.total_cmp(score).then_with(|| other_key.cmp(key)));
        let hits = self.live_hits(scope, query, &ranked, &unindexed, now).await?;
        Ok(SearchAnswer { hits, documents, frequencies, unindexed, ..SearchAnswer::default() })
    }

    /// Returns the number of messages in the scope, indexed or not.
    async fn count_messages(&self, scope: &Scope) -> Result<u64> {
        let owner = match scope {
            Scope::Tenant(_) => String::new(),
            Scope::User(..) => owner_name(&scope.default_owner()),
        };
        let mut read = redis::cmd("HGET");
        read.arg(format!("{}:m", self.keys.tenant(scope.tenant_id()))).arg(owner);
        let count = self.connections.look_up(&read).await?.text()?;
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Returns the parts of the index that a query searches.
    async fn lookups(
        &self,
        scope: &Scope,
        query: &SearchQuery,
        only: Option<&(ThreadId, Row)>,
        now: Timestamp,
    ) -> Result<Vec<Lookup>> {
        if let Some((thread, row)) = only {
            let (part, owner) = (index_part(&row.owner, *thread), owner_hash(&row.owner));
            return Ok(vec![Lookup { part, owner, only: vec![incarnation(&row.born)] }]);
        }
        let (owner, parts): (_, Vec<u32>) = match scope {
            Scope::User(..) => {
                let owner = scope.default_owner();
                (owner_hash(&owner), parts_of_owner(&owner).collect())
            }
            Scope::Tenant(_) => (EVERYONE, (0..INDEX_PARTS).collect()),
        };
        let whole_scope = || parts.into_iter().map(|part| Lookup { part, owner, only: Vec::new() }).collect();
        if query.metadata.is_empty() {
            return Ok(whole_scope());
        }
        let threads = ThreadQuery {
            metadata: query.metadata.clone(),
            ..ThreadQuery::new(ThreadOrder::Recent, MAX_FILTERED_THREADS)
        };
        let page = self.list_threads(scope, &threads, now).await?;
        if page.next.is_some() {
            return Ok(whole_scope());
        }
        let ids: Vec<ThreadId> = page.threads.iter().map(|thread| thread.id).collect();
        let mut threads_in: BTreeMap<u32, Vec<Incarnation>> = BTreeMap::new();
        for (id, view) in ids.iter().zip(self.read_rows(scope.tenant_id(), &ids).await?) {
            let Some(View { row, .. }) = view else { continue };
            threads_in.entry(index_part(&row.owner, *id)).or_default().push(incarnation(&row.born));
        }
        Ok(threads_in.into_iter().map(|(part, only)| Lookup { part, owner, only }).collect())
    }

    async fn search_part(&self, scope: &Scope, lookup: &Lookup, terms: &[MessageTerm]) -> Result<PartAnswer> {
        let key = self.keys.index(scope.tenant_id(), lookup.part);
        let lists = terms.chunks(TERMS_PER_CALL).map(|terms| self.list_messages_with(&key, lookup, terms));
        let lists: Vec<Listed> = try_join_all(lists).await?.into_iter().flatten().collect();
        let mut messages: Vec<u64> = lists.iter().flat_map(|list| list.messages.iter().copied()).collect();
        messages.sort_unstable();
        messages.dedup();
        let found = messages.chunks(MESSAGES_PER_CALL).map(|messages| self.locate_messages(&key, lookup, messages));
        let (mut positions, mut threads) = (HashMap::new(), HashMap::new());
        for (part, names) in try_join_all(found).await? {
            positions.extend(part);
            threads.extend(names);
        }
        let terms = lists.into_iter().map(|Listed { count, messages }| {
            let found = messages.iter().filter_map(|message| positions.get(message).copied());
            let found: Vec<(u32, u32)> = found.take(MAX_POSITIONS).collect();
            (if lookup.only.is_empty() { count } else { found.len() as u64 }, found)
        });
        Ok(PartAnswer { terms: terms.collect(), threads })
    }

    /// Lists the newest messages with each of the terms.
    async fn list_messages_with(&self, key: &str, lookup: &Lookup, terms: &[MessageTerm]) -> Result<Vec<Listed>> {
        let max = if lookup.only.is_empty() { MAX_POSITIONS } else { FILTERED_FACTOR * MAX_POSITIONS };
        let mut args = Args::new();
        args.add(lookup.owner).add(lookup.only.concat()).number(max);
        for term in terms {
            args.add(term);
        }
        let mut reply = self.connections.read("index_search", key, &args).await?.items()?.into_iter();
        let first = next(&mut reply)?.number()?;
        let lists = next(&mut reply)?.items()?.into_iter().map(|list| {
            let mut list = list.items()?.into_iter();
            let count = next(&mut list)?.number()?;
            let log = next(&mut list)?.bytes()?.unwrap_or_default();
            let mut messages: Vec<u64> = log.chunks_exact(5).map(read_five).collect();
            messages.sort_unstable_by_key(|message| Reverse(*message));
            for postings in list {
                messages.extend(read_postings(&postings.bytes()?.unwrap_or_default()));
            }
            messages.retain(|message| *message >= first);
            messages.truncate(max);
            Ok(Listed { count, messages })
        });
        lists.collect()
    }

    /// Returns the positions of messages of the looked up threads, and the names of these threads.
    async fn locate_messages(
        &self,
        key: &str,
        lookup: &Lookup,
        messages: &[u64],
    ) -> Result<(Vec<(u64, (u32, u32))>, Vec<(u32, (ThreadId, Incarnation))>)> {
        let numbers: Vec<u8> = messages.iter().flat_map(|message| five(*message)).collect();
        let args = Args::new().with(lookup.only.concat()).with(numbers);
        let mut reply = self.connections.read("index_messages", key, &args).await?.items()?.into_iter();
        let items = next(&mut reply)?.bytes()?.unwrap_or_default();
        let (items, _) = items.as_chunks::<8>();
        let located = messages.iter().zip(items).filter_map(|(message, item)| {
            let [a, b, c, d, e, f, g, h] = *item;
            let position = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            (position.0 > 0).then_some((*message, position))
        });
        let (mut threads, mut names) = (Vec::new(), next(&mut reply)?.items()?.into_iter());
        while let Some(number) = names.next() {
            let number = u32::try_from(number.number()?).unwrap_or(0);
            let name = next(&mut names)?.bytes()?.unwrap_or_default();
            let Some((Ok(id), Ok(born))) = name.split_at_checked(16).map(|(id, born)| (id.try_into(), born.try_into()))
            else {
                return Err(StoreError::corrupt("index", "not the name of a thread"));
            };
            threads.push((number, (ThreadId(uuid::Uuid::from_bytes(id)), born)));
        }
        Ok((located.collect(), threads))
    }

    /// Returns the best hits in threads that exist in the scope, up to the query's limit.
    async fn live_hits(
        &self,
        scope: &Scope,
        query: &SearchQuery,
        ranked: &[((ThreadId, Incarnation, u64), f64)],
        unindexed: &[UnindexedThread],
        now: Timestamp,
    ) -> Result<Vec<SearchHit>> {
        let mut rows: HashMap<ThreadId, Option<Row>> = HashMap::new();
        let mut hits = Vec::new();
        for candidates in ranked.chunks(limits::PAGE) {
            let mut unknown: Vec<ThreadId> = candidates.iter().map(|((id, ..), _)| *id).collect();
            unknown.sort_unstable();
            unknown.dedup();
            unknown.retain(|id| !rows.contains_key(id));
            let views = self.read_rows(scope.tenant_id(), &unknown).await?;
            rows.extend(unknown.into_iter().zip(views).map(|(id, view)| (id, view.map(|view| view.row))));
            for ((thread, born, seq), _) in candidates {
                let row = rows.get(thread).and_then(Option::as_ref);
                let is_live = row.is_some_and(|row| {
                    incarnation(&row.born) == *born
                        && row.accessible(scope, now).is_some()
                        && row.has_metadata(&query.metadata)
                        && *seq >= row.positions().first_seq
                });
                let behind = unindexed.iter().find(|behind| behind.thread == *thread);
                if is_live && behind.is_none_or(|behind| *seq <= behind.indexed_seq) {
                    hits.push(SearchHit { thread: *thread, seq: *seq });
                    if hits.len() == query.limit {
                        return Ok(hits);
                    }
                }
            }
        }
        Ok(hits)
    }

    /// Lists the searched threads that are not fully indexed. Indexes first if there are many such messages.
    async fn unindexed_threads(
        &self,
        scope: &Scope,
        query: &SearchQuery,
        now: Timestamp,
    ) -> Result<Vec<UnindexedThread>> {
        let only = query.thread;
        let tenant = scope.tenant_id();
        let owner = match scope {
            Scope::Tenant(_) => String::new(),
            // A search in one thread may be in a shared thread, which the user does not own.
            Scope::User(..) if only.is_some() => String::new(),
            Scope::User(..) => owner_name(&scope.default_owner()),
        };
        loop {
            let mut threads = self.list_unindexed(tenant, &owner, limits::PAGE).await?;
            let is_complete = threads.len() < limits::PAGE;
            threads.retain(|thread| only.is_none_or(|only| only == *thread));
            let mut unindexed = Vec::new();
            let mut messages = 0;
            let views = self.read_rows(tenant, &threads).await?;
            for (thread, view) in threads.into_iter().zip(views) {
                let row = view.map(|view| view.row).filter(|row| row.accessible(scope, now).is_some());
                let Some(row) = row else { continue };
                if (only.is_none() && !is_searched(scope, &row.owner)) || !row.has_metadata(&query.metadata) {
                    continue;
                }
                let part = self.keys.index(tenant, index_part(&row.owner, thread));
                let indexed = self.indexed_position(&part, &row.born).await?;
                let indexed_seq = row.edited.map_or(indexed, |edited| indexed.min(edited.saturating_sub(1)));
                let seq = row.positions().seq;
                if indexed_seq < seq && seq >= row.positions().first_seq {
                    messages += seq - indexed_seq.max(row.positions().first_seq - 1);
                    unindexed.push(UnindexedThread { thread, indexed_seq });
                }
            }
            if messages <= MAX_UNINDEXED && is_complete {
                return Ok(unindexed);
            }
            self.catch_up_tenant(tenant, limits::PAGE).await?;
        }
    }
}

/// Returns the messages with any of the looked up terms at `places`. A message is identified by its part of the index, the number of
/// its thread, and its position.
fn matches_of(places: &[usize], answers: &[PartAnswer]) -> BTreeSet<(usize, u32, u32)> {
    let lists = answers
        .iter()
        .enumerate()
        .flat_map(|(part, answer)| places.iter().map(move |place| (part, &answer.terms[*place].1)));
    lists.flat_map(|(part, list)| list.iter().map(move |(thread, seq)| (part, *thread, *seq))).collect()
}

/// Whether a search of all threads of a scope includes the threads of an owner.
fn is_searched(scope: &Scope, owner: &Owner) -> bool {
    scope.access(owner) == threadkeep_core::Access::Full
}

/// Returns the inverse document frequency of a term, as in BM25.
pub(crate) fn rarity(documents: u64, frequency: u64) -> f64 {
    let frequency = frequency as f64;
    (1.0 + (documents as f64 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}
