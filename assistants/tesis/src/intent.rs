//! What a message asks for: more about the sources at hand, a new search, or nothing.
//!
//! The rules apply in this order: a courtesy asks for nothing; without sources, everything is a new search; then a stated search, a
//! request for more or other sources, a reference to a source at hand, a filter, a reference to the last answer, a change of topic,
//! and words of another topic. What is left is about the sources at hand.

mod phrase;
mod vocabulary;
pub(crate) mod words;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::answer;
use crate::clave::{ClaveKey, References, fold_text};
use crate::english;
use crate::filters;
use crate::reference;
use crate::spelling;
use phrase::Words;
use vocabulary::Vocabulary;
use words::NOUNS;

/// What a message asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// An answer from the sources of the conversation.
    #[serde(rename = "REUSE")]
    Reuse,
    /// A search.
    #[default]
    #[serde(rename = "NEW_SEARCH")]
    NewSearch,
    /// Nothing: thanks, a greeting.
    #[serde(rename = "NONE")]
    None,
}

impl Intent {
    /// Returns the label: `REUSE`, `NEW_SEARCH` or `NONE`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Reuse => "REUSE",
            Self::NewSearch => "NEW_SEARCH",
            Self::None => "NONE",
        }
    }
}

/// A message of the conversation so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastMessage {
    /// Whether the user wrote it.
    pub is_user: bool,
    /// The text.
    pub text: String,
    /// The titles of its sources, and their texts as far as they are known.
    pub sources: Vec<String>,
    /// The registro of each source that is a tesis.
    pub registros: Vec<i64>,
    /// The claves of its sources.
    pub claves: Vec<ClaveKey>,
}

/// Legal nouns that do not occur in messages about other matters.
const LEGAL_NOUNS: [&str; 14] = [
    "ley",
    "leyes",
    "codigo",
    "reglamento",
    "articulo",
    "constitucion",
    "derecho",
    "derechos",
    "amparo",
    "delito",
    "juicio",
    "demanda",
    "contrato",
    "juridico",
];

/// The maximum number of new words in a request for another form of the answer.
const MAX_NEW_FORMAT_WORDS: usize = 2;
/// The maximum number of new words in a question that asks for a fact about a source.
const MAX_NEW_ATTRIBUTE_WORDS: usize = 2;

/// An intent and the rule that decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The intent.
    pub intent: Intent,
    /// The rule, in Spanish, for `llm_reasoning` and traces.
    pub reason: &'static str,
    /// Whether the message is not about law.
    pub is_off_topic: bool,
    /// Whether the message asks for sources beyond those that were shown.
    pub wants_more: bool,
    /// Whether the message refers to no source, so that only its words decide.
    pub is_by_topic: bool,
    /// Whether the intent rests on one word only, so `REUSE` and `NEW_SEARCH` are about equally likely.
    pub is_ambiguous: bool,
}

impl Classification {
    const UNDECIDED: Self = Self {
        intent: Intent::NewSearch,
        reason: "",
        is_off_topic: false,
        wants_more: false,
        is_by_topic: false,
        is_ambiguous: false,
    };
}

/// Whether a question is answered from the sources of the conversation. `false` means a new search.
#[must_use]
pub fn classify_intent_simple(question: &str, history: &[PastMessage]) -> bool {
    classify(question, history).intent == Intent::Reuse
}

/// Whether a message consists of legal terms, or explicitly asks for a search or for other sources.
pub(crate) fn states_search(message: &str) -> bool {
    let words = Words::of(message);
    let is_legal = |word: &String| NOUNS.contains(&word.as_str()) || LEGAL_NOUNS.contains(&word.as_str());
    let vocabulary = words.vocabulary(&[]);
    !vocabulary.legal.is_empty() && vocabulary.unknown.is_empty()
        || words.states_search()
        || words.wants_more()
        || words.words.iter().any(is_legal)
}

/// Whether a message names a source by its position, or points to one: `esa última`.
pub(crate) fn names_source(message: &str) -> bool {
    Words::of(message).names_source()
}

/// Returns the last sentence of a message that rejects a source before it: `esa no me sirve. Alimentos de menores`.
pub(crate) fn after_rejection(message: &str) -> Option<&str> {
    phrase::last_sentence(message).filter(|_| Words::of(message).rejects_source())
}

/// Whether a message asks to invent a source.
pub(crate) fn asks_to_invent(message: &str) -> bool {
    Words::of(message).asks_to_invent()
}

/// Whether a message asks what the assistant does.
pub(crate) fn asks_about_assistant(message: &str) -> bool {
    Words::of(message).asks_about_assistant()
}

