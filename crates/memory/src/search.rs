//! Searching messages.

mod vocabulary;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use futures::{StreamExt, TryStreamExt};
use threadkeep_context::recall::{Question, Statistics, bm25};
use threadkeep_core::query::TextQuery;
use threadkeep_core::text::{self, TermCounts};
use threadkeep_core::{
    Bound, Message, MessageQuery, MetadataFilter, OnCorrupt, Role, Scope, Thread, ThreadId, ThreadKey, ThreadOrder,
    ThreadQuery, Timestamp, UnindexedThread, limits,
};

pub(crate) use vocabulary::VocabularyCache;

use crate::candidates::{Candidate, Candidates, SearchArea};
use crate::{Memory, MemoryError, Result, Snippet};

/// The maximum number of candidates that are requested from the index.
const MAX_CANDIDATES: usize = 1_000;
/// The number of candidates that are ranked together: the best ones of the index.
const BLOCK: usize = 200;
/// The same for queries of one word. All candidates contain the word, and the index returns the newest of them, so fewer are enough.
const ONE_WORD_BLOCK: usize = 40;
/// The minimum number of candidates that may turn out not to be hits before there are too few.
const SPARE: usize = 19;
/// The minimum number of letters of a word that is corrected.
const MIN_CORRECTED_LETTERS: usize = 5;
/// The factor by which the score of a tool's output is multiplied.
const TOOL_FACTOR: f64 = 0.25;
/// The number of threads whose messages are read for a query without words, and for the vocabulary.
const RECENT_THREADS: usize = 1_000;
/// The minimum number of messages that are requested from each of these threads.
const MESSAGES_PER_THREAD: usize = 50;
/// The number of threads that are read concurrently.
const CONCURRENT_THREADS: usize = 8;

/// Options for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Only messages in this thread. Default: all threads to which the scope has full access.
    pub thread: Option<ThreadId>,
    /// Only messages in threads whose metadata passes.
    pub metadata: MetadataFilter,
    /// Only messages whose own metadata passes.
    pub message_metadata: MetadataFilter,
    /// Maximum number of hits (1 to [`limits::PAGE`]). Default: 20.
    pub limit: usize,
    /// Only messages with these roles; empty for all roles.
    pub roles: Vec<Role>,
    /// Only messages created at or after this time.
    pub since: Option<Timestamp>,
    /// Only messages created before this time.
    pub until: Option<Timestamp>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            thread: None,
            metadata: MetadataFilter::default(),
            message_metadata: MetadataFilter::default(),
            limit: 20,
            roles: Vec::new(),
            since: None,
            until: None,
        }
    }
}

/// A message that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// The relevance: larger is better. Only comparable within one search.
    pub score: f64,
    /// An excerpt of the message, with the matches.
    pub snippet: Snippet,
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The hits. The best ones of the index, at least 40, are ranked together and come first, then the next ones, and so on; so the first
    /// hits are the same for each limit. Hits with equal scores are in the order of their age, newest first.
    pub hits: Vec<Hit>,
    /// Whether there were more candidates than can be ranked. If so, narrow the search to find all matches.
    pub truncated: bool,
    /// Threads whose newest messages were not searched, because too many messages are not indexed yet. Retry later.
    pub unsearched: Vec<UnindexedThread>,
    /// The words of the query that occur nowhere, and what was searched for instead.
    pub corrections: Vec<Correction>,
}

/// A word of a query that occurs nowhere, and the word that was searched for instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The word of the query.
    pub word: String,
    /// A word of the searched messages that differs by one letter.
    pub instead: String,
}

