//! How a message names sources of the conversation: by what they are about (`la del municipio`), by their order in the whole
//! conversation (`la primera que me diste`) or by their number (`las dos`).

use std::collections::HashSet;

use threadkeep::core::text::content_terms;

use crate::answer;
use crate::clave::fold_text;
use crate::corpus::Item;
use crate::intent::words;
use crate::thesaurus;

/// Nouns for a source that a description can follow: `la tesis del municipio`.
const SOURCE_NOUNS: [&str; 10] = [
    "tesis",
    "criterio",
    "criterios",
    "jurisprudencia",
    "jurisprudencias",
    "precedente",
    "sentencia",
    "ejecutoria",
    "fuente",
    "aislada",
];
/// Verbs with a source as their subject: `¿cuál habla de la garantía?`
const SAYS: [&str; 9] = ["habla", "hablan", "hablaba", "trata", "tratan", "trataba", "menciona", "refiere", "compara"];
/// Verbs that say what kind of source it is: `la que no sea penal`.
const IS: [&str; 6] = ["es", "son", "sea", "sean", "era", "fue"];
/// The points for a word that a text contains as typed, in another form, or only as a related word.
const TYPED: usize = 6;
const SAME_STEM: usize = 4;
const RELATED: usize = 2;
/// The additional points for a word in the title.
const IN_TITLE: usize = 1;

/// The words by which a message describes a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// The words, with their stems.
    words: Vec<(String, Vec<String>)>,
    /// Whether the words name a topic, rather than being common in talk about sources: `lo del buen derecho`.
    pub(crate) is_specific: bool,
}

impl Description {
    /// Reads the words of a description; `None` if they say nothing about a topic.
    fn of(body: &str) -> Option<Self> {
        // `La que no es penal` says what the source is not, but `la que no detiene el proceso` says what it is about.
        let mut words = body.split_whitespace();
        if words.next() == Some("no") && words.next().is_none_or(|verb| IS.contains(&verb) || SAYS.contains(&verb)) {
            return None;
        }
        let body = crate::filters::split(body).rest;
        let all = content_terms(&body);
        let is_speech = |word: &str| {
            SAYS.contains(&word) || words::is_speech(word) || words::is_request(word) || words::is_source_word(word)
        };
        let named: Vec<(String, Vec<String>)> =
            all.iter().filter(|(word, _)| !words::is_talk(word) && !is_speech(word)).cloned().collect();
        if !named.is_empty() {
            return Some(Self { words: named, is_specific: true });
        }
        let common: Vec<(String, Vec<String>)> =
            all.into_iter().filter(|(word, _)| word.len() > 3 && !is_speech(word)).collect();
        (common.len() > 1).then_some(Self { words: common, is_specific: false })
    }

