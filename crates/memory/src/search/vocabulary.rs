//! The words of the newest messages of a scope, for corrections and prefixes.
//!
//! The words come from the scope's own messages only: words of other users would reveal what they wrote.

use std::collections::HashMap;

use threadkeep_core::query::is_typo;
use threadkeep_core::{MessageQuery, OnCorrupt, Scope, text};

use super::{Correction, SearchOptions};
use crate::{Memory, Result};

/// The maximum number of messages whose words are collected.
const MESSAGES: usize = 5_000;
/// The number of messages that are read at a time.
const PAGE: usize = 500;
/// The maximum number of words to which a prefix is expanded.
const MAX_WORDS_PER_PREFIX: usize = 16;

/// Words, and the number of messages that contain each of them.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashMap<String, u32>);

impl Memory {
    /// Returns the words of the newest messages in the threads that changed last.
    pub(super) async fn vocabulary(&self, scope: &Scope, options: &SearchOptions) -> Result<Vocabulary> {
        let (threads, _) = self.recent_threads(scope, options).await?;
        let mut vocabulary = Vocabulary::default();
        let mut remaining = MESSAGES;
        for thread in threads.into_iter().filter(|thread| !thread.is_ephemeral()) {
            if remaining == 0 {
                break;
            }
            let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(PAGE.min(remaining)) };
            let page = match self.messages(scope, thread.id, &query).await {
                Err(error) if error.is_thread_not_found() => continue,
                page => page?,
            };
            remaining -= page.messages.len().min(remaining);
            page.messages.iter().for_each(|message| vocabulary.add(&message.plain_text()));
        }
        Ok(vocabulary)
    }
}

impl Vocabulary {
    fn add(&mut self, text: &str) {
        let mut words = text::words(text);
        words.sort_unstable();
        words.dedup();
        words.into_iter().for_each(|word| *self.0.entry(word).or_default() += 1);
    }

    /// Returns the most frequent words that begin with a prefix.
    pub(super) fn words_with_prefix(&self, prefix: &str) -> Vec<String> {
        let mut words: Vec<(&String, u32)> =
            self.0.iter().filter(|(word, _)| word.starts_with(prefix)).map(|(word, count)| (word, *count)).collect();
        words.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
        words.into_iter().take(MAX_WORDS_PER_PREFIX).map(|(word, _)| word.clone()).collect()
    }

    /// Returns the most frequent word that differs by one letter.
    pub(super) fn correct(&self, word: String) -> Option<Correction> {
        let near = self.0.iter().filter(|(known, _)| is_typo(&word, known));
        let best = near.max_by(|(a, a_count), (b, b_count)| a_count.cmp(b_count).then_with(|| b.cmp(a)));
        best.map(|(known, _)| Correction { instead: known.clone(), word })
    }
}
