//! Trains a classifier with the averaged perceptron algorithm, with a margin.

use std::collections::{BTreeMap, BTreeSet};

use super::features::{FeatureHash, Features};
use super::{ClassWeight, Classifier};

/// The number of passes over the examples.
const EPOCHS: usize = 24;
/// The minimum lead of an example's class over the best other class, in units of weight. If the lead is smaller, the
/// weights are adjusted.
const MARGIN: i64 = 8;
/// Features that occur in fewer examples are not stored, and words that occur in fewer lines are not in the vocabulary.
const MIN_OCCURRENCES: usize = 2;
/// In a training set with fewer examples, features repeat too rarely, so all of them are used.
const SMALL_SET: usize = 200;

/// An example of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The index of the class.
    pub class: usize,
    /// The number of the line in the phrase file from which the message was expanded.
    pub line: usize,
    /// The normalized words, and names of kinds in braces.
    pub tokens: Vec<String>,
}

/// Trains a classifier.
///
/// # Panics
/// If there are more than 256 classes, or an example's class is out of range.
#[must_use]
pub fn train(classes: Vec<String>, examples: &[Example]) -> Classifier {
    assert!(classes.len() <= 256, "a class is stored in one byte");
    let min_occurrences = if examples.len() < SMALL_SET { 1 } else { MIN_OCCURRENCES };
    let vocabulary = vocabulary(examples, min_occurrences);
    let features: Vec<Features> = examples
        .iter()
        .map(|example| Features::of_example(&example.tokens, |word| vocabulary.contains(word)))
        .collect();
    let index = FeatureIndex::of(&features, min_occurrences);
    let classified = examples.iter().map(|example| example.class).zip(&features);
    let encoded: Vec<(usize, Vec<usize>)> =
        classified.map(|(class, features)| (class, index.positions(features))).collect();
    let mut perceptron = Perceptron::new(index.hashes.len(), classes.len());
    let mut order: Vec<usize> = (0..encoded.len()).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..EPOCHS {
        random.shuffle(&mut order);
        for at in &order {
            let (class, features) = &encoded[*at];
            perceptron.learn(*class, features);
        }
    }
    let mut rows = quantize(classes.len(), &index, &perceptron.averages());
    for word in vocabulary {
        // A word of the vocabulary is stored even without weights, so that it is known.
        rows.entry(FeatureHash::of_word(word)).or_default().entry(0).or_default();
    }
    for (example, features) in examples.iter().zip(&features) {
        for word in features.words() {
            rows.entry(*word).or_default().insert(class_number(example.class), 0);
        }
    }
    let mut classifier = Classifier::of_rows(classes, rows);
    let scores = examples.iter().zip(&features).map(|(example, features)| classifier.sum(features, example.class));
    let mut scores: Vec<i64> = scores.collect();
    scores.sort_unstable();
    let median = scores.get(scores.len() / 2).copied().unwrap_or_default();
    classifier.typical_score = u32::try_from(median.max(1)).unwrap_or(u32::MAX);
    classifier
}

/// Returns the words that occur in at least `min_lines` lines.
fn vocabulary(examples: &[Example], min_lines: usize) -> BTreeSet<&str> {
    let mut lines: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for example in examples {
        for token in &example.tokens {
            lines.entry(token).or_default().insert(example.line);
        }
    }
    lines.into_iter().filter(|(_, lines)| lines.len() >= min_lines).map(|(word, _)| word).collect()
}

fn class_number(class: usize) -> u8 {
    u8::try_from(class).expect("at most 256 classes")
}

/// The features that are stored.
struct FeatureIndex {
    hashes: Vec<FeatureHash>,
}

impl FeatureIndex {
    fn of(examples: &[Features], min_examples: usize) -> Self {
        let mut occurrences: BTreeMap<FeatureHash, usize> = BTreeMap::new();
        for hash in examples.iter().flat_map(Features::hashes) {
            *occurrences.entry(*hash).or_default() += 1;
        }
        let hashes = occurrences.into_iter().filter(|(_, count)| *count >= min_examples);
        Self { hashes: hashes.map(|(hash, _)| hash).collect() }
    }

    fn positions(&self, features: &Features) -> Vec<usize> {
        features.hashes().iter().filter_map(|hash| self.hashes.binary_search(hash).ok()).collect()
    }
}

struct Perceptron {
    classes: usize,
    weights: Vec<i64>,
    /// For each weight, the sum of its changes, each multiplied by the number of the step at which it was made.
    history: Vec<i64>,
    step: i64,
}

impl Perceptron {
    fn new(features: usize, classes: usize) -> Self {
        Self { classes, weights: vec![0; features * classes], history: vec![0; features * classes], step: 1 }
    }

    fn learn(&mut self, class: usize, features: &[usize]) {
        let mut scores = vec![0_i64; self.classes];
        for feature in features {
            let row = &self.weights[feature * self.classes..][..self.classes];
            for (score, weight) in scores.iter_mut().zip(row) {
                *score += weight;
            }
        }
        let best_other =
            (0..self.classes).filter(|other| *other != class).max_by_key(|other| (scores[*other], usize::MAX - other));
        if let Some(best_other) = best_other
            && scores[class] < scores[best_other] + MARGIN
        {
            for feature in features {
                self.change(feature * self.classes + class, 1);
                self.change(feature * self.classes + best_other, -1);
            }
        }
        self.step += 1;
    }

    fn change(&mut self, at: usize, by: i64) {
        self.weights[at] += by;
        self.history[at] += by * self.step;
    }

    /// Returns the averages of the weights over all steps, multiplied by the number of steps.
    fn averages(&self) -> Vec<i64> {
        self.weights.iter().zip(&self.history).map(|(weight, history)| weight * self.step - history).collect()
    }
}

/// The weights of a feature by class.
type Row = BTreeMap<u8, i8>;

fn quantize(classes: usize, index: &FeatureIndex, averages: &[i64]) -> BTreeMap<FeatureHash, Row> {
    let largest = averages.iter().map(|weight| weight.abs()).max().unwrap_or(0).max(1);
    let row = |feature: usize| {
        let weights = averages[feature * classes..][..classes].iter().enumerate();
        let weights = weights.map(|(class, average)| {
            (class_number(class), i8::try_from(average * 127 / largest).expect("scaled by the largest weight"))
        });
        weights.filter(|(_, weight)| *weight != 0).collect::<Row>()
    };
    let rows = index.hashes.iter().enumerate().map(|(feature, hash)| (*hash, row(feature)));
    rows.filter(|(_, row)| !row.is_empty()).collect()
}

impl Classifier {
    /// Returns the unscaled score of a class.
    fn sum(&self, features: &Features, class: usize) -> i64 {
        let entries = features.hashes().iter().flat_map(|hash| self.weights_of(*hash));
        let sum = entries.filter(|entry| usize::from(entry.class) == class).map(|entry| i64::from(entry.weight)).sum();
        super::unscaled(sum, features)
    }

    fn of_rows(classes: Vec<String>, rows: BTreeMap<FeatureHash, Row>) -> Self {
        let mut classifier = Self { classes, ..Self::default() };
        for (hash, row) in rows {
            classifier.weights.extend(row.into_iter().map(|(class, weight)| ClassWeight { class, weight }));
            classifier.hashes.push(hash);
            let end = u32::try_from(classifier.weights.len()).expect("a classifier has fewer than 2^32 weights");
            classifier.ends.push(end);
        }
        classifier
    }
}

/// A pseudo-random number generator (xorshift64) that shuffles the examples in the same way in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for last in (1..items.len()).rev() {
            let other = (self.next() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }
}
