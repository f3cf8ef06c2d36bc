//! What someone said, with all that is mentioned in it.

use std::ops::Range;

use super::extract::{Extractor, Mention};
use super::utterance::Utterance;

/// An utterance and its mentions.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) said: Utterance,
    pub(super) mentions: Vec<Found>,
}

/// A mention and its kind.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: String,
    pub(super) mention: Mention,
}

impl Reading {
    /// Finds all mentions, but those that stand within a longer one: the 7 of "7 Av" is no line.
    pub(super) fn of(said: Utterance, kinds: &[(String, Box<dyn Extractor>)]) -> Self {
        let mut mentions = Vec::new();
        for (kind, extractor) in kinds {
            let found = extractor.find(&said).into_iter();
            let found = found.filter(|mention| {
                !mention.choices.is_empty() && !mention.words.is_empty() && mention.words.end <= said.words().len()
            });
            mentions.extend(found.map(|mention| Found { kind: kind.clone(), mention }));
        }
        let places: Vec<Range<usize>> = mentions.iter().map(|found| found.mention.words.clone()).collect();
        mentions.retain(|found| !places.iter().any(|place| is_within(&found.mention.words, place)));
        mentions.sort_by_key(|found| found.mention.words.start);
        Self { said, mentions }
    }

    /// Adds a mention, unless one of its kind stands there already.
    pub(super) fn add(&mut self, found: Found) {
        let place = &found.mention.words;
        let overlaps = |other: &Found| {
            let taken = &other.mention.words;
            place.start < taken.end
                && taken.start < place.end
                && (other.kind == found.kind || taken.len() > place.len())
        };
        if self.mentions.iter().any(overlaps) {
            return;
        }
        let at = self.mentions.partition_point(|other| other.mention.words.start <= place.start);
        self.mentions.insert(at, found);
    }

    #[cfg(test)]
    pub(super) fn plain(said: Utterance) -> Self {
        Self { said, mentions: Vec::new() }
    }

    /// How many words a mention of a kind takes that begins here and ends before `end`.
    pub(super) fn mention_at(&self, kind: &str, at: usize, end: usize) -> Option<usize> {
        let found = self
            .mentions
            .iter()
            .find(|found| found.kind == kind && found.mention.words.start == at && found.mention.words.end <= end)?;
        Some(found.mention.words.len())
    }

    /// The mentions within a clause.
    pub(super) fn within(&self, clause: &Range<usize>) -> impl DoubleEndedIterator<Item = &Found> + use<'_> {
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
    use crate::offline::extract::{Names, Numbers};

    #[test]
    fn what_stands_within_a_longer_name_is_not_mentioned() {
        let kinds: [(String, Box<dyn Extractor>); 2] =
            [("line".to_owned(), Box::new(Numbers)), ("station".to_owned(), Box::new(Names::words(["7 Av", "42 St"])))];
        let reading = Reading::of(Utterance::new("the 7 from 7 Av to 42 St"), &kinds);
        let found: Vec<_> =
            reading.mentions.iter().map(|found| (found.kind.as_str(), found.mention.words.clone())).collect();
        assert_eq!(found, [("line", 1..2), ("station", 3..5), ("station", 6..8)]);
    }
}
