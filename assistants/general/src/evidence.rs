//! Selects the excerpts that answer a question and puts them first, so that citations start at [1].

pub(crate) mod heading;
pub(crate) mod question;
pub(crate) mod related;
pub(crate) mod spelling;
pub(crate) mod terms;

use std::collections::HashSet;

use threadkeep::agent::Excerpt;
use threadkeep::dialogue::{Utterance, is_question};

use crate::offline::starts_like_command;
use heading::{Heading, normalized};
use question::{Question, QuestionWord, WantedValue};
use terms::{Match, Terms};

/// The maximum number of excerpts that answer a question.
const MAX_ANSWERS: usize = 3;
/// The maximum number of messages that answer a question about everything that was said at a given time.
const MAX_MESSAGES_AT_TIME: usize = 10;
/// Excerpts that score below this share of the best score do not count as answers.
const MIN_SHARE_OF_BEST: f64 = 0.6;
/// The weight of a word of the earlier question, relative to a word of the question itself.
const EARLIER_WORD_WEIGHT: f64 = 0.6;

/// Sorts documents before messages with the same score.
const DOCUMENT_DAY: &str = "9999";

/// An excerpt that may answer a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) heading: &'a str,
    pub(crate) text: &'a str,
}

/// The share of the score that a candidate keeps if it lacks the kind of value that the question asks for.
const WITHOUT_WANTED_VALUE: f64 = 0.7;

