//! What a message asks for: more about the sources at hand, a new search, or nothing.
//!
//! The rules apply in this order: a courtesy asks for nothing; without sources, everything is a new search; then a stated search, a
//! request for more or other sources, a reference to a source at hand, a filter, a reference to the last answer, a change of topic,
//! and words of another topic. What is left is about the sources at hand.

pub(crate) mod words;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use threadkeep::core::text::content_terms;

use crate::answer;
use crate::clave::{ClaveKey, References, fold_text};
use crate::filters;
use crate::thesaurus;
use words::{
    COURTESY, COURTESY_CORE, DEICTIC, FOLLOW_UP_STEMS, FOLLOW_UP_WORDS, GIVE, HAVE, NOUNS, ORDINALS, OTHER, SEARCH,
    SWITCHES, is_ordinary,
};

/// The number of newest messages whose words belong to the topic.
const TOPIC_MESSAGES: usize = 4;

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

/// Legal nouns, which do not occur in messages about other matters.
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

/// The maximum number of new words in a question about a fact of a source.
const MAX_NEW_WORDS_OF_ATTRIBUTE: usize = 2;

/// An intent and the rule that decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The intent.
    pub intent: Intent,
    /// The rule, in Spanish, for `llm_reasoning` and traces.
    pub reason: &'static str,
    /// Whether the message asks for sources beyond those that were shown.
    pub wants_more: bool,
    /// Whether the intent rests on one word only, so that `REUSE` and `NEW_SEARCH` are about equally likely.
    pub is_ambiguous: bool,
}

/// Whether a question is answered from the sources of the conversation. `false` means a new search.
#[must_use]
pub fn classify_intent_simple(question: &str, history: &[PastMessage]) -> bool {
    classify(question, history).intent == Intent::Reuse
}

/// Whether a message explicitly asks for a search or for other sources, or contains a legal noun.
pub(crate) fn states_search(message: &str) -> bool {
    let words = Words::of(message);
    let is_legal = |word: &String| NOUNS.contains(&word.as_str()) || LEGAL_NOUNS.contains(&word.as_str());
    words.states_search() || words.wants_more() || words.words.iter().any(is_legal)
}

/// Whether a message asks what the assistant does.
pub(crate) fn asks_about_assistant(message: &str) -> bool {
    Words::of(message).asks_about_assistant()
}

/// Classifies a message after a conversation, oldest message first.
#[must_use]
pub fn classify(message: &str, history: &[PastMessage]) -> Classification {
    let words = Words::of(message);
    let decided = |intent, reason| Classification { intent, reason, wants_more: false, is_ambiguous: false };
    if words.is_courtesy() {
        return decided(Intent::None, "cortesía: no requiere búsqueda");
    }
    if words.asks_about_assistant() {
        return decided(Intent::None, "pregunta por el asistente: no requiere búsqueda");
    }
    let wants_more = words.wants_more();
    if !has_sources(history) {
        let has_earlier = history.iter().any(|message| !message.sources.is_empty());
        if has_earlier && !wants_more && !words.states_search() && words.names_source() {
            return decided(Intent::Reuse, "se refiere a una fuente de una respuesta anterior");
        }
        return Classification { wants_more, ..decided(Intent::NewSearch, "no hay fuentes previas") };
    }
    if words.states_search() {
        return Classification { wants_more, ..decided(Intent::NewSearch, "búsqueda explícita") };
    }
    if wants_more {
        return Classification { wants_more, ..decided(Intent::NewSearch, "pide otras fuentes") };
    }
    let references = References::of(message);
    if !references.is_empty() {
        return match is_at_hand(&references, history) {
            true => decided(Intent::Reuse, "se refiere a una fuente ya citada"),
            false => decided(Intent::NewSearch, "cita un registro o una clave"),
        };
    }
    if words.switches_topic() && !words.new_words(history).is_empty() {
        return decided(Intent::NewSearch, "cambia de tema");
    }
    let new = words.new_words(history);
    if words.describes_source(history) {
        return decided(Intent::Reuse, "describe una fuente ya citada");
    }
    if words.states_filter(message) {
        return decided(Intent::NewSearch, "pide un filtro");
    }
    if answer::asks_attribute(message) && new.len() <= MAX_NEW_WORDS_OF_ATTRIBUTE {
        return decided(Intent::Reuse, "pregunta por un dato de la fuente");
    }
    // `En esos casos` only frames a question about something else.
    if words.points_back() && !(words.refers_to_cases() && new.len() >= 2) {
        return decided(Intent::Reuse, "se refiere a la respuesta anterior");
    }
    if words.continues() && new.len() <= 2 || words.offers_known_alternative(&new) {
        return decided(Intent::Reuse, "continúa la respuesta anterior");
    }
    let is_pronoun = words.has_pronoun(message);
    let continues = new.is_empty() || new.len() == 1 && (is_pronoun || words.is_hypothesis());
    let classification = match continues {
        true => decided(Intent::Reuse, "continúa el tema de las fuentes"),
        false => decided(Intent::NewSearch, "palabras de otro tema"),
    };
    Classification { is_ambiguous: new.len() == 1, ..classification }
}

