use std::collections::HashMap;

use super::{Language, Stems, Tally, for_each_word, irregular};

/// Looks for a question's words in many texts, without taking every word of them apart.
///
/// It finds what [`super::stems`] of the text would show.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    places: HashMap<String, usize>,
    /// How the stems begin. A stem begins as its word does, so most words need no stemming.
    beginnings: Vec<char>,
    /// Irregular forms that begin otherwise than the word they belong to.
    odd_forms: Vec<&'static str>,
    words: usize,
}

/// A text, reduced to what ranking looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// How often each of the question's words occurs, in the question's order.
    pub counts: Vec<u32>,
    /// How many words the text has.
    pub length: u32,
}

impl TermCounts {
    /// Whether none of the words occurs.
    #[must_use]
    pub fn is_miss(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

impl Lookup {
    /// Makes a lookup of words, each given by its stems ([`super::alternatives`]). A stem that two words share counts
    /// for the first.
    #[must_use]
    pub fn new(words: &[Vec<String>]) -> Self {
        let mut lookup = Self { words: words.len(), ..Self::default() };
        for (place, stems) in words.iter().enumerate() {
            for stem in stems {
                lookup.places.entry(stem.clone()).or_insert(place);
                lookup.beginnings.extend(stem.chars().next());
            }
        }
        lookup.beginnings.sort_unstable();
        lookup.beginnings.dedup();
        lookup.odd_forms = irregular::odd_forms(&lookup.beginnings);
        lookup
    }

    /// Counts the words in a text.
    #[must_use]
    pub fn count(&self, text: &str) -> TermCounts {
        let mut found = TermCounts { counts: vec![0; self.words], length: 0 };
        let (mut tally, mut candidates) = (Tally::default(), Vec::new());
        for_each_word(text, |word| {
            found.length = found.length.saturating_add(1);
            tally.take(word);
            if self.may_hold(word) {
                candidates.push(word.to_owned());
            }
        });
        if candidates.is_empty() {
            return found;
        }
        let stems = tally.language().map_or_else(|| Stems::new(&Language::ALL), |language| Stems::new(&[language]));
        for word in candidates {
            // Stems of two languages may be those of one word.
            let mut last = None;
            for place in stems.of(&word).iter().filter_map(|stem| self.places.get(stem).copied()) {
                if last.replace(place) != Some(place) {
                    found.counts[place] += 1;
                }
            }
        }
        found
    }

    fn may_hold(&self, word: &str) -> bool {
        word.chars().next().is_some_and(|first| self.beginnings.contains(&first)) || self.odd_forms.contains(&word)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::{alternatives, stems};
    use super::*;

    fn lookup(question: &str) -> Lookup {
        Lookup::new(&alternatives(question).into_iter().map(|(_, stems)| stems).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_counted_in_any_form() {
        let found = lookup("buy trains").count("She bought a train; he buys TRAINS, trains.");
        assert_eq!(found, TermCounts { counts: vec![2, 3], length: 8 });
        assert_eq!(lookup("go").count("She went").counts, [1]);
        assert!(lookup("plane").count("the train").is_miss());
        assert_eq!(Lookup::new(&[]).count("the train"), TermCounts { counts: Vec::new(), length: 2 });
    }

    proptest! {
        #[test]
        fn nothing_that_the_stems_show_is_missed(question in "[a-zé ]{0,12}", text in "[a-zA-Zéñ' ]{0,80}") {
            let question: Vec<_> = alternatives(&question).into_iter().map(|(_, stems)| stems).collect();
            let shown = stems(&text);
            let found = Lookup::new(&question).count(&text);
            prop_assert_eq!(found.length as usize, shown.len());
            let asked: HashSet<&String> = question.iter().flatten().collect();
            let is_shown = shown.iter().flatten().any(|stem| asked.contains(stem));
            prop_assert_eq!(!found.is_miss(), is_shown);
        }
    }
}
