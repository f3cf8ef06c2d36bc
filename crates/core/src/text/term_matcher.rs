use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{FunctionWordCounts, Language, Stems, for_each_word, irregular};

/// Finds the words of a query in many texts, without stemming every word of them.
///
/// The matches are the same as those of [`super::stems`] of the texts.
#[derive(Clone, Debug, Default)]
pub struct TermMatcher {
    /// The index of the query word that each stem belongs to.
    word_indexes: HashMap<String, usize>,
    /// The prefixes of the stems. A word has the same prefix as its stem, so words with other prefixes need no stemming.
    prefixes: Vec<Prefix>,
    /// The words whose prefix differs from that of their stem.
    other_forms: Vec<&'static str>,
    /// For each byte, whether a matching word can start with it. Excludes most words quickly.
    first_bytes: Vec<bool>,
    word_count: usize,
}

/// The first one or two characters of a stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix {
    first: char,
    second: Option<char>,
}

impl Prefix {
    fn of(stem: &str) -> Option<Self> {
        let mut characters = stem.chars();
        Some(Self { first: characters.next()?, second: characters.next() })
    }

    pub(super) fn matches(self, word: &str) -> bool {
        let mut characters = word.chars();
        characters.next() == Some(self.first) && (self.second.is_none() || characters.next() == self.second)
    }
}

fn first_byte(character: char) -> u8 {
    let mut bytes = [0; 4];
    character.encode_utf8(&mut bytes);
    bytes[0]
}

/// The term counts of the text, for ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// The number of occurrences of each word of the query, in the order of the query.
    pub counts: Vec<u32>,
    /// The number of words in the text.
    pub length: u32,
}

impl TermCounts {
    /// Whether no word of the query occurs.
    #[must_use]
    pub fn is_miss(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

impl TermMatcher {
    /// Creates a matcher for words, each given by its stems ([`super::query_terms`]). A stem that two words share counts for the
    /// first of them.
    #[must_use]
    pub fn new(words: &[Vec<String>]) -> Self {
        let mut matcher = Self { first_bytes: vec![false; 256], word_count: words.len(), ..Self::default() };
        for (index, stems) in words.iter().enumerate() {
            for stem in stems {
                matcher.word_indexes.entry(stem.clone()).or_insert(index);
                matcher.prefixes.extend(Prefix::of(stem));
            }
        }
        matcher.prefixes.sort_unstable();
        matcher.prefixes.dedup();
        matcher.other_forms = irregular::forms_with_other_prefixes(&matcher.prefixes);
        for prefix in &matcher.prefixes {
            matcher.first_bytes[usize::from(first_byte(prefix.first))] = true;
        }
        for form in &matcher.other_forms {
            matcher.first_bytes[usize::from(form.as_bytes()[0])] = true;
        }
        matcher
    }

    /// Counts the words in the text.
    #[must_use]
    pub fn count(&self, text: &str) -> TermCounts {
        self.caching().count(text)
    }

    /// Returns a matcher for many texts, which stems each distinct word once.
    #[must_use]
    pub fn caching(&self) -> CachingTermMatcher<'_> {
        CachingTermMatcher { matcher: self, cache_indexes: HashMap::default(), cached: Vec::new() }
    }

    /// Whether a word may match. Has false positives, but no false negatives.
    fn may_match(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        self.first_bytes.get(usize::from(first)) == Some(&true)
            && (self.prefixes.iter().any(|prefix| prefix.matches(word)) || self.other_forms.contains(&word))
    }

    /// Returns the query words that a word matches by its stems.
    fn matches_of(&self, word: &str, stems: &Stems) -> WordMatches {
        let mut matches = WordMatches::default();
        for index in stems.of(word).iter().filter_map(|stem| self.word_indexes.get(stem).copied()) {
            if matches[0].is_none() {
                matches[0] = Some(index);
            } else if matches[0] != Some(index) {
                matches[1] = Some(index);
            }
        }
        matches
    }
}

/// The indexes of the query words that a word matches: at most one for each language.
type WordMatches = [Option<usize>; 2];

/// The number of cached words after which the cache is cleared.
const CACHED_WORDS: usize = 50_000;

/// A [`TermMatcher`] for many texts. It stems each distinct word once.
#[derive(Debug)]
pub struct CachingTermMatcher<'a> {
    matcher: &'a TermMatcher,
    /// The index in `cached` of each word that may match.
    cache_indexes: HashMap<String, usize, RandomState>,
    cached: Vec<CachedWord>,
}

/// The cached matches of a word.
#[derive(Debug)]
struct CachedWord {
    word: String,
    /// The matches for each language of the text; the last entry is for texts without a detected language. `None` if not computed yet.
    matches: [Option<WordMatches>; Language::ALL.len() + 1],
}