/// Whether the last answer has sources. Answers to thanks do not count.
fn has_sources(history: &[PastMessage]) -> bool {
    last_answer(history).is_some_and(|answer| !answer.sources.is_empty())
}

/// Returns the last answer that is not an answer to thanks.
pub(crate) fn last_answer(history: &[PastMessage]) -> Option<&PastMessage> {
    let mut rest = history;
    loop {
        let at = rest.iter().rposition(|message| !message.is_user)?;
        let question = rest[..at].iter().rposition(|message| message.is_user);
        match question {
            Some(question) if rest[at].sources.is_empty() && Words::of(&rest[question].text).is_courtesy() => {
                rest = &rest[..question];
            }
            _ => return Some(&rest[at]),
        }
    }
}

fn is_at_hand(references: &References, history: &[PastMessage]) -> bool {
    let registros: HashSet<i64> = history.iter().flat_map(|message| message.registros.iter().copied()).collect();
    let is_clave = |clave: &ClaveKey| {
        let mut known = history.iter().flat_map(|message| &message.claves);
        known.any(|known| clave.names(known))
    };
    references.registros.iter().all(|registro| registros.contains(registro)) && references.claves.iter().all(is_clave)
}

/// The folded words of a message.
struct Words {
    words: Vec<String>,
}

impl Words {
    fn of(message: &str) -> Self {
        Self { words: fold_text(message).split_whitespace().map(without_repetition).collect() }
    }

    fn at(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    fn is(&self, index: usize, list: &[&str]) -> bool {
        list.contains(&self.at(index))
    }

    fn joined(&self) -> String {
        format!(" {} ", self.words.join(" "))
    }

    fn is_courtesy(&self) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let all =
            self.words.iter().all(|word| COURTESY.contains(&word.as_str()) || COURTESY_CORE.contains(&word.as_str()));
        let joined = self.joined();
        let asks_after = ["como estas", "como esta usted", "como te va", "como le va", "que tal", "como andas"];
        let core = self.words.iter().any(|word| COURTESY_CORE.contains(&word.as_str()))
            || asks_after.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
        if joined.contains(" de que va ") {
            return false;
        }
        // `No me quedó claro` is a question.
        let is_denial = self.words.len() > 1
            && self.at(0) == "no"
            && !joined.contains(" gracias ")
            && !joined.contains(" nada mas ");
        all && core && !is_denial
    }

    /// Whether the message asks for a search: `busca …`, `hay alguna tesis …`, `dame jurisprudencia sobre …`.
    fn states_search(&self) -> bool {
        let noun = |from: usize, within: usize| {
            let nouns = (from..from + within).filter(|index| self.is(*index, NOUNS));
            nouns.into_iter().next().filter(|index| {
                !(from..*index).any(|at| self.is(at, DEICTIC) || self.is(at, &["la", "el", "las", "los", "mas"]))
            })
        };
        (0..self.words.len()).any(|index| {
            let word = self.at(index);
            let is_verb = SEARCH.contains(&word) && (word != "consulta" || index <= 1);
            let is_any =
                ["alguna", "algunas", "algun", "algunos"].contains(&word) && self.is(index + 1, NOUNS) && index <= 1;
            let has = HAVE.contains(&word) && noun(index + 1, 4).is_some() || is_any;
            let gives = GIVE.contains(&word) && noun(index + 1, 3).is_some();
            is_verb || has || gives
        })
    }