/// Returns the indexes of the candidates that answer a question, best first: those that contain at least half of the words of its
/// topic, or related words, in any inflection. Rare words weigh more, and so do candidates with the kind of value that is asked for.
/// Among equal scores, statements that a later message changed come last, and newer messages precede older ones.
pub(crate) fn answers(question: &Question, candidates: &[Candidate<'_>]) -> Vec<usize> {
    let usable: Vec<usize> = (0..candidates.len()).filter(|index| is_quotable(question, &candidates[*index])).collect();
    if question.time_of_messages().is_some() && question.has_no_topic() {
        // The source selected these messages by their time; they are in chronological order.
        return usable.into_iter().take(MAX_MESSAGES_AT_TIME).collect();
    }
    let is_about_day =
        |index: &usize| Heading::parse(candidates[*index].heading).is_some_and(|heading| heading.about.is_some());
    if question.asks_for_events() && usable.iter().any(is_about_day) {
        let of_day = usable.iter().copied().filter(is_about_day).take(MAX_MESSAGES_AT_TIME).collect();
        return with_changes(candidates, &usable, of_day);
    }
    let terms: Vec<Terms> = usable.iter().map(|index| terms_of(&candidates[*index])).collect();
    let has_content = |word: &QuestionWord| !word.is_light;
    let mut required: Vec<&QuestionWord> = question.topic.iter().collect();
    if required.is_empty() {
        required.extend(&question.earlier_topic);
    }
    if !required.iter().any(|word| has_content(word)) {
        // "am I working on Friday?" is about Friday.
        required.extend(&question.time_words);
    }
    if required.is_empty() {
        return Vec::new();
    }
    let mut scored = score(question, candidates, &usable, &terms, &required);
    if scored.is_empty() && !question.topic.is_empty() {
        // "and what do they pay?" may be about the subject of the earlier question alone.
        let earlier: Vec<&QuestionWord> = question.earlier_topic.iter().collect();
        scored = score(question, candidates, &usable, &terms, &earlier);
    }
    if scored.is_empty() && (question.earlier_topic.is_empty() || question.topic.is_empty()) {
        scored = nearest(question, candidates, &usable, &terms);
    }
    if scored.is_empty() && question.asks_for_name {
        // "I'm Dermot" does not contain "name".
        let states_name =
            |index: &usize| Heading::parse(candidates[*index].heading).is_some() && introduces(candidates[*index].text);
        scored = usable.iter().copied().filter(states_name).map(|index| (1.0, index)).collect();
    }
    let order = |index: usize| {
        let heading = Heading::parse(candidates[index].heading);
        let is_changed = heading.as_ref().is_some_and(|heading| heading.changed_on.is_some());
        // The words of a message count more than those of the message that it refers to.
        let own = Terms::new(candidates[index].text);
        let own_words = question.topic.iter().filter(|word| own.contains(word) == Some(Match::Exact)).count();
        let day = heading.map_or(DOCUMENT_DAY, |heading| heading.day);
        (is_changed, std::cmp::Reverse(own_words), std::cmp::Reverse(day), index)
    };
    scored
        .sort_by(|(one, first), (other, second)| other.total_cmp(one).then_with(|| order(*first).cmp(&order(*second))));
    let threshold = scored.first().map_or(0.0, |(score, _)| score * MIN_SHARE_OF_BEST);
    let best: Vec<usize> = scored
        .into_iter()
        .take_while(|(score, _)| *score >= threshold)
        .map(|(_, index)| index)
        .take(MAX_ANSWERS)
        .collect();
    with_changes(candidates, &usable, best)
}

/// Returns the scores of the candidates that contain at least half of the required words, with their indexes.
fn score(
    question: &Question,
    candidates: &[Candidate<'_>],
    usable: &[usize],
    terms: &[Terms],
    required: &[&QuestionWord],
) -> Vec<(f64, usize)> {
    let matches = Matches::new(question, terms);
    let has_content = |word: &QuestionWord| !word.is_light;
    let needs_value = question.topic.is_empty() && question.time_words.is_empty();
    let mut scored: Vec<(f64, usize)> = Vec::new();
    for (at, (index, terms)) in usable.iter().zip(terms).enumerate() {
        // A statement about flat 3A does not answer a question about flat 4C, but a rule for all flats may.
        let is_document = Heading::parse(candidates[*index].heading).is_none();
        let is_identifier = |word: &&QuestionWord| word.is_identifier();
        if !is_document && question.topic.iter().filter(is_identifier).any(|word| !matches.is_match(word, at)) {
            continue;
        }
        let share = |only_matched: bool, only_content: bool| -> f64 {
            let words = required.iter().filter(|word| !only_content || has_content(word));
            words.filter(|word| !only_matched || matches.is_match(word, at)).map(|word| word.share()).sum()
        };
        let only_content = required.iter().any(|word| has_content(word));
        let matched = share(true, only_content);
        // Related words alone do not show that a statement is about the topic if other words are missing.
        let is_same = |word: &&&QuestionWord| matches!(matches.find(word, at), Some(Match::Exact | Match::Misspelt));
        let is_about = matched >= share(false, only_content) || required.iter().any(|word| is_same(&word));
        if matched > 0.0 && is_about && matched * 2.0 >= share(false, only_content) {
            let score = matches.weigh(&question.topic, at)
                + EARLIER_WORD_WEIGHT * matches.weigh(&question.earlier_topic, at)
                + matches.weigh(&question.time_words, at);
            let has_value = match question.wanted {
                // "When did I say that?" asks for the day of the message.
                WantedValue::Time => terms.has_time() || question.asks_what_was_said,
                WantedValue::Number => terms.has_number(),
                WantedValue::Any => true,
            };
            // Words of an earlier message alone do not answer a question that asks for a time or a number.
            if needs_value && !has_value {
                continue;
            }
            scored.push((if has_value { score } else { score * WITHOUT_WANTED_VALUE }, *index));
        }
    }
    scored
}

/// Returns the scores of the statements that contain at least a third of the words of a question, if none contains half of them. Such a
/// statement is only the closest one to the question.
fn nearest(question: &Question, candidates: &[Candidate<'_>], usable: &[usize], terms: &[Terms]) -> Vec<(f64, usize)> {
    let words = if question.topic.is_empty() { &question.earlier_topic } else { &question.topic };
    let content: Vec<&QuestionWord> = words.iter().filter(|word| !word.is_light).collect();
    let has_identifier = content.iter().any(|word| word.is_identifier());
    let scored = usable.iter().zip(terms).filter_map(|(index, terms)| {
        let is_message = Heading::parse(candidates[*index].heading).is_some();
        let matched = content.iter().filter(|word| terms.contains(word) == Some(Match::Exact)).count();
        let is_near = matched > 0 && matched * 3 >= content.len() && is_message && !has_identifier;
        is_near.then_some((matched as f64, *index))
    });
    scored.collect()
}

/// Inserts, before each answer that was changed later, the newest message that changed it.
fn with_changes(candidates: &[Candidate<'_>], usable: &[usize], answers: Vec<usize>) -> Vec<usize> {
    let mut all = Vec::with_capacity(answers.len());
    for index in answers {
        if Heading::parse(candidates[index].heading).is_some_and(|heading| heading.changed_on.is_some()) {
            let text = normalized(candidates[index].text);
            let changes = |other: &&usize| {
                let heading = Heading::parse(candidates[**other].heading);
                heading
                    .and_then(|heading| heading.after)
                    .is_some_and(|after| !after.is_empty() && text.starts_with(after))
            };
            let newest = usable
                .iter()
                .filter(changes)
                .max_by_key(|other| Heading::parse(candidates[**other].heading).map(|heading| heading.day.to_owned()));
            all.extend(newest.filter(|other| **other != index && !all.contains(*other)));
        }
        if !all.contains(&index) {
            all.push(index);
        }
    }
    all
}

/// Matches the words of a question against candidates.
struct Matches<'a> {
    terms: &'a [Terms],
    /// The words of the question that a candidate contains exactly as written. They are not considered misspelt.
    exact: HashSet<&'a str>,
}

impl<'a> Matches<'a> {
    fn new(question: &'a Question, terms: &'a [Terms]) -> Self {
        let words = question.topic.iter().chain(&question.earlier_topic).chain(&question.time_words);
        let is_exact = |word: &&QuestionWord| terms.iter().any(|terms| terms.contains(word) == Some(Match::Exact));
        Self { terms, exact: words.filter(is_exact).map(|word| word.word.as_str()).collect() }
    }

    fn find(&self, word: &QuestionWord, at: usize) -> Option<Match> {
        self.terms[at]
            .contains(word)
            .filter(|found| *found != Match::Misspelt || !self.exact.contains(word.word.as_str()))
    }

    fn is_match(&self, word: &QuestionWord, at: usize) -> bool {
        self.find(word, at).is_some()
    }

    /// Returns the sum of the weights of the words that a candidate contains.
    fn weigh(&self, words: &[QuestionWord], at: usize) -> f64 {
        let weight = |word: &QuestionWord| {
            let matching = (0..self.terms.len()).filter(|at| self.is_match(word, *at)).count();
            let rarity = (1.0 + self.terms.len() as f64 / matching.max(1) as f64).ln();
            self.find(word, at).map_or(0.0, |found| rarity * found.weight() * word.share())
        };
        words.iter().map(weight).sum()
    }
}

/// Whether a candidate contains all words of a question's topic, or words that are related to them.
pub(crate) fn contains_topic(question: &Question, candidate: &Candidate<'_>) -> bool {
    missing_words(question, candidate).is_empty()
}

/// Returns the words of a question's topic that a candidate does not contain in any form, except those that say little
/// about the topic.
pub(crate) fn missing_words<'a>(question: &'a Question, candidate: &Candidate<'_>) -> Vec<&'a str> {
    let terms = terms_of(candidate);
    let missing = question.topic.iter().filter(|word| !word.is_light && terms.contains(word).is_none());
    missing.map(|word| word.word.as_str()).collect()
}

/// Whether a word of the text is a word of a question, in any inflection.
pub(crate) fn matches_word(word: &QuestionWord, text: &str) -> bool {
    Terms::new(text).contains(word).is_some()
}

/// Moves the excerpts that answer a question to the front, best first, and removes repetitions.
pub(crate) fn best_first(question: &Question, excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let excerpts = without_repetitions(excerpts);
    let candidates: Vec<Candidate<'_>> =
        excerpts.iter().map(|excerpt| Candidate { heading: &excerpt.heading, text: &excerpt.text }).collect();
    let best = answers(question, &candidates);
    let rest = (0..excerpts.len()).filter(|index| !best.contains(index));
    let order: Vec<usize> = best.iter().copied().chain(rest).collect();
    let mut excerpts: Vec<Option<Excerpt>> = excerpts.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| excerpts[index].take()).collect()
}

/// Whether an excerpt can answer a question: it contains more than questions, and is not an answer of the assistant. Only messages
/// and preferences answer a question about what was said.
fn is_quotable(question: &Question, candidate: &Candidate<'_>) -> bool {
    match Heading::parse(candidate.heading) {
        Some(heading) => {
            let states_name = !question.asks_for_name || states_user_name(candidate.text);
            !heading.is_by_assistant() && !statements(candidate.text).is_empty() && states_name
        }
        // Preferences have no heading.
        None => candidate.heading.is_empty() || !question.asks_about_user,
    }
}

/// Whether a message states the name of the user.
pub(crate) fn states_user_name(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let names = |two: &[&str]| {
        matches!(
            two,
            ["my" | "mi", "name" | "nombre"] | ["call" | "calls", "me"] | ["me", "llamo" | "llaman"] | ["be", "called"]
        )
    };
    words.windows(2).any(names)
        || words.iter().any(|word| matches!(*word, "llamame" | "llameme" | "digame"))
        || introduces(text)
}

/// Whether a word of a question for a name says no more than that: "full", "called".
fn is_name_word(word: &str) -> bool {
    matches!(word, "name" | "nombre" | "called" | "llamo" | "full" | "first" | "real" | "whole" | "given")
}

/// Whether a message contains "I'm Dermot": words that introduce the user, then a capitalized word.
fn introduces(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let is_capitalized = |at: usize| {
        let word = utterance.words().get(at);
        word.is_some_and(|word| text[word.span.clone()].starts_with(char::is_uppercase))
    };
    (0..utterance.words().len()).any(|at| match utterance.word(at) {
        "im" | "soy" => is_capitalized(at + 1),
        "i" if utterance.word(at + 1) == "am" => is_capitalized(at + 2),
        _ => false,
    })
}

/// Returns the search terms of a candidate: the terms of its statements and of the message that it refers to.
fn terms_of(candidate: &Candidate<'_>) -> Terms {
    match Heading::parse(candidate.heading) {
        Some(heading) => {
            let terms = Terms::new(&statements(candidate.text)).with_context(heading.after.unwrap_or_default());
            // The question says what "it is teal" is about.
            if own_answer(candidate.text).is_some() { terms.with_context(candidate.text) } else { terms }
        }
        None => Terms::new(candidate.text).with_context(candidate.heading),
    }
}

/// Returns a message without its questions and its requests to forget something.
pub(crate) fn statements(text: &str) -> String {
    let is_statement = |sentence: &&str| {
        !is_question(sentence)
            && !asks_to_forget(sentence)
            && !is_verbless_question(sentence)
            && !is_cancellation(sentence)
            && !starts_like_command(sentence)
    };
    let statements: Vec<&str> = sentences(text).filter(is_statement).collect();
    statements.join(" ")
}

/// Returns the statement with which a message answers its own question: "What colour is the flag? It is teal."
pub(crate) fn own_answer(text: &str) -> Option<&str> {
    let mut all = sentences(text);
    let asks = all.by_ref().find(|sentence| is_question(sentence))?;
    let answer = all.next().filter(|sentence| asks.ends_with('?') && !is_question(sentence))?;
    let utterance = Utterance::new(answer);
    let refers = matches!(utterance.word(0), "it" | "its" | "hes" | "shes" | "theyre" | "es" | "son")
        || matches!(utterance.word(0), "he" | "she" | "they" | "that" | "there")
            && matches!(utterance.word(1), "is" | "are" | "was" | "were" | "has" | "have");
    let states = utterance.words().len() >= MIN_ANSWER_WORDS && !starts_like_command(answer);
    (refers && states).then_some(answer)
}

/// The minimum number of words in a statement with which a message answers its own question.
const MIN_ANSWER_WORDS: usize = 2;

/// Whether a sentence only takes back a request: "no wait, leave it", "never mind", "keep it".
fn is_cancellation(sentence: &str) -> bool {
    const WORDS: [&str; 20] = [
        "no",
        "wait",
        "dont",
        "do",
        "not",
        "actually",
        "please",
        "it",
        "that",
        "leave",
        "keep",
        "never",
        "mind",
        "nevermind",
        "cancel",
        "ok",
        "them",
        "there",
        "mejor",
        "dejalo",
    ];
    let utterance = Utterance::new(sentence);
    let has = |known: &[&str]| utterance.words().iter().any(|word| known.contains(&&*word.folded));
    has(&["leave", "keep", "nevermind", "mind", "cancel", "dejalo"])
        && utterance.words().iter().all(|word| WORDS.contains(&&*word.folded))
}

/// Whether a short sentence is a question without a verb: "staging db port", "4.12 freeze date".
fn is_verbless_question(sentence: &str) -> bool {
    const MAX_WORDS: usize = 6;
    let utterance = Utterance::new(sentence);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let last = words.iter().rfind(|word| !matches!(**word, "please" | "pls" | "again" | "now"));
    let corrects = words.first().is_some_and(|first| matches!(*first, "no" | "sorry" | "wait" | "actually"));
    words.len() <= MAX_WORDS
        && !corrects
        && !sentence.contains([':', '='])
        && last.is_some_and(|last| {
            matches!(
                *last,
                "date" | "time" | "port" | "code" | "number" | "address" | "price" | "room" | "name" | "when" | "where"
            )
        })
        && !words.iter().any(|word| matches!(*word, "is" | "are" | "was" | "has" | "es" | "la" | "my" | "new"))
}

pub(crate) fn asks_to_forget(sentence: &str) -> bool {
    let utterance = Utterance::new(sentence);
    let mut words = utterance.words().iter().map(|word| word.folded.as_str());
    let is_opening = |word: &str| {
        matches!(
            word,
            "please"
                | "now"
                | "ok"
                | "hey"
                | "and"
                | "then"
                | "por"
                | "favor"
                | "but"
                | "do"
                | "really"
                | "can"
                | "could"
                | "you"
                | "hmm"
                | "just"
                | "actually"
                | "vale"
                | "pero"
                | "y"
                | "ahora"
                | "oye"
                | "mire"
        )
    };
    let first = words.find(|word| !is_opening(word));
    first.is_some_and(|first| {
        matches!(
            first,
            "forget"
                | "erase"
                | "delete"
                | "unset"
                | "remove"
                | "olvida"
                | "borra"
                | "elimina"
                | "olvidate"
                | "olvide"
                | "borre"
                | "quita"
        )
    })
}

/// Splits text into sentences, which end at a punctuation mark or a line break.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let next = move || {
        let is_end = |(at, mark): &(usize, char)| {
            let following = rest[at + mark.len_utf8()..].chars().next();
            matches!(mark, '.' | '!' | '?') && following.is_none_or(char::is_whitespace) || *mark == '\n'
        };
        let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, mark)| at + mark.len_utf8());
        let (sentence, left) = rest.split_at(end);
        rest = left;
        (!sentence.is_empty()).then(|| sentence.trim())
    };
    std::iter::from_fn(next).filter(|sentence| !sentence.is_empty())
}

