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

/// A mention and the kind of the mentioned entity.
#[derive(Clone, Debug)]
pub(crate) struct KindMention {
    pub(crate) kind: String,
    pub(crate) mention: Mention,
}

impl AnnotatedUtterance {
    /// Finds all mentions, except those within a longer mention: the 7 in "7 Av" is not a line.
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

    /// Adds a mention unless it overlaps with a mention of the same kind or with a longer mention.
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

    /// Returns the words of a clause, with each mention replaced by its kind in braces. Of overlapping mentions, the
    /// longest is used; if several are equally long, the one whose kind was declared first.
    pub(crate) fn tokens(&self, clause: &Range<usize>) -> Vec<String> {
        let mut tokens = Vec::with_capacity(clause.len());
        let mut at = clause.start;
        while at < clause.end {
            let here =
                self.within(clause).filter(|found| found.mention.words.start == at && !found.mention.is_incidental);
            // `max_by_key` returns the last of equal elements, so the mentions, which are in the order of declaration,
            // are reversed.
            match here.rev().max_by_key(|found| found.mention.words.len()) {
                Some(found) => {
                    tokens.push(format!("{{{}}}", found.kind));
                    at = found.mention.words.end;
                }
                None => {
                    let word = self.utterance.word(at);
                    match contraction(word) {
                        Some(words) => tokens.extend(words.split(' ').map(str::to_owned)),
                        None => tokens.push(word.to_owned()),
                    }
                    at += 1;
                }
            }
        }
        tokens
    }

    /// Returns the mentions within a clause.
    pub(crate) fn within(&self, clause: &Range<usize>) -> impl DoubleEndedIterator<Item = &KindMention> + use<'_> {
        let clause = clause.clone();
        self.mentions
            .iter()
            .filter(move |found| clause.start <= found.mention.words.start && found.mention.words.end <= clause.end)
    }
}

/// Contractions, without their apostrophes, and the words that they stand for.
const CONTRACTIONS: [(&str, &str); 32] = [
    ("whats", "what is"),
    ("wheres", "where is"),
    ("whens", "when is"),
    ("whos", "who is"),
    ("hows", "how is"),
    ("whys", "why is"),
    ("thats", "that is"),
    ("theres", "there is"),
    ("heres", "here is"),
    ("im", "i am"),
    ("ive", "i have"),
    ("youre", "you are"),
    ("theyre", "they are"),
    ("weve", "we have"),
    ("dont", "do not"),
    ("didnt", "did not"),
    ("doesnt", "does not"),
    ("cant", "can not"),
    ("cannot", "can not"),
    ("couldnt", "could not"),
    ("isnt", "is not"),
    ("arent", "are not"),
    ("wasnt", "was not"),
    ("werent", "were not"),
    ("wont", "will not"),
    ("wouldnt", "would not"),
    ("shouldnt", "should not"),
    ("havent", "have not"),
    ("hasnt", "has not"),
    ("lets", "let us"),
    ("wanna", "want to"),
    ("gonna", "going to"),
];

/// Returns the words that a contraction stands for.
pub(crate) fn contraction(word: &str) -> Option<&'static str> {
    CONTRACTIONS.iter().find(|(contracted, _)| *contracted == word).map(|(_, words)| *words)
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
