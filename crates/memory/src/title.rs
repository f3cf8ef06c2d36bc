//! Titles that are made from a thread's first user message.
//!
//! The store does not record whether a title was made from a message. To find out, a title is made from the message again and
//! compared with the thread's title. So imported titles are recognised as well.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use threadkeep_core::{Content, Role, Scope, ThreadId};

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 100;

/// Maximum number of threads in [`ThreadsWithFinalTitle`], which is cleared when it is full.
const MAX_THREADS: usize = 16_384;

/// Maximum number of scopes per thread in [`ThreadsWithFinalTitle`]. A shared thread can have many users.
const MAX_SCOPES: usize = 32;

/// Creates a title from the text: its first 100 characters, with each run of white space replaced by one space.
///
/// `None` for a text that contains only white space.
///
/// ```
/// assert_eq!(threadkeep_memory::make_title("  ¿Qué es\n amparo? ").as_deref(), Some("¿Qué es amparo?"));
/// assert_eq!(threadkeep_memory::make_title(&"ñ".repeat(200)).unwrap().chars().count(), 100);
/// ```
#[must_use]
pub fn make_title(text: &str) -> Option<String> {
    let mut title = String::new();
    let mut remaining = TITLE_CHARS;
    for word in text.split_whitespace() {
        if !title.is_empty() {
            // A title must not end with a space.
            if remaining < 2 {
                break;
            }
            title.push(' ');
            remaining -= 1;
        }
        for character in word.chars().take(remaining) {
            title.push(character);
            remaining -= 1;
        }
        if remaining == 0 {
            break;
        }
    }
    (!title.is_empty()).then_some(title)
}

/// Creates a title from a message; `None` unless it is a user message with text.
pub(crate) fn title_from(content: &Content) -> Option<String> {
    match content.role {
        Role::User => make_title(&content.plain_text()),
        _ => None,
    }
}

/// Creates a title from the first user message with text; `None` if there is none.
pub(crate) fn title_from_first<'a>(contents: impl IntoIterator<Item = &'a Content>) -> Option<String> {
    contents.into_iter().find_map(title_from)
}

/// Threads that are known to have a title, or to be unable to get one. Appending to them need not read the thread first.
#[derive(Debug, Default)]
pub(crate) struct ThreadsWithFinalTitle {
    hasher: RandomState,
    /// For each thread, hashes of the scopes in which this is known.
    threads: Mutex<HashMap<ThreadId, Vec<u64>>>,
}

impl ThreadsWithFinalTitle {
    pub(crate) fn contains(&self, scope: &Scope, thread: ThreadId) -> bool {
        let scope = self.hasher.hash_one(scope);
        self.lock().get(&thread).is_some_and(|scopes| scopes.contains(&scope))
    }

    pub(crate) fn insert(&self, scope: &Scope, thread: ThreadId) {
        let scope = self.hasher.hash_one(scope);
        let mut threads = self.lock();
        if threads.len() >= MAX_THREADS {
            threads.clear();
        }
        let scopes = threads.entry(thread).or_default();
        if scopes.len() >= MAX_SCOPES {
            scopes.clear();
        }
        scopes.push(scope);
    }

    /// Removes a thread in all scopes, because its title may have been removed.
    pub(crate) fn remove(&self, thread: ThreadId) {
        self.lock().remove(&thread);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ThreadId, Vec<u64>>> {
        // The map is consistent even after a panic while it was locked.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.27
    #[test]
    fn titles_are_cut_at_100_characters_not_bytes() {
        let text = format!("¿{}?", "é".repeat(150));
        let title = make_title(&text).unwrap();
        assert_eq!(title.chars().count(), 100);
        assert_eq!(title, format!("¿{}", "é".repeat(99)));
        assert_eq!(make_title(&"x".repeat(100)).unwrap().len(), 100);
    }

    #[test]
    fn titles_never_end_with_white_space() {
        for length in 90..110 {
            let title = make_title(&format!("{} tail of words", "x".repeat(length))).unwrap();
            assert_eq!(title.trim(), title);
            assert!(title.chars().count() <= 100);
        }
        assert_eq!(make_title(" \n\t\u{a0}"), None);
        assert_eq!(make_title(""), None);
    }

    #[test]
    fn titles_are_made_only_from_user_messages() {
        let contents = [Content::text(Role::Assistant, "welcome"), Content::text(Role::User, "hello")];
        assert_eq!(title_from_first(&contents).as_deref(), Some("hello"));
        assert_eq!(title_from_first(&contents[..1]), None);
    }

    #[test]
    fn final_titles_are_known_per_scope() {
        let threads = ThreadsWithFinalTitle::default();
        let thread = ThreadId::from_name(b"thread");
        let (a, b) = (Scope::user("t", "a").unwrap(), Scope::user("t", "b").unwrap());
        threads.insert(&a, thread);
        assert!(threads.contains(&a, thread));
        assert!(!threads.contains(&b, thread));
        threads.remove(thread);
        assert!(!threads.contains(&a, thread));
    }
}
