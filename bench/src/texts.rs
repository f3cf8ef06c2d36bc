//! Texts in an invented language, with the lengths and word frequencies of real messages.

use crate::random::Random;

/// Number of words in the language. As in natural languages, the n-th most frequent word is about 1/n as frequent as the first.
const WORDS: usize = 5_000;
const SYLLABLES: [&str; 40] = [
    "ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "ya", "ran", "bel", "tin",
    "cor", "mus", "dal", "fen", "gis", "hol", "jun", "kas", "lem", "mir", "nor", "pul", "qua", "ser", "tol", "ver",
    "win", "xan", "zed", "tra", "ste", "pli",
];

/// Number of texts in a pool, the same as in the harness for other engines.
pub(crate) const POOL: usize = 4_096;

/// An invented language with the frequencies of a natural one.
#[derive(Debug)]
pub(crate) struct Language {
    words: Vec<String>,
    /// For each word, the cumulative frequency up to and including this word.
    cumulative: Vec<f64>,
}

impl Language {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut words = Vec::with_capacity(WORDS);
        let mut seen = std::collections::HashSet::new();
        while words.len() < WORDS {
            // Common words are shorter.
            let syllables = 1 + words.len().checked_ilog2().unwrap_or(0) as usize / 5 + random.index(2);
            let word: String = (0..syllables).map(|_| SYLLABLES[random.index(SYLLABLES.len())]).collect();
            if seen.insert(word.clone()) {
                words.push(word);
            } else {
                // The syllables for short words are exhausted.
                let longer = word + SYLLABLES[random.index(SYLLABLES.len())] + SYLLABLES[random.index(SYLLABLES.len())];
                if seen.insert(longer.clone()) {
                    words.push(longer);
                }
            }
        }
        let mut sum = 0.0;
        let weights = (1..=WORDS).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        let weights: Vec<f64> = weights.collect();
        let cumulative = weights.iter().map(|weight| weight / sum).collect();
        Self { words, cumulative }
    }

    /// Draws a word according to its frequency.
    pub(crate) fn word(&self, random: &mut Random) -> &str {
        let share = random.fraction();
        let rank = self.cumulative.partition_point(|cumulative| *cumulative < share);
        &self.words[rank.min(WORDS - 1)]
    }

    /// Returns sentences of exactly `length` bytes in total. The same number always returns the same text.
    pub(crate) fn text(&self, number: u64, length: usize) -> String {
        let mut random = Random::new(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5bd1_e995);
        let mut text = String::with_capacity(length + 24);
        while text.len() < length {
            let word = self.word(&mut random);
            if text.is_empty() || text.ends_with(". ") {
                text.push_str(&word[..1].to_ascii_uppercase());
                text.push_str(&word[1..]);
            } else {
                text.push_str(word);
            }
            text.push_str(if random.below(12) == 0 { ". " } else { " " });
        }
        text.truncate(length - 1);
        text.push('.');
        text
    }

    /// Returns a question of `count` distinct words from the text with this number.
    pub(crate) fn question(&self, number: u64, length: usize, count: usize) -> String {
        let text = self.text(number, length);
        // The last word may be truncated.
        let mut words: Vec<&str> = Vec::new();
        for word in text.trim_end_matches('.').rsplit_once(' ').map_or("", |(whole, _)| whole).split([' ', '.']) {
            if !word.is_empty() && !words.contains(&word) && words.len() < count {
                words.push(word);
            }
        }
        words.join(" ")
    }

    /// Returns texts for workloads that do not search.
    pub(crate) fn pool(&self, length: usize) -> Vec<String> {
        (0..POOL as u64).map(|number| self.text(number, length)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_word_frequencies_of_natural_language() {
        let language = Language::new(7);
        let text = language.text(3, 200);
        assert_eq!((text.len(), &text), (200, &Language::new(7).text(3, 200)));
        assert_ne!(text, language.text(4, 200));
        let all: String = (0..200).map(|number| language.text(number, 200)).collect();
        let first = all.matches(&format!(" {} ", language.words[0])).count();
        let tenth = all.matches(&format!(" {} ", language.words[9])).count();
        assert!(first > tenth * 3 && tenth > 5, "{first} and {tenth}");
    }

    #[test]
    fn a_question_consists_of_words_of_its_text() {
        let language = Language::new(7);
        let question = language.question(11, 200, 7);
        let words: Vec<_> = question.split(' ').collect();
        assert_eq!(words.len(), 7);
        let text = language.text(11, 200);
        assert!(words.iter().all(|word| text.contains(word)), "{question}: {text}");
    }
}