    /// Whether the message asks for more or other sources: `más tesis`, `otra`, `criterios distintos`.
    fn wants_more(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let word = self.at(index);
            let next_is_noun = self.is(index + 1, NOUNS);
            let previous_is_noun = index > 0 && self.is(index - 1, NOUNS);
            match word {
                "mas" => {
                    let asks_for_more = index > 0
                        && (self.is(index - 1, HAVE)
                            || index > 1 && self.is(index - 1, &["una", "uno", "algo"]) && self.is(index - 2, HAVE)
                            || self.is(index - 1, &["alguna", "algunas", "alguno", "algunos"]));
                    asks_for_more || next_is_noun && !self.is(index + 1, &["sentencia", "caso", "casos"])
                }
                "otra" | "otro" | "otras" | "otros" => {
                    let is_requested =
                        (index == 0 || self.is(index - 1, GIVE)) && self.is(index + 1, &["de", "sobre", "del"]);
                    next_is_noun || self.is_other_source(index) || previous_is_noun || is_requested
                }
                _ => {
                    OTHER.contains(&word)
                        && (next_is_noun || previous_is_noun || self.is(index + 1, &["y"]) && index > 0)
                }
            }
        })
    }

    /// Whether `otra` stands for another source: `muéstrame otra`, `otra más`, `¿hay otra?`.
    fn is_other_source(&self, index: usize) -> bool {
        let rest = &self.words[index + 1..];
        rest.iter().all(|word| {
            ["mas", "por", "favor", "sobre", "lo", "mismo", "similar", "parecida", "igual", "que", "sea"]
                .contains(&word.as_str())
        }) && self.at(index.wrapping_sub(1)) != "la"
    }

    fn switches_topic(&self) -> bool {
        let joined = self.joined();
        SWITCHES.iter().any(|switch| match switch.strip_prefix('^') {
            Some(start) => joined.starts_with(&format!(" {start} ")),
            None => joined.contains(&format!(" {switch} ")),
        })
    }

    /// Whether the message states a filter for a search, rather than a question about a source: `¿es de la Décima Época?`
    fn states_filter(&self, message: &str) -> bool {
        let found = filters::split(message);
        if found.filters.is_empty() {
            return false;
        }
        let asks_about =
            ["es", "son", "era", "fue", "emitio", "emitieron", "dicto", "que", "cual", "aplica", "obliga", "pertenece"];
        let is_question = asks_about.iter().any(|word| self.words.iter().any(|own| own == word));
        let joined = self.joined();
        let is_request = [
            "solo ",
            "solamente ",
            "unicamente ",
            "que sea",
            "filtra",
            "limita",
            "restringe",
            "acota",
            "quita",
            "excluye",
        ]
        .iter()
        .any(|word| joined.contains(word));
        is_request || !is_question && !self.points_back()
    }

    /// Whether the message refers to the last answer or to one of its sources.
    fn points_back(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let word = self.at(index);
            let followed_by_noun = self.is(index + 1, NOUNS);
            let is_deictic = DEICTIC.contains(&word)
                && match word {
                    "esta" | "este" | "estas" | "estos" | "dicha" | "dicho" => {
                        followed_by_noun || self.is(index + 1, &["punto", "tema", "caso", "asunto", "ultima", "ultimo"])
                    }
                    _ => true,
                };
            let is_ordinal = ORDINALS.contains(&word)
                && !self.is(index + 1, &["sala", "instancia", "epoca", "vez", "parte", "semana"])
                && self.is_reference(index);
            let is_speech = [
                "citaste",
                "mencionaste",
                "dijiste",
                "comentaste",
                "senalaste",
                "explicaste",
                "mostraste",
                "diste",
                "pusiste",
                "referiste",
            ]
            .contains(&word);
            is_deictic || is_ordinal || is_speech
        }) || [
            " lo anterior ",
            " las dos ",
            " los dos ",
            " ambas ",
            " ambos ",
            " las tres ",
            " de ellas ",
            " la misma tesis ",
        ]
        .iter()
        .any(|phrase| self.joined().contains(phrase))
    }

    /// Whether the message asks about the assistant: `¿qué sabes hacer?`, `hola, qué es esto`.
    fn asks_about_assistant(&self) -> bool {
        let joined = self.joined();
        let asks = [
            "que puedo preguntar",
            "que te puedo preguntar",
            "que puedes hacer",
            "que sabes hacer",
            "que haces",
            "para que sirves",
            "para que sirve esto",
            "quien eres",
            "que eres",
            "como funcionas",
            "como funciona esto",
            "que es esto",
            "q es esto",
            "en que me puedes ayudar",
            "en que puedes ayudar",
        ];
        self.words.len() <= 7 && asks.iter().any(|phrase| joined.contains(&format!(" {phrase}")))
    }

    /// Whether the message refers only to the situation of the last answer: `en esos casos`.
    fn refers_to_cases(&self) -> bool {
        let joined = self.joined();
        [
            " en esos casos ",
            " en ese caso ",
            " en estos casos ",
            " en este caso ",
            " en esos supuestos ",
            " en ese supuesto ",
        ]
        .iter()
        .any(|phrase| joined.contains(phrase))
    }

    /// Whether the message begins as a continuation (`o sea …`, `además de …`, `¿su …?`), or asks with a pronoun: `¿quién la dictó?`
    fn continues(&self) -> bool {
        let joined = self.joined();
        let joined = joined.strip_prefix(" y").unwrap_or(&joined);
        let starts = [" o sea ", " osea ", " es decir ", " ademas de ", " aparte de ", " su ", " sus "];
        let questions = ["quien", "como", "cuando", "donde", "cual", "que", "cuantos", "cuantas"];
        let has_pronoun = (1..self.words.len()).any(|index| {
            self.is(index, &["la", "lo", "las", "los", "le"])
                && self.is(index - 1, &questions)
                && index + 2 >= self.words.len()
                && !self.is(index + 1, NOUNS)
        });
        starts.iter().any(|start| joined.starts_with(start)) || has_pronoun
    }

    /// Whether the message offers two alternatives, one of which is known: `¿hábiles o naturales?`
    fn offers_known_alternative(&self, new: &[String]) -> bool {
        let is_new = |index: usize| new.iter().any(|word| word == self.at(index));
        let is_word = |index: usize| self.at(index).len() > 3 && !is_function(self.at(index));
        (1..self.words.len()).any(|index| {
            self.is(index, &["o", "u"])
                && is_word(index - 1)
                && is_word(index + 1)
                && is_new(index - 1) != is_new(index + 1)
                && new.len() == 1
        })
    }

    /// Whether the message describes a source of the conversation: `la que pide ponderar …`, `la del porcentaje`.
    fn describes_source(&self, history: &[PastMessage]) -> bool {
        let start = (0..self.words.len()).find(|index| {
            let next = self.at(index + 1);
            self.is(*index, &["la", "las", "el", "los"])
                && ["que", "de", "del"].contains(&next)
                && (*index == 0 || !NOUNS.contains(&self.at(index - 1)))
                && !precedes_topic(self.at(index.wrapping_sub(1)))
        });
        let Some(start) = start.filter(|start| *start <= 6) else { return false };
        let described = self.words[start + 2..].join(" ");
        let described: Vec<Vec<String>> = content_terms(&described)
            .into_iter()
            .filter(|(word, _)| !is_follow_up_word(word) && !is_ordinary(word))
            .map(|(_, stems)| stems)
            .collect();
        if described.is_empty() {
            return false;
        }
        let matches = |source: &String| {
            let stems: HashSet<String> = content_terms(source).into_iter().flat_map(|(_, stems)| stems).collect();
            described.iter().filter(|word| word.iter().any(|stem| stems.contains(stem))).count()
        };
        let best = history.iter().flat_map(|message| &message.sources).map(matches).max().unwrap_or(0);
        best > 0 && 2 * best >= described.len()
    }

    /// Whether the message names a source by its position: `explica más la última`.
    fn names_source(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let is_other = self.is(index + 1, &["sala", "instancia", "epoca", "vez"]);
            let ordinal = ORDINALS.contains(&self.at(index)) && !is_other && self.is_reference(index);
            ordinal || DEICTIC.contains(&self.at(index)) && self.is(index + 1, NOUNS)
        })
    }

    /// Whether an ordinal refers to a source, alone or with a noun: `¿y la segunda?`, `la primera tesis`.
    fn is_reference(&self, index: usize) -> bool {
        let next = self.at(index + 1);
        next.is_empty() || NOUNS.contains(&next) || is_function(next) || FOLLOW_UP_WORDS.contains(&next)
    }

    fn is_hypothesis(&self) -> bool {
        self.at(0) == "y" && self.at(1) == "si" || self.at(0) == "si"
    }

    fn has_pronoun(&self, message: &str) -> bool {
        let typed: Vec<String> =
            message.to_lowercase().split(|c: char| !c.is_alphabetic()).map(str::to_owned).collect();
        ["él", "ella", "ellos", "ellas"].iter().any(|pronoun| typed.iter().any(|word| word == pronoun))
            || self.is(0, &["lo", "le", "les", "se"])
                && self.is(1, &["pueden", "puede", "lo", "le", "podria", "podrian"])
    }

    /// Returns the words that neither belong to the conversation so far nor are used to talk about sources.
    fn new_words(&self, history: &[PastMessage]) -> Vec<String> {
        let recent = &history[history.len().saturating_sub(TOPIC_MESSAGES)..];
        let mut topic: HashSet<String> = recent
            .iter()
            .flat_map(|message| std::iter::once(&message.text).chain(&message.sources))
            .flat_map(|text| content_terms(text))
            .flat_map(|(_, stems)| stems)
            .collect();
        // `pruebas` belongs to the topic of a source that says `acreditar`.
        let sources = last_answer(history).map(|answer| answer.sources.join("\n")).unwrap_or_default();
        topic.extend(thesaurus::all_related(&sources));
        let content = content_terms(&self.words.join(" "));
        let is_new = |(word, stems): &(String, Vec<String>)| {
            !is_follow_up_word(word)
                && !is_ordinary(word)
                && !stems.iter().any(|stem| topic.contains(stem))
                && !word.chars().all(|c| c.is_ascii_digit())
        };
        content.into_iter().filter(is_new).map(|(word, _)| word).collect()
    }
}

