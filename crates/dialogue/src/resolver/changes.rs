//! Changes to an earlier question: a slot is filled, replaced or chosen.

use std::ops::Range;

use super::{Class, IntentResolver};
use crate::acts::Act;
use crate::annotated::AnnotatedUtterance;
use crate::dialogue_state::DialogueState;
use crate::extract::Choice;
use crate::frame::{Frame, OpenSlot, SlotFiller, cue_length, is_same_entity, select_choice, shares_name};

impl IntentResolver {
    /// Applies the mentions of a clause to the newest frame that has slots for them.
    pub(super) fn newest_changed_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        if let Some(frame) = self.frame_with_rejected(annotated, clause, dialogue) {
            return Some(frame);
        }
        if let Some(frame) = self.frame_with_cue(annotated, clause, dialogue) {
            return Some(frame);
        }
        // "And home?" does not change a statement about where home is.
        let returns = annotated.within(clause).any(|found| found.mention.choices.iter().any(|choice| choice.is_return));
        let frames = dialogue.recent_frames().filter(|frame| !returns || !self.intents[frame.intent].is_about_user);
        frames.into_iter().find_map(|frame| {
            let changed = self.changed_frame(frame, annotated, clause, dialogue);
            let continued = || {
                let trip = self.continued(frame)?;
                let continued = self.changed_frame(&trip, annotated, clause, dialogue)?;
                (self.is_complete(&continued) && self.completes(&trip, &continued)).then_some(continued)
            };
            match changed {
                Some(changed) if changed.unused.is_empty() && !self.replaces_all(frame, &changed) => Some(changed),
                Some(changed) => {
                    let continued = continued().filter(|continued| continued.unused.len() <= changed.unused.len());
                    Some(continued.unwrap_or(changed))
                }
                None => continued(),
            }
        })
    }

    /// Applies the mentions of a clause to an earlier frame if only that frame has the words before a place as a cue: after a departure
    /// board, "what if we start from X" changes the trip.
    fn frame_with_cue(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let kind = self.place_kind.as_ref()?;
        let longest = |frame: &Frame| {
            let slots = self.intents[frame.intent].slots.iter().filter(|slot| slot.kind == *kind);
            let places = || annotated.within(clause).filter(|found| found.kind == *kind);
            slots.flat_map(|slot| places().map(|found| cue_length(annotated, found, slot))).max().unwrap_or_default()
        };
        let mut frames = dialogue.recent_frames();
        let least = 1.max(longest(frames.next()?));
        let meant = frames.find(|frame| frame.open.is_empty() && longest(frame) > least)?;
        self.changed_frame(meant, annotated, clause, dialogue).filter(|changed| changed.unused.is_empty())
    }

    /// Replaces the Y of "X instead of Y" in the newest frame that has it.
    pub(super) fn frame_with_rejected(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let rejected = SlotFiller::rejected_mentions(annotated, clause, true);
        let places = rejected.iter().map(|at| &annotated.mentions[*at]);
        let places = places.filter(|found| self.place_kind.as_ref() == Some(&found.kind));
        let rejected = places.flat_map(|found| &found.mention.choices);
        let rejected: Vec<&Choice> = rejected.collect();
        let has = |frame: &&Frame| {
            frame.slots.0.iter().any(|(_, value)| rejected.iter().any(|known| is_same_entity(known, value)))
        };
        dialogue.recent_frames().find(has).and_then(|frame| self.changed_frame(frame, annotated, clause, dialogue))
    }

    /// Whether a changed frame has a different value in every required slot.
    pub(super) fn replaces_all(&self, last: &Frame, changed: &Frame) -> bool {
        let required = || self.intents[last.intent].slots.iter().filter(|slot| slot.is_required);
        // After a departure board, "and at Bleecker?" is still the same question.
        required().count() > 1
            && required().all(|slot| {
                let (old, new) = (last.slots.get(&slot.name), changed.slots.get(&slot.name));
                old.map(|choice| &choice.value) != new.map(|choice| &choice.value)
            })
    }

    pub(super) fn changed_frame(
        &self,
        last: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        if self.is_excluded(last.intent, annotated, clause) {
            return None;
        }
        let intent = &self.intents[last.intent];
        let mut filler = SlotFiller::continuing(intent, annotated, last);
        filler.apply_correction(clause);
        filler.fill_from_text(clause);
        filler.fill_from_mentions(clause, true);
        if !filler.has_filled() {
            return None;
        }
        let texts = filler.texts();
        let mut frame = filler.finish(last.intent, clause, dialogue);
        let class = self.classes.iter().position(|class| *class == Class::Intent(last.intent));
        let change = self.classes.iter().position(|class| *class == Class::Act(Act::Change));
        let correct = self.classes.iter().position(|class| *class == Class::Act(Act::Correct));
        let classes: Vec<usize> = class.into_iter().chain(change).chain(correct).collect();
        frame.unexplained = self.unexplained(annotated, clause, &classes, &texts);
        Some(frame)
    }

    /// Interprets a message as the answer to an open question of the model.
    pub(super) fn answer_open_slot(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let frame = dialogue.frames.iter().find(|frame| !frame.open.is_empty())?;
        let (open, later) = frame.open.split_first()?;
        let intent = &self.intents[frame.intent];
        let kind = &intent.slots[open.slot].kind;
        let mentioned = annotated.mentions.iter().position(|found| found.kind == *kind);
        let selected = self.select_choice(annotated, &open.choices).cloned().map(|choice| vec![choice]);
        // "Wembley Park, yeah" does not answer "Leytonstone or Forest Gate?" if the trip goes to Wembley.
        if let Some(at) = mentioned.filter(|_| self.place_kind.is_some() && open.choices.len() > 1) {
            let named = &annotated.mentions[at].mention.choices;
            let is_offered = named.iter().any(|choice| open.choices.iter().any(|known| known.value == choice.value));
            let is_other = |(name, value): &(String, Choice)| {
                *name != intent.slots[open.slot].name && named.iter().any(|choice| shares_name(choice, value))
            };
            if !is_offered && frame.slots.0.iter().any(is_other) {
                return None;
            }
        }
        let choices = match (mentioned, selected) {
            (Some(at), _) => restrict_choices(&annotated.mentions[at].mention.choices, &open.choices),
            (None, selected) => selected?,
        };
        let mut filler = SlotFiller::new(intent, annotated, frame.slots.clone());
        if let Some(at) = mentioned {
            filler.exclude_mention(at);
        }
        let still_open = match &choices[..] {
            [choice] => {
                filler.set(open.slot, choice.clone());
                None
            }
            _ => Some(OpenSlot { choices, ..open.clone() }),
        };
        filler.fill_from_mentions(clause, false);
        let mut answered = filler.finish(frame.intent, clause, dialogue);
        answered.open.retain(|new| new.slot != open.slot && later.iter().all(|known| known.slot != new.slot));
        let is_unfilled = |open: &OpenSlot| answered.slots.get(&intent.slots[open.slot].name).is_none();
        let later: Vec<OpenSlot> = later.iter().filter(|open| is_unfilled(open)).cloned().collect();
        answered.open.splice(0..0, still_open.into_iter().chain(later));
        Some(answered)
    }

    pub(super) fn select_choice<'a>(
        &self,
        annotated: &AnnotatedUtterance,
        choices: &'a [Choice],
    ) -> Option<&'a Choice> {
        self.phrases.iter().find_map(|phrases| select_choice(annotated, choices, &phrases.ordinals))
    }
}

/// Restricts the meanings of a new name to the offered choices, if any of them match.
fn restrict_choices(mentioned: &[Choice], offered: &[Choice]) -> Vec<Choice> {
    let both: Vec<Choice> =
        mentioned.iter().filter(|choice| offered.iter().any(|known| known.value == choice.value)).cloned().collect();
    if both.is_empty() { mentioned.to_vec() } else { both }
}
