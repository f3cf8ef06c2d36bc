//! Titles that are made from a thread's first user message.
//!
//! Nothing records that a title was made: it is recognised by making one from the message again and comparing the two. So
//! imported titles are recognised as well.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use threadkeep_core::{Content, Role, Scope, ThreadId};

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 100;

/// Maximum number of threads in [`SettledTitles`]; it is cleared when it is full.
const MAX_THREADS: usize = 16_384;

/// Maximum number of scopes per thread in [`SettledTitles`]; a shared thread can have many users.
const MAX_SCOPES: usize = 32;

/// Makes a title from a text: its first 100 characters, with each run of white space replaced by one space.
///
/// `None` for a text without anything but white space.
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

/// Makes a title from a message; `None` unless it is a user's.
pub(crate) fn title_from(content: &Content) -> Option<String> {
    match content.role {
        Role::User => make_title(&content.plain_text()),
        _ => None,
    }
}

/// Makes a title from the first message that gives one.
pub(crate) fn title_from_first<'a>(contents: impl IntoIterator<Item = &'a Content>) -> Option<String> {
    contents.into_iter().find_map(title_from)
}

/// Threads that are known to have a title, or to be unable to get one, so that appending to them needs no read.
#[derive(Debug, Default)]
pub(crate) struct SettledTitles {
    hasher: RandomState,
    /// For each thread, hashes of the scopes for which this is known.
    threads: Mutex<HashMap<ThreadId, Vec<u64>>>,
}

impl SettledTitles {
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
    fn only_user_messages_give_titles() {
        let contents = [Content::text(Role::Assistant, "welcome"), Content::text(Role::User, "hello")];
        assert_eq!(title_from_first(&contents).as_deref(), Some("hello"));
        assert_eq!(title_from_first(&contents[..1]), None);
    }

    #[test]
    fn titles_are_settled_per_scope() {
        let settled = SettledTitles::default();
        let thread = ThreadId::from_name(b"thread");
        let (one, other) = (Scope::user("t", "one").unwrap(), Scope::user("t", "other").unwrap());
        settled.insert(&one, thread);
        assert!(settled.contains(&one, thread));
        assert!(!settled.contains(&other, thread));
        settled.remove(thread);
        assert!(!settled.contains(&one, thread));
    }
}
