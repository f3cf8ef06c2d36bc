use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Language, Stems, Tally, for_each_word, irregular};

/// Looks for a question's words in many texts, without taking every word of them apart.
///
/// It finds what [`super::stems`] of the text would show.
#[derive(Clone, Debug, Default)]
pub struct TermMatcher {
    places: HashMap<String, usize>,
    /// How the stems begin. A stem begins as its word does, so most words need no stemming.
    beginnings: Vec<Beginning>,
    /// Irregular forms that begin otherwise than the word they belong to.
    odd_forms: Vec<&'static str>,
    /// With which bytes a word may begin: tells most words apart at once.
    first_bytes: Vec<bool>,
    words: usize,
}

/// The first characters of a stem; a stem of one character has no second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Beginning {
    first: char,
    second: Option<char>,
}

impl Beginning {
    fn of(stem: &str) -> Option<Self> {
        let mut characters = stem.chars();
        Some(Self { first: characters.next()?, second: characters.next() })
    }

    pub(super) fn begins(self, word: &str) -> bool {
        let mut characters = word.chars();
        characters.next() == Some(self.first) && (self.second.is_none() || characters.next() == self.second)
    }
}

fn first_byte(character: char) -> u8 {
    let mut bytes = [0; 4];
    character.encode_utf8(&mut bytes);
    bytes[0]
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

impl TermMatcher {
    /// Makes a lookup of words, each given by its stems ([`super::query_terms`]). A stem that two words share counts
    /// for the first.
    #[must_use]
    pub fn new(words: &[Vec<String>]) -> Self {
        let mut lookup = Self { first_bytes: vec![false; 256], words: words.len(), ..Self::default() };
        for (place, stems) in words.iter().enumerate() {
            for stem in stems {
                lookup.places.entry(stem.clone()).or_insert(place);
                lookup.beginnings.extend(Beginning::of(stem));
            }
        }
        lookup.beginnings.sort_unstable();
        lookup.beginnings.dedup();
        lookup.odd_forms = irregular::odd_forms(&lookup.beginnings);
        for beginning in &lookup.beginnings {
            lookup.first_bytes[usize::from(first_byte(beginning.first))] = true;
        }
        for form in &lookup.odd_forms {
            lookup.first_bytes[usize::from(form.as_bytes()[0])] = true;
        }
        lookup
    }

    /// Counts the words in a text.
    #[must_use]
    pub fn count(&self, text: &str) -> TermCounts {
        self.caching().count(text)
    }

    /// Counts in many texts, and takes each word apart once.
    #[must_use]
    pub fn caching(&self) -> CachingTermMatcher<'_> {
        CachingTermMatcher { lookup: self, places: HashMap::default(), known: Vec::new() }
    }

    fn may_hold(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        self.first_bytes.get(usize::from(first)) == Some(&true)
            && (self.beginnings.iter().any(|beginning| beginning.begins(word)) || self.odd_forms.contains(&word))
    }

    /// Which of the question's words a word is, by its stems: of two languages they may be those of one.
    fn places_of(&self, word: &str, stems: &Stems) -> Places {
        let mut places = Places::default();
        for place in stems.of(word).iter().filter_map(|stem| self.places.get(stem).copied()) {
            if places[0].is_none() {
                places[0] = Some(place);
            } else if places[0] != Some(place) {
                places[1] = Some(place);
            }
        }
        places
    }
}

/// The question's words that a word is one of: at most one for each of two languages.
type Places = [Option<usize>; 2];

/// Words that are remembered; with many more it begins anew.
const KNOWN_WORDS: usize = 50_000;

/// Counts a question's words in one text after the other.
#[derive(Debug)]
pub struct CachingTermMatcher<'a> {
    lookup: &'a TermMatcher,
    /// Where in `known` each word is that may be one of the question's.
    places: HashMap<String, usize, RandomState>,
    known: Vec<Known>,
}

/// What is known of a word.
#[derive(Debug)]
struct Known {
    word: String,
    /// Which of the question's words it is, by the language of the text: each one, and none.
    places: [Option<Places>; Language::ALL.len() + 1],
}

