//! The names that words may mean: those of the conversation and of the cluster.

use std::collections::BTreeSet;

use crate::cluster::likeness;
use crate::command::{Verb, is_name};
use crate::conversation::Conversation;
use crate::kinds::{UNUSUAL, kind_word};

use super::vocabulary::{VERBS, is_candidate, is_ordinary};

/// The minimum number of letters of a shortened name.
const MIN_PREFIX: usize = 4;
/// The minimum number of letters of a word that may be misspelled.
const MIN_MISSPELLED: usize = 5;

/// The names of namespaces and objects.
#[derive(Clone, Debug, Default)]
pub(in crate::offline) struct Lexicon {
    pub(super) namespaces: Vec<String>,
    /// The namespace that the conversation is about.
    focus: Option<String>,
    /// The names of objects; `None` if those of the cluster are not known, so any word may be one.
    names: Option<BTreeSet<String>>,
}

impl Lexicon {
    pub(in crate::offline) fn of(conversation: &Conversation) -> Self {
        let mentioned = conversation.mentioned.as_ref();
        let names = mentioned.map(|mentioned| {
            let steps = conversation.earlier.iter().flat_map(|exchange| &exchange.steps);
            let shown = steps.filter_map(|step| step.outcome.as_ref()).flat_map(|outcome| &outcome.objects);
            let objects =
                shown.chain(mentioned).chain(conversation.earlier.iter().flat_map(|exchange| &exchange.offered));
            let owners = objects.clone().filter_map(|object| object.owner.as_ref().map(|(_, name)| name.clone()));
            let requested = conversation.earlier.iter().flat_map(|exchange| &exchange.requested);
            let requested = requested.filter_map(|requested| requested.command.name.clone());
            objects.clone().map(|object| object.name.clone()).chain(owners).chain(requested).collect()
        });
        let focus = crate::offline::refer::last_namespace(conversation);
        Self { namespaces: conversation.namespaces.clone(), focus, names }
    }

    /// Whether the names of the cluster are known.
    pub(super) const fn is_complete(&self) -> bool {
        self.names.is_some()
    }

    /// Returns the part of a name that a word means.
    pub(in crate::offline) fn linked(&self, word: &str) -> Option<String> {
        linked(word, &self.names.iter().flatten().map(String::as_str).collect::<Vec<&str>>())
    }

    /// Whether there is a namespace of this name.
    pub(in crate::offline) fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.iter().any(|known| known == name)
    }

    /// Whether a word is exactly the name of an object.
    pub(super) fn has(&self, word: &str) -> bool {
        self.names.as_ref().is_some_and(|names| names.contains(word))
    }

    /// Returns the namespace that an ordinary word names, because the conversation is about a similar one: "us" beside `shop-eu`.
    pub(super) fn sibling_namespace(&self, word: &str) -> Option<String> {
        let focus = self.focus.as_ref()?;
        let found = self.namespace_like(word).filter(|found| found != focus)?;
        let (prefix, _) = found.rsplit_once(word)?;
        (prefix.len() > 2 && focus.starts_with(prefix)).then_some(found)
    }

    /// Returns the only namespace whose name contains a word as a part: "eu" of `shop-eu`.
    pub(in crate::offline) fn namespace_like(&self, word: &str) -> Option<String> {
        let mut found = self.namespaces.iter().filter(|name| likeness(name, word).is_some_and(|fit| fit < 3));
        found.next().filter(|_| found.next().is_none()).cloned()
    }
}

/// Returns how well a message fits the name of an object, 0 best; `None` if no word of it does.
pub(crate) fn fit_of_words(words: &[String], name: &str) -> Option<u8> {
    let fits = words.iter().filter_map(|word| linked(word, &[name]).map(|linked| likeness(name, &linked).unwrap_or(3)));
    fits.min()
}

/// Returns the words of a message that may be names of objects, and pairs of words that may be one.
pub(crate) fn words_of(message: &str) -> Vec<String> {
    let words = message.split_whitespace().take(300).flat_map(|word| {
        let word = super::clean(word).to_lowercase().replace(['\'', '’'], "");
        let name = word.split_once('/').map(|(_, name)| name.to_owned());
        [Some(word), name]
    });
    let all: Vec<String> = words.flatten().filter(|word| is_name(word)).collect();
    let pairs = all.windows(2).map(|pair| pair.join("-"));
    // "Deployment cms", "the jobs deployment": an object that is called like a kind.
    let is_kind = |word: &String| kind_word(word).is_some();
    let beside_kind: Vec<String> = all.windows(2).filter(|pair| pair.iter().all(is_kind)).flatten().cloned().collect();
    let is_letter = |word: &String| word.len() == 1 && !matches!(&**word, "a" | "i" | "u");
    let mut words: Vec<String> = all
        .iter()
        .filter(|word| {
            is_candidate(word)
                || word.len() > 1 && word.parse::<u32>().is_ok()
                || is_ordinary(word) && word.len() > 2
                || is_letter(word)
        })
        .cloned()
        .collect();
    words.extend(pairs);
    words.extend(beside_kind);
    words
}