impl Memory {
    /// Searches the messages in the threads to which a scope has full access: the user's own threads, or all threads of the
    /// tenant.
    ///
    /// [`TextQuery`] describes the syntax. A message matches if it contains any word of the query, in any inflected form and in
    /// either of the supported languages ([`threadkeep_core::text`]), and passes all conditions. A query with conditions alone
    /// finds the newest messages that pass. A word of at least five letters that occurs nowhere is corrected to one that
    /// differs by one letter, if the scope's own messages contain one; the results list the corrections. Corrections and
    /// prefixes are based on the words of the newest 5,000 messages.
    ///
    /// Messages that are not indexed yet are read from their threads, so a message can be found as soon as it is stored. A
    /// message with copies in forks is found once. Outputs of tools rank below what people and models wrote.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid limit or filter; errors from the store.
    pub async fn search(&self, scope: &Scope, query: &str, options: &SearchOptions) -> Result<SearchResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_at_most("limit", options.limit, limits::PAGE)?;
        options.metadata.check()?;
        options.message_metadata.check()?;
        let query = TextQuery::parse(query);
        if query.has_no_words() {
            return match query.is_empty() {
                true => Ok(SearchResults::default()),
                false => self.search_conditions(scope, &query, options).await,
            };
        }
        let mut vocabulary = None;
        let mut prefixes = Vec::new();
        if !query.prefixes.is_empty() {
            let known = vocabulary.insert(self.vocabulary(scope, options).await?);
            prefixes.extend(query.prefixes.iter().map(|prefix| (prefix.clone(), known.words_with_prefix(prefix))));
        }
        // While a word is typed, the query has the letters so far as a word and as a prefix. The prefix stands for both.
        let is_prefix = |word: &String| query.prefixes.iter().any(|prefix| text::words(word) == [prefix.as_str()]);
        let mut words: Vec<String> = query.words.iter().filter(|word| !is_prefix(word)).cloned().collect();
        words.extend(query.phrases.iter().cloned());
        let question = Question::with_prefixes(&words.join(" "), &prefixes);
        let mut results = self.search_words(scope, &query, &question, options).await?;
        let begins_known_word = |word: &str| prefixes.iter().any(|(prefix, words)| prefix == word && !words.is_empty());
        let typed = Question::of_all_words(&query.words.join(" "));
        let missing: Vec<String> = typed
            .words()
            .filter(|word| !results.occurring.contains(*word) && !begins_known_word(word))
            .filter(|word| word.chars().count() >= MIN_CORRECTED_LETTERS)
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            return Ok(results.results);
        }
        let vocabulary = match vocabulary {
            Some(known) => known,
            None => self.vocabulary(scope, options).await?,
        };
        let corrections: Vec<Correction> = missing.into_iter().filter_map(|word| vocabulary.correct(word)).collect();
        if !corrections.is_empty() {
            words.extend(corrections.iter().map(|correction| correction.instead.clone()));
            let question = Question::with_prefixes(&words.join(" "), &prefixes);
            results = self.search_words(scope, &query, &question, options).await?;
            results.results.corrections = corrections;
        }
        Ok(results.results)
    }

    async fn search_words(
        &self,
        scope: &Scope,
        query: &TextQuery,
        question: &Question,
        options: &SearchOptions,
    ) -> Result<WordResults> {
        let (block, max_candidates) = if options.is_filtered() || query.is_filtered() {
            (MAX_CANDIDATES, MAX_CANDIDATES)
        } else {
            // The first hits are the same for each limit, so that pages neither repeat nor omit hits.
            let block = if question.is_one_word() { ONE_WORD_BLOCK } else { BLOCK };
            (block, (options.limit + SPARE).next_multiple_of(block).min(MAX_CANDIDATES))
        };
        let candidates = self.candidates(scope, question, options.area(), max_candidates).await?;
        let Candidates { mut found, statistics, truncated, unread } = candidates;
        let mut occurring: HashSet<String> = question
            .words()
            .zip(&statistics.frequencies)
            .filter(|(_, frequency)| **frequency > 0)
            .map(|(word, _)| word.to_owned())
            .collect();
        if query.filters_threads() {
            found = self.filter_by_thread(scope, query, found).await?;
        }
        let (scored, counted) = score_and_sort(found, &statistics, question, query, options, block);
        occurring
            .extend(question.words().zip(counted).filter(|(_, count)| *count > 0).map(|(word, _)| word.to_owned()));
        let mut scored = self.remove_duplicates(scope, scored, options.thread, message_of).await?;
        scored.truncate(options.limit);
        let mut matcher = question.caching_matcher();
        let hits = scored.into_iter().map(|(score, Candidate { thread, message, .. })| {
            let snippet = Snippet::of_matches(&message.plain_text(), &mut matcher);
            Hit { thread, message, score, snippet }
        });
        let results = SearchResults { hits: hits.collect(), truncated, unsearched: unread, corrections: Vec::new() };
        Ok(WordResults { results, occurring })
    }

    /// Returns the candidates whose threads pass the conditions of the query.
    async fn filter_by_thread(
        &self,
        scope: &Scope,
        query: &TextQuery,
        found: Vec<Candidate>,
    ) -> Result<Vec<Candidate>> {
        let ids: BTreeSet<ThreadId> = found.iter().map(|candidate| candidate.thread).collect();
        let reads =
            ids.into_iter().map(|id| async move { Ok::<_, MemoryError>((id, self.find_thread(scope, id).await?)) });
        let threads: Vec<_> = futures::stream::iter(reads).buffer_unordered(CONCURRENT_THREADS).try_collect().await?;
        let passing: HashSet<ThreadId> = threads
            .into_iter()
            .filter(|(_, thread)| thread.as_ref().is_some_and(|thread| passes(query, thread)))
            .map(|(id, _)| id)
            .collect();
        Ok(found.into_iter().filter(|candidate| passing.contains(&candidate.thread)).collect())
    }

    /// Finds the newest messages that pass the conditions of a query without words, in the threads that changed last.
    async fn search_conditions(
        &self,
        scope: &Scope,
        query: &TextQuery,
        options: &SearchOptions,
    ) -> Result<SearchResults> {
        let (threads, mut truncated) = self.recent_threads(scope, options).await?;
        let threads = threads.into_iter().filter(|thread| passes(query, thread) && !thread.is_ephemeral());
        let until = [query.until, options.until].into_iter().flatten().min();
        let page = MessageQuery {
            before: until.map(Bound::Time),
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::newest(options.limit.max(MESSAGES_PER_THREAD))
        };
        let page = &page;
        let reads = threads.map(|thread| async move {
            match self.messages(scope, thread.id, page).await {
                Err(error) if error.is_thread_not_found() => Ok(None),
                read => read.map(|page| Some((thread.id, page))),
            }
        });
        let read: Vec<_> = futures::stream::iter(reads).buffer_unordered(CONCURRENT_THREADS).try_collect().await?;
        let mut hits = Vec::new();
        for (thread, page) in read.into_iter().flatten() {
            truncated |= page.more;
            let passing = page.messages.into_iter().filter(|message| {
                options.matches(message)
                    && query.matches_time_and_role(message.content.role, message.created_at)
                    && query.matches_text(&message.plain_text())
            });
            hits.extend(passing.map(|message| (0.0, Candidate::new(thread, message))));
        }
        hits.sort_by_key(|(_, candidate)| newest_first(candidate));
        let mut hits = self.remove_duplicates(scope, hits, options.thread, message_of).await?;
        hits.truncate(options.limit);
        let hits = hits.into_iter().map(|(score, Candidate { thread, message, .. })| {
            let snippet = Snippet::of(&message.plain_text(), &[]);
            Hit { thread, message, score, snippet }
        });
        Ok(SearchResults { hits: hits.collect(), truncated, ..SearchResults::default() })
    }

    /// Returns the threads that changed last, and whether there are more.
    pub(crate) async fn recent_threads(&self, scope: &Scope, options: &SearchOptions) -> Result<(Vec<Thread>, bool)> {
        if let Some(thread) = options.thread {
            return Ok((self.find_thread(scope, thread).await?.into_iter().collect(), false));
        }
        let query =
            ThreadQuery { metadata: options.metadata.clone(), ..ThreadQuery::new(ThreadOrder::Recent, RECENT_THREADS) };
        let page = self.list_threads(scope, &query).await?;
        Ok((page.threads, page.next.is_some()))
    }
}

