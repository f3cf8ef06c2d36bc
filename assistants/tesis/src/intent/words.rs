//! The word lists of the rules, folded, one file per list.

use std::collections::HashSet;
use std::sync::LazyLock;

use threadkeep::core::text::{Language, content_terms};

/// Beginnings of verbs for what the assistant or the user did with a source: `la que me acabas de decir`.
const SPEECH: [&str; 25] = [
    "acab", "cita", "mencion", "dij", "decir", "dices", "explic", "coment", "senal", "mostr", "diste", "pusiste",
    "encontr", "vimos", "platic", "conversa", "hablamos", "usted", "dio", "ensena", "pregunt", "busc", "list", "sirve",
    "interes",
];
type List = LazyLock<Vec<&'static str>>;

fn words(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

/// Words that make a message a courtesy.
pub(super) static COURTESY_CORE: List = LazyLock::new(|| words(include_str!("words/courtesy_core.txt")));

/// Other words in courtesies.
pub(super) static COURTESY: List = LazyLock::new(|| words(include_str!("words/courtesy.txt")));

/// Verbs that ask for a search.
pub(super) static SEARCH: List = LazyLock::new(|| words(include_str!("words/search.txt")));

/// Verbs that ask whether there are sources.
pub(super) static HAVE: List = LazyLock::new(|| words(include_str!("words/have.txt")));

/// Verbs that ask for something.
pub(super) static GIVE: List = LazyLock::new(|| words(include_str!("words/give.txt")));

/// Names of sources.
pub(super) static NOUNS: List = LazyLock::new(|| words(include_str!("words/nouns.txt")));

/// Words that ask for sources other than those at hand.
pub(super) static OTHER: List = LazyLock::new(|| words(include_str!("words/other.txt")));

/// Words that point to the last answer.
pub(super) static DEICTIC: List = LazyLock::new(|| words(include_str!("words/deictic.txt")));

/// Words that point to a source by its position.
pub(super) static ORDINALS: List = LazyLock::new(|| words(include_str!("words/ordinals.txt")));

/// Phrases that introduce another topic; `^` matches the start of a message.
pub(super) static SWITCHES: List = LazyLock::new(|| include_str!("words/switches.txt").lines().collect());

/// Words used to talk about sources and answers.
pub(super) static FOLLOW_UP_WORDS: List = LazyLock::new(|| words(include_str!("words/follow_up_words.txt")));

/// Beginnings of words used to talk about sources and answers.
pub(super) static FOLLOW_UP_STEMS: List = LazyLock::new(|| words(include_str!("words/follow_up_stems.txt")));

/// Beginnings of words that concern an answer or a source, which a message about another matter seldom has.
pub(super) static ANSWER_STEMS: List = LazyLock::new(|| words(include_str!("words/answer_stems.txt")));

/// Requests to which a pronoun can be attached: `ponla`, `explicamelo`.
pub(super) static IMPERATIVES: List = LazyLock::new(|| words(include_str!("words/imperatives.txt")));

/// Verbs that begin a question about a source without naming it: `¿incluye bonos?`
pub(super) static SUBJECTLESS: List = LazyLock::new(|| words(include_str!("words/subjectless.txt")));

/// Nouns for a fact about a source rather than for a source.
pub(super) static FACTS: List = LazyLock::new(|| words(include_str!("words/facts.txt")));

/// Phrases that ask for a search.
pub(super) static SEARCH_PHRASES: List = LazyLock::new(|| include_str!("words/search_phrases.txt").lines().collect());

/// Words that only open a message.
pub(super) static OPENINGS: List = LazyLock::new(|| words(include_str!("words/openings.txt")));

/// Words that close a conversation.
pub(super) static CLOSING: List = LazyLock::new(|| words(include_str!("words/closing.txt")));

/// Phrases that close a conversation.
pub(super) static FAREWELLS: List = LazyLock::new(|| include_str!("words/farewells.txt").lines().collect());

/// Things that people ask an assistant for and that are no legal research.
pub(super) static OTHER_TASKS: List = LazyLock::new(|| words(include_str!("words/other_tasks.txt")));

/// Question words.
pub(super) static ASKING: List = LazyLock::new(|| words(include_str!("words/asking.txt")));

/// Words in the groups of related words that alone do not indicate a legal matter.
pub(super) static EVERYDAY: List = LazyLock::new(|| words(include_str!("words/everyday.txt")));

/// Legal terms.
pub(crate) static LEGAL: List = LazyLock::new(|| words(include_str!("words/legal.txt")));

/// Everyday words that are common in legal matters.
static WEAK_LEGAL: List = LazyLock::new(|| words(include_str!("words/weak_legal.txt")));

/// Complete words used to talk about sources, for correcting misspelt ones.
static TALK: List = LazyLock::new(|| words(include_str!("words/talk.txt")));

/// Returns the words used in requests and to talk about sources.
pub(crate) fn talk() -> impl Iterator<Item = &'static str> {
    let lists = [&TALK, &COURTESY_CORE, &SEARCH, &HAVE, &GIVE, &NOUNS, &ORDINALS, &OTHER, &FOLLOW_UP_WORDS];
    lists.into_iter().flat_map(|list| list.iter().copied())
}