    /// The words, to search for them.
    pub(crate) fn text(&self) -> String {
        self.words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether an item matches.
    pub(crate) fn is_of(&self, item: &Item) -> bool {
        self.score(&item.title(), &text_of(item)).is_some()
    }

    /// Returns how well a text matches; `None` if it contains less than half of the words.
    fn score(&self, title: &str, text: &str) -> Option<(usize, usize)> {
        let typed: HashSet<String> =
            fold_text(&format!("{title} {text}")).split_whitespace().map(str::to_owned).collect();
        let stems_of = |text: &str| -> Vec<String> {
            content_terms(text).into_iter().flat_map(|(_, stems)| stems).collect::<Vec<_>>()
        };
        let in_title: HashSet<String> = stems_of(title).into_iter().collect();
        let stems: HashSet<String> = stems_of(text).into_iter().chain(in_title.iter().cloned()).collect();
        let points = |(word, own): &(String, Vec<String>)| {
            let is_in = |set: &HashSet<String>| own.iter().any(|stem| set.contains(stem));
            let is_related =
                || own.iter().flat_map(|stem| thesaurus::related_stems(stem)).any(|stem| stems.contains(stem));
            let title = if is_in(&in_title) { IN_TITLE } else { 0 };
            match typed.contains(word) {
                true => TYPED + title,
                false if is_in(&stems) => SAME_STEM + title,
                false if is_related() => RELATED,
                false => 0,
            }
        };
        let all: Vec<usize> = self.words.iter().map(points).collect();
        let matched = all.iter().filter(|points| **points > 0).count();
        let folded_title = fold_text(title);
        let mentions = folded_title
            .split_whitespace()
            .flat_map(content_terms)
            .filter(|(_, stems)| self.words.iter().any(|(_, own)| own.iter().any(|stem| stems.contains(stem))))
            .count();
        let is_enough = matched > 0 && 2 * matched >= self.words.len() && (self.is_specific || matched > 1);
        is_enough.then(|| (all.iter().sum(), mentions))
    }
}

/// Returns the descriptions in a message: `la del municipio y la de la garantía`.
pub(crate) fn descriptions(message: &str) -> Vec<Description> {
    let clauses = message.split([',', '?', '¿', ';', ':', '!', '¡', '.', '(', ')']);
    clauses.flat_map(of_clause).collect()
}

fn of_clause(clause: &str) -> Vec<Description> {
    let folded = fold_text(clause);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let starts: Vec<(usize, usize)> =
        (0..words.len()).filter_map(|at| body_start(&words, at).map(|start| (at, start))).collect();
    let mut found = Vec::new();
    for (index, (_, start)) in starts.iter().enumerate() {
        let next = starts.get(index + 1).map_or(words.len(), |(at, _)| *at);
        let asks = |at: &usize| {
            let is_question = ["que", "cual", "quien", "cuando", "cuanto", "donde", "como"].contains(&words[*at]);
            let is_asked = is_question && *at > *start && ["de", "en", "a", "desde", "por"].contains(&words[at - 1]);
            is_asked || words::is_give(words[*at])
        };
        let end = (*start..next).find(asks).unwrap_or(next);
        found.extend(words.get(*start..end).and_then(|body| Description::of(&body.join(" "))));
    }
    found
}

/// Returns where the description begins that a position opens.
fn body_start(words: &[&str], at: usize) -> Option<usize> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let before = |back: usize| at.checked_sub(back).map_or("", |at| word(at));
    let links = |at: usize| ["que", "de", "del"].contains(&word(at));
    let is_article = ["la", "las", "el", "los"].contains(&word(at));
    let is_deictic = ["esa", "ese", "esas", "esos", "aquella", "aquel"].contains(&word(at));
    let returns = |at: usize| words::is_return(word(at));
    // `La que` after these words introduces a topic: `busca la de …`, `¿contra la que …?`
    let introduces = ["sobre", "contra", "a", "en", "con", "por", "para"].contains(&before(1))
        && !at.checked_sub(2).is_some_and(returns)
        || words::is_search(before(1));
    // `Compárala con la del porcentaje`
    let compares = before(1) == "con"
        && words[..at]
            .iter()
            .any(|word| ["compar", "contrast", "diferenc", "confront"].iter().any(|stem| word.starts_with(stem)));
    let introduces = introduces && !compares;
    // `¿Jurisprudencia o aislada la del porcentaje?`
    let is_alternative = ["aislada", "jurisprudencia"].contains(&before(1)) && before(2) == "o";
    if is_article && links(at + 1) && !introduces && (is_alternative || !words::is_source_word(before(1)))
        // `¿Y esa qué número tiene?` describes nothing.
        || is_deictic && links(at + 1) && !(word(at + 1) == "que" && words::is_talk(word(at + 2)))
        || word(at) == "lo" && ["de", "del"].contains(&word(at + 1))
        || ["cual", "cuales"].contains(&word(at)) && SAYS.contains(&word(at + 1))
    {
        return Some(at + 2);
    }
    if (is_article || is_deictic) && SOURCE_NOUNS.contains(&word(at + 1)) && !introduces {
        let is_linked = links(at + 2) || ["sobre", "contra"].contains(&word(at + 2)) || SAYS.contains(&word(at + 2));
        return is_linked.then_some(at + 3);
    }
    let is_about =
        ["relativa", "relativo", "referente", "correspondiente", "relacionada", "relacionado"].contains(&word(at + 1));
    if is_article && is_about && ["a", "al", "con"].contains(&word(at + 2)) {
        return Some(at + 3);
    }
    if word(at) == "lo" && word(at + 1) == "que" && words::is_speech(word(at + 2)) {
        // `Lo que dijiste del municipio`
        return (at + 3..at + 6).find(|link| ["de", "del", "sobre"].contains(&word(*link))).map(|link| link + 1);
    }
    (returns(at) && ["a", "al"].contains(&word(at + 1)) && word(at + 2) != "lo").then_some(at + 2)
}

