//! Messages that refer to an earlier message, and which one they refer to.

use threadkeep::agent::{Excerpt, SourceQuery};
use threadkeep::core::text::content_terms;
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{Bound, MessageQuery, Role};

use super::MAX_REFERENCE;
use super::change_words::CHANGES;
use crate::calculation;
use crate::evidence::heading::Heading;

/// How many earlier messages are searched for the one that a message refers to.
const REFERENCE_REACH: u64 = 30;

/// Returns the text of the message that an excerpt refers to ("it", "actually"): the nearest earlier
/// user message in the thread that can be understood on its own.
pub(super) async fn referred_text(source_query: &SourceQuery<'_>, excerpt: &Excerpt) -> Option<String> {
    Heading::parse(&excerpt.heading).filter(|_| refers_back(&excerpt.text))?;
    let (thread, seq) = excerpt.source.message_position()?;
    let query = MessageQuery {
        before: Some(Bound::Seq(seq)),
        after: Some(Bound::Seq(seq.saturating_sub(REFERENCE_REACH + 1))),
        roles: vec![Role::User],
        ..MessageQuery::newest(usize::try_from(REFERENCE_REACH).unwrap_or(usize::MAX))
    };
    let page = source_query.memory.messages(source_query.scope, thread, &query).await.ok()?;
    let earlier: Vec<String> = page.messages.iter().rev().map(|message| message.plain_text().into_owned()).collect();
    let is_complete =
        |text: &&String| !refers_back(text) && !content_terms(text).is_empty() && calculation::find(text).is_none();
    // "its 2.25 high not 2.1" refers to the statement with that value.
    if let Some(rejected) = rejected_value(&excerpt.text) {
        let has_value =
            |text: &&String| text.split_whitespace().any(|word| without_punctuation(word).to_lowercase() == rejected);
        if let Some(found) = earlier.iter().find(has_value) {
            return Some(found.chars().take(MAX_REFERENCE).collect());
        }
    }
    // "Renzo rang, he can only start on the 11th" refers to the statement that names Renzo.
    let own_names = capitalized_words(&excerpt.text);
    let names_same = |text: &&String| {
        let words = Utterance::new(text.as_str());
        let is_named = |name: &String| words.words().iter().any(|word| is_form_of(&word.folded, name));
        is_complete(text) && !is_question(text) && own_names.iter().any(is_named)
    };
    if let Some(found) = earlier.iter().find(names_same) {
        return Some(found.chars().take(MAX_REFERENCE).collect());
    }
    let names_person = |text: &&String| is_complete(text) && !names_in(text).is_empty();
    let person = earlier.iter().find(names_person).filter(|_| refers_to_person(&excerpt.text));
    let found = person.or_else(|| earlier.iter().find(is_complete))?;
    Some(found.chars().take(MAX_REFERENCE).collect())
}

/// Returns the value that a message rejects: "2.1" in "its 2.25 high not 2.1", "50" in "50 minutes was too long".
fn rejected_value(text: &str) -> Option<String> {
    let words: Vec<String> = text.split_whitespace().map(|word| without_punctuation(word).to_lowercase()).collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_rejected =
        |two: &&[String]| matches!(&*two[0], "not" | "no" | "than" | "of" | "instead" | "de") && is_number(&two[1]);
    let negates = words.iter().any(|word| matches!(&**word, "not" | "no" | "rather" | "instead" | "vez" | "lugar"));
    let negated = words.windows(2).rev().find(is_rejected).filter(|_| negates).map(|two| &two[1]);
    // A unit may follow the number.
    let is_criticised = |at: &usize| {
        let rest = &words[*at + 1..];
        let rest =
            if rest.first().is_some_and(|word| is_copula(word)) { rest } else { rest.get(1..).unwrap_or_default() };
        rest.first().is_some_and(|word| is_copula(word))
            && rest.get(1).is_some_and(|word| {
                matches!(
                    &**word,
                    "too" | "wrong" | "incorrect" | "demasiado" | "demasiada" | "poco" | "mucho" | "incorrecto"
                )
            })
    };
    let criticised = || (0..words.len()).filter(|at| is_number(&words[*at])).find(is_criticised).map(|at| &words[at]);
    negated.or_else(criticised).cloned()
}

fn is_copula(word: &str) -> bool {
    matches!(word, "was" | "were" | "is" | "are" | "era" | "eran" | "fue" | "fueron" | "es" | "son")
}

