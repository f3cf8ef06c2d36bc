//! Follow-ups: aspects of the last answer, repetitions, reversals, other choices.

use std::ops::Range;

use super::{Class, IntentResolver, MAX_TRIED, MIN_SCORE, Ranked};
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::extract::Choice;
use crate::frame::{Frame, SlotFiller};
use crate::intent::Slots;

impl IntentResolver {
    /// Returns the best interpretation of a clause as a follow-up instead of an incomplete question.
    pub(super) fn follow_up_frame(
        &self,
        incomplete: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        let has_frame = dialogue.frames.iter().any(|frame| frame.open.is_empty() && frame.intent != incomplete.intent);
        let aspects = ranked.iter().take(MAX_TRIED).filter_map(|(class, score)| match &self.classes[*class] {
            Class::Aspect(name) if *score >= MIN_SCORE => Some((name, *class)),
            _ => None,
        });
        let mut frames = aspects.filter(|_| has_frame).filter_map(|(name, class)| {
            let frame = self.aspect_frame(name, class, annotated, clause, dialogue)?;
            frame.open.is_empty().then_some(frame)
        });
        frames.next()
    }

    pub(super) fn aspect_frame(
        &self,
        name: &str,
        class: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let has_aspect = |frame: &Frame| self.aspect(frame.intent, name).is_some();
        let answering = |frame: &Frame| {
            if has_aspect(frame) {
                return Some(frame.clone());
            }
            let continued = self.continued(frame).filter(has_aspect)?;
            let changed = || self.changed_frame(&continued, annotated, clause, dialogue);
            let completes = |changed: Frame| self.completes(&continued, &changed);
            (self.is_complete(&continued) || changed().is_some_and(completes)).then_some(continued)
        };
        let owner = self.intents.iter().position(|intent| intent.answers_aspects.iter().any(|known| known == name));
        let mut frames =
            dialogue.recent_frames().take(if owner.is_some() { dialogue.frames.len() } else { usize::MAX });
        let Some(last) = frames.find_map(answering) else {
            let intent = owner?;
            let mut frame = self.new_frame(intent, class, annotated, clause, dialogue);
            // Words that ask for the aspect, such as "accessible", are not a condition.
            frame.unused.clear();
            return Some(frame);
        };
        let mut frame = self.changed_frame(&last, annotated, clause, dialogue).unwrap_or_else(|| last.repeated());
        frame.aspect = self.aspect(frame.intent, name);
        frame.unexplained = self.unexplained(annotated, clause, &[class], &[]);
        Some(frame)
    }

    pub(super) fn aspect(&self, intent: usize, name: &str) -> Option<usize> {
        self.intents[intent].aspects.iter().position(|aspect| aspect.name == name)
    }

    /// Returns the frame of the intent that "yes" confirms.
    pub(super) fn confirmed_frame(
        &self,
        clause: &Range<usize>,
        annotated: &AnnotatedUtterance,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let name = self.intents[last.intent].confirmed_by.as_ref()?;
        let intent = self.intents.iter().position(|intent| intent.name == *name)?;
        let filler = SlotFiller::new(&self.intents[intent], annotated, Slots::default());
        Some(filler.finish(intent, clause, dialogue))
    }

