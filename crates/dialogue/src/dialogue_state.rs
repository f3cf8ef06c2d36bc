//! The state of a dialogue, accumulated while a request is interpreted.

use crate::extract::{Choice, Extractor, Mention, Names};
use crate::frame::Frame;
use crate::utterance::Utterance;

/// The maximum number of names learnt from results; further ones are ignored.
const MAX_LEARNT: usize = 2_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct DialogueState {
    /// The frames of the last message that was understood.
    pub(crate) frames: Vec<Frame>,
    /// Mentioned entities with their kind, the newest last.
    mentioned: Vec<(String, Choice)>,
    /// Names learnt from results, by kind.
    learnt: Vec<(String, Names)>,
    learnt_count: usize,
}

impl DialogueState {
    pub(crate) fn mention(&mut self, kind: &str, choice: &Choice) {
        self.mentioned.retain(|(known, other)| known != kind || other.value != choice.value);
        self.mentioned.push((kind.to_owned(), choice.clone()));
    }

    /// Adds an entity from a result, so that messages can refer to it by name or pronoun.
    pub(crate) fn learn(&mut self, kind: &str, choice: &Choice) {
        self.mention(kind, choice);
        if self.learnt_count >= MAX_LEARNT {
            return;
        }
        self.learnt_count += 1;
        match self.learnt.iter_mut().find(|(known, _)| known == kind) {
            Some((_, names)) => *names = std::mem::take(names).with(choice.clone(), &[]),
            None => self.learnt.push((kind.to_owned(), Names::new().with(choice.clone(), &[]))),
        }
    }

    pub(crate) fn find_learnt(&self, utterance: &Utterance) -> impl Iterator<Item = (&str, Mention)> {
        self.learnt
            .iter()
            .flat_map(|(kind, names)| names.find(utterance).into_iter().map(move |mention| (kind.as_str(), mention)))
    }

    /// Returns the last mentioned entity of a kind that is not in `except`.
    pub(crate) fn newest(&self, kind: &str, except: &[&Choice]) -> Option<&Choice> {
        let is_other = |choice: &Choice| except.iter().all(|known| known.value != choice.value);
        self.mentioned.iter().rev().find(|(known, choice)| known == kind && is_other(choice)).map(|(_, choice)| choice)
    }
}
