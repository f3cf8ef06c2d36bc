//! Intents that a mention decides for, before the classifier does.

use std::ops::Range;

use super::{Class, IntentResolver};
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::frame::Frame;

impl IntentResolver {
    /// Returns the frame of the intent for which a mention of the clause decides, if it has a slot for each other mention.
    pub(super) fn decided_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let last = dialogue.frames.last();
        let mut deciding = annotated.within(clause).filter_map(|found| {
            (0..self.intents.len())
                .find(|intent| self.decides(*intent, found, last.is_some_and(|frame| frame.intent == *intent)))
        });
        deciding.find_map(|intent| {
            let class = self.classes.iter().position(|class| *class == Class::Intent(intent))?;
            let changed = last.filter(|last| last.intent == intent && last.open.is_empty());
            let changed = changed.and_then(|last| self.changed_frame(last, annotated, clause, dialogue));
            let frame = changed.unwrap_or_else(|| self.new_frame(intent, class, annotated, clause, dialogue));
            (frame.unused.is_empty() && !self.lacks_mention(&frame)).then_some(frame)
        })
    }

    fn decides(&self, intent: usize, found: &KindMention, follows: bool) -> bool {
        let Some((kind, decides)) = &self.intents[intent].decided_by else { return false };
        *kind == found.kind && found.mention.choices.iter().any(|choice| decides(choice, follows))
    }
}
