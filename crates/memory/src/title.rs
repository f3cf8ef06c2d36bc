//! Titles that threads get from their first user message.
//!
//! Nothing remembers that a title was made: it is told by comparing it with what the message would give. So it also
//! holds for imported threads, and no note of it can be lost.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use threadkeep_core::{Content, Role, Scope, ThreadId};

/// Characters of a title that is made.
const TITLE_CHARS: usize = 100;

/// Threads whose title is known to be settled; past this many, what is known is forgotten and looked up again.
const REMEMBERED: usize = 16_384;

/// Makes a title from a text: its first 100 characters, with each run of white space as one space.
///
/// `None` when the text holds nothing but white space.
///
/// ```
/// assert_eq!(threadkeep_memory::make_title("  ¿Qué es\n amparo? ").as_deref(), Some("¿Qué es amparo?"));
/// assert_eq!(threadkeep_memory::make_title(&"ñ".repeat(200)).unwrap().chars().count(), 100);
/// ```
#[must_use]
pub fn make_title(text: &str) -> Option<String> {
    let mut title = String::new();
    let mut room = TITLE_CHARS;
    for word in text.split_whitespace() {
        if !title.is_empty() {
            // A space is only worth its place when a character follows it.
            if room < 2 {
                break;
            }
            title.push(' ');
            room -= 1;
        }
        for character in word.chars().take(room) {
            title.push(character);
            room -= 1;
        }
        if room == 0 {
            break;
        }
    }
    (!title.is_empty()).then_some(title)
}

/// The title that a message gives: only a user's message gives one.
pub(crate) fn title_from(content: &Content) -> Option<String> {
    match content.role {
        Role::User => make_title(&content.plain_text()),
        _ => None,
    }
}

/// The title that the first of some messages gives that gives one.
pub(crate) fn title_from_first<'a>(contents: impl IntoIterator<Item = &'a Content>) -> Option<String> {
    contents.into_iter().find_map(title_from)
}

/// Remembers which threads have a title (or cannot be given one), so that appending to them reads nothing.
#[derive(Debug, Default)]
pub(crate) struct SettledTitles {
    hasher: RandomState,
    threads: Mutex<HashSet<(u64, ThreadId)>>,
}

impl SettledTitles {
    pub(crate) fn holds(&self, scope: &Scope, thread: ThreadId) -> bool {
        self.lock().contains(&self.key(scope, thread))
    }

    pub(crate) fn insert(&self, scope: &Scope, thread: ThreadId) {
        let key = self.key(scope, thread);
        let mut threads = self.lock();
        if threads.len() >= REMEMBERED {
            threads.clear();
        }
        threads.insert(key);
    }

    /// Forgets a thread under every scope, as its title may have been taken away.
    pub(crate) fn forget(&self, thread: ThreadId) {
        self.lock().retain(|(_, settled)| *settled != thread);
    }

    fn key(&self, scope: &Scope, thread: ThreadId) -> (u64, ThreadId) {
        (self.hasher.hash_one(scope), thread)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<(u64, ThreadId)>> {
        // A set of plain values is whole whatever happened to another thread that held it.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.27
    #[test]
    fn a_title_is_cut_at_100_characters_not_bytes() {
        let text = format!("¿{}?", "é".repeat(150));
        let title = make_title(&text).unwrap();
        assert_eq!(title.chars().count(), 100);
        assert_eq!(title, format!("¿{}", "é".repeat(99)));
        assert_eq!(make_title(&"x".repeat(100)).unwrap().len(), 100);
    }

    #[test]
    fn a_title_never_ends_in_white_space() {
        for length in 90..110 {
            let title = make_title(&format!("{} tail of words", "x".repeat(length))).unwrap();
            assert_eq!(title.trim(), title);
            assert!(title.chars().count() <= 100);
        }
        assert_eq!(make_title(" \n\t\u{a0}"), None);
        assert_eq!(make_title(""), None);
    }

    #[test]
    fn only_a_users_message_gives_a_title() {
        let contents = [Content::text(Role::Assistant, "welcome"), Content::text(Role::User, "hello")];
        assert_eq!(title_from_first(&contents).as_deref(), Some("hello"));
        assert_eq!(title_from_first(&contents[..1]), None);
    }

    #[test]
    fn what_is_settled_in_one_scope_is_not_in_another() {
        let settled = SettledTitles::default();
        let thread = ThreadId::from_name(b"thread");
        let (one, other) = (Scope::user("t", "one").unwrap(), Scope::user("t", "other").unwrap());
        settled.insert(&one, thread);
        assert!(settled.holds(&one, thread));
        assert!(!settled.holds(&other, thread));
        settled.forget(thread);
        assert!(!settled.holds(&one, thread));
    }
}
