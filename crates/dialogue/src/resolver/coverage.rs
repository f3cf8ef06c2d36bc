//! Which words of a clause an interpretation explains.

use std::ops::Range;

use super::IntentResolver;
use crate::annotated::AnnotatedUtterance;
use crate::frame::{Frame, content_words};

impl IntentResolver {
    /// Whether an intent without slots explains no content word of the message, or leaves a mention unused: "what time do you open
    /// on Saturdays?" is not "what time is it?".
    pub(super) fn leaves_words(&self, frame: &Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let unexplained = frame.unexplained.len();
        let explains_none = unexplained > 0 && unexplained == self.content_words(annotated, clause).len();
        self.intents[frame.intent].slots.is_empty() && (explains_none || !frame.unused.is_empty())
    }

    /// Whether a slot that only the message can fill is empty. Such a slot is neither carried nor asked about.
    pub(super) fn lacks_mention(&self, frame: &Frame) -> bool {
        let intent = &self.intents[frame.intent];
        // "Which line is it" does not ask for a preference.
        let names_nothing = || intent.slots.iter().any(|slot| slot.is_text) && frame.slots.0.is_empty();
        if self.place_kind.is_some() && names_nothing() {
            return true;
        }
        frame.open.iter().filter(|open| open.choices.is_empty()).any(|open| {
            let slot = &self.intents[frame.intent].slots[open.slot];
            !slot.is_carried && slot.questions.is_empty()
        })
    }

    /// Returns the positions of content words. Mentions, function words, cues and continuations are not content words.
    pub(super) fn content_words(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Vec<usize> {
        let is_continuation = |word: &str| {
            let mut all = self.phrases.iter().flat_map(|phrases| &phrases.continuations);
            all.any(|phrase| phrase.split(' ').any(|part| part == word))
        };
        content_words(annotated, clause, |word| self.is_cue(word) || is_continuation(word))
    }

    /// Whether a clause consists only of mentions and function words.
    pub(super) fn has_only_mentions(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        self.content_words(annotated, clause).is_empty()
    }

    /// Whether a clause has words other than mentions and the words that connect them.
    pub(super) fn has_own_words(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let is_mentioned = |at: usize| annotated.mentions.iter().any(|found| found.mention.words.contains(&at));
        let is_connecting = |at: usize| {
            let word = annotated.utterance.word(at);
            self.is_cue(word) || matches!(word, "the" | "a" | "el" | "la" | "train" | "station")
        };
        clause.clone().any(|at| !is_mentioned(at) && !is_connecting(at))
    }

    /// Returns the content words that occur in no example of these classes and that no text slot took.
    pub(super) fn unexplained(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        classes: &[usize],
        texts: &[Range<usize>],
    ) -> Vec<String> {
        let is_explained = |at: &usize| {
            if texts.iter().any(|words| words.contains(at)) {
                return true;
            }
            let word = annotated.utterance.word(*at);
            classes.iter().any(|class| self.classifier.is_attested(word, *class))
        };
        let words = self.content_words(annotated, clause).into_iter().filter(|at| !is_explained(at));
        words.map(|at| annotated.utterance.said(at..at + 1).to_owned()).collect()
    }

    /// Whether at least half of the content words are explained by the intent and its mentions.
    pub(super) fn is_explained(&self, frame: &Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let words = self.content_words(annotated, clause).len();
        let mentions = annotated.within(clause).count();
        frame.unexplained.len() * 2 <= words + mentions
    }

    /// Whether most content words occur in no example.
    pub(super) fn is_unfamiliar(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let words = self.content_words(annotated, clause);
        let is_known = |at: &&usize| self.classifier.is_known(annotated.utterance.word(**at));
        let known = words.iter().filter(is_known).count();
        !words.is_empty() && known * 2 < words.len()
    }
}
