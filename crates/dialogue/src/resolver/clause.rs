//! Interprets one question of a message.

use std::ops::Range;

use super::{Class, IntentResolver, MAX_TRIED, MIN_SCORE, MIN_SPLIT_SCORE, NEARLY_BEST_PERCENT, Ranked, Resolution};
use crate::acts::Act;
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::frame::{Frame, SlotFiller};
use crate::intent::{Intent, Slots};
use crate::utterance::{Utterance, folded_words};

/// The minimum score of a class that is tried after the best one, in percent of the best score.
const MIN_PERCENT_OF_BEST: i64 = 45;
/// The minimum score of the class "change", in percent of the best intent's score, at which a message that consists of
/// mentions changes the last question.
const MIN_CHANGE_PERCENT: i64 = 60;
/// The minimum score of an intent that uses more mentions than the best one, in percent of the best score.
const MIN_MORE_COMPLETE_PERCENT: i64 = 40;

impl IntentResolver {
    pub(super) fn resolve_clause(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Resolution {
        if let Some(frame) = self.decided_frame(annotated, clause, dialogue) {
            return Resolution::Frames(vec![frame]);
        }
        if let Some(frames) = self.same_questions(annotated, clause, dialogue) {
            return Resolution::Frames(frames);
        }
        let ranked = self.rank(annotated, clause, dialogue);
        if !self.expresses_new_intent(annotated, clause, &ranked, dialogue)
            && let Some(frame) = self.answer_open_slot(annotated, clause, dialogue)
        {
            return Resolution::Frames(vec![frame]);
        }
        let has_mentions = annotated.within(clause).next().is_some();
        if self.has_only_mentions(annotated, clause)
            && has_mentions
            && let Some(frame) = self.frame_of_mentions(annotated, clause, &ranked, dialogue)
        {
            return Resolution::Frames(vec![frame]);
        }
        if let Some(frame) = self.statement_frame(annotated, clause, dialogue, &ranked) {
            return Resolution::Frames(vec![frame]);
        }
        let best = ranked.first().map_or(0, |(_, score)| *score);
        if self.is_clearly_off_topic(&ranked) && self.count_required_mentions(annotated, clause) < 2 {
            return Resolution::OffTopic;
        }
        if dialogue.frames.is_empty() && self.is_follow_up_without_reference(annotated, clause, best) {
            return Resolution::NotUnderstood;
        }
        let least = MIN_SCORE.max(best * MIN_PERCENT_OF_BEST / 100);
        for (class, _) in ranked.iter().take(MAX_TRIED).filter(|(_, score)| *score >= least) {
            let is_explained = || self.unexplained(annotated, clause, &[*class], &[]).is_empty();
            let frames = match &self.classes[*class] {
                // A question saves nothing.
                Class::Intent(intent) if self.intents[*intent].is_about_user && self.asks_openly(annotated, clause) => {
                    continue;
                }
                Class::Intent(intent) => {
                    if let Some(frame) = self.condition_frame(*intent, annotated, clause, dialogue) {
                        return Resolution::Frames(vec![frame]);
                    }
                    let frame = self.new_frame(*intent, *class, annotated, clause, dialogue);
                    // An intent that saves a statement must use everything that the statement mentions.
                    let leaves_places = self.place_kind.is_some()
                        && self.intents[*intent]
                            .slots
                            .iter()
                            .any(|slot| slot.is_text || self.intents[*intent].is_about_user)
                        && !frame.unused.is_empty()
                        && !self.starts_with_text_cue(*intent, annotated, clause);
                    if self.lacks_mention(&frame) || self.leaves_words(&frame, annotated, clause) || leaves_places {
                        continue;
                    }
                    if let Some(frame) = self.more_complete(&frame, annotated, clause, dialogue, &ranked) {
                        return Resolution::Frames(vec![frame]);
                    }
                    // A question that lacks a slot is more likely to be about the last answer: "how many stops is
                    // that?"
                    let follow_up =
                        || self.follow_up_frame(&frame, annotated, clause, dialogue, &ranked).map(|frame| vec![frame]);
                    let is_incomplete = frame.open.iter().any(|open| open.choices.is_empty());
                    let explained = || self.is_explained(&frame, annotated, clause).then(|| vec![frame.clone()]);
                    if is_incomplete { follow_up().or_else(explained) } else { explained() }
                }
                Class::Aspect(name) => {
                    self.aspect_frame(name, *class, annotated, clause, dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Affirm) if is_explained() => {
                    self.confirmed_frame(clause, annotated, dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Correct | Act::Change | Act::Other) if self.refers_to_one(annotated, clause) => self
                    .selected_frame(annotated, clause, dialogue)
                    .or_else(|| self.newest_changed_frame(annotated, clause, dialogue))
                    .map(|frame| vec![frame]),
                Class::Act(Act::Other) if !has_mentions && is_explained() => {
                    self.alternative_frame(dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Again) if !has_mentions && is_explained() => self.repeated_frames(dialogue),
                Class::Act(Act::Reverse) => self.reversed_frame(annotated, clause, dialogue).map(|frame| vec![frame]),
                Class::Act(Act::Again | Act::Change | Act::Correct | Act::Other) => {
                    self.newest_changed_frame(annotated, clause, dialogue).map(|frame| vec![frame])
                }
                Class::Answer(answer) if !self.may_be_question_with_slots(annotated, clause, *class) => {
                    if let Some(frame) = self.leading_condition_frame(annotated, clause, dialogue) {
                        return Resolution::Frames(vec![frame]);
                    }
                    return Resolution::Answer(*answer);
                }
                Class::Act(_) | Class::OffTopic | Class::Absent | Class::Answer(_) => None,
            };
            // If the message may be off topic, a follow-up must explain its words.
            let is_off_topic = ranked.first().is_some_and(|(class, _)| self.classes[*class] == Class::OffTopic);
            let has_topic = |frame: &Frame| is_off_topic && !self.is_explained(frame, annotated, clause);
            if let Some(frames) = frames.filter(|frames| !frames.iter().any(has_topic)) {
                return Resolution::Frames(frames);
            }
            // A class without frames is accepted only if it is the best.
            let is_best = *class == ranked[0].0 && !has_mentions;
            match &self.classes[*class] {
                Class::Act(act) if is_best && is_explained() => {
                    return Resolution::Act(*act);
                }
                Class::OffTopic if is_best && !self.is_nearly_an_intent(annotated, clause, &ranked, dialogue) => {
                    return Resolution::OffTopic;
                }
                _ => {}
            }
        }
        match self.newest_changed_frame(annotated, clause, dialogue) {
            Some(frame) if self.is_explained(&frame, annotated, clause) => Resolution::Frames(vec![frame]),
            _ if !has_mentions && self.is_unfamiliar(annotated, clause) => Resolution::OffTopic,
            _ => Resolution::NotUnderstood,
        }
    }

    /// Returns the intent about the user that alone requires a kind of mention, such as the words "I live at".
    pub(super) fn stating_intent(&self, kind: &str) -> Option<usize> {
        let requires = |intent: &Intent| intent.slots.iter().any(|slot| slot.is_required && slot.kind == kind);
        let mut owners = (0..self.intents.len()).filter(|intent| requires(&self.intents[*intent]));
        owners.next().filter(|owner| owners.next().is_none() && self.intents[*owner].is_about_user)
    }

    /// If the clause contains a kind of mention that only one intent requires, such as the words "I live at", and that
    /// intent is about the user and has a slot for each mention, returns its frame.
    pub(super) fn statement_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        let intent = annotated.within(clause).find_map(|found| self.stating_intent(&found.kind))?;
        let is_class = |(class, _): &&Ranked| matches!(self.classes[*class], Class::Intent(own) if own == intent);
        let (class, _) = ranked.iter().find(is_class)?;
        let frame = self.new_frame(intent, *class, annotated, clause, dialogue);
        (frame.open.is_empty() && frame.unused.is_empty()).then_some(frame)
    }

    /// Returns the frame of an intent that scores lower but has a slot for each mention, if the given frame leaves some
    /// unused.
    pub(super) fn more_complete(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        if frame.unused.is_empty() {
            return self.better_explained(frame, annotated, clause, dialogue, ranked);
        }
        // A question must not become a statement about the user, because that would change what is stored.
        let may_state = self.intents[frame.intent].is_about_user;
        let best = ranked.first().map_or(0, |(_, score)| *score);
        let near = ranked.iter().take(MAX_TRIED).filter(|(_, score)| score * 100 >= best * MIN_MORE_COMPLETE_PERCENT);
        let mut others = near.filter_map(|(class, _)| match self.classes[*class] {
            Class::Intent(intent) if intent != frame.intent && (may_state || !self.intents[intent].is_about_user) => {
                Some(self.new_frame(intent, *class, annotated, clause, dialogue))
            }
            _ => None,
        });
        others.find(|other| {
            other.unused.is_empty()
                && other.open.is_empty()
                && !self.intents[other.intent].slots.is_empty()
                && other.filled.len() > frame.filled.len()
                && self.is_explained(other, annotated, clause)
        })
    }

    /// Returns the frame of an intent that scores nearly as high and explains more words.
    fn better_explained(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        let is_stated = |intent: usize| {
            self.intents[intent].is_about_user || self.intents[intent].slots.iter().any(|slot| slot.is_text)
        };
        if self.place_kind.is_none()
            || frame.unexplained.is_empty()
            || !frame.open.is_empty()
            || is_stated(frame.intent)
        {
            return None;
        }
        let best = ranked.first().map_or(0, |(_, score)| *score);
        let near = ranked.iter().take(MAX_TRIED).filter(|(_, score)| score * 100 >= best * NEARLY_BEST_PERCENT);
        let mut others = near.filter_map(|(class, _)| match self.classes[*class] {
            Class::Intent(intent) if intent != frame.intent && !is_stated(intent) => {
                Some(self.new_frame(intent, *class, annotated, clause, dialogue))
            }
            _ => None,
        });
        others.find(|other| {
            other.open.is_empty() && other.unused.is_empty() && other.unexplained.len() < frame.unexplained.len()
        })
    }

    /// Interprets a clause that only states conditions, such as "it has to be step-free" after a route, as a change to
    /// the last frame, although another intent scores higher. `None` if the clause asks something or names what a
    /// question needs.
    pub(super) fn condition_frame(
        &self,
        intent: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        const ASKING: [&str; 40] = [
            "is", "are", "does", "do", "can", "could", "which", "what", "whats", "when", "whens", "where", "wheres",
            "how", "hows", "any", "will", "would", "why", "who", "should", "last", "first", "next", "did", "has",
            "list", "show", "es", "hay", "puedo", "cual", "que", "cuando", "donde", "como", "cuanto", "am", "was",
            "were",
        ];
        let last = dialogue.frames.last().filter(|last| last.intent != intent)?;
        let first = clause.clone().find(|at| {
            let word = annotated.utterance.word(*at);
            !self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|known| known == word)
        })?;
        if ASKING.contains(&annotated.utterance.word(first)) {
            return None;
        }
        let required = || self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_required);
        let is_condition = |found: &KindMention| !required().any(|slot| slot.kind == found.kind);
        let mut mentions = annotated.within(clause).filter(|found| !found.mention.is_incidental).peekable();
        mentions.peek()?;
        if !mentions.all(is_condition) {
            return None;
        }
        let is_explained = |frame: &Frame| self.place_kind.is_none() || self.is_explained(frame, annotated, clause);
        self.changed_frame(last, annotated, clause, dialogue)
            .filter(|frame| frame.unused.is_empty() && is_explained(frame))
    }

    /// Like [`condition_frame`](Self::condition_frame), but only if the condition starts the clause, because a reason
    /// after it can be a topic of its own: "avoid the 2, it is packed".
    pub(super) fn leading_condition_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let first = clause.clone().find(|at| {
            let word = annotated.utterance.word(*at);
            !self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|known| known == word)
        })?;
        let mut leading = annotated.within(clause).filter(|found| found.mention.words.start == first);
        leading.find(|found| found.mention.words.len() > 1 && !found.mention.is_incidental)?;
        self.condition_frame(usize::MAX, annotated, clause, dialogue)
    }

    /// Whether a clause expresses an intent other than the one that the model asked about.
    pub(super) fn expresses_new_intent(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> bool {
        let Some((class, score)) = ranked.first() else { return false };
        let intent = match self.classes[*class] {
            Class::Intent(intent) => intent,
            Class::Answer(_) => return *score >= MIN_SPLIT_SCORE && self.has_word_of(annotated, clause, *class),
            _ => return false,
        };
        let is_open = dialogue.frames.iter().any(|frame| frame.intent == intent && !frame.open.is_empty());
        !is_open && *score >= MIN_SPLIT_SCORE && self.has_word_of(annotated, clause, *class)
    }

    /// Interprets a clause that consists of mentions: as a change to the last frame, or as an intent whose slots they
    /// fill completely.
    pub(super) fn frame_of_mentions(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        if self.place_kind.is_some() && self.is_of_another_topic(ranked) {
            return None;
        }
        let changed = self.newest_changed_frame(annotated, clause, dialogue).filter(|frame| {
            frame.unused.is_empty() && (self.place_kind.is_none() || self.takes_incidental(frame, annotated, clause))
        });
        let best = ranked.iter().find_map(|(class, score)| match self.classes[*class] {
            Class::Intent(intent) if *score >= MIN_SCORE => Some((*class, intent, *score)),
            _ => None,
        });
        let Some((class, intent, score)) = best else { return changed };
        let fresh = self.new_frame(intent, class, annotated, clause, &DialogueState::default());
        let is_complete = fresh.open.iter().all(|open| !open.choices.is_empty()) && fresh.unused.is_empty();
        // Whether the clause may ask for a trip although another intent scores best: that intent is incomplete, or it
        // requires nothing and took only places.
        let is_about_trip = || {
            let slots = &self.intents[intent].slots;
            let is_place = |name: &String| {
                slots.iter().any(|slot| slot.name == *name && Some(&slot.kind) == self.place_kind.as_ref())
            };
            !is_complete || !slots.iter().any(|slot| slot.is_required) && fresh.filled.iter().all(is_place)
        };
        if self.place_kind.is_some()
            && is_about_trip()
            && let Some(trip) = self.complete_trip(annotated, clause, ranked, dialogue)
            && changed.as_ref().is_none_or(|changed| !self.has_two_ends(changed.intent))
        {
            return Some(trip);
        }
        let is_continuation = self.starts_as_continuation(&annotated.utterance, clause);
        let change = ranked.iter().find(|(class, _)| self.classes[*class] == Class::Act(Act::Change));
        let is_change = || change.is_some_and(|(_, change)| *change * 100 >= score * MIN_CHANGE_PERCENT);
        // After a trip, "whens the next R towards Forest Hills" asks something else.
        if changed.as_ref().is_some_and(|frame| frame.intent != intent)
            && score >= MIN_SPLIT_SCORE
            && !is_continuation
            && !is_change()
        {
            let other = self.new_frame(intent, class, annotated, clause, dialogue);
            if other.open.is_empty() && other.unused.is_empty() {
                return Some(other);
            }
        }
        // "Is 28 St accessible" is a new question, although it could also change the last one.
        let asks = || matches!(annotated.utterance.word(clause.start), "is" | "are" | "does");
        if is_complete && asks() {
            // Of several stations with the name, the one mentioned earlier is meant.
            return Some(self.new_frame(intent, class, annotated, clause, dialogue));
        }
        match changed {
            Some(frame) if is_continuation || !is_complete || frame.intent == intent || is_change() => Some(frame),
            // Pronouns of the clause refer to the dialogue.
            _ => is_complete.then(|| self.new_frame(intent, class, annotated, clause, dialogue)),
        }
    }

    /// Returns the frame of the best intent between two places if the clause names both: "what about from Canary Wharf to Farringdon".
    fn complete_trip(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let nothing = DialogueState::default();
        let mut trips = ranked.iter().filter_map(|(class, score)| match self.classes[*class] {
            Class::Intent(intent) if *score >= MIN_SCORE && self.has_two_ends(intent) => Some((*class, intent)),
            _ => None,
        });
        let (class, intent) = trips.find(|(class, intent)| {
            let fresh = self.new_frame(*intent, *class, annotated, clause, &nothing);
            fresh.unused.is_empty() && fresh.open.iter().all(|open| !open.choices.is_empty())
        })?;
        Some(self.new_frame(intent, class, annotated, clause, dialogue))
    }

    /// Whether an intent requires two places that a reversal exchanges.
    fn has_two_ends(&self, intent: usize) -> bool {
        let slots = &self.intents[intent].slots;
        let is_required = |name: &String| slots.iter().any(|slot| slot.name == *name && slot.is_required);
        self.intents[intent].swaps.iter().any(|(one, other)| is_required(one) && is_required(other))
    }

    /// Whether an intent has a slot for each incidental mention of a clause, such as "direct".
    fn takes_incidental(&self, frame: &Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let slots = &self.intents[frame.intent].slots;
        let is_taken = |found: &KindMention| {
            slots.iter().any(|slot| slot.kind == found.kind)
                || annotated.within(clause).any(|other| {
                    other.kind != found.kind
                        && other.mention.words.start < found.mention.words.end
                        && found.mention.words.start < other.mention.words.end
                })
        };
        // A mention that only decides for an intent, or that holds for one message, is no condition.
        let is_condition = |found: &&KindMention| {
            let decides = |intent: &Intent| intent.decided_by.as_ref().is_some_and(|(kind, _)| *kind == found.kind);
            let excludes = |intent: &Intent| intent.excluded_by.contains(&found.kind);
            let mut momentary = self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_momentary);
            !self.intents.iter().any(|intent| decides(intent) || excludes(intent))
                && !momentary.any(|slot| slot.kind == found.kind)
        };
        let incidental = annotated.within(clause).filter(|found| found.mention.is_incidental);
        incidental.filter(is_condition).all(is_taken)
    }

    pub(super) fn starts_as_continuation(&self, utterance: &Utterance, clause: &Range<usize>) -> bool {
        self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|phrase| {
            let words = folded_words(phrase);
            !words.is_empty() && words.iter().enumerate().all(|(at, word)| utterance.word(clause.start + at) == word)
        })
    }

    pub(super) fn new_frame(
        &self,
        intent: usize,
        class: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Frame {
        let mut filler = SlotFiller::new(&self.intents[intent], annotated, Slots::default());
        filler.exclude_rejected(clause);
        filler.fill_from_text(clause);
        filler.fill_from_mentions(clause, false);
        let texts = filler.texts();
        let mut frame = filler.finish(intent, clause, dialogue);
        frame.unexplained = self.unexplained(annotated, clause, &[class], &texts);
        frame
    }
}
