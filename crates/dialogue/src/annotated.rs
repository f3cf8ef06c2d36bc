//! An utterance and the entities that it mentions.

use std::ops::Range;

use crate::extract::{Extractor, Mention};
use crate::utterance::Utterance;

/// An utterance and its mentions.
#[derive(Clone, Debug)]
pub(crate) struct AnnotatedUtterance {
    pub(crate) utterance: Utterance,
    pub(crate) mentions: Vec<KindMention>,
}

/// A mention and its kind of entity.
#[derive(Clone, Debug)]
pub(crate) struct KindMention {
    pub(crate) kind: String,
    pub(crate) mention: Mention,
}

impl AnnotatedUtterance {
    /// Finds all mentions, except those within a longer one: the 7 in "7 Av" is not a line.
    pub(crate) fn of(utterance: Utterance, kinds: &[(String, Box<dyn Extractor>)]) -> Self {
        let mut mentions = Vec::new();
        for (kind, extractor) in kinds {
            let found = extractor.find(&utterance).into_iter();
            let found = found.filter(|mention| {
                !mention.choices.is_empty() && !mention.words.is_empty() && mention.words.end <= utterance.words().len()
            });
            mentions.extend(found.map(|mention| KindMention { kind: kind.clone(), mention }));
        }
        let ranges: Vec<Range<usize>> = mentions.iter().map(|found| found.mention.words.clone()).collect();
        mentions.retain(|found| !ranges.iter().any(|range| is_within(&found.mention.words, range)));
        mentions.sort_by_key(|found| found.mention.words.start);
        Self { utterance, mentions }
    }

    /// Adds a mention unless it overlaps with one of its kind or with a longer one.
    pub(crate) fn add(&mut self, found: KindMention) {
        let range = &found.mention.words;
        let overlaps = |other: &KindMention| {
            let occupied = &other.mention.words;
            range.start < occupied.end
                && occupied.start < range.end
                && (other.kind == found.kind || occupied.len() > range.len())
        };
        if self.mentions.iter().any(overlaps) {
            return;
        }
        let at = self.mentions.partition_point(|other| other.mention.words.start <= range.start);
        self.mentions.insert(at, found);
    }

    #[cfg(test)]
    pub(crate) fn plain(utterance: Utterance) -> Self {
        Self { utterance, mentions: Vec::new() }
    }

    /// Returns the number of words of a mention of a kind that starts at `at` and ends by `end`.
    pub(crate) fn mention_at(&self, kind: &str, at: usize, end: usize) -> Option<usize> {
        let found = self
            .mentions
            .iter()
            .find(|found| found.kind == kind && found.mention.words.start == at && found.mention.words.end <= end)?;
        Some(found.mention.words.len())
    }

    /// Returns the mentions within a clause.
    pub(crate) fn within(&self, clause: &Range<usize>) -> impl DoubleEndedIterator<Item = &KindMention> + use<'_> {
        let clause = clause.clone();
        self.mentions
            .iter()
            .filter(move |found| clause.start <= found.mention.words.start && found.mention.words.end <= clause.end)
    }
}

fn is_within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner.len() < outer.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{Names, Numbers};

    #[test]
    fn mentions_within_a_longer_name_are_ignored() {
        let kinds: [(String, Box<dyn Extractor>); 2] =
            [("line".to_owned(), Box::new(Numbers)), ("station".to_owned(), Box::new(Names::words(["7 Av", "42 St"])))];
        let annotated = AnnotatedUtterance::of(Utterance::new("the 7 from 7 Av to 42 St"), &kinds);
        let found: Vec<_> =
            annotated.mentions.iter().map(|found| (found.kind.as_str(), found.mention.words.clone())).collect();
        assert_eq!(found, [("line", 1..2), ("station", 3..5), ("station", 6..8)]);
    }
}