/// Removes repeated messages of the same author. Equal passages of different documents are kept.
fn without_repetitions(excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let mut unique: Vec<Excerpt> = Vec::with_capacity(excerpts.len());
    for excerpt in excerpts {
        let repeats = |known: &Excerpt| known.text.trim() == excerpt.text.trim() && origin(known) == origin(&excerpt);
        if !unique.iter().any(repeats) {
            unique.push(excerpt);
        }
    }
    unique
}

/// Returns the author of a message without the day, or the location of a passage.
fn origin(excerpt: &Excerpt) -> &str {
    Heading::parse(&excerpt.heading).map_or(&excerpt.heading, |heading| heading.speaker)
}

#[cfg(test)]
mod tests {
    use threadkeep::Source;

    use super::*;

    fn excerpt(heading: &str, text: &str) -> Excerpt {
        let source = Source {
            kind: "test".to_owned(),
            id: text.to_owned(),
            title: None,
            score: None,
            distance: None,
            fields: threadkeep::Map::new(),
        };
        Excerpt { heading: heading.to_owned(), text: text.to_owned(), source }
    }

    #[test]
    fn only_statements_of_the_users_name_answer_the_question_for_it() {
        for text in ["my name is Sam", "I'm Dermot, hello", "I am Ana", "soy Lucía", "me llamo Lucía", "call me Jo"] {
            assert!(states_user_name(text), "{text}");
        }
        for text in ["the tiler is called Renzo", "I'm late", "soy alérgica al polen", "I am on leave"] {
            assert!(!states_user_name(text), "{text}");
        }
    }