fn without_punctuation(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a message contains a personal pronoun, and names no person before it.
fn refers_to_person(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let pronoun = utterance.words().iter().position(|word| PERSONAL_PRONOUNS.contains(&word.folded.as_str()));
    pronoun.is_some_and(|at| {
        let before = &utterance.text()[..utterance.words()[at].span.start];
        at < MAX_PERSONAL_PRONOUN_POSITION
            && names_in(before).is_empty()
            && !Utterance::new(before).words().iter().any(|word| PEOPLE.contains(&word.folded.as_str()))
    })
}

/// Words for people, to which a later pronoun in the sentence refers.
const PEOPLE: [&str; 26] = [
    "man",
    "woman",
    "lady",
    "guy",
    "sister",
    "brother",
    "mother",
    "father",
    "mum",
    "mom",
    "dad",
    "wife",
    "husband",
    "son",
    "daughter",
    "friend",
    "boss",
    "doctor",
    "nurse",
    "aunt",
    "uncle",
    "cousin",
    "neighbour",
    "teacher",
    "tutor",
    "gran",
];

const PERSONAL_PRONOUNS: [&str; 6] = ["her", "him", "his", "she", "he", "hers"];
const MAX_PERSONAL_PRONOUN_POSITION: usize = 7;

/// Whether a word is the given name or its possessive form.
fn is_form_of(word: &str, name: &str) -> bool {
    word == name || word.strip_suffix('s') == Some(name) || name.strip_suffix('s') == Some(word)
}

/// Returns the capitalized words of the text, normalized, including those that begin a sentence.
pub(super) fn capitalized_words(text: &str) -> Vec<String> {
    let utterance = Utterance::new(text);
    let is_capitalized = |at: &usize| {
        let word = &utterance.words()[*at];
        word.folded.len() > 2
            && text[word.span.start..].starts_with(char::is_uppercase)
            && !content_terms(&word.folded).is_empty()
    };
    (0..utterance.words().len()).filter(is_capitalized).map(|at| utterance.word(at).to_owned()).collect()
}

/// Returns the capitalized words of the text, normalized, except those that begin a sentence.
pub(super) fn names_in(text: &str) -> Vec<String> {
    let utterance = Utterance::new(text);
    let is_name = |at: &usize| {
        let word = &utterance.words()[*at];
        let before = utterance.text()[..word.span.start].trim_end();
        let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n']);
        !begins && word.folded.len() > 2 && utterance.text()[word.span.start..].starts_with(char::is_uppercase)
    };
    (0..utterance.words().len()).filter(is_name).map(|at| utterance.word(at).to_owned()).collect()
}

/// Whether a message cannot be understood without an earlier message.
pub(super) fn refers_back(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let interjections = words.iter().take_while(|word| INTERJECTIONS.contains(word)).count();
    let words = &words[interjections..];
    let starts = |start: &&str| words.starts_with(&start.split(' ').collect::<Vec<_>>());
    // "Remember that my seat …" contains no pronoun.
    // "Es el 30 de enero" has no subject.
    matches!(words.first(), Some(&("that" | "es" | "son" | "era" | "eran")))
        || refers_to_person(text)
        || rejected_value(text).is_some()
        || words.last() == Some(&"instead")
        // "Moved to the 26th because half of us have flu"
        || words.first().is_some_and(|first| CHANGES.contains(first) && first.ends_with("ed"))
        || words.iter().take(MAX_PRONOUN_POSITION).any(|word| PRONOUNS.contains(word))
        || CORRECTIONS.iter().any(starts)
}

/// Interjections that may precede the words that refer back.
const INTERJECTIONS: [&str; 18] = [
    "hm", "hmm", "oh", "ah", "ok", "okay", "ugh", "um", "erm", "well", "so", "and", "fine", "mira", "oye", "pues",
    "ay", "hey",
];

/// The last position at which a pronoun refers back. A later pronoun usually refers to something in the same message.
const MAX_PRONOUN_POSITION: usize = 4;
const PRONOUNS: [&str; 18] = [
    "it", "its", "itll", "they", "theyre", "theyve", "theyll", "them", "she", "shes", "he", "hes", "him", "her", "eso",
    "ella", "ello", "ellos",
];
const CORRECTIONS: [&str; 20] = [
    "scrap that",
    "forget that",
    "i beg your pardon",
    "pardon",
    "actually",
    "correction",
    "no wait",
    "wait",
    "sorry",
    "scratch that",
    "change of plan",
    "change of plans",
    "update",
    "i mean",
    "i meant",
    "en realidad",
    "correccion",
    "perdon",
    "cambio de planes",
    "mejor",
];
