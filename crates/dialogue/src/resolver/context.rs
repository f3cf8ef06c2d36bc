//! Messages that say more than they ask: where the user is before the question ("Just arrived at Port Authority. Which lines are there?"),
//! or an aside after it.

use std::ops::Range;

use super::{IntentResolver, Resolution};
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::frame::Frame;

impl IntentResolver {
    /// Interprets only the last part of a message as a question, and the places before it as mentioned earlier. `None`
    /// if that does not explain more than interpreting the whole message as one question.
    pub(super) fn after_context(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        whole: &Resolution,
    ) -> Option<Resolution> {
        let kind = self.place_kind.as_ref()?;
        let unclear = unexplained_parts(whole)?;
        let borders = self.borders(annotated).into_iter().rev();
        let borders = borders.filter(|border| clause.start < border.end && border.start + 1 < clause.end);
        for border in borders {
            let (before, question) = (clause.start..border.end, border.start..clause.end);
            let question = self.without_interjections(annotated, question);
            let mut mentions = annotated.within(&before).filter(|found| !found.mention.is_incidental).peekable();
            let required = || self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_required);
            let is_spoken_of =
                |found: &KindMention| found.kind == *kind || !required().any(|slot| slot.kind == found.kind);
            let speaks_of_places = mentions.peek().is_some() && mentions.all(is_spoken_of);
            if !speaks_of_places
                || !self.asks(annotated, &question)
                || self.score_as_question(annotated, &before, dialogue).is_some()
            {
                continue;
            }
            let mut spoken = dialogue.clone();
            spoken.leave_trips();
            for found in annotated.within(&before) {
                if let [choice] = &found.mention.choices[..] {
                    spoken.mention(&found.kind, choice);
                }
            }
            let resolution = self.resolve_questions(annotated, &[question], &spoken);
            let is_clearer = match &resolution {
                Resolution::Frames(frames) => {
                    // A condition must not be dropped.
                    let takes = |frame: &Frame, found: &KindMention| {
                        self.intents[frame.intent].slots.iter().any(|slot| slot.kind == found.kind)
                    };
                    let mut conditions =
                        annotated.within(&before).filter(|found| found.kind != *kind && !found.mention.is_incidental);
                    !conditions.any(|found| frames.iter().any(|frame| takes(frame, found)))
                        && frames.iter().all(|frame| frame.open.is_empty() && frame.unused.is_empty())
                        && unexplained_parts(&resolution).is_none_or(|parts| parts < unclear)
                }
                Resolution::Answer(_) => unclear == usize::MAX,
                _ => false,
            };
            if is_clearer {
                return Some(resolution);
            }
        }
        None
    }

    /// Interprets only the first sentences of a message that is not understood as a whole, if what follows mentions nothing: "How many
    /// stops does the Victoria line have? It is for a quiz". The words that follow are reported as unexplained.
    pub(super) fn before_aside(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        whole: &Resolution,
    ) -> Option<Resolution> {
        self.place_kind.as_ref()?;
        if !matches!(whole, Resolution::OffTopic | Resolution::NotUnderstood) {
            return None;
        }
        let ends =
            self.borders(annotated).into_iter().rev().filter(|border| border.end == border.start && !border.is_comma);
        let mut ends = ends.map(|border| border.end).filter(|end| clause.start < *end && *end < clause.end);
        ends.find_map(|end| {
            let (question, aside) = (clause.start..end, end..clause.end);
            let mentions_nothing = annotated.within(&aside).next().is_none() && !self.asks(annotated, &aside);
            if !mentions_nothing || !self.asks(annotated, &question) {
                return None;
            }
            let Resolution::Frames(mut frames) = self.resolve_questions(annotated, &[question], dialogue) else {
                return None;
            };
            let is_clear =
                |frame: &Frame| frame.open.is_empty() && frame.unused.is_empty() && frame.unexplained.is_empty();
            if !frames.iter().all(is_clear) {
                return None;
            }
            if let Some(last) = frames.last_mut() {
                last.unexplained = self.unexplained(annotated, &aside, &[], &[]);
            }
            Some(Resolution::Frames(frames))
        })
    }
}

/// Returns how many parts of a message an interpretation leaves unexplained; `None` if it explains all.
fn unexplained_parts(resolution: &Resolution) -> Option<usize> {
    match resolution {
        Resolution::NotUnderstood | Resolution::OffTopic => Some(usize::MAX),
        Resolution::Frames(frames) if frames.iter().any(|frame| !frame.open.is_empty()) => Some(usize::MAX),
        Resolution::Frames(frames) => {
            let parts = frames.iter().map(|frame| frame.unused.len() + frame.unexplained.len()).sum();
            (parts > 0).then_some(parts)
        }
        Resolution::Act(_) | Resolution::Answer(_) | Resolution::Mixed(..) => None,
    }
}
