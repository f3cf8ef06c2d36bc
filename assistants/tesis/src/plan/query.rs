//! The query and the filters of a search, with the topic of the conversation carried over.

use threadkeep::core::text::content_terms;
use threadkeep::{Message, Role, Value};

use super::{FILTERS, Plan, QUERY, data};
use crate::clave::{References, fold_text};
use crate::filters::{self, Filters};
use crate::intent::words::{is_legal_stem, is_opposite};
use crate::record::Tipo;
use crate::search::content_words;

/// The maximum number of words of a topic that are carried over to a question with words of its own.
const TOPIC_WORDS: usize = 2;
/// The maximum length of a query, in characters.
const QUERY_CHARACTERS: usize = 1_000;

/// What the conversation is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Topic {
    pub(super) query: String,
    pub(super) filters: Filters,
}

impl Topic {
    /// Reads the topic from the last answer that states its query, or from the last question with words of its own.
    pub(super) fn of(messages: &[Message]) -> Self {
        for message in messages.iter().rev() {
            if let Some(data) =
                data(message).filter(|data| data.get(QUERY).is_some_and(|query| query.as_str() != Some("")))
            {
                let filters = data.get(FILTERS).cloned().and_then(|filters| serde_json::from_value(filters).ok());
                let query = data.get(QUERY).and_then(Value::as_str).unwrap_or_default().to_owned();
                return Self { query, filters: filters.unwrap_or_default() };
            }
        }
        let questions = messages.iter().rev().filter(|message| message.content.role == Role::User);
        let split = questions.map(|message| filters::split(&message.plain_text()));
        let with_words = split.into_iter().find(|split| !content_words(&split.rest).is_empty());
        with_words.map(|split| Self { query: split.rest, filters: split.filters }).unwrap_or_default()
    }
}

pub(super) fn search(plan: &mut Plan, question: &str, topic: &Topic) {
    let question: String = question.chars().take(QUERY_CHARACTERS).collect();
    let References { registros, claves } = References::of(&question);
    plan.registros = registros;
    plan.claves = claves.into_iter().map(|clave| (clave.key, clave.epoca)).collect();
    let mut split = filters::split(&without_rejected(&question));
    let own = content_words(&split.rest);
    // Next to other filters only, the word names the kind: `dame jurisprudencia del Pleno`.
    let names_kind = fold_text(&split.rest).split_whitespace().any(|word| word == "jurisprudencia");
    if own.is_empty() && names_kind && !split.filters.is_empty() && split.filters.tipo.is_none() {
        split.filters.tipo = Some(Tipo::Jurisprudencia.name().to_owned());
    }
    let folded = fold_text(&question);
    plan.keeps_topic = folded.split_whitespace().any(|word| word == "siquiera");
    plan.has_own_words = !own.is_empty() || split.filters.is_empty();
    let is_carried = !topic.query.is_empty()
        && (is_elliptic(&question, &own, plan.wants_more) || names_opposite(&question, &own, &topic.query));
    plan.branch = split.branch.filter(|_| own.is_empty()).unwrap_or_default().to_owned();
    plan.query = match (own.is_empty(), is_carried) {
        (true, true) => topic.query.clone(),
        (false, true) => format!("{} {}", split.rest.trim(), topic_words(&topic.query, &own)),
        (true, false) if !plan.branch.is_empty() => plan.branch.clone(),
        _ => split.rest,
    };
    plan.own_filters = split.filters.clone();
    plan.filters = match is_carried && own.is_empty() {
        true => topic.filters.merged(&split.filters),
        false => split.filters,
    };
}

/// Returns a question without the part that it rules out after a comma: `la definitiva, no la provisional`.
fn without_rejected(question: &str) -> String {
    let is_rejected = |part: &&str| {
        let folded = fold_text(part);
        let words: Vec<&str> = folded.split_whitespace().collect();
        matches!(words.as_slice(), ["no", "la" | "el" | "las" | "los" | "de", _] | ["no", "de" | "del", _, _])
    };
    let parts: Vec<&str> = question.split(',').collect();
    let kept: Vec<&str> = parts.iter().copied().filter(|part| !is_rejected(part)).collect();
    if kept.is_empty() { question.to_owned() } else { kept.join(",") }
}