impl CachingTermMatcher<'_> {
    /// Counts the words in the text.
    pub fn count(&mut self, text: &str) -> TermCounts {
        if self.cached.len() > CACHED_WORDS {
            self.cache_indexes.clear();
            self.cached.clear();
        }
        let mut found = TermCounts { counts: vec![0; self.matcher.word_count], length: 0 };
        let (mut function_words, mut candidates) = (FunctionWordCounts::default(), Vec::new());
        for_each_word(text, |word| {
            found.length = found.length.saturating_add(1);
            function_words.add(word);
            if self.matcher.may_match(word) {
                candidates.push(self.cache_index(word));
            }
        });
        let language = function_words.language();
        for cache_index in candidates {
            for index in self.matches_of(cache_index, language).into_iter().flatten() {
                found.counts[index] += 1;
            }
        }
        found
    }

    /// Whether a word of the query occurs in the text. Faster than [`CachingTermMatcher::count`] if none does.
    pub fn is_match(&mut self, text: &str) -> bool {
        let mut may_match = false;
        for_each_word(text, |word| may_match |= self.matcher.may_match(word));
        may_match && !self.count(text).is_miss()
    }

    /// Returns a word's index in `cached`. Adds the word if it is missing.
    fn cache_index(&mut self, word: &str) -> usize {
        if let Some(index) = self.cache_indexes.get(word) {
            return *index;
        }
        self.cache_indexes.insert(word.to_owned(), self.cached.len());
        self.cached.push(CachedWord { word: word.to_owned(), matches: Default::default() });
        self.cached.len() - 1
    }

    fn matches_of(&mut self, cache_index: usize, language: Option<Language>) -> WordMatches {
        let cached = &mut self.cached[cache_index];
        let column = language.map_or(Language::ALL.len(), |language| language as usize);
        *cached.matches[column].get_or_insert_with(|| {
            let stems = language.map_or_else(|| Stems::new(&Language::ALL), |language| Stems::new(&[language]));
            self.matcher.matches_of(&cached.word, &stems)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::{query_terms, stems};
    use super::*;

    fn matcher(query: &str) -> TermMatcher {
        TermMatcher::new(&query_terms(query).into_iter().map(|(_, stems)| stems).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_counted_in_any_form() {
        let found = matcher("buy trains").count("She bought a train; he buys TRAINS, trains.");
        assert_eq!(found, TermCounts { counts: vec![2, 3], length: 8 });
        assert_eq!(matcher("go").count("She went").counts, [1]);
        assert!(matcher("plane").count("the train").is_miss());
        assert_eq!(TermMatcher::new(&[]).count("the train"), TermCounts { counts: Vec::new(), length: 2 });
    }

    #[test]
    fn words_without_the_prefix_of_their_stem_are_counted() {
        for (query, text) in [("die", "dying"), ("lie", "lying"), ("tie", "tying"), ("feet", "foot")] {
            assert_eq!(matcher(query).count(text).counts, [1], "{text}");
        }
    }

    proptest! {
        #[test]
        fn stems_have_the_prefix_of_their_word(
            start in "[a-zñáéíóúü]{1,4}",
            ending in "(ying|ies|ied|y|ily|ly|eed|ing|ed|s|es|ic|ion|ational|ness|ción|mente|ando|yendo|ése|arlo|aban|ísimo)?",
        ) {
            let word = crate::text::fold(&format!("{start}{ending}"));
            let stems = Stems::new(&Language::ALL).of(&word);
            let is_exception =
                irregular::base_of(&word) != word || irregular::STEMS_WITH_OTHER_PREFIXES.contains(&word.as_str());
            for stem in stems {
                let prefix = Prefix::of(&stem);
                prop_assert!(is_exception || prefix.is_none_or(|prefix| prefix.matches(&word)), "{} of {}", stem, word);
            }
        }
        #[test]
        fn matches_are_the_same_as_those_of_stems(query in "[a-zé ]{0,12}", text in "[a-zA-Zéñ' ]{0,80}") {
            let query: Vec<_> = query_terms(&query).into_iter().map(|(_, stems)| stems).collect();
            let text_stems = stems(&text);
            let found = TermMatcher::new(&query).count(&text);
            prop_assert_eq!(found.length as usize, text_stems.len());
            let query_stems: HashSet<&String> = query.iter().flatten().collect();
            let is_match = text_stems.iter().flatten().any(|stem| query_stems.contains(stem));
            prop_assert_eq!(!found.is_miss(), is_match);
            prop_assert_eq!(TermMatcher::new(&query).caching().is_match(&text), is_match);
        }
    }
}