    /// Replaces the value of an ambiguous name with the next of its meanings.
    pub(super) fn alternative_frame(&self, dialogue: &DialogueState) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let (name, choices) = last.alternatives.last()?;
        let current = last.slots.get(name)?;
        let at = choices.iter().position(|choice| choice.value == current.value)?;
        let mut frame = last.repeated();
        frame.slots.set(name, choices[(at + 1) % choices.len()].clone());
        Some(frame)
    }

    /// Replaces the value of an ambiguous name with the meaning that the message selects: "the one on Lexington".
    pub(super) fn selected_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let (name, choices) = last.alternatives.last()?;
        let choice = self.select_choice(annotated, choices)?;
        // The message may change more: "the Columbia one, downtown".
        let kind = self.intents[last.intent].slots.iter().find(|slot| slot.name == *name).map(|slot| &slot.kind);
        let is_other = |found: &KindMention| Some(&found.kind) != kind && !found.mention.is_incidental;
        let changed = annotated.within(clause).any(is_other);
        let changed = changed.then(|| self.changed_frame(last, annotated, clause, dialogue)).flatten();
        let mut frame = changed.unwrap_or_else(|| last.repeated());
        frame.slots.set(name, choice.clone());
        frame.open.retain(|open| self.intents[frame.intent].slots[open.slot].name != *name);
        Some(frame)
    }

    pub(super) fn repeated_frames(&self, dialogue: &DialogueState) -> Option<Vec<Frame>> {
        (!dialogue.frames.is_empty()).then(|| dialogue.frames.iter().map(Frame::repeated).collect())
    }

    /// Returns the questions of the last message about something else: "same two questions for the N", "both again for Bank".
    pub(super) fn same_questions(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Vec<Frame>> {
        let word = |at: usize| annotated.utterance.word(at);
        let is_question = |at: usize| matches!(word(at), "question" | "questions" | "thing" | "things");
        let is_about = |at: usize| matches!(word(at), "for" | "about" | "with" | "at" | "on");
        let is_same = |at: usize| {
            let asks_again = |at: usize| is_question(at) && is_about(at + 1);
            word(at) == "same" && (word(at + 1) == "for" || (at + 1..at + 3).any(asks_again))
        };
        let names = annotated.within(clause).any(|found| !found.mention.is_incidental && !found.mention.is_pronoun);
        if self.place_kind.is_none() || !names || !clause.clone().any(is_same) {
            return None;
        }
        let changed = |frame: &Frame| {
            let aspect = frame.aspect;
            let changed = self.changed_frame(frame, annotated, clause, dialogue)?;
            (changed.unused.is_empty() && changed.open.is_empty()).then_some(Frame { aspect, ..changed })
        };
        let frames: Option<Vec<Frame>> = dialogue.frames.iter().map(changed).collect();
        frames.filter(|frames| !frames.is_empty())
    }

    pub(super) fn reversed_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let turned =
            |frame: &Frame| self.opposite_frame(frame).or_else(|| self.opposite_frame(&self.continued(frame)?));
        const OF_TRIPS: [&str; 8] = ["trip", "journey", "route", "back", "return", "returning", "home", "way"];
        let is_of_trip = clause.clone().any(|at| OF_TRIPS.contains(&annotated.utterance.word(at)));
        let is_trip = |frame: &&Frame| {
            let mut swaps = self.intents[frame.intent].swaps.iter();
            swaps.any(|(one, other)| frame.slots.get(one).is_some() && frame.slots.get(other).is_some())
        };
        // After a departure board for a station of a trip, "and back?" reverses the trip.
        let trips = dialogue.recent_frames().filter(is_trip).filter(|_| is_of_trip);
        let turned = trips.chain(dialogue.recent_frames()).find_map(turned)?;
        let Some(changed) = self.changed_frame(&turned, annotated, clause, dialogue) else { return Some(turned) };
        // "I am going the other way, to Broadway Junction" is a trip from the same place.
        let is_only_end = self.intents[changed.intent]
            .swaps
            .first()
            .is_some_and(|(start, end)| changed.filled.contains(end) && !changed.filled.contains(start));
        if is_only_end && self.names_other_way(annotated, clause) {
            let forward = self.opposite_frame(&turned)?;
            return self.changed_frame(&forward, annotated, clause, dialogue);
        }
        Some(changed)
    }

    /// Whether a clause says "the other way" or "the opposite direction", rather than "back".
    fn names_other_way(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let word = |at: usize| annotated.utterance.word(at);
        clause
            .clone()
            .any(|at| matches!(word(at), "other" | "opposite" | "wrong") && matches!(word(at + 1), "way" | "direction"))
    }

    /// Returns a frame in the opposite direction; `None` if the frame has no direction.
    pub(super) fn opposite_frame(&self, last: &Frame) -> Option<Frame> {
        let mut turned = last.repeated();
        turned.filled.clear();
        let mut has_turned = false;
        for (one, other) in &self.intents[last.intent].swaps {
            let (first, second) = (last.slots.get(one).cloned(), last.slots.get(other).cloned());
            has_turned |= first.is_some() || second.is_some();
            turned.slots.put(one, second);
            turned.slots.put(other, first);
        }
        for slot in &self.intents[last.intent].slots {
            let derived = |choice: &Choice| slot.opposite.and_then(|opposite| opposite(choice));
            let opposite = |choice: &Choice| choice.opposite.as_deref().cloned().or_else(|| derived(choice));
            let opposite = last.slots.get(&slot.name).and_then(opposite);
            if let Some(opposite) = opposite {
                has_turned = true;
                turned.slots.set(&slot.name, opposite);
            }
        }
        has_turned.then_some(turned)
    }

    /// Returns the frame of the intent that takes over follow-ups to a frame. Its slots keep the values of slots with
    /// the same name; the others take the values of the slots that they are carried from: after a departure board, a
    /// trip starts at its station.
    pub(super) fn continued(&self, frame: &Frame) -> Option<Frame> {
        let name = self.intents[frame.intent].continued_by.as_ref()?;
        let intent = self.intents.iter().position(|intent| intent.name == *name)?;
        let mut slots = Slots::default();
        let mut alternatives = Vec::new();
        for slot in &self.intents[intent].slots {
            let names = std::iter::once(&slot.name).chain(&slot.carried_from);
            if let Some((name, choice)) = names.filter_map(|name| Some((name, frame.slots.get(name)?))).next() {
                slots.set(&slot.name, choice.clone());
                let of_slot = frame.alternatives.iter().filter(|(known, _)| known == name);
                alternatives.extend(of_slot.map(|(_, choices)| (slot.name.clone(), choices.clone())));
            }
        }
        Some(Frame { alternatives, ..Frame::restored(intent, slots) })
    }

    /// Whether a message fills the required slots that a frame lacks. Where a departure board is cannot also be where a trip goes.
    pub(super) fn completes(&self, frame: &Frame, changed: &Frame) -> bool {
        let mut required = self.intents[frame.intent].slots.iter().filter(|slot| slot.is_required);
        required.all(|slot| frame.slots.get(&slot.name).is_some() || changed.filled.contains(&slot.name))
    }

    /// Whether all required slots of a frame have values.
    pub(super) fn is_complete(&self, frame: &Frame) -> bool {
        let mut required = self.intents[frame.intent].slots.iter().filter(|slot| slot.is_required);
        required.all(|slot| frame.slots.get(&slot.name).is_some())
    }
}
