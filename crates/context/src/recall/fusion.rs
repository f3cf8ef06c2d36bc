//! Combines rankings by different methods, such as word matching and embeddings.
//!
//! Both functions accept any number of rankings. [`combine_by_rank`] ignores the scores; [`combine_by_score`] preserves their relative
//! distances.

use std::collections::BTreeMap;

/// The constant `k` of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion" (2009).
const RANK_OFFSET: f64 = 60.0;

/// Combines rankings by rank: an entry scores 1 / (60 + rank) in each ranking that contains it.
///
/// Returns entries best first; equal scores are ordered by entry.
#[must_use]
pub fn combine_by_rank<T: Ord + Clone>(rankings: &[Vec<T>]) -> Vec<(T, f64)> {
    let mut scores: BTreeMap<T, f64> = BTreeMap::new();
    for ranking in rankings {
        for (rank, entry) in ranking.iter().enumerate() {
            *scores.entry(entry.clone()).or_default() += 1.0 / (RANK_OFFSET + 1.0 + rank as f64);
        }
    }
    best_first(scores)
}

/// Combines rankings by score: scales the scores of each ranking to the range from 0 to 1, multiplies them by the ranking's
/// weight and adds them up. Missing entries and scores that are not finite count as 0.
///
/// Returns entries best first; equal scores are ordered by entry.
#[must_use]
pub fn combine_by_score<T: Ord + Clone>(rankings: &[(f64, Vec<(T, f64)>)]) -> Vec<(T, f64)> {
    let mut scores: BTreeMap<T, f64> = BTreeMap::new();
    for (share, ranking) in rankings {
        let finite = || ranking.iter().map(|(_, score)| *score).filter(|score| score.is_finite());
        let (worst, best) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        for (entry, score) in ranking {
            let part = if !score.is_finite() {
                0.0
            } else if best > worst {
                (score - worst) / (best - worst)
            } else {
                1.0
            };
            *scores.entry(entry.clone()).or_default() += share * part;
        }
    }
    best_first(scores)
}

fn best_first<T: Ord>(scores: BTreeMap<T, f64>) -> Vec<(T, f64)> {
    let mut scores: Vec<_> = scores.into_iter().collect();
    // The sort is stable: entries with equal scores stay in the order of the map.
    scores.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_both_rankings_come_first() {
        let joined = combine_by_rank(&[vec!["a", "b", "c"], vec!["d", "b"]]);
        assert_eq!(joined.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), ["b", "a", "d", "c"]);
        assert_eq!(joined[1].1, 1.0 / 61.0);
        assert_eq!(combine_by_rank::<u8>(&[]), []);
    }

    #[test]
    fn scores_are_normalized() {
        let joined = combine_by_score(&[
            (1.0, vec![("a", 30.0), ("b", 10.0)]),
            (1.0, vec![("b", 0.9), ("a", 0.8), ("c", 0.85)]),
        ]);
        let (names, scores): (Vec<_>, Vec<_>) = joined.into_iter().unzip();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(scores[..2], [1.0, 1.0]);
        let odd = combine_by_score(&[(0.5, vec![("a", f64::NAN), ("b", 2.0)]), (1.0, Vec::new())]);
        assert_eq!(odd, [("b", 0.5), ("a", 0.0)]);
    }
}