/// Returns the description of a source that is not meant: `la que no sea de aprehensión`, `todas menos la del banco`.
fn rejected(message: &str) -> Option<Description> {
    let folded = fold_text(message);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let is_article = |at: usize| ["la", "el", "las", "los", "una", "otra"].contains(&word(at));
    let links = |at: usize| usize::from(["de", "del", "sobre", "a", "al", "con"].contains(&word(at)));
    let start = (0..words.len()).find_map(|at| {
        let denies = is_article(at) && word(at + 1) == "que" && word(at + 2) == "no";
        let is_verb = IS.contains(&word(at + 3)) || SAYS.contains(&word(at + 3));
        let excepts = ["menos", "excepto", "salvo", "no"].contains(&word(at))
            && is_article(at + 1)
            && ["de", "del"].contains(&word(at + 2))
            && at > 0;
        match (denies && is_verb, excepts) {
            (true, _) => Some(at + 4 + links(at + 4)),
            (_, true) => Some(at + 3),
            _ => None,
        }
    })?;
    Description::of(&words.get(start..)?.join(" "))
}

/// Whether a message describes a source that is not meant.
pub(crate) fn rules_out_source(message: &str) -> bool {
    rejected(message).is_some()
}

/// Returns the sources other than those that a message rules out, if it rules out some of them.
pub(crate) fn not_rejected(message: &str, items: &[&Item]) -> Option<Vec<usize>> {
    let rejected = rejected(message)?;
    let is_rejected = |item: &&Item| rejected.score(&item.title(), &text_of(item)).is_some();
    let others: Vec<usize> = (0..items.len()).filter(|index| !is_rejected(&items[*index])).collect();
    (!others.is_empty() && others.len() < items.len()).then_some(others)
}

/// Whether a message points to the source of the last answer: `compárame esa con …`
pub(crate) fn points_to_last(message: &str) -> bool {
    fold_text(message).split_whitespace().any(|word| ["esa", "ese", "esta", "este"].contains(&word))
}

/// Returns the sources that a message describes, in the order of the descriptions. Sources that match a description equally well are
/// all returned.
pub(crate) fn described(descriptions: &[Description], items: &[&Item]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for description in descriptions {
        let scores: Vec<Option<(usize, usize)>> =
            items.iter().map(|item| description.score(&item.title(), &text_of(item))).collect();
        let Some(best) = scores.iter().flatten().max() else { continue };
        let matching = scores.iter().enumerate().filter(|(_, score)| score.as_ref() == Some(best));
        found.extend(matching.map(|(index, _)| index).filter(|index| !found.contains(index)).collect::<Vec<_>>());
    }
    found
}

fn text_of(item: &Item) -> String {
    let materias = item.tesis().map(|tesis| tesis.materias.join(" ")).unwrap_or_default();
    format!("{} {materias}", item.text())
}

/// Whether a text, with a title, matches one of the descriptions.
pub(crate) fn matches_any(descriptions: &[Description], text: &str) -> bool {
    descriptions.iter().any(|description| description.score("", text).is_some())
}

/// Returns the number of a source in the order in which the conversation cited them: `la primera que me diste en toda la plática`.
pub(crate) fn position_in_conversation(message: &str, count: usize) -> Option<usize> {
    let folded = format!(" {} ", fold_text(message).split_whitespace().collect::<Vec<_>>().join(" "));
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| folded.contains(&format!(" {phrase} ")));
    let names_conversation = ["platica", "conversacion", "charla", "sesion"].iter().any(|noun| {
        ["toda la", "la", "esta", "nuestra"]
            .iter()
            .any(|article| ["de", "en"].iter().any(|link| folded.contains(&format!(" {link} {article} {noun} "))))
    });
    let is_whole = names_conversation
        || has(&[
            "al principio",
            "al inicio",
            "al comienzo",
            "desde el principio",
            "de todas las que me",
            "de todas las que",
            "de todo lo que me",
        ]);
    if !is_whole || count == 0 {
        return None;
    }
    let named = ORDINALS.iter().position(|names| has(names)).map(|position| position + 1);
    let last = has(&["ultima", "ultimo"]).then_some(count);
    let first = has(&["al principio", "al inicio", "al comienzo"]).then_some(1);
    named.or(last).or(first).filter(|number| *number <= count)
}

