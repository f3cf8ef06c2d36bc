//! Ranks the classes of a clause, and judges how certain they are.

use std::ops::Range;

use super::{Class, IntentResolver, MAX_TRIED, MIN_SPLIT_SCORE, NEARLY_BEST_PERCENT, Ranked};
use crate::acts::Act;
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::intent::Slot;

/// The minimum lead of the off-topic class over the next one, in percent, if a message mentions entities.
const OFF_TOPIC_LEAD_PERCENT: i64 = 30;
/// The minimum score of an intent, in percent of the best score, at which a message that mentions several entities may
/// express it although a class without slots scores best.
const NEAR_ANSWER_PERCENT: i64 = 65;
/// The amount added to the score of an intent if the message starts with the cue of one of its text slots.
const TEXT_CUE_SCORE: i64 = 500;

impl IntentResolver {
    /// Whether a clause mentions an entity that this intent requires and can take only from the message, such as a
    /// calculation.
    pub(super) fn has_own_mention(&self, intent: usize, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let is_own = |slot: &&Slot| slot.is_required && !slot.is_carried && slot.questions.is_empty() && !slot.is_text;
        let mut own = self.intents[intent].slots.iter().filter(is_own);
        own.any(|slot| annotated.within(clause).any(|found| found.kind == slot.kind))
    }

    /// Whether a clause is clearly a follow-up, such as "and back?". `best` is the best score of the classes that
    /// apply.
    pub(super) fn is_follow_up_without_reference(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        best: i64,
    ) -> bool {
        let features = self.classifier.features(&annotated.tokens(clause));
        let scores = self.classifier.scores(&features);
        let is_follow_up = |class: usize| {
            let acts = [Act::Again, Act::Reverse, Act::Change, Act::Other];
            acts.iter().any(|act| self.classes[class] == Class::Act(*act))
        };
        scores.first().is_some_and(|top| {
            is_follow_up(top.class) && top.score >= MIN_SPLIT_SCORE && best * 100 < top.score * NEARLY_BEST_PERCENT
        })
    }

    /// Whether a clause is clearly a question without slots, such as "how much is the museum".
    pub(super) fn is_of_another_topic(&self, ranked: &[Ranked]) -> bool {
        let is_other = |class: usize| matches!(self.classes[class], Class::OffTopic | Class::Answer(_));
        let Some((class, best)) = ranked.first() else { return false };
        let next = ranked.iter().find(|(class, _)| !is_other(*class)).map_or(0, |(_, score)| *score);
        is_other(*class) && *best >= MIN_SPLIT_SCORE && next * 100 <= best * NEARLY_BEST_PERCENT
    }

    /// Whether a message is off topic even if it mentions entities: "the weather at Times Square".
    pub(super) fn is_clearly_off_topic(&self, ranked: &[Ranked]) -> bool {
        let [(class, best), (_, second), ..] = ranked else { return false };
        self.classes[*class] == Class::OffTopic
            && *best >= MIN_SPLIT_SCORE
            && second * 100 <= best * (100 - OFF_TOPIC_LEAD_PERCENT)
    }