/// The results of a search for words.
struct WordResults {
    results: SearchResults,
    /// The words that occur in a message of the scope.
    occurring: HashSet<String>,
}

fn passes(query: &TextQuery, thread: &Thread) -> bool {
    query.matches_thread(thread.title.as_deref(), thread.key.as_ref().map(ThreadKey::as_str), &thread.metadata)
}

impl SearchOptions {
    fn area(&self) -> SearchArea<'_> {
        SearchArea { thread: self.thread, metadata: &self.metadata }
    }

    fn is_filtered(&self) -> bool {
        !self.message_metadata.is_empty() || !self.roles.is_empty() || self.since.is_some() || self.until.is_some()
    }

    fn matches(&self, message: &Message) -> bool {
        (self.roles.is_empty() || self.roles.contains(&message.content.role))
            && self.message_metadata.matches(&message.content.metadata)
            && self.since.is_none_or(|since| message.created_at >= since)
            && self.until.is_none_or(|until| message.created_at < until)
    }
}

fn message_of((_, candidate): &(f64, Candidate)) -> (ThreadId, &Message) {
    (candidate.thread, &candidate.message)
}

fn newest_first(candidate: &Candidate) -> (Reverse<Timestamp>, Reverse<u64>, ThreadId) {
    (Reverse(candidate.message.created_at), Reverse(candidate.message.seq), candidate.thread)
}

/// Scores the candidates that match, and sorts each block of them, best first. Also returns how many candidates contain each word.
fn score_and_sort(
    found: Vec<Candidate>,
    statistics: &Statistics,
    question: &Question,
    query: &TextQuery,
    options: &SearchOptions,
    block: usize,
) -> (Vec<(f64, Candidate)>, Vec<u64>) {
    let mut word_frequencies = vec![0; question.words().count()];
    let mut matcher = question.caching_matcher();
    let counted = found.into_iter().map(|candidate| {
        let counts = matcher.count(&candidate.message.plain_text());
        for (frequency, count) in word_frequencies.iter_mut().zip(&counts.counts) {
            *frequency += u64::from(*count > 0);
        }
        (candidate, counts)
    });
    let is_hit = |(candidate, counts): &(Candidate, TermCounts)| {
        let message = &candidate.message;
        !counts.is_miss()
            && options.matches(message)
            && query.matches_time_and_role(message.content.role, message.created_at)
            && query.matches_text(&message.plain_text())
    };
    let (found, counts): (Vec<Candidate>, Vec<TermCounts>) = counted.filter(is_hit).unzip();
    let factor = |candidate: &Candidate| if candidate.message.content.role == Role::Tool { TOOL_FACTOR } else { 1.0 };
    let scores = bm25(&counts, statistics).into_iter().zip(found);
    let mut scored: Vec<(f64, Candidate)> =
        scores.map(|(score, candidate)| (score * factor(&candidate), candidate)).collect();
    scored.sort_by(|(a_score, a), (b_score, b)| {
        let blocks = (a.position / block).cmp(&(b.position / block));
        blocks.then_with(|| b_score.total_cmp(a_score)).then_with(|| newest_first(a).cmp(&newest_first(b)))
    });
    (scored, word_frequencies)
}
