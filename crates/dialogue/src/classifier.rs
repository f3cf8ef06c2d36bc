//! A linear classifier with integer weights.
//!
//! Training and classification use only integers, so that on every processor the same phrases give the same bytes, and
//! the same message is assigned to the same class.

mod features;
mod format;
mod training;

pub use features::{FeatureHash, Features};
pub(crate) use features::{tokens_of, tokens_with};
pub use format::ClassifierError;
pub use training::{Example, train};

/// Classifies the features of a message.
///
/// The weights are stored by feature. Each word of the examples is also stored as a feature of weight 0, with the
/// classes of the examples that contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifier {
    classes: Vec<String>,
    /// The hashes of the features, ascending.
    hashes: Vec<FeatureHash>,
    /// The end of each feature's range in `weights`. The range starts where the previous feature's range ends.
    ends: Vec<u32>,
    weights: Vec<ClassWeight>,
    /// The median unscaled score of the examples for their own class. Scores are divided by it.
    typical_score: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassWeight {
    class: u8,
    weight: i8,
}

/// A class and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// The index of the class in [`Classifier::classes`].
    pub class: usize,
    /// The sum of the weights, divided by the square root of the number of features, so that messages of different
    /// lengths can be compared. Scores are scaled so that half of the examples score at least 1,000 for their class.
    pub score: i64,
}

impl Classifier {
    /// Returns the names of the classes.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Returns the number of features with weights.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        self.hashes.len()
    }

    /// Returns all classes with their scores, best first. Classes with equal scores keep their order.
    #[must_use]
    pub fn scores(&self, features: &Features) -> Vec<Score> {
        let mut sums = vec![0_i64; self.classes.len()];
        for hash in features.hashes() {
            for entry in self.weights_of(*hash) {
                sums[usize::from(entry.class)] += i64::from(entry.weight);
            }
        }
        let divisor = i64::from(self.typical_score.max(1));
        let scores = sums.into_iter().enumerate();
        let mut scores: Vec<Score> = scores
            .map(|(class, sum)| Score { class, score: unscaled(sum, features) * TYPICAL_SCORE / divisor })
            .collect();
        scores.sort_by_key(|score| (std::cmp::Reverse(score.score), score.class));
        scores
    }

    /// Computes the features of a message, given as normalized words and names of kinds in braces.
    #[must_use]
    pub fn features<T: AsRef<str>>(&self, tokens: &[T]) -> Features {
        Features::of_tokens(tokens, |word| !self.weights_of(FeatureHash::of_word(word)).is_empty())
    }

    /// Whether a word occurred in an example of a class.
    #[must_use]
    pub fn is_attested(&self, word: &str, class: usize) -> bool {
        self.weights_of(FeatureHash::of_attestation(word)).iter().any(|entry| usize::from(entry.class) == class)
    }

    /// Whether a word occurred in any example.
    #[must_use]
    pub fn is_known(&self, word: &str) -> bool {
        !self.weights_of(FeatureHash::of_attestation(word)).is_empty()
    }

    fn weights_of(&self, feature: FeatureHash) -> &[ClassWeight] {
        let Ok(at) = self.hashes.binary_search(&feature) else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.weights[start..self.ends[at] as usize]
    }
}

const SCALE: u64 = 16;
/// The median score of the examples for their class.
const TYPICAL_SCORE: i64 = 1_000;

fn unscaled(sum: i64, features: &Features) -> i64 {
    let root = square_root(features.hashes().len() as u64 * SCALE * SCALE).max(1);
    sum * 100 * SCALE as i64 / root as i64
}

/// Returns the integer square root.
fn square_root(value: u64) -> u64 {
    let mut root = 0;
    let mut bit = 1_u64 << 62;
    let mut rest = value;
    while bit > rest {
        bit >>= 2;
    }
    while bit != 0 {
        if rest >= root + bit {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
        bit >>= 2;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trained(lines: &[(&str, &str)]) -> Classifier {
        let mut classes: Vec<String> = Vec::new();
        let examples: Vec<Example> = lines
            .iter()
            .enumerate()
            .map(|(line, (class, text))| {
                let class = classes.iter().position(|known| known == class).unwrap_or_else(|| {
                    classes.push((*class).to_owned());
                    classes.len() - 1
                });
                Example { class, line, tokens: tokens_of(text) }
            })
            .collect();
        train(classes, &examples)
    }

    const LINES: [(&str, &str); 8] = [
        ("open", "when do you open on {day}"),
        ("open", "what are the opening hours"),
        ("open", "at what time do you open"),
        ("price", "how much is a ticket"),
        ("price", "what does a ticket cost"),
        ("price", "ticket price for children"),
        ("thanks", "thank you very much"),
        ("thanks", "thanks a lot"),
    ];

    fn class<'a>(classifier: &'a Classifier, text: &str) -> &'a str {
        &classifier.classes()[classifier.scores(&classifier.features(&tokens_of(text)))[0].class]
    }

    #[test]
    fn unseen_messages_get_the_class_of_similar_examples() {
        let classifier = trained(&LINES);
        assert_eq!(class(&classifier, "until when are you opened on {day}?"), "open");
        assert_eq!(class(&classifier, "how much do tickets cost"), "price");
        assert_eq!(class(&classifier, "many thanks"), "thanks");
    }

    #[test]
    fn training_and_encoding_are_reproducible() {
        let bytes = trained(&LINES).to_bytes();
        assert_eq!(bytes, trained(&LINES).to_bytes());
        assert_eq!(Classifier::from_bytes(&bytes).unwrap(), trained(&LINES));
    }

    #[test]
    fn attested_words_are_those_of_the_examples() {
        let classifier = trained(&LINES);
        let class = |name: &str| classifier.classes().iter().position(|class| class == name).unwrap();
        assert!(classifier.is_attested("ticket", class("price")));
        assert!(!classifier.is_attested("ticket", class("open")));
        assert!(classifier.is_known("ticket"));
        assert!(!classifier.is_known("giraffe"));
    }

    #[test]
    fn square_roots_are_rounded_down() {
        for (value, root) in [(0, 0), (1, 1), (3, 1), (4, 2), (99, 9), (100, 10), (u64::MAX, u64::from(u32::MAX))] {
            assert_eq!(square_root(value), root);
        }
    }
}
