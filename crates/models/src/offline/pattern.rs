//! Patterns: what has to be said, in order, for an intent to be meant.

use std::ops::Range;

use super::reading::Reading;
use super::utterance::folded_words;

/// Words that may stand between two elements of a pattern.
const GAP_WORDS: usize = 8;
/// Elements of a pattern that count.
const ELEMENTS: usize = 32;

const WORD_SCORE: i32 = 10;
const MENTION_SCORE: i32 = 8;
const OPTIONAL_SCORE: i32 = 4;
const CAPTURE_SCORE: i32 = 1;
const GAP_COST: i32 = 1;

#[derive(Clone, Debug)]
pub(super) struct Pattern {
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
    /// All words that are left, under this name.
    Capture(String),
}

#[derive(Clone, Debug)]
enum Stem {
    Whole(String),
    Beginning(String),
}

/// How well a pattern fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) score: i32,
    /// The words that a capture took.
    pub(super) capture: Option<(String, Range<usize>)>,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Self {
        Self { elements: text.split_whitespace().filter_map(Element::parse).take(ELEMENTS).collect() }
    }

    /// The kinds of mentions that it asks for.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().filter_map(|element| match &element.kind {
            ElementKind::Mention(kind) => Some(kind.as_str()),
            _ => None,
        })
    }

    /// The name of what it captures.
    pub(super) fn capture(&self) -> Option<&str> {
        self.elements.iter().find_map(|element| match &element.kind {
            ElementKind::Capture(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Fits the pattern to a clause. Each element is tried at each place once, so the time is bounded by the product of
    /// elements, words and the words that may stand between.
    pub(super) fn fit(&self, reading: &Reading, clause: &Range<usize>) -> Option<Fit> {
        if self.elements.iter().all(|element| element.is_optional) {
            return None;
        }
        // best[j]: what the elements from here on reach, when the first of them may stand at j or behind it.
        let end = clause.end;
        let mut best: Vec<Option<Fit>> = vec![Some(Fit { score: 0, capture: None }); end + 2];
        for (index, element) in self.elements.iter().enumerate().rev() {
            let reach = if index == 0 { end } else { GAP_WORDS };
            let mut here: Vec<Option<Fit>> = vec![None; end + 2];
            for from in clause.start..=end {
                let mut reached = if element.is_optional { best[from].clone() } else { None };
                for at in from..end.min(from + reach + 1) {
                    let Some((length, score)) = element.matches(reading, at, end) else { continue };
                    let Some(rest) = &best[at + length] else { continue };
                    let gap = if index == 0 { 0 } else { (at - from) as i32 * GAP_COST };
                    let score = rest.score + score - gap;
                    if reached.as_ref().is_none_or(|fit| fit.score < score) {
                        let capture = match &element.kind {
                            ElementKind::Capture(name) => Some((name.clone(), at..end)),
                            _ => rest.capture.clone(),
                        };
                        reached = Some(Fit { score, capture });
                    }
                }
                here[from] = reached;
            }
            best = here;
        }
        best[clause.start].take()
    }
}

/// A cue as words are compared.
pub(super) fn fold_cue(cue: &str) -> String {
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

    /// How many words it takes at a place, and what they are worth.
    fn matches(&self, reading: &Reading, at: usize, end: usize) -> Option<(usize, i32)> {
        let (length, score) = match &self.kind {
            ElementKind::Words(stems) => {
                let word = reading.said.word(at);
                stems.iter().any(|stem| stem.matches(word)).then_some((1, WORD_SCORE))?
            }
            ElementKind::Mention(kind) => (reading.mention_at(kind, at, end)?, MENTION_SCORE),
            ElementKind::Capture(_) => (end - at, CAPTURE_SCORE),
        };
        Some((length, if self.is_optional { score.min(OPTIONAL_SCORE) } else { score }))
    }
}

impl Stem {
    fn parse(word: &str) -> Option<Self> {
        let (word, is_beginning) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
        let folded = folded_words(word).into_iter().next()?;
        Some(if is_beginning { Self::Beginning(folded) } else { Self::Whole(folded) })
    }

    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Whole(whole) => word == whole,
            Self::Beginning(beginning) => word.starts_with(beginning.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::utterance::Utterance;

    fn fit(pattern: &str, text: &str) -> Option<Fit> {
        let said = Utterance::new(text);
        let clause = 0..said.words().len();
        Pattern::parse(pattern).fit(&Reading::plain(said), &clause)
    }

    #[test]
    fn elements_stand_in_order_with_words_between_them() {
        assert!(fit("next train", "When is the next uptown train?").is_some());
        assert!(fit("next train", "Train me next").is_none());
        assert!(fit("when|time next|following [train]", "what time does the following one go").is_some());
        assert!(fit("delay*", "is it Delayed").is_some());
        assert!(fit("delay", "is it Delayed").is_none());
        assert!(fit("next train", "next one two three four five six seven eight nine train").is_none());
        assert!(fit("[train]", "train").is_none());
    }

    #[test]
    fn closer_words_and_more_of_them_fit_better() {
        let score = |pattern, text| fit(pattern, text).unwrap().score;
        assert!(score("next train", "next train") > score("next train", "next uptown train"));
        assert!(score("next train", "next train") > score("train", "next train"));
        assert!(score("next [local] train", "next local train") > score("next train", "next local train"));
    }

    #[test]
    fn a_capture_takes_what_is_left() {
        let capture = fit("remember [that] {note...}", "please remember that I like the express").unwrap().capture;
        assert_eq!(capture, Some(("note".to_owned(), 3..7)));
        assert!(fit("remember {note...}", "remember").is_none());
    }

    #[test]
    fn hostile_texts_take_bounded_time() {
        let pattern = ["a* b|a [c|a]"; 20].join(" ");
        assert!(fit(&pattern, &"a ".repeat(100_000)).is_some());
        assert!(fit(&format!("{pattern} z"), &"a ".repeat(100_000)).is_some(), "only 32 elements count");
    }
}
