//! BM25: scores the relevance of texts to a query by the words they share.
//!
//! `k1` = 1.2 and `b` = 0.75, as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
//! (2009).

use threadkeep_core::text::TermCounts;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Statistics of the searched collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The approximate number of texts.
    pub documents: u64,
    /// For each word of the query, in order, the number of texts that contain it.
    pub frequencies: Vec<u64>,
}

/// Scores texts: larger is better; a text that contains no word of the query scores 0. The mean length is computed over the
/// texts that contain a word, so that other texts in the input do not affect the scores.
///
/// If more of the given texts contain a word than the statistics report, the number of given texts is used, so that no score is
/// negative.
#[must_use]
pub fn bm25(texts: &[TermCounts], statistics: &Statistics) -> Vec<f64> {
    let texts: Vec<&TermCounts> = texts.iter().collect();
    score_all(&texts, &weights(&texts, statistics))
}

/// Returns the inverse document frequency of each word of the query. Rare words weigh more.
#[must_use]
pub fn weights(texts: &[&TermCounts], statistics: &Statistics) -> Vec<f64> {
    let words = texts.first().map_or(0, |text| text.counts.len());
    (0..words).map(|word| weight(word, texts, statistics)).collect()
}

pub(super) fn score_all(texts: &[&TermCounts], weights: &[f64]) -> Vec<f64> {
    let lengths: Vec<f64> = texts.iter().filter(|text| !text.is_miss()).map(|text| f64::from(text.length)).collect();
    let mean = (lengths.iter().sum::<f64>() / lengths.len().max(1) as f64).max(1.0);
    texts.iter().map(|text| score(text, weights, mean)).collect()
}

fn weight(word: usize, texts: &[&TermCounts], statistics: &Statistics) -> f64 {
    let observed = texts.iter().filter(|text| text.counts[word] > 0).count() as u64;
    let frequency = statistics.frequencies.get(word).copied().unwrap_or(0).max(observed);
    let documents = statistics.documents.max(frequency).max(texts.len() as u64);
    let (frequency, documents) = (frequency as f64, documents as f64);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln()
}

fn score(text: &TermCounts, weights: &[f64], mean: f64) -> f64 {
    let length = f64::from(text.length) / mean;
    let words = text.counts.iter().zip(weights).map(|(count, weight)| {
        let count = f64::from(*count);
        weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    });
    words.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::Question;

    fn counts(query: &str, texts: &[&str]) -> Vec<TermCounts> {
        let query = Question::of_all_words(query);
        texts.iter().map(|text| query.count(text)).collect()
    }

    #[test]
    fn scores_match_the_formula() {
        let texts = counts("station", &["a station", "the station and more", "no match here at all"]);
        let scores = bm25(&texts, &Statistics { documents: 10, frequencies: vec![2] });
        // ln(1 + (10 - 2 + 0.5) / (2 + 0.5)) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3))
        let expected = 4.4_f64.ln() * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / 3.0));
        assert!((scores[0] - expected).abs() < 1e-12, "{} is not {expected}", scores[0]);
        assert!(scores[1] < scores[0]);
        assert_eq!(scores[2], 0.0);
    }

    #[test]
    fn rare_words_and_short_texts_score_higher() {
        let texts = counts("circle delay", &["circle line", "delay", "delay and more words than the other has"]);
        let scores = bm25(&texts, &Statistics { documents: 100, frequencies: vec![1, 60] });
        assert!(scores[0] > scores[1] && scores[1] > scores[2], "{scores:?}");
    }

    #[test]
    fn texts_without_the_words_do_not_affect_scores() {
        let statistics = Statistics { documents: 100, frequencies: vec![5] };
        let alone = bm25(&counts("circle", &["circle line", "the circle"]), &statistics);
        let among =
            bm25(&counts("circle", &["circle line", "the circle", "a very long text of other words"]), &statistics);
        assert_eq!(alone, among[..2]);
    }

    proptest! {
        #[test]
        fn scores_are_never_negative_or_undefined(
            texts in prop::collection::vec((prop::collection::vec(0_u32..9, 3), 0_u32..99), 0..9),
            documents in 0_u64..50,
            frequencies in prop::collection::vec(0_u64..99, 0..4),
        ) {
            let texts: Vec<_> = texts.into_iter().map(|(counts, length)| TermCounts { counts, length }).collect();
            for (score, text) in bm25(&texts, &Statistics { documents, frequencies }).iter().zip(&texts) {
                prop_assert!(score.is_finite() && *score >= 0.0);
                prop_assert_eq!(*score == 0.0, text.is_miss());
            }
        }
    }
}