    /// Whether an intent whose slots are complete scores almost as high as the best class and explains most words.
    pub(super) fn is_nearly_an_intent(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> bool {
        let best = ranked.first().map_or(0, |(_, score)| *score);
        let near = ranked.iter().take(MAX_TRIED).filter(|(_, score)| score * 100 >= best * NEARLY_BEST_PERCENT);
        near.filter_map(|(class, _)| match self.classes[*class] {
            Class::Intent(intent) => Some(self.new_frame(intent, *class, annotated, clause, dialogue)),
            _ => None,
        })
        .any(|frame| frame.open.is_empty() && self.is_explained(&frame, annotated, clause))
    }

    /// Whether a clause is likely to be a question with slots although the best class has none: it mentions two
    /// entities that slots require, and contains no word of the class.
    pub(super) fn may_be_question_with_slots(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        class: usize,
    ) -> bool {
        let is_near = || {
            let features = self.classifier.features(&annotated.tokens(clause));
            let scores = self.classifier.scores(&features);
            let best = scores.first().map_or(0, |best| best.score);
            let mut near = scores.iter().filter(|score| score.score * 100 >= best * NEAR_ANSWER_PERCENT);
            // "Bus from Harlem to Queens Plaza" has a word that no question with slots explains.
            let left = |class: usize| self.unexplained(annotated, clause, &[class], &[]).len();
            let explained = left(class);
            near.any(|score| {
                matches!(self.classes[score.class], Class::Intent(_))
                    && (self.place_kind.is_none() || left(score.class) <= explained)
            })
        };
        self.count_required_mentions(annotated, clause) >= 2
            && (!self.has_word_of(annotated, clause, class) || is_near())
    }

    /// Returns the number of mentions of kinds that slots require. Several kinds may have the same words.
    pub(super) fn count_required_mentions(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> usize {
        let slots = || self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_required);
        let is_main = |found: &&KindMention| slots().any(|slot| slot.kind == found.kind && !slot.is_text);
        let mut words: Vec<&Range<usize>> =
            annotated.within(clause).filter(is_main).map(|found| &found.mention.words).collect();
        words.dedup();
        words.len()
    }

    /// Returns the classes that apply in this state of the dialogue with their scores, best first.
    pub(super) fn rank(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Vec<Ranked> {
        let features = self.classifier.features(&annotated.tokens(clause));
        let applies = |class: &Class| match class {
            Class::Intent(intent) => {
                let follows = &self.intents[*intent].follows;
                let mut last = dialogue.frames.iter().map(|frame| &self.intents[frame.intent].name);
                (follows.is_empty() || last.any(|name| follows.contains(name)))
                    && !self.is_excluded(*intent, annotated, clause)
            }
            Class::Act(Act::Again | Act::Reverse | Act::Change | Act::Correct | Act::Other) | Class::Aspect(_) => {
                !dialogue.frames.is_empty()
            }
            Class::Act(_) | Class::Answer(_) | Class::OffTopic | Class::Absent => true,
        };
        let scores = self.classifier.scores(&features).into_iter();
        let mut ranked: Vec<Ranked> = scores
            .map(|score| (score.class, score.score))
            .filter(|(class, _)| applies(&self.classes[*class]))
            .collect();
        for (class, score) in &mut ranked {
            if let Class::Intent(intent) = &self.classes[*class]
                && (self.starts_with_text_cue(*intent, annotated, clause)
                    || self.has_own_mention(*intent, annotated, clause))
            {
                *score += TEXT_CUE_SCORE;
            }
        }
        ranked.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        ranked
    }

    /// Whether a clause contains a mention with which an intent does not apply.
    pub(super) fn is_excluded(&self, intent: usize, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let kinds = &self.intents[intent].excluded_by;
        !kinds.is_empty() && annotated.within(clause).any(|found| kinds.contains(&found.kind))
    }

    /// Whether a clause starts with the cue of a text slot, such as "remember that my". The text after it is arbitrary
    /// and indicates no intent.
    pub(super) fn starts_with_text_cue(
        &self,
        intent: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
    ) -> bool {
        let cues = self.intents[intent].slots.iter().filter(|slot| slot.is_text).flat_map(|slot| &slot.cues);
        cues.map(|cue| cue.split(' ').collect::<Vec<_>>()).any(|words| {
            words.len() > 1
                && words.len() < clause.len()
                && words.iter().enumerate().all(|(at, word)| annotated.utterance.word(clause.start + at) == *word)
        })
    }

    /// Whether a clause refers to one of several choices: "the one on Lexington".
    pub(super) fn refers_to_one(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let word = |at: usize| annotated.utterance.word(at);
        clause
            .clone()
            .any(|at| matches!(word(at), "one" | "uno" | "el" | "la" | "station" | "stop") && at > clause.start)
    }

    /// Whether a content word of a clause occurs in an example of a class.
    pub(super) fn has_word_of(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, class: usize) -> bool {
        let words = self.content_words(annotated, clause);
        words.into_iter().any(|at| self.classifier.is_attested(annotated.utterance.word(at), class))
    }
}
