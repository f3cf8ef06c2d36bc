//! Training by the averaged perceptron with a margin.

use std::collections::BTreeMap;

use super::features::{FeatureHash, Features};
use super::{ClassWeight, Classifier};

/// The number of passes over the examples.
const EPOCHS: usize = 24;
/// The score by which an example's class has to lead, in units of weight; otherwise the weights change.
const MARGIN: i64 = 8;
/// Parts of words and pairs that occur in fewer examples are not stored unless they are words.
const MIN_OCCURRENCES: u32 = 2;

/// An example of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The index of the class.
    pub class: usize,
    /// The features of the message.
    pub features: Features,
}

/// Trains a classifier.
///
/// # Panics
/// If there are more than 256 classes, or an example's class is out of range.
#[must_use]
pub fn train(classes: Vec<String>, examples: &[Example]) -> Classifier {
    assert!(classes.len() <= 256, "a class is stored in one byte");
    let index = FeatureIndex::of(examples);
    let encoded: Vec<(usize, Vec<usize>)> =
        examples.iter().map(|example| (example.class, index.positions(&example.features))).collect();
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
    let mut attested = vec![false; index.hashes.len() * classes.len()];
    for (class, features) in &encoded {
        for feature in features {
            attested[feature * classes.len() + class] = true;
        }
    }
    quantize(classes, &index, &perceptron.averages(), &attested)
}

/// The features that are stored.
struct FeatureIndex {
    hashes: Vec<FeatureHash>,
}

impl FeatureIndex {
    fn of(examples: &[Example]) -> Self {
        let mut occurrences: BTreeMap<FeatureHash, u32> = BTreeMap::new();
        for hash in examples.iter().flat_map(|example| example.features.hashes()) {
            *occurrences.entry(*hash).or_default() += 1;
        }
        // A small training set has too few repetitions to choose by them.
        let least = if examples.len() < 200 { 1 } else { MIN_OCCURRENCES };
        let words = examples.iter().flat_map(|example| example.features.words().iter().copied());
        let words: std::collections::BTreeSet<FeatureHash> = words.collect();
        let hashes = occurrences.into_iter().filter(|(hash, count)| *count >= least || words.contains(hash));
        Self { hashes: hashes.map(|(hash, _)| hash).collect() }
    }

    fn positions(&self, features: &Features) -> Vec<usize> {
        features.hashes().iter().filter_map(|hash| self.hashes.binary_search(hash).ok()).collect()
    }
}

struct Perceptron {
    classes: usize,
    weights: Vec<i64>,
    /// The changes of each weight, multiplied by the step at which they happened.
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
        let rival =
            (0..self.classes).filter(|other| *other != class).max_by_key(|other| (scores[*other], usize::MAX - other));
        if let Some(rival) = rival
            && scores[class] < scores[rival] + MARGIN
        {
            for feature in features {
                self.change(feature * self.classes + class, 1);
                self.change(feature * self.classes + rival, -1);
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

fn quantize(classes: Vec<String>, index: &FeatureIndex, averages: &[i64], attested: &[bool]) -> Classifier {
    let largest = averages.iter().map(|weight| weight.abs()).max().unwrap_or(0).max(1);
    let (mut hashes, mut ends, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (feature, hash) in index.hashes.iter().enumerate() {
        let start = weights.len();
        for class in 0..classes.len() {
            let at = feature * classes.len() + class;
            let weight = i8::try_from(averages[at] * 127 / largest).expect("scaled by the largest weight");
            if weight != 0 || attested[at] {
                let class = u8::try_from(class).expect("at most 256 classes");
                weights.push(ClassWeight { class, is_attested: attested[at], weight });
            }
        }
        if weights.len() > start {
            hashes.push(*hash);
            ends.push(u32::try_from(weights.len()).expect("a classifier has fewer than 2^32 weights"));
        }
    }
    Classifier { classes, hashes, ends, weights }
}

/// A generator of pseudo-random numbers (xorshift64) for the order of examples, the same in every run.
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
