//! Noun phrases that describe an object: "the other cart pod", "the one with 4 restarts", "the second one on the crm list". One parsed form
//! for all of them: the kind, the words that must fit, the state, the position, and which list it comes from.

mod follow;

use std::ops::Range;

use crate::kinds::{is_plural, kind_word};

use super::arguments::number_of;
use super::vocabulary::{VERBS, is_ordinary};
use super::{Lexicon, Pick, State, clean, read};
use follow::{clause_end, follow, is_node_like};

/// The maximum number of words between the article and the noun.
const MAX_MODIFIERS: usize = 4;
/// The maximum number of words of a clause after the noun.
const MAX_CLAUSE: usize = 7;

/// A described object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::offline) struct Description {
    /// Where it is in the message, in words that are separated by spaces.
    pub(in crate::offline) span: Range<usize>,
    /// The kind that the noun names; `None` for "one".
    pub(in crate::offline) kind: Option<String>,
    pub(in crate::offline) is_plural: bool,
    /// Words that must fit the object: part of its name, its namespace, its image or its version.
    pub(in crate::offline) words: Vec<String>,
    /// Words that must not fit it: "the one that's not a tmp".
    pub(in crate::offline) without: Vec<String>,
    pub(in crate::offline) state: Option<State>,
    pub(in crate::offline) position: Option<Pick>,
    pub(in crate::offline) is_other: bool,
    /// The namespace that follows the noun: "the one in staging".
    pub(in crate::offline) place: Option<String>,
    /// The node on which it runs: "the one on worker-2".
    pub(in crate::offline) node: Option<String>,
    /// A word of the list that it comes from: "on the crm list".
    pub(in crate::offline) list: Option<String>,
    /// Whether the version of the image is the older or newer one of several.
    pub(in crate::offline) age: Option<Age>,
    /// Whether its number of replicas is compared: "the smaller one".
    pub(in crate::offline) is_sized: bool,
    /// How many objects it is chosen from: "the smaller of the two".
    pub(in crate::offline) count: Option<usize>,
    /// "The one I wanted to scale": the words of what was asked for.
    pub(in crate::offline) asked_for: Option<String>,
    /// "The one that isn't": the opposite of what was asked before.
    pub(in crate::offline) is_opposite: bool,
    /// Whether the noun has a possessive ending: "the new one's logs".
    pub(in crate::offline) is_possessive: bool,
    /// Whether the words before it exclude it or compare with it: "not the other one", "like the other".
    pub(in crate::offline) is_excluded: bool,
    /// Whether a clause follows the noun that is not understood.
    pub(in crate::offline) is_unclear: bool,
    /// Whether it leaves open which object it is: "whichever has 4 replicas".
    pub(in crate::offline) is_indefinite: bool,
    /// Whether the phrase says what something is: "production is the older one".
    pub(in crate::offline) is_predicate: bool,
}

/// Which of several versions is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum Age {
    Older,
    Newer,
}

/// The words of a message as they are compared: in lower case, without punctuation.
struct Words<'a> {
    raw: Vec<&'a str>,
    plain: Vec<String>,
}

impl Words<'_> {
    fn word(&self, at: usize) -> &str {
        self.plain.get(at).map_or("", String::as_str)
    }

    /// Whether a word ends a clause.
    fn ends_clause(&self, at: usize) -> bool {
        self.raw.get(at).is_none_or(|raw| raw.ends_with([',', '.', ';', ':', '?', '!', ')']))
    }
}

/// Returns the descriptions of a message.
pub(in crate::offline) fn descriptions(message: &str, lexicon: &Lexicon) -> Vec<Description> {
    let raw: Vec<&str> = message.split_whitespace().take(super::MAX_WORDS).collect();
    let plain = raw.iter().map(|word| clean(word).to_lowercase().replace(['\'', '’'], "")).collect();
    let words = Words { raw, plain };
    let mut found: Vec<Description> = Vec::new();
    let mut at = 0;
    while at < words.raw.len() {
        match description_at(&words, at, lexicon) {
            Some(description) => {
                at = description.span.end;
                found.push(description);
            }
            None => at += 1,
        }
    }
    found
}

