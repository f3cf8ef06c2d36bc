use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use threadkeep_core::{TokenCount, TokenCounter};

/// The number of texts per generation. There are two generations.
const GENERATION_TEXTS: usize = 65_536;
/// Counting texts shorter than this is faster than looking them up.
const MIN_CACHED_BYTES: usize = 16;

/// A token counter that caches the counts of another counter, so that counting a text again costs only a lookup.
///
/// Stores hashes (128 bits, with random keys per process) instead of texts, for up to 131,072 recently used texts.
#[derive(Debug)]
pub struct CachingCounter {
    counter: Arc<dyn TokenCounter>,
    keys: [RandomState; 2],
    generations: Mutex<Generations>,
}

type Counts = HashMap<(u64, u64), TokenCount>;

#[derive(Debug, Default)]
struct Generations {
    young: Counts,
    old: Counts,
}

impl CachingCounter {
    /// Creates a counter that caches the counts of `counter`.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, keys: [RandomState::new(), RandomState::new()], generations: Mutex::default() }
    }
}

impl TokenCounter for CachingCounter {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        if text.len() < MIN_CACHED_BYTES {
            return self.counter.count(text);
        }
        let key = (self.keys[0].hash_one(text), self.keys[1].hash_one(text));
        if let Some(count) = self.lock().find(key) {
            return count;
        }
        // The text is counted without the lock. Concurrent calls may count the same text twice, with the same result.
        let count = self.counter.count(text);
        self.lock().insert(key, count);
        count
    }
}

impl CachingCounter {
    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn find(&mut self, key: (u64, u64)) -> Option<TokenCount> {
        if let Some(count) = self.young.get(&key) {
            return Some(*count);
        }
        let count = self.old.remove(&key)?;
        self.insert(key, count);
        Some(count)
    }

    fn insert(&mut self, key: (u64, u64), count: TokenCount) {
        if self.young.len() >= GENERATION_TEXTS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct ByteCounter {
        calls: AtomicUsize,
    }

    impl TokenCounter for ByteCounter {
        fn name(&self) -> &'static str {
            "bytes"
        }

        fn count(&self, text: &str) -> TokenCount {
            self.calls.fetch_add(1, Ordering::Relaxed);
            TokenCount(text.len() as u64)
        }
    }

    #[test]
    fn repeated_texts_are_counted_once() {
        let byte_counter = Arc::new(ByteCounter::default());
        let counter = CachingCounter::new(byte_counter.clone());
        let texts: Vec<String> = (1..=16).map(|number| "a message of some words ".repeat(number)).collect();
        for _ in 0..3 {
            for text in &texts {
                assert_eq!(counter.count(text), TokenCount(text.len() as u64));
            }
        }
        assert_eq!((byte_counter.calls.load(Ordering::Relaxed), counter.name()), (16, "bytes"));
    }

    #[test]
    fn recently_used_texts_stay_cached_and_memory_is_bounded() {
        let byte_counter = Arc::new(ByteCounter::default());
        let counter = CachingCounter::new(byte_counter.clone());
        let used = "this text is used again and again";
        for number in 0..3 * GENERATION_TEXTS {
            counter.count(&format!("a message with the number {number}"));
            if number % 1_000 == 0 {
                counter.count(used);
            }
        }
        assert_eq!(byte_counter.calls.load(Ordering::Relaxed), 3 * GENERATION_TEXTS + 1);
        let generations = counter.lock();
        assert!(generations.young.len() <= GENERATION_TEXTS && generations.old.len() <= GENERATION_TEXTS);
    }
}
