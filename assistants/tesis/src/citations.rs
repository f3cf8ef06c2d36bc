//! Removes citations that are not among the sources of an answer.

use std::collections::HashSet;

use crate::clave::{ClaveKey, References, fold_text};
use crate::search::FoundItem;

/// The minimum number of words in capitals that count as a rubro.
const RUBRO_WORDS: usize = 3;

/// Removes the sentences of an answer that cite a registro, a clave or a rubro that no source contains. Returns the answer, and whether
/// anything was removed.
#[must_use]
pub fn remove_unknown_citations(answer: &str, sources: &[FoundItem]) -> (String, bool) {
    let known = KnownCitations::of(sources);
    let mut removed = false;
    let mut lines = Vec::new();
    for line in answer.lines() {
        let sentences = sentences(line);
        let kept: Vec<&str> =
            sentences.into_iter().filter(|sentence| known.contains_all_citations_in(sentence)).collect();
        let text = kept.concat();
        if text.trim() != line.trim() {
            removed = true;
            if text.trim().chars().filter(|c| c.is_alphanumeric()).count() < 3 {
                continue;
            }
        }
        lines.push(text.trim_end().to_owned());
    }
    (lines.join("\n").trim().to_owned(), removed)
}

struct KnownCitations {
    registros: HashSet<i64>,
    claves: Vec<ClaveKey>,
    /// The titles and texts of all sources, folded.
    text: String,
}

impl KnownCitations {
    fn of(sources: &[FoundItem]) -> Self {
        let tesis = || sources.iter().filter_map(|found| found.item.tesis());
        let mut text = String::new();
        // The claves that the sources cite in their texts are also known.
        let mut claves: Vec<ClaveKey> = tesis().filter_map(|tesis| tesis.clave.as_deref()).map(ClaveKey::of).collect();
        for found in sources {
            let precedentes = found.item.tesis().map(|tesis| tesis.precedentes.as_str()).unwrap_or_default();
            for part in [found.item.title().as_str(), found.item.text(), precedentes] {
                text.push(' ');
                text.push_str(&normalized(part));
                claves.extend(part.lines().flat_map(|line| References::of(line).claves));
            }
        }
        Self { registros: tesis().map(|tesis| tesis.id_tesis).collect(), claves, text: format!("{text} ") }
    }

    fn contains_all_citations_in(&self, sentence: &str) -> bool {
        // The added word makes six-digit numbers count as registros.
        let references = References::of(&format!("registro {sentence}"));
        let is_known_number =
            |number: &i64| self.registros.contains(number) || self.text.contains(&format!(" {number} "));
        let is_known_clave = |clave: &ClaveKey| {
            self.claves.iter().any(|known| {
                known.key == clave.key && (clave.epoca.is_none() || known.epoca.is_none() || clave.epoca == known.epoca)
            })
        };
        references.registros.iter().all(is_known_number)
            && references.claves.iter().all(is_known_clave)
            && capitals(sentence).iter().all(|rubro| self.text.contains(&format!(" {rubro} ")))
    }
}

/// Returns the text in lower case without accents and punctuation, with single spaces.
fn normalized(text: &str) -> String {
    fold_text(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the sequences of words in capitals that can be a rubro, normalized. A rubro may consist of several sentences.
fn capitals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split(['«', '»', '"', '“', '”', '*', ':', ';', '(', ')']) {
        let mut run: Vec<&str> = Vec::new();
        for word in part.split_whitespace().chain(["end"]) {
            let is_number = word.chars().any(|c| c.is_ascii_digit()) && !word.chars().any(char::is_lowercase);
            if is_in_capitals(word) || is_number && !run.is_empty() {
                run.push(word);
                continue;
            }
            if run.len() >= RUBRO_WORDS {
                found.push(normalized(&run.join(" ")));
            }
            run.clear();
        }
    }
    found
}

fn is_in_capitals(word: &str) -> bool {
    let mut letters = word.chars().filter(|c| c.is_alphabetic()).peekable();
    letters.peek().is_some() && letters.all(char::is_uppercase)
}

/// Splits a line into sentences, without losing a character.
fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = line.char_indices().collect();
    for (index, (at, c)) in chars.iter().enumerate() {
        if *at < start {
            continue;
        }
        let next = chars.get(index + 1).map(|(_, c)| *c);
        let after = chars.get(index + 2).map(|(_, c)| *c);
        let word = line[start..*at].rsplit([' ', '/', '(', '.']).next().unwrap_or_default();
        // Periods within claves and after abbreviations do not end a sentence.
        let is_short = (1..=2).contains(&word.chars().count()) && word.chars().all(char::is_alphanumeric);
        let is_abbreviation =
            is_short || ["núm", "art", "arts", "cfr", "reg", "fracc"].contains(&word.to_lowercase().as_str());
        // Periods within a rubro do not end a sentence.
        let next_word = line.get(at + 2..).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        let last_word = line[start..*at].split_whitespace().next_back().unwrap_or_default();
        let is_in_rubro = [last_word, next_word].iter().all(|word| is_in_capitals(word) && word.chars().count() > 1);
        let is_end = matches!(c, '.' | '!' | '?')
            && next == Some(' ')
            && after.is_some_and(|c| !c.is_lowercase())
            && !is_abbreviation
            && !is_in_rubro;
        if is_end {
            let end = at + c.len_utf8() + 1;
            sentences.push(&line[start..end]);
            start = end;
        }
    }
    sentences.push(&line[start..]);
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Item;
    use crate::record::Tesis;

    fn sources() -> Vec<FoundItem> {
        vec![FoundItem::exact(Item::Tesis(Tesis {
            id_tesis: 2_031_567,
            rubro: "AMPARO INDIRECTO. PROCEDE CONTRA ACTOS DEL AYUNTAMIENTO.".to_owned(),
            texto: "Véase la tesis P./J. 9/2001, registro 180345. Procede.".to_owned(),
            clave: Some("1a./J. 104/2025 (11a.)".to_owned()),
            ..Tesis::default()
        }))]
    }

    // S3.50
    #[test]
    fn sentences_with_invented_citations_are_removed() {
        for (answer, expected) in [
            ("Procede. Lo dice el registro 2999999. Es todo.", "Procede. Es todo."),
            ("Procede (registro 2031567).", "Procede (registro 2031567)."),
            ("Véase 1a./J. 105/2025 (11a.). Procede.", "Procede."),
            ("Véase 1a./J. 104/2025 (11a.). Procede.", "Véase 1a./J. 104/2025 (11a.). Procede."),
            ("Véase 1a./J. 104/2025 (10a.). Procede.", "Procede."),
            ("La tesis cita P./J. 9/2001, registro 180345.", "La tesis cita P./J. 9/2001, registro 180345."),
            ("La tesis «DIVORCIO INCAUSADO. ES CONSTITUCIONAL EN TODO CASO.» lo dice. Procede.", "Procede."),
            (
                "AMPARO INDIRECTO. PROCEDE CONTRA ACTOS DEL AYUNTAMIENTO.",
                "AMPARO INDIRECTO. PROCEDE CONTRA ACTOS DEL AYUNTAMIENTO.",
            ),
            ("1. Registro digital: 2,999,999\n2. Procede.", "2. Procede."),
            ("VII.1o.C.6 C (12a.) es aplicable.", ""),
        ] {
            let (checked, removed) = remove_unknown_citations(answer, &sources());
            assert_eq!((checked.as_str(), removed), (expected, answer != expected), "{answer}");
        }
    }
}