/// Corrects the misspelt words of a message, also to words of the conversation.
pub(crate) fn corrected(message: &str, history: &[PastMessage]) -> String {
    let texts = history.iter().flat_map(|message| std::iter::once(&message.text).chain(&message.sources));
    let words = texts.flat_map(|text| fold_text(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let translated = english::translated(message);
    spelling::corrected(translated.as_deref().unwrap_or(message), &words.collect())
}

/// Whether a message selects one of the sources at hand by a filter: `la del Pleno`.
pub(crate) fn selects_one_source(message: &str) -> bool {
    Words::of(message).selects_one_source()
}

/// Classifies a message after a conversation, oldest message first.
#[must_use]
pub fn classify(message: &str, history: &[PastMessage]) -> Classification {
    classify_corrected(&corrected(message, history), history)
}

/// Classifies a message whose misspelt words have been corrected.
pub(crate) fn classify_corrected(message: &str, history: &[PastMessage]) -> Classification {
    let words = Words::of(message);
    let decided = |intent, reason| Classification { intent, reason, ..Classification::UNDECIDED };
    if words.is_courtesy() {
        return decided(Intent::None, "cortesía: no requiere búsqueda");
    }
    if words.asks_about_assistant() {
        return decided(Intent::None, "pregunta por el asistente: no requiere búsqueda");
    }
    let wants_more = words.wants_more();
    let vocabulary = words.vocabulary(history);
    let references = References::of(message);
    if references.is_empty() && !wants_more && !words.corrects_question() && words.is_thanks_with_remark(&vocabulary) {
        return decided(Intent::None, "cortesía: no requiere búsqueda");
    }
    if words.asks_to_invent() && references.is_empty() {
        return decided(Intent::None, "pide inventar: no requiere búsqueda");
    }
    if references.is_empty() && words.asks_other_task(&vocabulary) {
        return Classification {
            is_off_topic: true,
            ..decided(Intent::None, "otro asunto: no es investigación jurídica")
        };
    }
    let is_off_topic = references.is_empty() && !wants_more && words.is_off_topic(&vocabulary, has_sources(history));
    let off_topic =
        Classification { is_off_topic: true, ..decided(Intent::None, "otro asunto: ninguna palabra es de derecho") };
    if !has_sources(history) {
        let has_earlier = history.iter().any(|message| !message.sources.is_empty());
        let names_source = words.names_source()
            || words.returns_to_source(message, history)
            || answer::asks_attribute(message) && Words::describes_source(message, history);
        let asks_fact = references.is_empty()
            && answer::asks_attribute(message)
            && vocabulary.new_words() == 0
            && filters::split(message).filters.is_empty();
        if has_earlier && !wants_more && !words.states_search() && (names_source || asks_fact) {
            return decided(Intent::Reuse, "se refiere a una fuente de una respuesta anterior");
        }
        if is_off_topic && !words.states_search() {
            return off_topic;
        }
        return Classification { wants_more, ..decided(Intent::NewSearch, "no hay fuentes previas") };
    }
    if words.states_search() {
        return Classification { wants_more, ..decided(Intent::NewSearch, "búsqueda explícita") };
    }
    if wants_more {
        return Classification { wants_more, ..decided(Intent::NewSearch, "pide otras fuentes") };
    }
    if !references.is_empty() {
        return match is_at_hand(&references, history) {
            true => decided(Intent::Reuse, "se refiere a una fuente ya citada"),
            false => decided(Intent::NewSearch, "cita un registro o una clave"),
        };
    }
    classify_by_words(message, &words, &vocabulary, history).unwrap_or(if is_off_topic {
        off_topic
    } else {
        decide_by_topic(message, &words, &vocabulary)
    })
}

/// Classifies a message that follows an answer with sources, by the words that refer to these sources; `None` if it
/// contains no such words.
fn classify_by_words(
    message: &str,
    words: &Words,
    vocabulary: &Vocabulary,
    history: &[PastMessage],
) -> Option<Classification> {
    let decided = |intent, reason| Some(Classification { intent, reason, ..Classification::UNDECIDED });
    let new = vocabulary.new_words();
    if words.corrects_question() {
        return decided(Intent::NewSearch, "corrige su pregunta");
    }
    let is_close = vocabulary.legal.len() <= 1;
    let asks_fact = answer::asks_attribute(message) && vocabulary.legal.is_empty() && new <= 1;
    let refers = words.names_source()
        || is_close && words.refers_to_text()
        || asks_fact
        || answer::asks_attribute(message) && Words::describes_source(message, history);
    if new <= MAX_NEW_FORMAT_WORDS && vocabulary.legal.is_empty() && words.asks_format() {
        return decided(Intent::Reuse, "pide la respuesta en otra forma");
    }
    if words.switches_topic(vocabulary) && new > 0 && !refers && !answer::compares_sources(message) {
        return decided(Intent::NewSearch, "cambia de tema");
    }
    if words.names_opposite(history) {
        return decided(Intent::NewSearch, "pregunta por lo opuesto");
    }
    if words.asks_what_else() && is_close {
        return decided(Intent::Reuse, "pregunta qué más dice la fuente");
    }
    if last_answer(history).is_some_and(|answer| answer.registros.len() > 1)
        && reference::rules_out_source(message)
        && filters::split(message).filters.is_empty()
    {
        return decided(Intent::Reuse, "describe la fuente que no es");
    }
    if words.restricts() && words.states_filter(message) {
        return decided(Intent::NewSearch, "pide un filtro");
    }
    if words.states_subject(message, vocabulary) {
        return decided(Intent::NewSearch, "plantea otro tema");
    }
    if Words::describes_source(message, history) {
        return decided(Intent::Reuse, "describe una fuente ya citada");
    }
    if words.states_filter(message) {
        return decided(Intent::NewSearch, "pide un filtro");
    }
    let is_other_filter = !vocabulary.legal.is_empty() && !filters::split(message).filters.is_empty();
    if answer::asks_attribute(message) && new <= MAX_NEW_ATTRIBUTE_WORDS && !is_other_filter {
        return decided(Intent::Reuse, "pregunta por un dato de la fuente");
    }
    // `En esos casos` only frames a question about something else.
    if words.points_back() && !(words.refers_to_cases() && new >= 2) || words.attached_pronoun().is_some() {
        return decided(Intent::Reuse, "se refiere a la respuesta anterior");
    }
    let by_topic =
        |decided: Option<Classification>| decided.map(|decided| Classification { is_by_topic: true, ..decided });
    if is_close && (words.refers_to_text() || words.has_object_pronoun()) {
        return by_topic(decided(Intent::Reuse, "se refiere al texto de las fuentes"));
    }
    let concludes = words.concludes() && vocabulary.legal.is_empty() && vocabulary.weak == 0;
    let continues = concludes || words.continues() && new <= 2 || is_close && words.is_subjectless();
    if continues || words.offers_known_alternative(vocabulary) {
        return by_topic(decided(Intent::Reuse, "continúa la respuesta anterior"));
    }
    None
}

/// Classifies a message that follows an answer with sources but refers to none of them, by its legal terms.
fn decide_by_topic(message: &str, words: &Words, vocabulary: &Vocabulary) -> Classification {
    let (legal, new) = (vocabulary.legal.len(), vocabulary.new_words());
    let is_aside = words.has_pronoun(message) || words.is_hypothesis();
    let defines = words.asks_definition() && new > 0;
    let continues = match legal {
        0 => !defines && (new < 2 || vocabulary.topic > 0),
        1 => is_aside && new < 2,
        _ => false,
    };
    // `Hazme un resumen para mi ficha` is about the answer, whatever its new word.
    let is_ambiguous = new == 1 && !(legal == 0 && words.words.iter().any(|word| vocabulary::is_answer_word(word)));
    let (intent, reason) = match continues {
        true => (Intent::Reuse, "continúa el tema de las fuentes"),
        false => (Intent::NewSearch, "palabras de otro tema"),
    };
    Classification { intent, reason, is_by_topic: true, is_ambiguous, ..Classification::UNDECIDED }
}

/// Whether the last answer has sources. Answers to thanks do not count.
fn has_sources(history: &[PastMessage]) -> bool {
    last_answer(history).is_some_and(|answer| !answer.sources.is_empty())
}

/// Returns the last answer, other than answers to thanks and to messages that are not about law.
pub(crate) fn last_answer(history: &[PastMessage]) -> Option<&PastMessage> {
    let mut rest = history;
    loop {
        let at = rest.iter().rposition(|message| !message.is_user)?;
        let question = rest[..at].iter().rposition(|message| message.is_user);
        match question {
            Some(question) if rest[at].sources.is_empty() && asks_nothing(&rest[question].text) => {
                rest = &rest[..question];
            }
            _ => return Some(&rest[at]),
        }
    }
}

/// Whether a message is a courtesy or not about law, regardless of the conversation before it.
fn asks_nothing(message: &str) -> bool {
    let words = Words::of(message);
    let vocabulary = words.vocabulary(&[]);
    words.is_courtesy()
        || words.is_thanks_with_remark(&vocabulary)
        || words.asks_about_assistant()
        || words.asks_to_invent()
        || words.asks_other_task(&vocabulary)
        || words.is_off_topic(&vocabulary, false)
}

fn is_at_hand(references: &References, history: &[PastMessage]) -> bool {
    let registros: HashSet<i64> = history.iter().flat_map(|message| message.registros.iter().copied()).collect();
    let cited = history.iter().filter(|message| !message.is_user && !message.sources.is_empty());
    let in_texts: Vec<ClaveKey> = cited.flat_map(|message| References::of(&message.text).claves).collect();
    let is_clave = |clave: &ClaveKey| {
        let mut known = history.iter().flat_map(|message| &message.claves).chain(&in_texts);
        known.any(|known| clave.refers_to(known))
    };
    references.registros.iter().all(|registro| registros.contains(registro)) && references.claves.iter().all(is_clave)
}

#[cfg(test)]
mod tests;