impl CachingTermMatcher<'_> {
    /// Counts the words in a text.
    pub fn count(&mut self, text: &str) -> TermCounts {
        if self.known.len() > KNOWN_WORDS {
            self.places.clear();
            self.known.clear();
        }
        let mut found = TermCounts { counts: vec![0; self.lookup.words], length: 0 };
        let (mut tally, mut candidates) = (Tally::default(), Vec::new());
        for_each_word(text, |word| {
            found.length = found.length.saturating_add(1);
            tally.take(word);
            if self.lookup.may_hold(word) {
                candidates.push(self.find(word));
            }
        });
        let language = tally.language();
        for at in candidates {
            for place in self.places_of(at, language).into_iter().flatten() {
                found.counts[place] += 1;
            }
        }
        found
    }

    fn find(&mut self, word: &str) -> usize {
        if let Some(at) = self.places.get(word) {
            return *at;
        }
        self.places.insert(word.to_owned(), self.known.len());
        self.known.push(Known { word: word.to_owned(), places: Default::default() });
        self.known.len() - 1
    }

    fn places_of(&mut self, at: usize, language: Option<Language>) -> Places {
        let known = &mut self.known[at];
        let column = language.map_or(Language::ALL.len(), |language| language as usize);
        *known.places[column].get_or_insert_with(|| {
            let stems = language.map_or_else(|| Stems::new(&Language::ALL), |language| Stems::new(&[language]));
            self.lookup.places_of(&known.word, &stems)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::{query_terms, stems};
    use super::*;

    fn lookup(question: &str) -> TermMatcher {
        TermMatcher::new(&query_terms(question).into_iter().map(|(_, stems)| stems).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_counted_in_any_form() {
        let found = lookup("buy trains").count("She bought a train; he buys TRAINS, trains.");
        assert_eq!(found, TermCounts { counts: vec![2, 3], length: 8 });
        assert_eq!(lookup("go").count("She went").counts, [1]);
        assert!(lookup("plane").count("the train").is_miss());
        assert_eq!(TermMatcher::new(&[]).count("the train"), TermCounts { counts: Vec::new(), length: 2 });
    }

    #[test]
    fn words_whose_stem_begins_otherwise_are_found() {
        for (asked, said) in [("die", "dying"), ("lie", "lying"), ("tie", "tying"), ("feet", "foot")] {
            assert_eq!(lookup(asked).count(said).counts, [1], "{said}");
        }
    }

    proptest! {
        #[test]
        fn a_stem_begins_as_its_word_does(
            start in "[a-zñáéíóúü]{1,4}",
            ending in "(ying|ies|ied|y|ily|ly|eed|ing|ed|s|es|ic|ion|ational|ness|ción|mente|ando|yendo|ése|arlo|aban|ísimo)?",
        ) {
            let word = crate::text::fold(&format!("{start}{ending}"));
            let stems = Stems::new(&Language::ALL).of(&word);
            let is_odd = irregular::base_of(&word) != word || irregular::STEMS_BEGIN_OTHERWISE.contains(&word.as_str());
            for stem in stems {
                let beginning = Beginning::of(&stem);
                prop_assert!(is_odd || beginning.is_none_or(|beginning| beginning.begins(&word)), "{} of {}", stem, word);
            }
        }
        #[test]
        fn nothing_that_the_stems_show_is_missed(question in "[a-zé ]{0,12}", text in "[a-zA-Zéñ' ]{0,80}") {
            let question: Vec<_> = query_terms(&question).into_iter().map(|(_, stems)| stems).collect();
            let shown = stems(&text);
            let found = TermMatcher::new(&question).count(&text);
            prop_assert_eq!(found.length as usize, shown.len());
            let asked: HashSet<&String> = question.iter().flatten().collect();
            let is_shown = shown.iter().flatten().any(|stem| asked.contains(stem));
            prop_assert_eq!(!found.is_miss(), is_shown);
        }
    }
}
