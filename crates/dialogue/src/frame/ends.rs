//! Fills the ends of a trip from "X to Y".

use std::ops::Range;

use super::{SlotFiller, cue_length, position_with_articles};
use crate::annotated::KindMention;

impl SlotFiller<'_> {
    /// Returns the number of the sentence that contains a mention.
    pub(super) fn sentence_of(&self, found: &KindMention) -> usize {
        let before = &self.annotated.utterance.words()[..found.mention.words.start];
        before.iter().filter(|word| word.ends_sentence).count()
    }

    /// Fills the ends of a trip from "X to Y", whatever precedes it: "how do I get Oval to Bank".
    pub(super) fn fill_ends(&mut self, clause: &Range<usize>) {
        const TO: [&str; 4] = ["to", "towards", "toward", "for"];
        let intent = self.intent;
        for (start, end) in &intent.swaps {
            let index = |name: &String| intent.slots.iter().position(|slot| slot.name == *name);
            let (Some(start), Some(end)) = (index(start), index(end)) else { continue };
            if self.filled.contains(&start) || self.filled.contains(&end) {
                continue;
            }
            let (start_slot, end_slot) = (&intent.slots[start], &intent.slots[end]);
            let before = |at: usize| at.checked_sub(1).map_or("", |at| self.annotated.utterance.word(at));
            let is_start = |found: &KindMention| {
                let first = position_with_articles(self.annotated, found.mention.words.start);
                !TO.contains(&before(first)) && cue_length(self.annotated, found, end_slot) <= 1
            };
            let mentions =
                self.annotated.within(clause).filter(|found| found.kind == start_slot.kind && is_start(found));
            let pair = mentions.into_iter().find_map(|found| {
                let to = found.mention.words.end;
                let follows = |next: &KindMention| {
                    let first = position_with_articles(self.annotated, next.mention.words.start);
                    first == to + 1 && next.kind == end_slot.kind
                };
                let next = self.annotated.within(clause).find(|next| follows(next))?;
                (self.annotated.utterance.word(to) == "to" && !self.annotated.utterance.words()[to - 1].ends_sentence)
                    .then(|| (found.mention.words.clone(), next.mention.words.clone()))
            });
            let Some((from, to)) = pair else { continue };
            // In "from A, change at X to Y", the start is A.
            let is_other_start = |found: &KindMention| {
                found.kind == start_slot.kind
                    && found.mention.words != from
                    && before(position_with_articles(self.annotated, found.mention.words.start)) == "from"
            };
            if self.annotated.within(clause).any(is_other_start) {
                continue;
            }
            for (slot, words) in [(start, from), (end, to)] {
                let mention = self.find_mention(clause, &intent.slots[slot], |found| found.mention.words == words);
                if let Some(at) = mention {
                    self.fill(slot, at);
                }
            }
        }
    }
}