/// Whether a question refers to more than one source by a pronoun: `¿cuál de ellas …?`
pub(crate) fn names_several(question: &str) -> bool {
    let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
    [
        " de ellas ",
        " de ellos ",
        " cada una ",
        " cada uno ",
        " las emitio ",
        " los emitio ",
        " las dicto ",
        " los dicto ",
    ]
    .iter()
    .any(|phrase| folded.contains(phrase))
}

/// Whether a question is about a source other than the one asked about before: `¿y la otra?`
pub(crate) fn names_other(question: &str) -> bool {
    let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
    folded.starts_with(" y la otra ") || folded.starts_with(" la otra ") || folded.starts_with(" y el otro ")
}

/// Whether a question refers to the source of the last answer by a pronoun: `¿puedo usarla?`
pub(crate) fn has_pronoun(question: &str) -> bool {
    let is_joined = |word: &str| {
        word.len() > 5 && ["arla", "erla", "irla", "arlo", "erlo", "irlo"].iter().any(|end| word.ends_with(end))
    };
    fold_text(question).split_whitespace().any(|word| is_joined(word) || ["esa", "ese"].contains(&word))
}

/// Returns how many sources a question is about: `las dos`, `ambas`, `las tres`.
pub(crate) fn count_of_sources(question: &str) -> Option<usize> {
    let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
    let counts: [(usize, &[&str]); 4] = [
        (
            2,
            &[
                "las dos",
                "los dos",
                "ambas",
                "ambos",
                "estas dos",
                "esas dos",
                "esos dos",
                "estos dos",
                "las 2",
                "los 2",
                "esas 2",
            ],
        ),
        (
            3,
            &["las 3", "los 3", "esas 3", "las tres", "los tres", "estas tres", "esas tres", "esos tres", "estos tres"],
        ),
        (4, &["las cuatro", "los cuatro", "estas cuatro", "esas cuatro", "esos cuatro"]),
        (5, &["las cinco", "los cinco", "estas cinco", "esas cinco", "esos cinco"]),
    ];
    let has = |phrases: &&[&str]| phrases.iter().any(|phrase| folded.contains(&format!(" {phrase} ")));
    counts.iter().find(|(_, phrases)| has(phrases)).map(|(count, _)| *count)
}

const ORDINALS: [&[&str]; 5] = [
    &["primera", "primero", "primer", "1", "1a", "1ra", "1era"],
    &["segunda", "segundo", "2", "2a", "2da"],
    &["tercera", "tercero", "tercer", "3", "3a", "3ra"],
    &["cuarta", "cuarto", "4", "4a", "4ta"],
    &["quinta", "quinto", "5", "5a", "5ta"],
];