/// Whether `la que` or `la de` after this word names a topic: `busca la de …`. In `¿cuál es la que …?`, it describes a source.
fn precedes_topic(word: &str) -> bool {
    SEARCH.contains(&word) || ["sobre", "contra", "a", "en", "con", "por", "para"].contains(&word)
}

/// Returns a word without repeated letters, except double letters that may occur in Spanish: `graciaaas` becomes `gracias`.
fn without_repetition(word: &str) -> String {
    let mut short = String::with_capacity(word.len());
    let mut run = 0;
    for c in word.chars() {
        run = if short.ends_with(c) { run + 1 } else { 1 };
        if c.is_ascii_digit() || run == 1 || run == 2 && matches!(c, 'r' | 'l' | 'c' | 'n' | 'e' | 'i') {
            short.push(c);
        }
    }
    short
}

fn is_function(word: &str) -> bool {
    threadkeep::core::text::Language::Spanish.is_function_word(word)
}

/// Whether a word is used to talk about sources and answers.
fn is_follow_up_word(word: &str) -> bool {
    FOLLOW_UP_WORDS.contains(&word)
        || NOUNS.contains(&word)
        || ORDINALS.contains(&word)
        || GIVE.contains(&word)
        || COURTESY.contains(&word)
        || COURTESY_CORE.contains(&word)
        || FOLLOW_UP_STEMS.iter().any(|stem| word.starts_with(stem))
        || word.len() <= 2
}

#[cfg(test)]
mod tests;