/// Returns the words of a topic that a question with words of its own lacks: legal terms first, and before them the noun that an opposite
/// modifies, `suspensión` for `¿y la definitiva?` after `suspensión provisional`.
fn topic_words(topic: &str, own: &str) -> String {
    let own: Vec<&str> = own.split_whitespace().collect();
    let is_replaced = |word: &str| is_opposite(word, &own);
    let is_legal = |word: &str| content_terms(word).iter().flat_map(|(_, stems)| stems).any(|stem| is_legal_stem(stem));
    let content = content_words(topic);
    let words: Vec<&str> = content.split_whitespace().collect();
    let mut ranked: Vec<(u8, &str)> = Vec::new();
    let is_word = |word: &str| word.len() > 2 && word.chars().all(char::is_alphabetic);
    for (at, word) in words.iter().enumerate().filter(|(_, word)| is_word(word) && !is_replaced(word)) {
        let is_modified = words.get(at + 1).is_some_and(|next| is_replaced(next));
        ranked.push((
            if is_modified {
                0
            } else if is_legal(word) {
                1
            } else {
                2
            },
            word,
        ));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().take(TOPIC_WORDS).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// Whether all words of a question are legal terms, which together name a topic: `¿y la prisión preventiva?`
fn names_own_topic(own: &str) -> bool {
    let is_legal = |word: &str| content_terms(word).iter().flat_map(|(_, stems)| stems).any(|stem| is_legal_stem(stem));
    let mut words = own.split_whitespace();
    words.clone().count() == 2 && words.all(is_legal)
}

/// Whether a question continues with the opposite of a word of the topic: `¿y la definitiva detiene el proceso?`
fn names_opposite(question: &str, own: &str, topic: &str) -> bool {
    let own: Vec<&str> = own.split_whitespace().collect();
    let content = content_words(topic);
    let is_continued =
        fold_text(question).split_whitespace().next().is_some_and(|word| ["y", "pero", "e"].contains(&word));
    is_continued && content.split_whitespace().any(|word| is_opposite(word, &own))
}

/// Whether a question lacks its topic: `¿y en materia penal?`, `¿en cuánto prescribe?`, `otra`.
fn is_elliptic(question: &str, own: &str, wants_more: bool) -> bool {
    if own.is_empty() {
        return true;
    }
    let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
    let starts = |list: &[&str]| list.iter().any(|start| folded.starts_with(&format!(" {start} ")));
    let has = |list: &[&str]| list.iter().any(|phrase| folded.contains(&format!(" {phrase} ")));
    let names_topic = has(&[
        "sobre",
        "acerca",
        "respecto",
        "hablame",
        "que es",
        "que son",
        "otra pregunta",
        "otro tema",
        "cambiando",
    ]);
    let refers = has(&[
        "misma pregunta",
        "lo mismo",
        "tambien",
        "tampoco",
        "ese caso",
        "esos casos",
        "eso",
        "esa",
        "ese",
        "ellos",
        "ella",
        "quise decir",
        "quiero decir",
        "yo decia",
        "yo preguntaba",
        "me refiero",
        "me referia",
    ]);
    let typed = question.to_lowercase();
    let has_pronoun = typed.split(|c: char| !c.is_alphabetic()).any(|word| word == "él");
    let words = own.split_whitespace().count();
    // `¿Plazo para demandar?`
    let generic = ["plazo", "termino", "monto", "requisitos", "efectos", "costo"];
    let specific: Vec<&str> = own.split_whitespace().filter(|word| !generic.contains(word)).collect();
    let is_purpose = specific.len() == 1
        && ["ar", "er", "ir", "arlo", "arla", "erlo", "irlo"].iter().any(|end| specific[0].ends_with(end))
        && has(&[&format!("para {}", specific[0])]);
    if refers || has_pronoun || is_purpose {
        return true;
    }
    !names_topic
        && (words <= 2 && starts(&["y", "pero", "e"]) && !names_own_topic(own)
            || words == 1
                && !wants_more
                && starts(&[
                    "en cuanto",
                    "cuanto",
                    "cuando",
                    "como",
                    "quien",
                    "procede",
                    "puede",
                    "se puede",
                    "prescribe",
                ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.52
    #[test]
    fn the_topic_is_carried_over() {
        let topic = Topic { query: "¿Qué es el amparo indirecto?".to_owned(), filters: Filters::default() };
        let planned = |question: &str, wants_more: bool| {
            let mut plan = Plan { wants_more, ..Plan::default() };
            search(&mut plan, question, &topic);
            (content_words(&plan.query), plan.filters.describe())
        };
        for (question, query, filters) in [
            ("¿y en materia penal?", "amparo indirecto", "materia penal"),
            ("¿y en la Décima Época?", "amparo indirecto", "Décima Época"),
            ("la misma pregunta pero para amparo directo", "amparo directo amparo", ""),
            ("y sobre despido injustificado?", "despido injustificado", ""),
            ("¿Qué es la prescripción?", "prescripcion", ""),
        ] {
            assert_eq!(planned(question, false), (query.to_owned(), filters.to_owned()), "{question}");
        }
        assert_eq!(planned("dame más tesis", true).0, "amparo indirecto");
    }
}
