//! What a conversation has said so far, as the offline model keeps it while it reads a request.

use super::extract::{Choice, Extractor, Mention, Names};
use super::frame::Frame;
use super::utterance::Utterance;

/// Names that results may teach; later ones are not learnt.
const LEARNT: usize = 2_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// What the last message that was understood asked for.
    pub(super) frames: Vec<Frame>,
    /// Things that were mentioned, by kind, the newest last.
    mentioned: Vec<(String, Choice)>,
    /// Names that results taught, by kind.
    learnt: Vec<(String, Names)>,
    learnt_count: usize,
}

impl Memory {
    pub(super) fn mention(&mut self, kind: &str, choice: &Choice) {
        self.mentioned.retain(|(known, other)| known != kind || other.value != choice.value);
        self.mentioned.push((kind.to_owned(), choice.clone()));
    }

    /// Takes what results mention: it can be referred to, and called by its name.
    pub(super) fn learn(&mut self, kind: &str, choice: &Choice) {
        self.mention(kind, choice);
        if self.learnt_count >= LEARNT {
            return;
        }
        self.learnt_count += 1;
        match self.learnt.iter_mut().find(|(known, _)| known == kind) {
            Some((_, names)) => *names = std::mem::take(names).with(choice.clone(), &[]),
            None => self.learnt.push((kind.to_owned(), Names::new().with(choice.clone(), &[]))),
        }
    }

    pub(super) fn find_learnt(&self, said: &Utterance) -> impl Iterator<Item = (&str, Mention)> {
        self.learnt
            .iter()
            .flat_map(|(kind, names)| names.find(said).into_iter().map(move |mention| (kind.as_str(), mention)))
    }

    /// The newest thing of a kind that is none of these.
    pub(super) fn newest(&self, kind: &str, but: &[&Choice]) -> Option<&Choice> {
        let is_other = |choice: &Choice| but.iter().all(|known| known.value != choice.value);
        self.mentioned.iter().rev().find(|(known, choice)| known == kind && is_other(choice)).map(|(_, choice)| choice)
    }
}
