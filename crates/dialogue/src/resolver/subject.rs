//! The subject under discussion: what the newest questions were about, and which aspect was asked.
//!
//! A message that no intent explains, and that only names an aspect or an entity, is a question about the subject: an entity keeps
//! the aspect, and an aspect keeps the entities.

use std::ops::Range;

use super::{IntentResolver, Resolution};
use crate::annotated::AnnotatedUtterance;
use crate::dialogue_state::DialogueState;
use crate::frame::Frame;
use crate::utterance::Utterance;

impl IntentResolver {
    /// Interprets a clause; if it is not understood, as a question about the subject under discussion.
    pub(super) fn resolve_by_subject(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Resolution {
        let resolution = match self.resolve_clause(annotated, clause, dialogue) {
            Resolution::Frames(frames) => {
                let of_trip = |frame: Frame| self.aspect_of_trip(&frame, annotated, clause, dialogue).unwrap_or(frame);
                let frames =
                    frames.into_iter().map(of_trip).map(|frame| self.with_tested_aspect(frame, annotated, clause));
                Resolution::Frames(frames.collect())
            }
            other => other,
        };
        if self.aspect_phrases.is_empty() || !matches!(resolution, Resolution::OffTopic | Resolution::NotUnderstood) {
            return resolution;
        }
        let found = self.aspect_of_subject(annotated, clause, dialogue);
        let found = found.or_else(|| self.entity_of_subject(annotated, clause, dialogue));
        found.map_or(resolution, |frame| Resolution::Frames(vec![frame]))
    }

    /// Adds the aspect for which the message also asks.
    fn with_tested_aspect(&self, frame: Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Frame {
        if frame.aspect.is_some() {
            return frame;
        }
        let question = Utterance::new(annotated.utterance.said(clause.clone()));
        let asked = self.aspect_tests.iter().filter(|(_, asks)| asks(&question));
        let aspect = asked.filter_map(|(name, _)| self.aspect(frame.intent, name)).next();
        Frame { aspect, ..frame }
    }

    /// Returns the frame of the last trip if a question means an aspect of it.
    fn aspect_of_trip(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        /// The number of earlier questions among which the trip is.
        const MAX_EARLIER: usize = 2;
        let (aspect, is_about) = self.intents[frame.intent].about_trip.as_ref()?;
        let class = self.classes.iter().position(|class| *class == super::Class::Aspect(aspect.clone()))?;
        let mut recent = dialogue.recent_frames().take(MAX_EARLIER);
        recent.find(|known| known.intent != frame.intent)?;
        let trip = self.aspect_frame(aspect, class, annotated, clause, dialogue)?;
        (trip.open.is_empty() && is_about(&frame.slots, &trip.slots)).then_some(trip)
    }

    /// Returns the frame of the aspect that a clause names. The clause names nothing else, or the phrase is unmistakable because
    /// it has several words.
    fn aspect_of_subject(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let phrases = self.aspect_phrases.iter().flat_map(|(class, all)| all.iter().map(move |words| (class, words)));
        let found = phrases.filter_map(|(class, words)| Some((class, self.position_of(annotated, clause, words)?)));
        let (name, words) = found.max_by_key(|(_, words)| words.len())?;
        let content = self.content_words(annotated, clause);
        let explains_all = content.iter().all(|at| words.contains(at));
        if !explains_all && words.len() < 2 {
            return None;
        }
        let class = self.classes.iter().position(|class| *class == super::Class::Aspect(name.clone()))?;
        let frame = self.aspect_frame(name, class, annotated, clause, dialogue)?;
        (frame.open.is_empty() && frame.unused.is_empty()).then_some(frame)
    }

    /// Returns the newest frame that can take what a clause names, if the clause says nothing else.
    fn entity_of_subject(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let named = annotated.within(clause).any(|found| !found.mention.is_incidental && !found.mention.is_pronoun);
        if !named || !self.content_words(annotated, clause).is_empty() {
            return None;
        }
        self.newest_changed_frame(annotated, clause, dialogue).filter(|frame| frame.unused.is_empty())
    }

    fn position_of(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        words: &[String],
    ) -> Option<Range<usize>> {
        let is_here =
            |at: &usize| words.iter().enumerate().all(|(offset, word)| annotated.utterance.word(at + offset) == word);
        clause.clone().filter(|at| at + words.len() <= clause.end).find(is_here).map(|at| at..at + words.len())
    }
}