/// Returns the numbers of the sources that a question refers to: by ordinal, as the last one, or, with
/// `esa`, those that the last answer was about.
pub(crate) fn focus(question: &str, count: usize, previous: &[usize]) -> Vec<usize> {
    let folded = fold_text(question);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let mut focus = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).copied().unwrap_or_default();
        if ["sala", "instancia", "epoca", "vez", "cosa", "duda", "pregunta", "favor"].contains(&next) {
            continue;
        }
        // `¿Tengo que agotar primero el recurso?`, `llamamiento a tercero`
        let before = index.checked_sub(1).map_or("", |before| words[before]);
        let is_adverb = ["primero", "primer", "tercero"].contains(word)
            && index > 0
            && !["el", "lo", "y", "ese"].contains(&before)
            && !(["al", "del"].contains(&before) && *word != "tercero");
        if is_adverb {
            continue;
        }
        let ordinal = ORDINALS.iter().position(|ordinals| ordinals.contains(word)).map(|position| position + 1);
        // `Esa última` is the one that the last answer was about.
        let is_last = ["ultima", "ultimo"].contains(word);
        let points = ["esa", "ese", "esta", "este", "dicha"].contains(&before);
        let last = is_last.then(|| previous.last().copied().filter(|_| points).unwrap_or(count));
        let penultimate = (*word == "penultima").then_some(count.saturating_sub(1));
        focus.extend(
            ordinal.or(last).or(penultimate).filter(|number| (1..=count).contains(number) && !focus.contains(number)),
        );
    }
    if let Some(number) = count_of_sources(question) {
        focus = (1..=count.min(number)).collect();
    }
    let is_about_all = words.iter().any(|word| ["son", "cada", "todas", "todos"].contains(word));
    let points = words.iter().any(|word| ["esa", "ese", "la", "lo", "su", "sus", "es"].contains(word));
    let asks_fact = answer::asks_attribute(question) && !answer::compares(question);
    let refers = !is_about_all && (points || asks_fact || words.first() == Some(&"y"));
    if focus.is_empty() && refers && !previous.is_empty() {
        focus = previous.iter().copied().filter(|number| (1..=count).contains(number)).collect();
    }
    focus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Tesis;

    fn item(rubro: &str, texto: &str) -> Item {
        Item::Tesis(Tesis { rubro: rubro.to_owned(), texto: texto.to_owned(), ..Tesis::default() })
    }

    // S3.51
    #[test]
    fn sources_are_named_by_what_they_are_about() {
        let items = [
            item("ARRAIGO DOMICILIARIO. REQUIERE ORDEN.", "El municipio no puede ordenarlo directamente."),
            item("AMPARO DIRECTO. DIFERENCIA CON EL AMPARO INDIRECTO.", "El directo procede contra sentencias."),
            item("AMPARO INDIRECTO. APARIENCIA DEL BUEN DERECHO.", "El juez la pondera."),
        ];
        let items: Vec<&Item> = items.iter().collect();
        for (message, expected) in [
            ("dame la clave de la que habla de los dos amparos", &[1][..]),
            ("¿de qué sala es la tesis del directo?", &[1]),
            ("vuelve a lo del buen derecho, dame su clave", &[2]),
            ("las claves de la del arraigo y la de la apariencia", &[0, 2]),
            ("regresemos al arraigo domiciliario", &[0]),
            ("¿cuál habla de la apariencia?", &[2]),
            ("esa del arraigo de qué año es", &[0]),
            ("la de la usucapión", &[]),
            ("esa que me acabas de explicar, ¿quién la dictó?", &[]),
            ("¿y esa qué número tiene?", &[]),
            ("la relativa al arraigo, su época", &[0]),
            ("lo que dijiste de la apariencia, ¿de qué sala es?", &[2]),
            ("busca la del arraigo", &[]),
        ] {
            assert_eq!(described(&descriptions(message), &items), expected, "{message}");
        }
    }

    // S3.51
    #[test]
    fn sources_are_named_by_what_they_are_not() {
        let items = [
            item("SUSPENSIÓN EN MATERIA PENAL. ORDEN DE APREHENSIÓN.", "Queda a disposición del juez."),
            item("SUSPENSIÓN DEFINITIVA.", "No paraliza el procedimiento."),
        ];
        let items: Vec<&Item> = items.iter().collect();
        for (message, expected) in [
            ("muéstrame la que no sea de aprehensión", Some(vec![1])),
            ("la clave de la que no habla del procedimiento", Some(vec![0])),
            ("todas menos la de la aprehensión", Some(vec![1])),
            ("la que no trata de alimentos", None),
            ("la que no paraliza el procedimiento", None),
        ] {
            assert_eq!(not_rejected(message, &items), expected, "{message}");
        }
        assert_eq!(described(&descriptions("la que no paraliza el procedimiento"), &items), [1]);
        assert_eq!(described(&descriptions("compárala con la de la aprehensión"), &items), [0]);
    }

    // S3.51
    #[test]
    fn positions_count_over_the_whole_conversation() {
        for (message, expected) in [
            ("¿cuál fue la primera que me diste en toda la plática?", Some(1)),
            ("la que encontraste al principio", Some(1)),
            ("¿cuál fue la primera que citaste en esta conversación?", Some(1)),
            ("la segunda de todas las que me diste", Some(2)),
            ("¿y la primera?", None),
            ("la tercera de todas las que me diste", None),
        ] {
            assert_eq!(position_in_conversation(message, 2), expected, "{message}");
        }
    }

    // S3.51
    #[test]
    fn ordinals_refer_to_the_sources_of_the_last_answer() {
        for (question, previous, expected) in [
            ("¿qué dice la segunda tesis?", &[][..], vec![2]),
            ("explica más la última", &[], vec![3]),
            ("¿y la tercera?", &[1], vec![3]),
            ("¿qué dijo la Primera Sala?", &[], vec![]),
            ("¿qué sala emitió esa?", &[2], vec![2]),
            ("el registro de esa última", &[1], vec![1]),
            ("¿en qué se diferencian las dos?", &[], vec![1, 2]),
            ("dame detalles", &[2], vec![]),
        ] {
            assert_eq!(focus(question, 3, previous), expected, "{question}");
        }
    }
}