    fn order(question: &str, excerpts: &[(&str, &str)]) -> Vec<String> {
        let excerpts = excerpts.iter().map(|(heading, text)| excerpt(heading, text)).collect();
        let ordered = best_first(&Question::new(question, ""), excerpts);
        ordered.into_iter().map(|one| format!("{}: {}", one.heading, one.text)).collect()
    }

    #[test]
    fn answers_come_first_without_repetitions() {
        let found = order(
            "What is Mila allergic to?",
            &[
                ("guide.md", "Tents are cleaned with water."),
                ("said by the user on 2026-06-20", "What is Mila allergic to?"),
                ("said by the assistant on 2026-06-20", "You said: Mila is allergic to nuts."),
                ("said by the user on 2026-06-20", "Mila is allergic to nuts."),
                ("said by the user on 2026-05-03", "Mila is allergic to nuts. "),
                ("said by Sam on 2026-05-03", "Mila is allergic to nuts."),
            ],
        );
        assert_eq!(
            found,
            [
                "said by the user on 2026-06-20: Mila is allergic to nuts.",
                "said by Sam on 2026-05-03: Mila is allergic to nuts.",
                "guide.md: Tents are cleaned with water.",
                "said by the user on 2026-06-20: What is Mila allergic to?",
                "said by the assistant on 2026-06-20: You said: Mila is allergic to nuts.",
            ]
        );
    }

    #[test]
    fn equal_passages_of_different_documents_are_kept() {
        let found = order("When is it open?", &[("a.md", "It is open at nine."), ("b.md", "It is open at nine.")]);
        assert_eq!(found, ["a.md: It is open at nine.", "b.md: It is open at nine."]);
    }

    #[test]
    fn statements_exclude_questions() {
        assert_eq!(statements("Mila is allergic to nuts. What should I cook?"), "Mila is allergic to nuts.");
        assert_eq!(statements("When is it?"), "");
        assert_eq!(statements("It costs 3.50\n\nCheap!"), "It costs 3.50 Cheap!");
    }
}