fn description_at(words: &Words<'_>, start: usize, lexicon: &Lexicon) -> Option<Description> {
    if matches!(words.word(start), "whichever" | "whatever") {
        return whichever(words, start, lexicon);
    }
    // "Is there one on redis?"
    let is_any =
        start > 0 && words.word(start) == "one" && matches!(words.word(start - 1), "there" | "any" | "another");
    if is_any && !words.ends_clause(start) {
        let mut found = Description { is_indefinite: true, ..Description::default() };
        let end = follow(words, start + 1, &mut found, lexicon);
        found.span = start..end;
        return (end > start + 1 && !found.is_unclear).then_some(found);
    }
    if words.word(start) != "the" || words.ends_clause(start) {
        return None;
    }
    let mut found = Description::default();
    let mut at = start + 1;
    let noun = loop {
        let word = words.word(at);
        let is_noun = noun_at(words, at, &mut found) || is_noun_of_modifiers(words, start, at, &found);
        if is_noun {
            break Some(at);
        }
        let is_modifier = !word.is_empty() && at - start <= MAX_MODIFIERS && modifies(word, &mut found, lexicon);
        if !is_modifier {
            break None;
        }
        if words.ends_clause(at) {
            at += 1;
            break None;
        }
        at += 1;
    };
    // "The us basket up to ...": the noun is the last word that is a name.
    while noun.is_none()
        && found.words.len() > 1
        && found.words.last().is_some_and(|last| words.word(at - 1) == last && !is_name_of(last, lexicon))
    {
        found.words.pop();
        at -= 1;
    }
    let end = match noun {
        Some(noun) => {
            found.is_possessive = matches!(&*clean(words.raw[noun]).to_lowercase(), "one's" | "one’s");
            if words.ends_clause(noun) || found.is_possessive {
                noun + 1
            } else {
                follow(words, noun + 1, &mut found, lexicon)
            }
        }
        // "The us basket", "the second", "the other fetcher".
        None if has_open_end(words, start, at, &found, lexicon) => {
            if words.ends_clause(at - 1) {
                at
            } else {
                follow(words, at, &mut found, lexicon)
            }
        }
        None => return None,
    };
    // "Update the older web to the newer one".
    let is_value = found.age.is_some()
        && matches!(start.checked_sub(1).map(|before| words.word(before)), Some("to" | "onto"))
        && words
            .plain
            .iter()
            .any(|word| matches!(&**word, "update" | "upgrade" | "bump" | "set" | "bring" | "downgrade"));
    if is_value {
        return None;
    }
    found.span = start..end;
    found.is_predicate = start > 1 && matches!(words.word(start - 1), "is" | "are" | "was" | "be" | "of");
    found.is_excluded = (start.saturating_sub(2)..start).any(|before| {
        matches!(
            words.word(before),
            "not"
                | "forget"
                | "cancel"
                | "skip"
                | "except"
                | "instead"
                | "leave"
                | "keep"
                | "but"
                | "without"
                | "unlike"
                | "than"
                | "like"
                | "as"
                | "dont"
                | "never"
        ) && !words.ends_clause(before)
    });
    Some(found)
}

/// "Whichever has 4 replicas", "whichever one is pending".
fn whichever(words: &Words<'_>, start: usize, lexicon: &Lexicon) -> Option<Description> {
    let mut found = Description { is_indefinite: true, ..Description::default() };
    let first = start + 1 + usize::from(noun_at(words, start + 1, &mut found));
    let end = clause_end(words, first);
    let said = words.plain.get(first..end)?.join(" ");
    found.state = Some(read(&format!("describe the one that {said}"), lexicon).state?);
    found.span = start..end;
    Some(found)
}

