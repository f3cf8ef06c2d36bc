//! Completes a frame: narrows ambiguous names, and fills slots from the dialogue.

use std::ops::Range;

use super::choices::{closest, hinted_by_lists, is_same_entity};
use super::{Frame, OpenSlot, SlotFiller};
use crate::dialogue_state::DialogueState;
use crate::extract::Choice;
use crate::intent::Slot;

impl SlotFiller<'_> {
    /// Narrows ambiguous names, and fills missing slots from the dialogue.
    pub(crate) fn finish(mut self, at: usize, clause: &Range<usize>, dialogue: &DialogueState) -> Frame {
        // Ambiguous names are resolved last, because values from earlier messages narrow them too.
        let ambiguous = std::mem::take(&mut self.open);
        let intent = self.intent;
        for (index, slot) in intent.slots.iter().enumerate() {
            if !self.filled.contains(&index)
                && ambiguous.iter().all(|open| open.slot != index)
                && let Some(end) = self.end_of_trip(slot, clause, dialogue)
            {
                self.slots.set(&slot.name, end);
            }
        }
        for (index, slot) in self.intent.slots.iter().enumerate() {
            if self.slots.get(&slot.name).is_some() || ambiguous.iter().any(|open| open.slot == index) {
                continue;
            }
            let complement = || slot.complement.and_then(|complement| complement(&self.slots));
            let inherited = || {
                let inherits = slot.inherits?;
                // A question that names its place is about an earlier trip only if it follows it directly.
                let count = if self.names_required(&slot.kind) { dialogue.frames.len() } else { usize::MAX };
                dialogue.recent_frames().take(count).find_map(|frame| inherits(&frame.slots, &self.slots))
            };
            let found = self
                .carried_choice(slot, dialogue)
                .or_else(inherited)
                .or_else(complement)
                .or_else(|| slot.default.clone());
            if let Some(choice) = found {
                if !choice.others.is_empty() {
                    let all = std::iter::once(&choice).chain(&choice.others).cloned().collect();
                    self.alternatives.push((slot.name.clone(), all));
                }
                self.slots.set(&slot.name, choice);
            } else if slot.is_required {
                self.open.push(OpenSlot { slot: index, ambiguous_text: String::new(), choices: Vec::new() });
            }
        }
        for open in ambiguous {
            let slot = &self.intent.slots[open.slot];
            let narrowed = slot.narrows.as_ref().map(|narrows| narrows(&open.choices, &self.slots)).unwrap_or_default();
            let choices = if narrowed.is_empty() { &open.choices } else { &narrowed };
            let close = self.previous.get(&slot.name).and_then(|previous| closest(choices, previous));
            let mentioned = || dialogue.newest_of(&slot.kind, choices);
            let remaining = match close.or_else(mentioned).or_else(|| hinted_by_lists(choices, dialogue)) {
                Some(choice) => vec![choice.clone()],
                None => narrowed,
            };
            match remaining.len() {
                0 => self.open.push(open),
                1 => remaining.into_iter().for_each(|choice| self.slots.set(&slot.name, choice)),
                _ => self.open.push(OpenSlot { choices: remaining, ..open }),
            }
        }
        self.open.sort_by_key(|open| (open.choices.is_empty(), open.slot));
        self.resolve_assumed(dialogue);
        let has_filled = |name: &str| self.filled.iter().any(|slot| self.intent.slots[*slot].name == name);
        let cleared: Vec<&str> = self
            .intent
            .alternatives
            .iter()
            .flat_map(|(one, other)| [(one, other), (other, one)])
            .filter(|(one, other)| has_filled(one) && !has_filled(other))
            .map(|(_, other)| other.as_str())
            .collect();
        self.slots.0.retain(|(name, _)| !cleared.contains(&name.as_str()));
        self.separate_lists();
        self.separate_ends();
        self.add_start_of_trip(dialogue);
        for (index, slot) in self.intent.slots.iter().enumerate() {
            let (Some(origin), Some(is_here)) = (&slot.pronoun_from, self.by_pronoun.get(&index)) else { continue };
            // After a trip, "from here" means where the trip starts.
            let origin = if *is_here { &slot.name } else { origin };
            let earlier = dialogue.frames.iter().rev().find_map(|frame| frame.slots.get(origin));
            let earlier = earlier.or_else(|| self.place_of_board(slot, dialogue));
            let started = || self.start_of_newest(slot, dialogue).filter(|_| *is_here);
            // After a ride on the M, "then the J from there" leaves from where the J stops.
            let meant = self.slots.get(&slot.name).filter(|meant| self.has_lists() && self.is_on_lists(meant));
            let is_possible = |choice: &&Choice| meant.is_none() || self.is_on_lists(choice);
            if let Some(choice) = earlier.filter(is_possible).or_else(started).cloned() {
                self.slots.set(&slot.name, choice);
            }
        }
        self.relocate();
        // Tools receive arguments in the order of declaration, regardless of the order in which slots were filled.
        let position = |name: &str| self.intent.slots.iter().position(|slot| slot.name == name);
        self.slots.0.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
        let unused = self.unused(clause);
        Frame {
            intent: at,
            slots: self.slots,
            open: self.open,
            alternatives: self.alternatives,
            aspect: None,
            filled: self.filled.iter().map(|slot| self.intent.slots[*slot].name.clone()).collect(),
            unused,
            unexplained: Vec::new(),
        }
    }

    /// Replaces the most likely meaning of a name with another one if other slots exclude it ("from 125th" together
    /// with the line A means the station on the A), or if the other meaning was mentioned before. Other slots take
    /// precedence over earlier mentions.
    fn resolve_assumed(&mut self, dialogue: &DialogueState) {
        for (index, slot) in self.intent.slots.iter().enumerate() {
            let Some(choice) = self.slots.get(&slot.name) else { continue };
            if choice.others.is_empty() || choice.is_return || !slot.narrows_assumed {
                continue;
            }
            let all: Vec<Choice> = std::iter::once(choice).chain(&choice.others).cloned().collect();
            let narrowed = slot.narrows.as_ref().map(|narrows| narrows(&all, &self.slots)).unwrap_or_default();
            let possible = if narrowed.is_empty() { &all } else { &narrowed };
            let mentioned = dialogue.newest_of(&slot.kind, possible).filter(|_| self.filled.contains(&index));
            let close = || self.previous.get(&slot.name).and_then(|previous| closest(possible, previous));
            let hinted = || hinted_by_lists(possible, dialogue);
            let meant = mentioned.or_else(close).or_else(hinted).or(narrowed.first());
            if let Some(meant) = meant.filter(|meant| meant.value != choice.value) {
                // A later message may narrow the name to another of its meanings.
                let others = all.iter().filter(|other| other.value != meant.value);
                let others = others.map(|other| Choice { others: Vec::new(), ..other.clone() }).collect();
                self.slots.set(&slot.name, Choice { others, ..meant.clone() });
            }
        }
    }

    /// Of two list slots that must not have an element in common, removes from the earlier list what the message named
    /// for the other slot.
    fn separate_lists(&mut self) {
        let is_filled = |name: &str| self.filled.iter().any(|slot| self.intent.slots[*slot].name == name);
        let pairs = self.intent.disjoint.iter().flat_map(|(one, other)| [(one, other), (other, one)]);
        for (one, other) in pairs.filter(|(one, other)| is_filled(one) && !is_filled(other)) {
            let named = self.slots.value(one);
            let (Some(named), Some(known)) = (named.as_array(), self.slots.get(other).cloned()) else { continue };
            let Some(old) = known.value.as_array() else { continue };
            let kept: Vec<_> = old.iter().filter(|value| !named.contains(value)).cloned().collect();
            if kept.len() < old.len() {
                let rest = (!kept.is_empty()).then(|| Choice { value: kept.into(), ..known.clone() });
                self.slots.put(other, rest);
            }
        }
    }

    /// If the message names, for one end of a trip, the place that is already the other end, gives the other end the
    /// earlier value of the named one: "back to Times Square" after a trip from there.
    fn separate_ends(&mut self) {
        for (one, other) in &self.intent.swaps {
            let is_filled = |name: &str| self.filled.iter().any(|slot| self.intent.slots[*slot].name == name);
            let (named, kept) = match (is_filled(one), is_filled(other)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => continue,
            };
            let is_same = match (self.slots.get(named), self.slots.get(kept)) {
                (Some(new), Some(old)) => is_same_entity(new, old),
                _ => false,
            };
            let earlier = self
                .previous
                .get(named)
                .filter(|earlier| self.slots.get(named).is_some_and(|new| !is_same_entity(new, earlier)));
            if let Some(earlier) = earlier.cloned().filter(|_| is_same) {
                self.slots.set(kept, earlier);
            }
        }
    }

    /// Returns where an earlier trip ended, as the start of a trip that continues it ("after the game to Barclays
    /// Center") or returns from it ("and home?").
    fn end_of_trip(&self, slot: &Slot, clause: &Range<usize>, dialogue: &DialogueState) -> Option<Choice> {
        const CONTINUING: [&str; 6] = ["after", "afterwards", "afterward", "later", "onwards", "onward"];
        let (_, end) = self.intent.swaps.iter().find(|(start, _)| *start == slot.name)?;
        let named = self.slots.get(end).filter(|_| self.is_filled(end))?;
        let is_mentioned = |at: usize| self.annotated.mentions.iter().any(|found| found.mention.words.contains(&at));
        let continues = || {
            clause.clone().any(|at| {
                CONTINUING.contains(&self.annotated.utterance.word(at))
                    && self.annotated.utterance.word(at + 1) != "all"
                    && !is_mentioned(at)
            })
        };
        if !named.is_return && !continues() {
            return None;
        }
        let ended = match named.is_return {
            true => dialogue.frames.iter().rev().find_map(|frame| frame.slots.get(end)),
            false => dialogue.recent_frames().find_map(|frame| frame.slots.get(end)),
        };
        ended.filter(|known| !is_same_entity(known, named) && !known.is_return).cloned()
    }

    /// Adds the start of an earlier trip to the meanings of a place to which the user returns.
    fn add_start_of_trip(&mut self, dialogue: &DialogueState) {
        for (start, end) in &self.intent.swaps {
            let (Some(place), Some(here)) = (self.slots.get(end), self.slots.get(start)) else { continue };
            if !place.is_return || !place.others.is_empty() {
                continue;
            }
            let starts = dialogue.recent_frames().filter_map(|frame| frame.slots.get(start));
            let origin = starts.filter(|known| !is_same_entity(known, here) && !known.is_return).last();
            if let Some(origin) = origin {
                let meant = Choice { others: vec![Choice { others: Vec::new(), ..origin.clone() }], ..place.clone() };
                self.slots.set(end, meant);
            }
        }
    }

    /// Replaces values that the message does not name, or names only by a pronoun, if other slots exclude them.
    fn relocate(&mut self) {
        for (index, slot) in self.intent.slots.iter().enumerate() {
            let is_named = self.filled.contains(&index) && !self.by_pronoun.contains_key(&index);
            let (Some(relocates), Some(known)) = (slot.relocates, self.slots.get(&slot.name)) else { continue };
            if let Some(other) = (!is_named).then(|| relocates(known, &self.slots)).flatten() {
                self.slots.set(&slot.name, other);
            }
        }
    }

    /// Returns the value of a slot in the last question, for a pronoun in the same slot: "the 4 there?" after "next D uptown" is at the
    /// same station. A place that the last question named in another slot is meant instead.
    fn place_of_board<'b>(&self, slot: &Slot, dialogue: &'b DialogueState) -> Option<&'b Choice> {
        let [frame] = &dialogue.frames[..] else { return None };
        let pronoun = self.slots.get(&slot.name)?;
        let is_named = |(name, value): &(String, Choice)| frame.filled.contains(name) && is_same_entity(value, pronoun);
        frame.slots.get(&slot.name).filter(|_| frame.open.is_empty() && !frame.slots.0.iter().any(is_named))
    }

    /// Whether the message names the value of a required slot of a kind, other than by a pronoun.
    fn names_required(&self, kind: &str) -> bool {
        let is_named = |at: &usize| {
            let slot = &self.intent.slots[*at];
            slot.is_required && slot.kind == kind && !self.by_pronoun.contains_key(at)
        };
        self.filled.iter().any(is_named)
    }

    pub(super) fn is_filled(&self, name: &str) -> bool {
        self.filled.iter().any(|slot| self.intent.slots[*slot].name == name)
    }

    /// Returns the value of a slot in the newest question about the place that was mentioned last: after a trip and a question about
    /// where it ends, the next train is the one at its start.
    fn start_of_newest<'b>(&self, slot: &Slot, dialogue: &'b DialogueState) -> Option<&'b Choice> {
        slot.pronoun_from.as_ref()?;
        let newest = dialogue.newest_topic(&slot.kind, &[])?;
        let is_about = |frame: &&Frame| frame.slots.0.iter().any(|(_, choice)| is_same_entity(choice, newest));
        let mut names = std::iter::once(&slot.name).chain(&slot.carried_from);
        let frame = dialogue.recent_frames().filter(is_about).find(|frame| {
            std::iter::once(&slot.name).chain(&slot.carried_from).any(|name| frame.slots.get(name).is_some())
        })?;
        names.find_map(|name| frame.slots.get(name)).filter(|start| self.is_on_lists(start))
    }

    /// Whether the question has a list, such as lines.
    fn has_lists(&self) -> bool {
        self.slots.0.iter().any(|(_, value)| value.value.is_array())
    }

    /// Whether a list of the message, such as its lines, has an element in common with the hints of a choice; true without a list.
    fn is_on_lists(&self, choice: &Choice) -> bool {
        let mut lists = self.slots.0.iter().filter_map(|(_, value)| value.value.as_array());
        let is_hint = |value: &serde_json::Value| {
            value.as_str().is_some_and(|value| choice.hints.iter().any(|hint| hint == value))
        };
        choice.hints.is_empty() || lists.all(|list| list.iter().any(is_hint))
    }

    fn carried_choice<'b>(&self, slot: &Slot, dialogue: &'b DialogueState) -> Option<Choice> {
        if !slot.is_carried {
            return None;
        }
        let names = || std::iter::once(&slot.name).chain(&slot.carried_from);
        let here: Vec<&Choice> = self.slots.0.iter().map(|(_, choice)| choice).collect();
        let is_new = |choice: &&Choice| here.iter().all(|known| known.value != choice.value);
        let in_frame = |frame: &'b Frame| names().find_map(|name| frame.slots.get(name)).filter(is_new);
        let same_slot = dialogue.frames.iter().rev().find_map(in_frame);
        let of_trip = || self.start_of_newest(slot, dialogue).filter(is_new);
        same_slot.or_else(of_trip).or_else(|| dialogue.newest_topic(&slot.kind, &here)).cloned()
    }
}
