//! Words that a text may contain instead of those of a question: the legal words for everyday words and expressions, the words of the
//! same group and those of the same family.

use threadkeep::context::recall::{Question, Statistics, weights};
use threadkeep::core::text::{TermCounts, TermMatcher};

use crate::thesaurus::{everyday, family, related_spanish_stems};

/// The maximum number of terms that the index looks up.
const MAX_TERMS: usize = 32;
/// The maximum number of words from the groups and the everyday words, and from the family of a word.
const MAX_OF_WORD: (usize, usize) = (6, 4);
/// The weight of a related word, compared with a word of the question, and that of the words for an expression, which is less ambiguous.
const WORD_WEIGHT: f64 = 0.5;
const EXPRESSION_WEIGHT: f64 = 0.8;
/// The weight of the second and third related word in a text, compared with the best one.
const FURTHER_WEIGHT: f64 = 0.3;
/// The share of a word's weight that a text earns if it contains only a related word.
const COVERED_SHARE: f64 = 0.6;
/// The share of the weight of an expression's best word that a text earns if it contains the word.
const COVERED_BY_EXPRESSION: f64 = 0.25;
/// The weight of related words in the subject of an item, compared with the words of the question in it.
const SUBJECT_WEIGHT: f64 = 0.4;
/// The parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The related words of a question.
#[derive(Debug, Default)]
pub(super) struct Related {
    /// The stems, each once.
    terms: Vec<String>,
    /// The indexes of the terms for each word of the question.
    by_word: Vec<Vec<usize>>,
    /// The indexes of the terms for each everyday expression in the question.
    by_expression: Vec<Vec<usize>>,
}

/// What an item contains of the related words.
#[derive(Clone, Debug, Default)]
pub(super) struct RelatedMatch {
    /// The words of the question that the item lacks but for which it contains a related word.
    pub(super) words: Vec<usize>,
    /// The score of the related words.
    pub(super) score: f64,
    /// The weight of the words of the question that the related words stand for.
    pub(super) covered: f64,
    /// The same for the related words in the subject of the item.
    pub(super) in_subject: f64,
}

/// The items that are compared with a question.
#[derive(Debug)]
pub(super) struct Items<'a> {
    /// The titles and texts.
    pub(super) texts: &'a [String],
    pub(super) subjects: &'a [String],
    /// The counts of the question's words in the texts and in the subjects.
    pub(super) word_counts: &'a [TermCounts],
    pub(super) subject_counts: &'a [TermCounts],
    /// The weights of the question's words.
    pub(super) word_weights: &'a [f64],
}

impl Related {
    /// Returns the related words of a query, of which `question` are the content words.
    pub(super) fn of(query: &str, question: &Question) -> Self {
        let own = question.stems();
        let is_other = |stem: &&String| !own.contains(stem);
        let of_word = |word: &str| -> Vec<&'static String> {
            let stem = everyday::stems(word).concat();
            let family = family::stems_of_family(word).iter().filter(is_other).take(MAX_OF_WORD.1);
            let others = everyday::legal_stems(&stem).iter().chain(related_spanish_stems(&stem)).filter(is_other);
            let mut stems: Vec<&String> = family.collect();
            let max = stems.len() + MAX_OF_WORD.0;
            for stem in others {
                if stems.len() < max && !stems.contains(&stem) {
                    stems.push(stem);
                }
            }
            stems
        };
        let words: Vec<Vec<&String>> = question.words().map(of_word).collect();
        let expressions = everyday::expressions(&everyday::stems(query));
        let expressions: Vec<Vec<&String>> =
            expressions.into_iter().map(|stems| stems.iter().filter(is_other).take(MAX_OF_WORD.0).collect()).collect();
        let max = MAX_TERMS.saturating_sub(question.terms().len());
        let terms = first_of_each(expressions.iter().chain(&words), max);
        let indexes = |stems: &Vec<&String>| -> Vec<usize> {
            stems.iter().filter_map(|stem| terms.iter().position(|term| term == *stem)).collect()
        };
        Self {
            by_word: words.iter().map(indexes).collect(),
            by_expression: expressions.iter().map(indexes).collect(),
            terms,
        }
    }

    /// Returns the terms to look up in the index.
    pub(super) fn terms(&self) -> &[String] {
        &self.terms
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns what each item contains of the related words. `statistics` are those of the [`Related::terms`].
    pub(super) fn matches(&self, items: &Items<'_>, statistics: &Statistics) -> Vec<RelatedMatch> {
        if self.is_empty() {
            return vec![RelatedMatch::default(); items.texts.len()];
        }
        let matcher = TermMatcher::new(&self.terms.iter().map(|term| vec![term.clone()]).collect::<Vec<_>>());
        let mut matcher = matcher.caching();
        let counts: Vec<TermCounts> = items.texts.iter().map(|text| matcher.count(text)).collect();
        let weights = weights(&counts.iter().collect::<Vec<_>>(), statistics);
        let lengths: f64 = counts.iter().map(|counts| f64::from(counts.length)).sum();
        let mean_length = (lengths / counts.len().max(1) as f64).max(1.0);
        let of_item = |(index, counts): (usize, &TermCounts)| {
            let length = f64::from(counts.length) / mean_length;
            let values: Vec<f64> = counts
                .counts
                .iter()
                .zip(&weights)
                .map(|(count, weight)| weight * saturation(f64::from(*count), length))
                .collect();
            let in_subject = matcher.count(&items.subjects[index]).counts;
            let subject_weights: Vec<f64> =
                in_subject.iter().zip(&weights).map(|(count, weight)| if *count > 0 { *weight } else { 0.0 }).collect();
            self.match_of(items, index, &values, &subject_weights)
        };
        counts.iter().enumerate().map(of_item).collect()
    }

    /// Returns what an item contains: `values` are the scores of the terms in its text, `subject_weights` the weights of those in its
    /// subject.
    fn match_of(&self, items: &Items<'_>, index: usize, values: &[f64], subject_weights: &[f64]) -> RelatedMatch {
        let mut found = RelatedMatch::default();
        for (word, terms) in self.by_word.iter().enumerate() {
            let weight = items.word_weights[word];
            let (best, sum) = best_and_sum(terms, values);
            if items.word_counts[index].counts[word] == 0 && best > 0.0 {
                found.words.push(word);
                found.score += WORD_WEIGHT * sum;
                found.covered += COVERED_SHARE * weight.min(best);
            }
            if items.subject_counts[index].counts[word] == 0 {
                found.in_subject += SUBJECT_WEIGHT * weight.min(best_and_sum(terms, subject_weights).0);
            }
        }
        for terms in &self.by_expression {
            let (best, sum) = best_and_sum(terms, values);
            found.score += EXPRESSION_WEIGHT * sum;
            found.covered += COVERED_BY_EXPRESSION * best;
            found.in_subject += SUBJECT_WEIGHT * best_and_sum(terms, subject_weights).0;
        }
        found
    }
}

