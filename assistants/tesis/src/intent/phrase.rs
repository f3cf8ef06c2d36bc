//! A message as the rules read it.

mod filter;
mod form;
mod other;

use threadkeep::core::text::content_terms;

use super::PastMessage;
use super::vocabulary::{Vocabulary, is_answer_word};
use super::words::{
    DEICTIC, FACTS, FOLLOW_UP_WORDS, GIVE, HAVE, IMPERATIVES, NOUNS, OPENINGS, ORDINALS, OTHER, SEARCH, SEARCH_PHRASES,
    SUBJECTLESS, SWITCHES, is_legal_stem, is_return,
};
use crate::clave::fold_text;
use crate::filters;
use crate::reference;

/// The folded words of a message.
pub(super) struct Words {
    pub(super) words: Vec<String>,
}

impl Words {
    pub(super) fn of(message: &str) -> Self {
        Self { words: fold_text(message).split_whitespace().map(without_repetition).collect() }
    }

    fn at(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    fn is(&self, index: usize, list: &[&str]) -> bool {
        list.contains(&self.at(index))
    }

    pub(super) fn joined(&self) -> String {
        format!(" {} ", self.words.join(" "))
    }

    /// `busca …`, `hay alguna tesis …`, `dame jurisprudencia sobre …`, `tesis de …`.
    pub(super) fn states_search(&self) -> bool {
        if self.asks_among_sources() {
            return false;
        }
        let noun = |from: usize, within: usize| {
            let index = (from..from + within).find(|index| self.is(*index, &NOUNS))?;
            let is_definite =
                (from..index).any(|at| self.is(at, &DEICTIC) || self.is(at, &["la", "el", "las", "los", "mas"]));
            let is_fact = self.is(index, &FACTS) && !(index..index + 3).any(|at| self.is(at, &["sobre", "acerca"]));
            (!is_definite && !is_fact).then_some(index)
        };
        let joined = self.joined();
        let asks = SEARCH_PHRASES.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
        // `¿Y de comprobantes fiscales hay?`
        let ends_with_have = self.words.last().is_some_and(|word| HAVE.contains(&word.as_str()))
            && (self.is(0, &["de", "sobre"]) || self.is(0, &["y", "e"]) && self.is(1, &["de", "sobre"]));
        asks || ends_with_have
            || self.asks_for_any()
            || self.begins_with_noun()
            || (0..self.words.len()).any(|index| {
                let word = self.at(index);
                let is_verb = SEARCH.contains(&word) && (word != "consulta" || index <= 1);
                let is_any = ["alguna", "algunas", "algun", "algunos"].contains(&word)
                    && self.is(index + 1, &NOUNS)
                    && index <= 1;
                let has = HAVE.contains(&word) && noun(index + 1, 4).is_some() || is_any;
                let gives = GIVE.contains(&word) && noun(index + 1, 3).is_some();
                is_verb || has || gives
            })
    }

    /// `¿hay alguna donde el deudor sea el que recurre?`
    fn asks_for_any(&self) -> bool {
        let any = ["alguna", "alguno", "algunas", "algo", "una"];
        let links = [
            "donde",
            "que",
            "en",
            "sobre",
            "contra",
            "con",
            "para",
            "de",
            "del",
            "acerca",
            "relacionada",
            "relacionado",
        ];
        (0..self.words.len()).any(|index| {
            HAVE.contains(&self.at(index))
                && self.is(index + 1, &any)
                && self.is(index + 2, &links)
                && self.words.len() > index + 3
        }) && filters::split(&self.joined()).filters.is_empty()
    }

    /// `tesis de …`, `criterios sobre …`, after words that only open the message.
    fn begins_with_noun(&self) -> bool {
        let start = self.words.iter().take_while(|word| OPENINGS.contains(&word.as_str())).count();
        let is_position = |index: usize| {
            ORDINALS.contains(&self.at(index))
                && self.is(index - 1, &["la", "las", "el", "los"])
                && self.is_reference(index)
        };
        let names_source = (start + 1..self.words.len()).any(|index| self.is(index, &DEICTIC) || is_position(index));
        self.is(start, &NOUNS)
            && !self.is(start, &FACTS)
            && self.is(
                start + 1,
                &["sobre", "de", "del", "en", "contra", "acerca", "que", "con", "para", "relacionada", "relacionadas"],
            )
            && !names_source
    }

    /// Whether a question asks for some of the sources at hand: `¿hay alguna aislada entre esas?`
    fn asks_among_sources(&self) -> bool {
        let joined = self.joined();
        [
            " entre esas ",
            " entre ellas ",
            " de esas ",
            " de ellas ",
            " de estas ",
            " de las que citaste ",
            " de las dos ",
            " de las tres ",
        ]
        .iter()
        .any(|phrase| joined.contains(phrase))
            && !self.words.iter().any(|word| SEARCH.contains(&word.as_str()))
            && !joined.contains(" otra")
    }

    /// `más tesis`, `otra`, `criterios distintos`.
    pub(super) fn wants_more(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let word = self.at(index);
            let next_is_noun = self.is(index + 1, &NOUNS);
            let previous_is_noun = index > 0 && self.is(index - 1, &NOUNS);
            match word {
                "mas" => {
                    let asks_for_more = index > 0
                        && (self.is(index - 1, &HAVE)
                            || index > 1 && self.is(index - 1, &["una", "uno", "algo"]) && self.is(index - 2, &HAVE)
                            || self.is(index - 1, &["alguna", "algunas", "alguno", "algunos"]));
                    let is_number = |index: usize| self.is(index, &["una", "dos", "tres", "cuatro", "cinco"]);
                    let asks_for_number = index > 1 && is_number(index - 1) && self.asks_at(index - 2);
                    let asks_about_topic = index > 0
                        && self.asks_at(index - 1)
                        && self.is(index + 1, &["de", "sobre"])
                        && !self.is(index + 2, &DEICTIC)
                        && !self.is(index + 2, &["la", "lo"]);
                    asks_for_more
                        || asks_for_number
                        || asks_about_topic
                        || next_is_noun && !self.is(index + 1, &["sentencia", "caso", "casos"])
                }
                "otra" | "otro" | "otras" | "otros" => {
                    let is_asked =
                        self.is_opening(index) || self.asks_at(index - 1) || self.is(index - 1, &["alguna", "algun"]);
                    let follows = [
                        "de",
                        "sobre",
                        "del",
                        "que",
                        "mas",
                        "diferente",
                        "diferentes",
                        "distinta",
                        "distintas",
                        "ademas",
                        "aparte",
                        "parecida",
                        "similar",
                        "si",
                        "porfa",
                        "porfavor",
                        "xfa",
                    ];
                    let is_requested = is_asked && self.is(index + 1, &follows);
                    next_is_noun || self.is_last_other(index) || previous_is_noun || is_requested
                }
                "demas" | "resto" => index > 1 && self.is(index - 1, &["las", "los", "el"]) && self.asks_at(index - 2),
                _ => {
                    let is_asked = index > 1
                        && (self.asks_at(index - 1)
                            || self.is(index - 1, &["una", "unas", "alguna", "algo"]) && self.asks_at(index - 2));
                    let is_any = index > 0 && self.is(index - 1, &["algo", "alguna", "algun"]);
                    // `Una diferente a las que vimos`
                    let ends = self.at(index + 1).is_empty() || self.is(index + 1, &["a", "de", "que"]);
                    if OTHER.contains(&word) && (is_asked && ends || is_any) {
                        return true;
                    }
                    OTHER.contains(&word)
                        && (next_is_noun || previous_is_noun || self.is(index + 1, &["y"]) && index > 0)
                }
            }
        })
    }

    /// Whether a message begins with a request for still another source, or with `otra` itself: `ok, todavía otra`.
    fn is_opening(&self, index: usize) -> bool {
        let before = &self.words[..index];
        let is_still = |word: &String| ["todavia", "aun"].contains(&word.as_str());
        index == 0
            || before.iter().any(is_still)
                && before.iter().all(|word| {
                    is_still(word) || OPENINGS.contains(&word.as_str()) || ["y", "una", "ya"].contains(&word.as_str())
                })
    }

    /// Whether the word at an index asks for something, or asks whether something exists.
    fn asks_at(&self, index: usize) -> bool {
        let word = self.at(index);
        [&GIVE, &HAVE, &SEARCH].iter().any(|list| list.contains(&word)) || word.len() > 5 && word.ends_with("me")
    }

    /// Whether `otra` stands for another source: `muéstrame otra`, `otra más`, `¿hay otra?`.
    fn is_last_other(&self, index: usize) -> bool {
        let rest = &self.words[index + 1..];
        rest.iter().all(|word| {
            [
                "si", "la", "hay", "tienes", "tiene", "existe", "porfa", "mas", "por", "favor", "sobre", "lo", "mismo",
                "similar", "parecida", "igual", "que", "sea",
            ]
            .contains(&word.as_str())
                || OTHER.contains(&word.as_str())
        }) && !self.is(index.wrapping_sub(1), &["la", "el"])
            && !(self.is(index.wrapping_sub(1), &["las", "los"])
                && self.is(index.wrapping_sub(2), &["de", "y", "entre"]))
    }

    pub(super) fn switches_topic(&self, vocabulary: &Vocabulary) -> bool {
        let joined = self.joined();
        // `¿Y los supuestos de excepción están enumerados?` stays with words of the answer.
        let stays = vocabulary.legal.is_empty() && vocabulary.unknown.len() <= 1 && vocabulary.topic >= 2;
        SWITCHES.iter().any(|switch| match switch.strip_prefix('^') {
            Some(start) if ["y el", "y la", "y los", "y las"].contains(&start) => {
                !stays && joined.starts_with(&format!(" {start} "))
            }
            Some(start) => joined.starts_with(&format!(" {start} ")),
            None => joined.contains(&format!(" {switch} ")),
        })
    }

    /// Whether the message draws a conclusion from the answer: `entonces si me enteré hace tres años, ¿ya no?`
    pub(super) fn concludes(&self) -> bool {
        let joined = self.joined();
        [" entonces ", " o sea ", " osea ", " asi que ", " pues entonces ", " y entonces "]
            .iter()
            .any(|start| joined.starts_with(start))
    }

    /// Whether the message names another subject before a colon or in its last sentence, without referring to a source there:
    /// `amparo directo: contra qué y quién lo resuelve`, `esa no me sirve. Alimentos de menores`.
    pub(super) fn states_subject(&self, message: &str, vocabulary: &Vocabulary) -> bool {
        let is_law =
            |word: &str| content_terms(word).iter().flat_map(|(_, stems)| stems).any(|stem| is_legal_stem(stem));
        let is_subject = |part: &str, least: usize| {
            let words = Self::of(part);
            let new = vocabulary.legal.iter().filter(|word| words.words.contains(word)).count();
            let rejects = self.rejects_source();
            let refers = |word: &String| {
                DEICTIC.contains(&word.as_str())
                    || NOUNS.contains(&word.as_str())
                    || ORDINALS.contains(&word.as_str())
                    || !rejects && is_answer_word(word)
            };
            let count = if rejects { words.words.iter().filter(|word| is_law(word)).count() } else { new };
            count >= if rejects { 1 } else { least }
                && !words.words.iter().any(refers)
                && words.attached_pronoun().is_none()
                && reference::descriptions(part).is_empty()
        };
        let before_colon = message.split_once(':').map(|(head, _)| head);
        let sentence = last_sentence(message);
        before_colon.is_some_and(|head| is_subject(head, 1)) || sentence.is_some_and(|last| is_subject(last, 2))
    }

    /// Whether the message refers to the last answer or to one of its sources.
    pub(super) fn points_back(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let word = self.at(index);
            let followed_by_noun = self.is(index + 1, &NOUNS);
            let is_deictic = DEICTIC.contains(&word)
                && match word {
                    "esta" | "este" | "estas" | "estos" | "dicha" | "dicho" => {
                        followed_by_noun || self.is(index + 1, &["punto", "tema", "caso", "asunto", "ultima", "ultimo"])
                    }
                    _ => true,
                };
            let is_ordinal = ORDINALS.contains(&word)
                && !self.is(
                    index + 1,
                    &["sala", "instancia", "epoca", "vez", "parte", "semana", "cosa", "duda", "pregunta", "favor"],
                )
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
            " de ella ",
            " la misma tesis ",
        ]
        .iter()
        .any(|phrase| self.joined().contains(phrase))
    }

    /// Whether the message refers only to the situation of the last answer: `en esos casos`.
    pub(super) fn refers_to_cases(&self) -> bool {
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
    pub(super) fn continues(&self) -> bool {
        let joined = self.joined();
        let joined = joined.strip_prefix(" y").unwrap_or(&joined);
        let starts = [
            " o sea ",
            " osea ",
            " es decir ",
            " ademas de ",
            " aparte de ",
            " su ",
            " sus ",
            " aunque ",
            " incluso ",
            " tambien ",
            " tampoco ",
            " ni ",
            " ni siquiera ",
        ];
        let questions = ["quien", "como", "cuando", "donde", "cual", "que", "cuantos", "cuantas"];
        let has_pronoun = (1..self.words.len()).any(|index| {
            self.is(index, &["la", "lo", "las", "los", "le"])
                && self.is(index - 1, &questions)
                && index + 2 >= self.words.len()
                && !self.is(index + 1, &NOUNS)
        });
        starts.iter().any(|start| joined.starts_with(start)) || has_pronoun
    }

    /// Whether the message corrects the question before it: `me equivoqué, quise decir provisional`.
    pub(super) fn corrects_question(&self) -> bool {
        let joined = self.joined();
        ["quise decir", "quiero decir", "me equivoque", "me referia a", "yo decia", "yo preguntaba"]
            .iter()
            .any(|phrase| joined.contains(&format!(" {phrase} ")))
            && !joined.contains(" eso ")
    }

    /// Whether the message returns to a source of an earlier answer: `volviendo a la del porcentaje`.
    pub(super) fn returns_to_source(&self, message: &str, history: &[PastMessage]) -> bool {
        self.words.iter().any(|word| is_return(word)) && Self::describes_source(message, history)
    }

    /// Whether the message offers alternatives of which one is known: `¿hábiles o naturales?`
    pub(super) fn offers_known_alternative(&self, vocabulary: &Vocabulary) -> bool {
        let is_new =
            |index: usize| vocabulary.legal.iter().chain(&vocabulary.unknown).any(|word| word == self.at(index));
        let is_word = |index: usize| self.at(index).len() > 3 && !is_function(self.at(index));
        (1..self.words.len()).any(|index| {
            self.is(index, &["o", "u"])
                && is_word(index - 1)
                && is_word(index + 1)
                && is_new(index - 1) != is_new(index + 1)
                && vocabulary.new_words() == 1
        })
    }

    /// Whether the message describes a source of the conversation: `la que pide ponderar …`, `la del porcentaje`.
    pub(super) fn describes_source(message: &str, history: &[PastMessage]) -> bool {
        let described = reference::descriptions(message);
        let cited = history.iter().filter(|message| !message.sources.is_empty());
        let mut texts = cited.flat_map(|message| message.sources.iter().chain(std::iter::once(&message.text)));
        !described.is_empty() && texts.any(|text| reference::matches_any(&described, text))
    }

    /// Whether the message names a source by its position: `explica más la última`.
    pub(super) fn names_source(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let is_other = self.is(
                index + 1,
                &["sala", "instancia", "epoca", "vez", "tema", "pregunta", "duda", "consulta", "cosa", "favor"],
            );
            let ordinal = ORDINALS.contains(&self.at(index)) && !is_other && self.is_reference(index);
            ordinal
                || DEICTIC.contains(&self.at(index)) && (self.is(index + 1, &NOUNS) || self.is(index + 1, &ORDINALS))
        })
    }

    /// Whether an ordinal stands alone or with a noun: `¿y la segunda?`, `la primera tesis`.
    fn is_reference(&self, index: usize) -> bool {
        let next = self.at(index + 1);
        // `Llamamiento a tercero`
        if self.at(index) == "tercero" && !self.is(index.wrapping_sub(1), &["el", "lo", "ese"]) {
            return false;
        }
        // `¿Y de la Quinta?` asks for the época.
        if self.at(index) == "quinta" && filters::split(&self.joined()).filters.epocas.contains(&5) {
            return false;
        }
        if next == "a" && self.at(index + 2).parse::<u32>().is_ok() {
            return false;
        }
        next.is_empty() || NOUNS.contains(&next) || is_function(next) || FOLLOW_UP_WORDS.contains(&next)
    }

    pub(super) fn is_hypothesis(&self) -> bool {
        let start = self.words.iter().take_while(|word| OPENINGS.contains(&word.as_str()) && *word != "si").count();
        self.at(start) == "si"
    }

    pub(super) fn has_pronoun(&self, message: &str) -> bool {
        let typed: Vec<String> =
            message.to_lowercase().split(|c: char| !c.is_alphabetic()).map(str::to_owned).collect();
        ["él", "ella", "ellos", "ellas"].iter().any(|pronoun| typed.iter().any(|word| word == pronoun))
            || self.is(0, &["lo", "le", "les", "se"])
                && self.is(1, &["pueden", "puede", "lo", "le", "podria", "podrian"])
    }

    /// Returns the position of a request with an attached pronoun that stands for the answer or a source: `ponla`,
    /// `explícamelo`.
    pub(super) fn attached_pronoun(&self) -> Option<usize> {
        let is_joined = |word: &String| {
            let verb = ["las", "los", "la", "lo"].iter().find_map(|pronoun| word.strip_suffix(pronoun));
            verb.is_some_and(|verb| IMPERATIVES.contains(&verb))
        };
        self.words.iter().position(is_joined)
    }

    /// Whether a pronoun before the verb refers to what the answer was about: `no lo detiene`, `me la explicas`.
    pub(super) fn has_object_pronoun(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let next = self.at(index + 1);
            let before = self.at(index.wrapping_sub(1));
            let verbs = ["tiene", "tienen", "puede", "pueden", "debe", "deben", "podria", "puedo"];
            let begins = index == 0 && self.is(0, &["la", "lo", "las", "los"]) && self.is(1, &verbs);
            let is_pronoun = begins
                || self.at(index) == "lo" && !["que", "de", "del", "mismo", "anterior"].contains(&next)
                || self.is(index, &["la", "las", "los"])
                    && ["me", "se", "no", "te", "quien", "como", "cuando", "donde"].contains(&before);
            is_pronoun && next.len() > 2 && !self.is(index + 1, &NOUNS)
        })
    }

    /// Whether the message is about what a source says: `… según la tesis`, `qué … menciona`, `lo del interés`.
    pub(super) fn refers_to_text(&self) -> bool {
        let joined = self.joined();
        [
            " segun ",
            " ahi ",
            " lo de ",
            " lo del ",
            " eso de ",
            " eso del ",
            " menciona ",
            " mencionas ",
            " senala ",
            " senalas ",
            " en el criterio ",
            " en la tesis ",
            " en ese criterio ",
            " en esa tesis ",
            " dice la tesis ",
            " te refieres ",
        ]
        .iter()
        .any(|phrase| joined.contains(phrase))
    }

    /// Whether the message begins with a verb whose subject is a source: `¿incluye bonos?`
    pub(super) fn is_subjectless(&self) -> bool {
        let start = self
            .words
            .iter()
            .take_while(|word| {
                OPENINGS.contains(&word.as_str()) || ["no", "si", "eso", "tambien"].contains(&word.as_str())
            })
            .count();
        self.is(start, &SUBJECTLESS)
    }

    /// Whether the message asks what something is: `¿qué es la usura?`
    pub(super) fn asks_definition(&self) -> bool {
        let joined = self.joined();
        [" que es ", " que son ", " en que consiste ", " que se entiende por "]
            .iter()
            .any(|phrase| joined.contains(phrase))
    }
}

/// Returns the last of several sentences.
pub(super) fn last_sentence(message: &str) -> Option<&str> {
    message.trim_end_matches(['.', ' ']).rsplit_once(". ").map(|(_, last)| last)
}

/// Returns a word with at most two equal letters in sequence, and one at its end: `graciaaas` is `gracias`.
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