/// Whether a phrase without a noun describes an object: with a position, or a name as its last word.
fn has_open_end(words: &Words<'_>, start: usize, at: usize, found: &Description, lexicon: &Lexicon) -> bool {
    let before = start.checked_sub(1).map(|before| words.word(before));
    let is_known = |word: &String| {
        is_name_of(word, lexicon) || lexicon.has_namespace(word) || lexicon.namespace_like(word).is_some()
    };
    let is_last = |word: &String| words.word(at - 1) == word;
    match found.words.last() {
        None => {
            // "The other way", "the second time": the noun is no object.
            let next = words.word(at);
            let ends = words.ends_clause(at - 1)
                || matches!(
                    next,
                    "" | "to"
                        | "in"
                        | "on"
                        | "of"
                        | "from"
                        | "and"
                        | "has"
                        | "have"
                        | "is"
                        | "please"
                        | "pls"
                        | "too"
                        | "then"
                );
            let is_compared = found.is_sized || found.age.is_some();
            let ends =
                ends || is_compared && matches!(next, "up" | "down" | "back" | "instead" | "as" | "now" | "also");
            // "Put it on the newer".
            let is_value = found.age.is_some() && before.is_some_and(|word| matches!(word, "to" | "on" | "at"));
            (found.position.is_some() || found.is_other || is_compared) && ends && !is_value
        }
        Some(last) => {
            // "The api with 4 replicas".
            let is_on_node = words.word(at) == "on" && is_node_like(words.word(at + 1), lexicon);
            let is_followed = is_on_node
                || matches!(words.word(at), "with" | "without" | "that" | "which" | "thats" | "having" | "running");
            is_last(last)
                && (found.words.len() > 1 || found.is_other || is_followed && !words.ends_clause(at - 1))
                && is_name_of(last, lexicon)
                && found.words.iter().all(is_known)
        }
    }
}

/// Whether a word is an object's name or a part of one, and no namespace.
fn is_name_of(word: &str, lexicon: &Lexicon) -> bool {
    lexicon.is_complete() && lexicon.linked(word).is_some() && !lexicon.has_namespace(word)
}

/// Whether the word is the noun of a description, and reads its kind.
fn noun_at(words: &Words<'_>, at: usize, found: &mut Description) -> bool {
    let word = words.word(at);
    let next = words.word(at + 1);
    let is_one = |word: &str| matches!(word, "one" | "ones" | "ones'");
    if is_one(word) {
        // "One's" lost its apostrophe.
        let is_possessive = clean(words.raw[at]).contains(['\'', '’']);
        found.is_plural = word == "ones" && !is_possessive;
        return true;
    }
    let Some(kind) = kind_word(word) else { return false };
    // "The jobs deployment": a name that is also the word of a kind.
    if !words.ends_clause(at) && (kind_word(next).is_some() || is_one(next)) || kind.plural == "namespaces" {
        return false;
    }
    found.kind = Some(kind.plural);
    found.is_plural = is_plural(word);
    true
}

/// "The debug thing", and as an answer "the older version": nouns that mean an object only with the words before them.
fn is_noun_of_modifiers(words: &Words<'_>, start: usize, at: usize, found: &Description) -> bool {
    // "Put it on the older version" means a value.
    let is_answer = (0..start).all(|before| {
        matches!(
            words.word(before),
            "and" | "ok" | "okay" | "no" | "then" | "now" | "just" | "so" | "hm" | "actually" | "sorry"
        )
    });
    match words.word(at) {
        "thing" => !found.words.is_empty(),
        "version" | "release" | "build" | "image" => found.age.is_some() && is_answer,
        _ => false,
    }
}

