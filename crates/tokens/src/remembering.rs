use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use threadkeep_core::{TokenCount, TokenCounter};

/// Texts that one generation remembers; there are two.
const REMEMBERED: usize = 65_536;
/// Shorter texts are counted faster than they are looked up.
const SHORTEST_BYTES: usize = 16;

/// Counts as another counter does, and each text once: messages that were counted before cost a look-up.
///
/// It remembers hashes (128 bits, keyed anew in each process), not texts: some 100,000 of them, the latest used.
#[derive(Debug)]
pub struct RememberingCounter {
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

impl RememberingCounter {
    /// Remembers what `counter` counts.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, keys: [RandomState::new(), RandomState::new()], generations: Mutex::default() }
    }
}

impl TokenCounter for RememberingCounter {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        if text.len() < SHORTEST_BYTES {
            return self.counter.count(text);
        }
        let key = (self.keys[0].hash_one(text), self.keys[1].hash_one(text));
        if let Some(count) = self.lock().find(key) {
            return count;
        }
        // Counted outside the lock: two at once may count the same text, and both are right.
        let count = self.counter.count(text);
        self.lock().insert(key, count);
        count
    }
}

impl RememberingCounter {
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
        if self.young.len() >= REMEMBERED {
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
    struct Bytes {
        calls: AtomicUsize,
    }

    impl TokenCounter for Bytes {
        fn name(&self) -> &'static str {
            "bytes"
        }

        fn count(&self, text: &str) -> TokenCount {
            self.calls.fetch_add(1, Ordering::Relaxed);
            TokenCount(text.len() as u64)
        }
    }

    #[test]
    fn a_text_is_counted_once() {
        let bytes = Arc::new(Bytes::default());
        let counter = RememberingCounter::new(bytes.clone());
        let texts: Vec<String> = (1..=16).map(|number| "a message of some words ".repeat(number)).collect();
        for _ in 0..3 {
            for text in &texts {
                assert_eq!(counter.count(text), TokenCount(text.len() as u64));
            }
        }
        assert_eq!((bytes.calls.load(Ordering::Relaxed), counter.name()), (16, "bytes"));
    }

    #[test]
    fn what_is_used_outlasts_what_is_not_and_memory_is_bounded() {
        let bytes = Arc::new(Bytes::default());
        let counter = RememberingCounter::new(bytes.clone());
        let used = "this one is used again and again";
        for number in 0..3 * REMEMBERED {
            counter.count(&format!("a message with the number {number}"));
            if number % 1_000 == 0 {
                counter.count(used);
            }
        }
        assert_eq!(bytes.calls.load(Ordering::Relaxed), 3 * REMEMBERED + 1);
        let generations = counter.lock();
        assert!(generations.young.len() <= REMEMBERED && generations.old.len() <= REMEMBERED);
    }
}
