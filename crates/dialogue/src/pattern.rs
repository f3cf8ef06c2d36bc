//! Patterns of words and mentions that messages are matched against.

use std::ops::Range;

use crate::annotated::AnnotatedUtterance;
use crate::utterance::folded_words;

/// The maximum number of words between two elements of a match.
const MAX_GAP_WORDS: usize = 8;
/// The maximum number of elements of a pattern; further ones are ignored.
const MAX_ELEMENTS: usize = 32;

const WORD_SCORE: i32 = 10;
const MENTION_SCORE: i32 = 8;
const OPTIONAL_SCORE: i32 = 4;
const CAPTURE_SCORE: i32 = 1;
const GAP_COST: i32 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    elements: Vec<Element>,
}

#[derive(Clone, Debug)]
struct Element {
    kind: ElementKind,
    is_optional: bool,
}

#[derive(Clone, Debug)]
enum ElementKind {
    /// One of these words.
    Words(Vec<Stem>),
    /// A mention of this kind.
    Mention(String),
    /// All remaining words, under this name.
    Capture(String),
}

#[derive(Clone, Debug)]
enum Stem {
    Whole(String),
    Prefix(String),
}

/// A match of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternMatch {
    pub(crate) score: i32,
    /// The name and the words of the capture.
    pub(crate) capture: Option<(String, Range<usize>)>,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Self {
        Self { elements: text.split_whitespace().filter_map(Element::parse).take(MAX_ELEMENTS).collect() }
    }

    /// Returns the kinds of the mentions in the pattern.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().filter_map(|element| match &element.kind {
            ElementKind::Mention(kind) => Some(kind.as_str()),
            _ => None,
        })
    }

    /// Returns the name of the capture.
    pub(crate) fn capture(&self) -> Option<&str> {
        self.elements.iter().find_map(|element| match &element.kind {
            ElementKind::Capture(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Matches the pattern against a clause. Dynamic programming bounds the time by the product of elements, words and
    /// permitted gap.
    pub(crate) fn find_match(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Option<PatternMatch> {
        if self.elements.iter().all(|element| element.is_optional) {
            return None;
        }
        // best[j]: the best match of the elements from here on, if the first of them starts at or after word j.
        let end = clause.end;
        let mut best: Vec<Option<PatternMatch>> = vec![Some(PatternMatch { score: 0, capture: None }); end + 2];
        for (index, element) in self.elements.iter().enumerate().rev() {
            let reach = if index == 0 { end } else { MAX_GAP_WORDS };
            let mut here: Vec<Option<PatternMatch>> = vec![None; end + 2];
            for from in clause.start..=end {
                let mut reached = if element.is_optional { best[from].clone() } else { None };
                for at in from..end.min(from + reach + 1) {
                    let Some((length, score)) = element.matches(annotated, at, end) else { continue };
                    let Some(rest) = &best[at + length] else { continue };
                    let gap = if index == 0 { 0 } else { (at - from) as i32 * GAP_COST };
                    let score = rest.score + score - gap;
                    if reached.as_ref().is_none_or(|known| known.score < score) {
                        let capture = match &element.kind {
                            ElementKind::Capture(name) => Some((name.clone(), at..end)),
                            _ => rest.capture.clone(),
                        };
                        reached = Some(PatternMatch { score, capture });
                    }
                }
                here[from] = reached;
            }
            best = here;
        }
        best[clause.start].take()
    }
}

/// Normalizes a cue for comparison.
pub(crate) fn fold_cue(cue: &str) -> String {
    folded_words(cue).join(" ")
}

impl Element {
    fn parse(token: &str) -> Option<Self> {
        if let Some(inner) = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Self::parse(inner).map(|element| Self { is_optional: true, ..element });
        }
        let kind = match token.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => match name.strip_suffix("...") {
                Some(name) => ElementKind::Capture(name.to_owned()),
                None => ElementKind::Mention(name.to_owned()),
            },
            None => ElementKind::Words(token.split('|').filter_map(Stem::parse).collect()),
        };
        let is_empty = matches!(&kind, ElementKind::Words(words) if words.is_empty());
        (!is_empty).then_some(Self { kind, is_optional: false })
    }

    /// Matches the element at a word; returns the number of words it covers and its score.
    fn matches(&self, annotated: &AnnotatedUtterance, at: usize, end: usize) -> Option<(usize, i32)> {
        let (length, score) = match &self.kind {
            ElementKind::Words(stems) => {
                let word = annotated.utterance.word(at);
                stems.iter().any(|stem| stem.matches(word)).then_some((1, WORD_SCORE))?
            }
            ElementKind::Mention(kind) => (annotated.mention_at(kind, at, end)?, MENTION_SCORE),
            ElementKind::Capture(_) => (end - at, CAPTURE_SCORE),
        };
        Some((length, if self.is_optional { score.min(OPTIONAL_SCORE) } else { score }))
    }
}

impl Stem {
    fn parse(word: &str) -> Option<Self> {
        let (word, is_prefix) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
        let folded = folded_words(word).into_iter().next()?;
        Some(if is_prefix { Self::Prefix(folded) } else { Self::Whole(folded) })
    }

    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Whole(whole) => word == whole,
            Self::Prefix(prefix) => word.starts_with(prefix.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::utterance::Utterance;

    fn find_match(pattern: &str, text: &str) -> Option<PatternMatch> {
        let utterance = Utterance::new(text);
        let clause = 0..utterance.words().len();
        Pattern::parse(pattern).find_match(&AnnotatedUtterance::plain(utterance), &clause)
    }

    #[test]
    fn elements_match_in_order_with_gaps() {
        assert!(find_match("next train", "When is the next uptown train?").is_some());
        assert!(find_match("next train", "Train me next").is_none());
        assert!(find_match("when|time next|following [train]", "what time does the following one go").is_some());
        assert!(find_match("delay*", "is it Delayed").is_some());
        assert!(find_match("delay", "is it Delayed").is_none());
        assert!(find_match("next train", "next one two three four five six seven eight nine train").is_none());
        assert!(find_match("[train]", "train").is_none());
    }

    #[test]
    fn closer_and_longer_matches_score_higher() {
        let score = |pattern, text| find_match(pattern, text).unwrap().score;
        assert!(score("next train", "next train") > score("next train", "next uptown train"));
        assert!(score("next train", "next train") > score("train", "next train"));
        assert!(score("next [local] train", "next local train") > score("next train", "next local train"));
    }

    #[test]
    fn a_capture_covers_the_remaining_words() {
        let capture =
            find_match("remember [that] {note...}", "please remember that I like the express").unwrap().capture;
        assert_eq!(capture, Some(("note".to_owned(), 3..7)));
        assert!(find_match("remember {note...}", "remember").is_none());
    }

    #[test]
    fn long_texts_and_patterns_take_bounded_time() {
        let pattern = ["a* b|a [c|a]"; 20].join(" ");
        assert!(find_match(&pattern, &"a ".repeat(100_000)).is_some());
        assert!(find_match(&format!("{pattern} z"), &"a ".repeat(100_000)).is_some(), "only 32 elements count");
    }
}