/// Returns the best value of some terms, and its sum with part of the next two.
fn best_and_sum(terms: &[usize], values: &[f64]) -> (f64, f64) {
    let mut values: Vec<f64> = terms.iter().map(|term| values[*term]).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let best = values.first().copied().unwrap_or_default();
    (best, best + FURTHER_WEIGHT * values.iter().skip(1).take(2).sum::<f64>())
}

/// Returns the factor of BM25 for a number of occurrences in a text, whose length is given as a share of the mean length.
fn saturation(count: f64, length: f64) -> f64 {
    count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
}

/// Returns the first stem of each list, then the second, and so on, each once.
fn first_of_each<'a>(lists: impl Iterator<Item = &'a Vec<&'static String>> + Clone, max: usize) -> Vec<String> {
    let longest = lists.clone().map(Vec::len).max().unwrap_or_default();
    let mut stems: Vec<String> = Vec::new();
    for at in 0..longest {
        for stem in lists.clone().filter_map(|list| list.get(at)) {
            if stems.len() < max && !stems.contains(stem) {
                stems.push((*stem).clone());
            }
        }
    }
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn related(query: &str) -> Related {
        Related::of(query, &Question::of_all_words(query))
    }

    #[test]
    fn related_words_are_not_those_of_the_question_and_are_bounded() {
        let found = related("heredero del testamento que hereda la herencia sin testamento");
        let own = Question::of_all_words("heredero testamento hereda herencia").stems();
        assert!(!found.is_empty() && found.terms().iter().all(|term| !own.contains(term)), "{found:?}");
        let long = (0..40).map(|number| format!("palabra{number} ")).collect::<String>() + "perdi la chamba";
        assert!(Related::of(&long, &Question::of_all_words(&long)).terms().len() <= MAX_TERMS);
        assert!(related("arraigo").is_empty());
    }

    #[test]
    fn every_list_is_represented() {
        let lists: [Vec<&'static String>; 2] =
            [everyday::legal_stems("chamb").iter().collect(), everyday::legal_stems("pistol").iter().collect()];
        let terms = first_of_each(lists.iter(), 3);
        assert!(terms.len() == 3 && terms.contains(lists[0][0]) && terms.contains(lists[1][0]), "{terms:?}");
    }

    #[test]
    fn a_related_word_counts_less_than_the_word_and_only_where_the_word_is_missing() {
        let query = "pistola";
        let question = Question::of_all_words(query);
        let related = related(query);
        let texts = ["poseer armas en el domicilio", "una pistola y otras armas", "otra cosa"].map(str::to_owned);
        let subjects = [const { String::new() }; 3];
        let count = |texts: &[String]| -> Vec<TermCounts> { texts.iter().map(|text| question.count(text)).collect() };
        let items = Items {
            texts: &texts,
            subjects: &subjects,
            word_counts: &count(&texts),
            subject_counts: &count(&subjects),
            word_weights: &[2.0],
        };
        let statistics = Statistics { documents: 10, frequencies: vec![2; related.terms().len()] };
        let found = related.matches(&items, &statistics);
        assert!(found[0].words == [0] && found[0].score > 0.0 && found[0].covered < 2.0, "{found:?}");
        assert!(found[1].score == 0.0 && found[2].score == 0.0, "{found:?}");
    }
}
