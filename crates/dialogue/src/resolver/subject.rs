//! The subject under discussion: what the newest questions were about, and which aspect was asked.
//!
//! A message that no intent explains, and that only names an aspect or an entity, is a question about the subject: an entity keeps
//! the aspect, and an aspect keeps the entities.

use std::ops::Range;

use super::{IntentResolver, Resolution};
use crate::annotated::AnnotatedUtterance;
use crate::dialogue_state::DialogueState;
use crate::frame::Frame;

impl IntentResolver {
    /// Interprets a clause; if it is not understood, as a question about the subject under discussion.
    pub(super) fn resolve_by_subject(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Resolution {
        let resolution = self.resolve_clause(annotated, clause, dialogue);
        if self.aspect_phrases.is_empty() || !matches!(resolution, Resolution::OffTopic | Resolution::NotUnderstood) {
            return resolution;
        }
        let found = self.aspect_of_subject(annotated, clause, dialogue);
        let found = found.or_else(|| self.entity_of_subject(annotated, clause, dialogue));
        found.map_or(resolution, |frame| Resolution::Frames(vec![frame]))
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
