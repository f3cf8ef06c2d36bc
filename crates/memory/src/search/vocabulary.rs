//! The words of the newest messages of a scope, for corrections and prefixes.
//!
//! The words come from the scope's own messages only: words of other users would reveal what they wrote.

mod cache;
mod thread_words;

use std::collections::HashMap;
use std::sync::Arc;

use threadkeep_core::query::is_typo;
use threadkeep_core::{MessageQuery, OnCorrupt, Scope, Thread, ThreadId, Timestamp};

use super::{Correction, SearchOptions};
use crate::{Memory, Result};

pub(crate) use cache::VocabularyCache;
use cache::{Key, Validity};
use thread_words::{Source, ThreadWords};

/// The maximum number of messages whose words are collected.
const MESSAGES: usize = 5_000;
/// The number of messages that are read at a time.
const PAGE: usize = 500;
/// The maximum number of words to which a prefix is expanded.
const MAX_WORDS_PER_PREFIX: usize = 16;

/// Words, and the number of messages that contain each of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary(Vec<Arc<ThreadWords>>);

impl Memory {
    /// Returns the words of the newest messages in the threads that changed last, from the cache as far as it is valid.
    pub(super) async fn vocabulary(&self, scope: &Scope, options: &SearchOptions) -> Result<Vocabulary> {
        let key = Key { scope: scope.clone(), thread: options.thread, metadata: options.metadata.clone() };
        let (now, cache) = (self.now(), self.vocabularies());
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(now));
        // The stamp is read first, so that it is outdated if the store is written to during the reads.
        let validity = Validity { stamp: self.store().stamp(), removals: cache.removals() };
        if let Some(current) = cache.find_current(&key, &validity, now, cutoff) {
            return Ok(current);
        }
        let (threads, _) = self.recent_threads(scope, options).await?;
        let outdated = cache.find_outdated(&key);
        let known: HashMap<ThreadId, &Arc<ThreadWords>> =
            outdated.iter().map(|words| (words.thread(), words)).collect();
        let mut vocabulary = Vocabulary::default();
        let mut remaining = MESSAGES;
        for thread in threads.into_iter().filter(|thread| !thread.is_ephemeral()) {
            if remaining == 0 {
                break;
            }
            let source = Source::of(&thread, PAGE.min(remaining));
            let words = match known.get(&thread.id).filter(|words| words.is_valid(&source, now, cutoff)) {
                Some(words) => Arc::clone(words),
                None => match self.thread_words(scope, &thread, source).await? {
                    Some(words) => Arc::new(words),
                    None => continue,
                },
            };
            remaining -= words.messages().min(remaining);
            vocabulary.0.push(words);
        }
        cache.insert(key, vocabulary.clone(), validity, now);
        Ok(vocabulary)
    }

    /// Reads the words of a thread. `None` if it was deleted.
    async fn thread_words(&self, scope: &Scope, thread: &Thread, source: Source) -> Result<Option<ThreadWords>> {
        let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(source.limit()) };
        match self.messages(scope, thread.id, &query).await {
            Err(error) if error.is_thread_not_found() => Ok(None),
            page => Ok(Some(ThreadWords::new(source, &page?.messages))),
        }
    }
}

impl Vocabulary {
    /// Returns the most frequent words that begin with a prefix.
    pub(super) fn words_with_prefix(&self, prefix: &str) -> Vec<String> {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for (word, count) in self.0.iter().flat_map(|words| words.with_prefix(prefix)) {
            *counts.entry(word).or_default() += count;
        }
        let mut words: Vec<(&str, u32)> = counts.into_iter().collect();
        words.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
        words.into_iter().take(MAX_WORDS_PER_PREFIX).map(|(word, _)| word.to_owned()).collect()
    }

    /// Returns the most frequent word that differs by one letter.
    pub(super) fn correct(&self, word: String) -> Option<Correction> {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for (known, count) in self.0.iter().flat_map(|words| words.with_prefix("")) {
            *counts.entry(known).or_default() += count;
        }
        let near = counts.into_iter().filter(|(known, _)| is_typo(&word, known));
        let best = near.max_by(|(a, a_count), (b, b_count)| a_count.cmp(b_count).then_with(|| b.cmp(a)));
        best.map(|(known, _)| known.to_owned()).map(|instead| Correction { instead, word })
    }

    /// Whether all words are still in the scope at `now`, if the store was not written to since they were read.
    fn is_current(&self, now: Timestamp, cutoff: Option<Timestamp>) -> bool {
        self.0.iter().all(|words| words.is_current(now, cutoff))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|words| words.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_words_with_a_prefix_are_found_in_all_threads() {
        let vocabulary = cache::tests::vocabulary_of(&["a train on a track", "the track", "tram", "TRAIN track"]);
        assert_eq!(vocabulary.words_with_prefix("tra"), ["track", "train", "tram"]);
        assert_eq!(vocabulary.words_with_prefix("trai"), ["train"]);
        assert!(vocabulary.words_with_prefix("xyz").is_empty());
        let correct = |word: &str| vocabulary.correct(word.to_owned()).map(|correction| correction.instead);
        assert_eq!(correct("trian").as_deref(), Some("train"));
        assert_eq!(correct("trax"), Some("tram".to_owned()));
        assert_eq!(correct("zebra"), None);
    }
}