/// Pairs of words that replace each other when a question names one: after `suspensión definitiva`, `¿y la provisional?`
const OPPOSITES: [(&str, &str); 4] =
    [("provisional", "definitiva"), ("directo", "indirecto"), ("oral", "escrito"), ("aislada", "jurisprudencia")];

/// Whether the words of a question name the opposite of a word, and not the word itself.
pub(crate) fn is_opposite(word: &str, own: &[&str]) -> bool {
    OPPOSITES.iter().any(|(one, other)| {
        word == *one && own.contains(other) && !own.contains(one)
            || word == *other && own.contains(one) && !own.contains(other)
    })
}

/// Whether a folded word is ordinary, a function word, or used to talk about sources.
pub(crate) fn is_known(word: &str) -> bool {
    is_ordinary(word)
        || Language::Spanish.is_function_word(word)
        || FOLLOW_UP_STEMS.iter().any(|stem| word.starts_with(stem))
        || SUBJECTLESS.contains(&word)
        || COURTESY.contains(&word)
        || WEAK_LEGAL.contains(&word)
}

/// Whether a folded word only asks for something.
pub(crate) fn is_request(word: &str) -> bool {
    SEARCH.contains(&word) || GIVE.contains(&word) || HAVE.contains(&word) || word == "tengas"
}

/// Whether a folded word asks for something: `dame`.
pub(crate) fn is_give(word: &str) -> bool {
    GIVE.contains(&word) && word != "cita"
}

/// Whether a folded word asks for a search: `busca`.
pub(crate) fn is_search(word: &str) -> bool {
    SEARCH.contains(&word)
}

/// Whether a folded word is a name of sources, or points to one by its position.
pub(crate) fn is_source_word(word: &str) -> bool {
    NOUNS.contains(&word) || ORDINALS.contains(&word)
}

/// Whether a folded verb returns to something earlier: `volviendo`.
pub(crate) fn is_return(word: &str) -> bool {
    ["regres", "volva", "volver", "volvi", "vuelv", "retom"].iter().any(|start| word.starts_with(start))
}

/// Whether a folded verb says what someone did with a source: `dijiste`.
pub(crate) fn is_speech(word: &str) -> bool {
    SPEECH.iter().any(|start| word.starts_with(start))
}

/// Whether a folded word is ordinary or common in talk about sources, so that it names no topic.
pub(crate) fn is_talk(word: &str) -> bool {
    is_ordinary(word) || super::vocabulary::is_follow_up_word(word)
}

/// Whether a stem is that of a legal term.
pub(crate) fn is_legal_stem(stem: &str) -> bool {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| stems_of(&LEGAL));
    STEMS.contains(stem)
}

/// Whether a stem is that of an everyday word that is common in legal matters.
pub(crate) fn is_weak_legal_stem(stem: &str) -> bool {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| stems_of(&WEAK_LEGAL));
    STEMS.contains(stem)
}

fn stems_of(words: &[&str]) -> HashSet<String> {
    words.iter().flat_map(|word| content_terms(word)).flat_map(|(_, stems)| stems).collect()
}

/// Whether a folded word is an ordinary Spanish word that names no legal topic: `pasa`, `considera`, `facil`.
pub(crate) fn is_ordinary(word: &str) -> bool {
    static ORDINARY: LazyLock<HashSet<&str>> =
        LazyLock::new(|| include_str!("words/ordinary.txt").split_whitespace().collect());
    ORDINARY.contains(word)
}

/// Returns the word from which a diminutive is formed: `tabla` for `tablita`.
pub(super) fn without_diminutive(word: &str) -> Option<String> {
    let endings = [("ita", "a"), ("ito", "o"), ("itas", "as"), ("itos", "os")];
    let (base, ending) =
        endings.iter().find_map(|(diminutive, ending)| Some((word.strip_suffix(diminutive)?, ending)))?;
    (base.len() >= 3).then(|| format!("{base}{ending}"))
}
