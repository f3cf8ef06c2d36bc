//! The legal words for everyday words and expressions: `chamba` for `trabajo`, `sin testamento` for `sucesión legítima`.
//!
//! They widen a search only. What a message is about is not decided by them, because most everyday words have other meanings too.

use std::collections::HashMap;
use std::sync::LazyLock;

use threadkeep::core::text;

/// The number of other words that may stand between two words of an expression.
const MAX_GAP: usize = 4;

/// An everyday expression of several words.
#[derive(Debug)]
struct Expression {
    stems: Vec<String>,
    legal: Vec<String>,
}

#[derive(Debug, Default)]
struct Everyday {
    /// The legal words by everyday word.
    words: HashMap<String, Vec<String>>,
    /// The expressions by their first word.
    expressions: HashMap<String, Vec<Expression>>,
}

static EVERYDAY: LazyLock<Everyday> = LazyLock::new(|| Everyday::parse(include_str!("everyday.txt")));

impl Everyday {
    fn parse(text: &str) -> Self {
        let mut everyday = Self::default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (said, legal) in lines.filter_map(|line| line.split_once('>')) {
            let legal = stems(legal);
            for said in said.split(',').map(stems) {
                match said.as_slice() {
                    [] => {}
                    [word] => add_distinct(everyday.words.entry(word.clone()).or_default(), &legal, word),
                    [first, ..] => {
                        let same_start = everyday.expressions.entry(first.clone()).or_default();
                        same_start.push(Expression { stems: said.clone(), legal: legal.clone() });
                    }
                }
            }
        }
        everyday
    }
}

fn add_distinct(known: &mut Vec<String>, more: &[String], word: &str) {
    for stem in more {
        if stem != word && !known.contains(stem) {
            known.push(stem.clone());
        }
    }
}

/// Returns the Spanish stem of each word of a text.
pub(crate) fn stems(text: &str) -> Vec<String> {
    // Function words make the text Spanish, however short it is.
    let stems = text::stems(&format!("de la que {text}"));
    stems.into_iter().skip(3).filter_map(|stems| stems.into_iter().next_back()).collect()
}

/// Returns the stems of the legal words for an everyday word, which is given by its stem, the most specific first.
pub(crate) fn legal_stems(stem: &str) -> &'static [String] {
    EVERYDAY.words.get(stem).map_or(&[], Vec::as_slice)
}

/// Returns the stems of the legal words for each everyday expression of several words in a text, which is given by its stems.
pub(crate) fn expressions(text: &[String]) -> Vec<&'static [String]> {
    let starts = (0..text.len()).flat_map(|at| {
        let same_start = EVERYDAY.expressions.get(&text[at]).into_iter().flatten();
        same_start.filter(move |expression| is_at(&expression.stems, &text[at..]))
    });
    let mut found: Vec<&'static [String]> = Vec::new();
    for expression in starts {
        if !found.contains(&expression.legal.as_slice()) {
            found.push(&expression.legal);
        }
    }
    found
}

/// Whether a text starts with the first word of an expression, and its other words follow in order.
fn is_at(expression: &[String], text: &[String]) -> bool {
    let mut rest = text;
    expression.iter().enumerate().all(|(number, stem)| {
        let reach = if number == 0 { 1 } else { MAX_GAP + 1 };
        let at = rest.iter().take(reach).position(|word| word == stem);
        rest = at.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
        at.is_some()
    })
}

/// Returns the words of the list.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("everyday.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split([' ', ',', '>'])).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legal_words_for(text: &str) -> Vec<String> {
        let stems = stems(text);
        let words = stems.iter().flat_map(|stem| legal_stems(stem));
        words.chain(expressions(&stems).into_iter().flatten()).cloned().collect()
    }

    #[test]
    fn everyday_words_and_expressions_have_legal_words() {
        for (said, legal) in [
            ("perdí la chamba", "trabajo"),
            ("PISTOLAS", "armas"),
            ("mi tío murió sin dejar testamento", "legítima"),
            ("el bebé aún no nace", "concebido"),
        ] {
            let found = legal_words_for(said);
            assert!(found.contains(&stems(legal)[0]), "{said}: {found:?}");
        }
        assert!(legal_words_for("arraigo domiciliario").is_empty());
    }

    #[test]
    fn the_words_of_an_expression_are_near_and_in_order() {
        let found = |text: &str| !expressions(&stems(text)).is_empty();
        assert!(found("murió sin hacer un testamento"));
        assert!(!found("un testamento sin firma"));
        assert!(!found("sin que nadie en toda la familia supiera del testamento"));
    }

    #[test]
    fn every_line_has_both_sides() {
        for line in include_str!("everyday.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (said, legal) = line.split_once('>').unwrap_or_default();
            assert!(said.split(',').all(|said| !stems(said).is_empty()) && !stems(legal).is_empty(), "{line}");
        }
    }
}