/// Whether a word may stand between the article and the noun, and reads what it says.
fn modifies(word: &str, found: &mut Description, lexicon: &Lexicon) -> bool {
    let position = match word {
        "first" | "1st" | "top" => Some(Pick::At(0)),
        "second" | "2nd" => Some(Pick::At(1)),
        "third" | "3rd" => Some(Pick::At(2)),
        "fourth" | "4th" => Some(Pick::At(3)),
        "fifth" | "5th" => Some(Pick::At(4)),
        "last" | "bottom" => Some(Pick::Last),
        "middle" => Some(Pick::Middle),
        _ => None,
    };
    if position.is_some() {
        let is_first = found.position.is_none();
        found.position = position;
        return is_first;
    }
    let age = match word {
        "older" | "oldest" | "outdated" | "eldest" => Some(Age::Older),
        "newer" | "newest" | "youngest" | "younger" => Some(Age::Newer),
        _ => None,
    };
    if age.is_some() {
        found.age = age;
        return true;
    }
    let size = match word {
        "smaller" | "smallest" => Some(State::LeastReplicas),
        "bigger" | "biggest" | "larger" | "largest" => Some(State::MostReplicas),
        _ => None,
    };
    if size.is_some() {
        (found.state, found.is_sized) = (size, true);
        return true;
    }
    if word == "other" {
        found.is_other = true;
        return true;
    }
    if matches!(word, "very" | "same" | "whole" | "damn" | "stupid" | "poor" | "only") {
        return true;
    }
    if let Some(state) = State::of_word(word).filter(|_| word != "down")
        && !is_name_of(word, lexicon)
    {
        found.state = Some(state);
        return true;
    }
    let is_place = lexicon.has_namespace(word) || lexicon.namespace_like(word).is_some();
    let is_known = is_place || is_name_of(word, lexicon);
    let is_function = matches!(
        word,
        "of" | "to"
            | "in"
            | "on"
            | "and"
            | "or"
            | "is"
            | "are"
            | "for"
            | "with"
            | "from"
            | "that"
            | "which"
            | "i"
            | "you"
            | "we"
            | "it"
            | "at"
            | "has"
            | "have"
            | "does"
            | "do"
            | "two"
            | "three"
            | "four"
            | "five"
            | "new"
            | "way"
            | "time"
            | "same"
            | "rest"
            | "others"
            | "replacement"
            | "as"
            | "than"
            | "by"
            | "per"
            | "number"
            | "amount"
            | "count"
            | "image"
            | "version"
            | "tag"
            | "log"
            | "logs"
            | "limit"
            | "one"
            | "up"
            | "down"
            | "back"
            | "too"
            | "also"
            | "instead"
            | "now"
            | "then"
            | "please"
            | "pls"
            | "again"
    );
    let is_plain = word.len() > 1 && number_of(word).is_none() && !word.starts_with('-');
    if is_function || !is_plain || !is_known && VERBS.iter().any(|(phrase, _)| *phrase == word) {
        return false;
    }
    found.words.push(word.to_owned());
    true
}

/// Whether a word of a description says nothing about the object.
pub(in crate::offline) fn is_small_talk(word: &str) -> bool {
    is_ordinary(word)
        && !matches!(
            word,
            "old"
                | "older"
                | "oldest"
                | "new"
                | "newer"
                | "newest"
                | "latest"
                | "big"
                | "bigger"
                | "biggest"
                | "small"
                | "smaller"
                | "smallest"
                | "slow"
                | "slower"
                | "slowest"
                | "fast"
                | "busy"
                | "busiest"
                | "idle"
                | "main"
                | "backup"
                | "spare"
                | "extra"
                | "unused"
                | "young"
                | "younger"
                | "youngest"
                | "heavy"
                | "heaviest"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(message: &str) -> Vec<Description> {
        descriptions(message, &Lexicon::default())
    }

    #[test]
    fn a_description_has_words_a_state_and_a_position() {
        let found = described("describe the other cart pod please");
        assert_eq!((&*found[0].words, found[0].is_other), (&["cart".to_owned()][..], true));
        assert_eq!((found[0].kind.as_deref(), found[0].span.clone()), (Some("pods"), 1..5));
        let found = described("delete the one with 4 restarts, please");
        assert_eq!((found[0].state, found[0].span.clone()), (Some(State::Restarted(4)), 1..6));
        let found = described("the second one on the crm list");
        assert_eq!((found[0].position, found[0].list.as_deref()), (Some(Pick::At(1)), Some("crm")));
        let found = described("describe the one that isn't");
        assert!(found[0].is_opposite, "{found:?}");
        let found = described("what image is the one I wanted to scale on?");
        assert_eq!(found[0].asked_for.as_deref(), Some("scale"));
        let found = described("put the older of the two on demo:0.2");
        assert_eq!((found[0].age, found[0].span.clone()), (Some(Age::Older), 1..6));
        assert!(described("not the other one")[0].is_excluded);
        assert_eq!(described("the other way round"), []);
    }
}
