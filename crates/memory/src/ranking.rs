//! How well texts answer a query: BM25, the same over every store.
//!
//! Pure: texts and statistics in, scores out. `k1` = 1.2 and `b` = 0.75, as in Robertson and Zaragoza, "The Probabilistic
//! Relevance Framework: BM25 and Beyond" (2009).

use std::collections::HashMap;

use threadkeep_core::text;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What is known of everything that is searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// How many texts there are, about.
    pub documents: u64,
    /// How many of them hold each of the query's terms, in the query's order.
    pub frequencies: Vec<u64>,
}

/// A text, reduced to what ranking looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// How often each of the query's terms occurs, in the query's order.
    pub counts: Vec<u32>,
    /// How many terms the text has.
    pub length: u32,
}

impl TermCounts {
    /// Counts a query's terms (each once) in a text.
    #[must_use]
    pub fn of(text: &str, query: &[String]) -> Self {
        let places: HashMap<&str, usize> = query.iter().enumerate().map(|(place, term)| (term.as_str(), place)).collect();
        let mut counts = vec![0; query.len()];
        let mut length = 0;
        for term in text::terms(text) {
            length += 1;
            if let Some(place) = places.get(term.as_str()) {
                counts[*place] += 1;
            }
        }
        Self { counts, length }
    }

    /// Whether none of the terms occurs.
    #[must_use]
    pub fn is_miss(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

/// Scores texts: larger is better, 0 for a text without any of the terms. The mean length is that of the texts given.
///
/// A term that the statistics know less of than the texts show counts as often as the texts show it, so that no score
/// is ever negative.
#[must_use]
pub fn bm25(texts: &[TermCounts], statistics: &Statistics) -> Vec<f64> {
    let total: f64 = texts.iter().map(|text| f64::from(text.length)).sum();
    let mean = if texts.is_empty() { 1.0 } else { (total / texts.len() as f64).max(1.0) };
    let terms = texts.first().map_or(0, |text| text.counts.len());
    let weights: Vec<f64> = (0..terms).map(|term| weight(term, texts, statistics)).collect();
    texts.iter().map(|text| score(text, &weights, mean)).collect()
}

/// How telling a term is: the rarer, the more.
fn weight(term: usize, texts: &[TermCounts], statistics: &Statistics) -> f64 {
    let shown = texts.iter().filter(|text| text.counts[term] > 0).count() as u64;
    let frequency = statistics.frequencies.get(term).copied().unwrap_or(0).max(shown);
    let documents = statistics.documents.max(frequency).max(texts.len() as u64);
    let (frequency, documents) = (frequency as f64, documents as f64);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln()
}

fn score(text: &TermCounts, weights: &[f64], mean: f64) -> f64 {
    let length = f64::from(text.length) / mean;
    let terms = text.counts.iter().zip(weights).map(|(count, weight)| {
        let count = f64::from(*count);
        weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    });
    terms.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(text: &str) -> Vec<String> {
        text::distinct_terms(text)
    }

    #[test]
    fn the_score_is_that_of_the_formula() {
        let query = query("station");
        let texts: Vec<_> =
            ["a station", "no match here at all"].iter().map(|text| TermCounts::of(text, &query)).collect();
        let scores = bm25(&texts, &Statistics { documents: 10, frequencies: vec![2] });
        // ln(1 + (10 - 2 + 0.5) / (2 + 0.5)) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3.5))
        let expected = 4.4_f64.ln() * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / 3.5));
        assert!((scores[0] - expected).abs() < 1e-12, "{} is not {expected}", scores[0]);
        assert_eq!(scores[1], 0.0);
    }

    #[test]
    fn rare_terms_and_short_texts_win() {
        let query = query("circle delay");
        let texts: Vec<_> = ["circle line", "delay", "delay and more words than the other has"]
            .iter()
            .map(|text| TermCounts::of(text, &query))
            .collect();
        let scores = bm25(&texts, &Statistics { documents: 100, frequencies: vec![1, 60] });
        assert!(scores[0] > scores[1] && scores[1] > scores[2], "{scores:?}");
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