/// Whether a message may name an object that is neither a workload nor a pod or node: it has the word for its kind, a change that applies
/// to all kinds, or a name that no known object has.
pub(crate) fn may_name_unusual_kind(message: &str, is_known: &dyn Fn(&str) -> bool) -> bool {
    message.split_whitespace().take(300).any(|word| {
        let word = super::clean(word).to_lowercase().replace(['\'', '’'], "");
        let (kind, name) = word.split_once('/').unwrap_or((&word, &word));
        let is_kind = kind_word(kind).is_some_and(|kind| UNUSUAL.contains(&&*kind.plural));
        let applies_to_all = |verb: Verb| matches!(verb, Verb::Delete | Verb::Label | Verb::Annotate | Verb::Apply);
        let is_change = VERBS.iter().any(|(phrase, verb)| applies_to_all(*verb) && *phrase == word)
            || matches!(&*word, "rid" | "tear" | "blow" | "throw");
        is_kind || is_change || is_candidate(name) && !is_known(name)
    })
}

fn linked(word: &str, names: &[&str]) -> Option<String> {
    if names_have(word, names) {
        return Some(word.to_owned());
    }
    if is_ordinary(word) || kind_word(word).is_some() {
        return None;
    }
    // "Fetchers" are the pods of `fetcher`.
    for ending in ["s", "es"] {
        if let Some(singular) = word.strip_suffix(ending).filter(|singular| singular.len() > 2)
            && names_have(singular, names)
        {
            return Some(singular.to_owned());
        }
    }
    let mut all: BTreeSet<&str> = names.iter().flat_map(|name| name.split(['-', '.'])).collect();
    all.extend(names);
    all.retain(|part| part.len() > 2 && !is_ordinary(part));
    let only = |fits: &dyn Fn(&str) -> bool| {
        let mut found = all.iter().filter(|part| fits(part));
        found.next().filter(|_| found.next().is_none()).map(|part| (*part).to_owned())
    };
    // "Todoapi" is `todo-api`.
    if let Some(joined) = only(&|part| part.contains('-') && part.replace('-', "") == word) {
        return Some(joined);
    }
    if word.len() >= MIN_PREFIX
        && let Some(part) = only(&|part| !part.contains('-') && part.starts_with(word))
    {
        return Some(part);
    }
    // "This exporter" is `batch-export`.
    let is_stem = |part: &str| {
        let ending = word.strip_prefix(part);
        part.len() >= MIN_MISSPELLED
            && ending
                .is_some_and(|ending| matches!(ending, "er" | "ers" | "or" | "ors" | "r" | "rs" | "ing" | "d" | "ed"))
    };
    if let Some(part) = only(&is_stem) {
        return Some(part);
    }
    if word.len() < MIN_MISSPELLED {
        return None;
    }
    only(&|part| part.len() >= MIN_MISSPELLED && is_one_edit(word, part))
}

fn names_have(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| likeness(name, word).is_some_and(|fit| fit < 3))
}

/// Whether two words differ by one edit: a letter is replaced, missing, or swapped with the next one.
fn is_one_edit(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (longer, shorter) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    let common = longer.iter().zip(shorter).take_while(|(a, b)| a == b).count();
    // In names with digits, one character may be all that distinguishes two objects.
    if longer.iter().chain(shorter).any(u8::is_ascii_digit) {
        return false;
    }
    match longer.len() - shorter.len() {
        0 if common == longer.len() => false,
        0 => {
            longer[common + 1..] == shorter[common + 1..]
                || common + 1 < longer.len()
                    && longer[common] == shorter[common + 1]
                    && longer[common + 1] == shorter[common]
                    && longer[common + 2..] == shorter[common + 2..]
        }
        1 => longer[common + 1..] == shorter[common..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_linked_to_names_that_exist() {
        let names = ["fetcher-1", "payments-api", "todo-api", "notifier"];
        let lexicon = Lexicon {
            namespaces: Vec::new(),
            focus: None,
            names: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        };
        for (word, linked) in [
            ("fetchers", Some("fetcher")),
            ("paymnets", Some("payments")),
            ("todoapi", Some("todo-api")),
            ("notif", Some("notifier")),
            ("fetcher-2", None),
            ("pendng", None),
            ("times", None),
        ] {
            assert_eq!(lexicon.linked(word).as_deref(), linked, "{word}");
        }
    }

    #[test]
    fn a_part_of_a_name_means_the_only_namespace_that_contains_it() {
        let namespaces = ["shop-eu", "shop-us", "pr-481"].map(str::to_owned).to_vec();
        let lexicon = Lexicon { namespaces, focus: None, names: None };
        assert_eq!(lexicon.namespace_like("eu").as_deref(), Some("shop-eu"));
        assert_eq!(lexicon.namespace_like("shop"), None);
        assert_eq!(lexicon.namespace_like("481").as_deref(), Some("pr-481"));
    }
}
