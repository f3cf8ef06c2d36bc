//! The state of a dialogue, accumulated while a request is interpreted.

use crate::extract::{Choice, Extractor, Mention, Names};
use crate::frame::Frame;
use crate::utterance::Utterance;

/// The maximum number of names learnt from results. Further names are ignored.
const MAX_LEARNT: usize = 2_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct DialogueState {
    /// The frames of the last message that was understood.
    pub(crate) frames: Vec<Frame>,
    /// The frames of earlier messages, the newest last. A follow-up that does not fit the last answer may refer to an
    /// earlier one.
    earlier: Vec<Frame>,
    /// The mentioned entities with their kinds, the newest last.
    mentioned: Vec<(String, Choice)>,
    /// The entities that were mentioned only as facts about the user.
    facts: Vec<(String, Choice)>,
    /// Names learnt from results, by kind.
    learnt: Vec<(String, Names)>,
    learnt_count: usize,
    /// The nouns that refer to places, such as "hotel".
    nouns: Vec<(String, Choice)>,
}

/// The maximum number of earlier frames.
const MAX_EARLIER: usize = 6;

impl DialogueState {
    /// Sets the frames of a message.
    pub(crate) fn set_frames(&mut self, frames: Vec<Frame>) {
        let replaced = std::mem::replace(&mut self.frames, frames);
        self.earlier.extend(replaced.into_iter().filter(|frame| frame.open.is_empty()));
        let first = self.earlier.len().saturating_sub(MAX_EARLIER);
        self.earlier.drain(..first);
    }

    /// Forgets the earlier questions, so that places mentioned since then take precedence over their slots.
    pub(crate) fn leave_trips(&mut self) {
        self.frames.clear();
        self.earlier.clear();
    }

    /// Returns the frames of the last message, then the earlier ones, the newest first.
    pub(crate) fn recent_frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().rev().chain(self.earlier.iter().rev())
    }

    pub(crate) fn mention(&mut self, kind: &str, choice: &Choice) {
        self.mentioned.retain(|(known, other)| known != kind || other.value != choice.value);
        self.facts.retain(|(known, other)| known != kind || other.value != choice.value);
        self.mentioned.push((kind.to_owned(), choice.clone()));
    }

    /// Records that an entity was mentioned as a fact about the user.
    pub(crate) fn mention_fact(&mut self, kind: &str, choice: &Choice) {
        self.facts.push((kind.to_owned(), choice.clone()));
    }

    /// Removes an entity that turned out not to be the one meant.
    pub(crate) fn forget(&mut self, kind: &str, choice: &Choice) {
        self.mentioned.retain(|(known, other)| known != kind || other.value != choice.value);
    }

    /// Sets the place that a noun refers to.
    pub(crate) fn set_noun(&mut self, noun: &str, choice: &Choice) {
        self.nouns.retain(|(known, _)| known != noun);
        self.nouns.push((noun.to_owned(), choice.clone()));
    }

    /// Returns the place that a noun refers to.
    pub(crate) fn noun(&self, noun: &str) -> Option<&Choice> {
        self.nouns.iter().find(|(known, _)| known == noun).map(|(_, choice)| choice)
    }

    /// Returns the last mentioned entity of any of the given kinds.
    pub(crate) fn newest_among(&self, kinds: &[&str]) -> Option<&Choice> {
        self.mentioned.iter().rev().find(|(known, _)| kinds.contains(&known.as_str())).map(|(_, choice)| choice)
    }

    /// Returns the choice that was mentioned last; `None` if none of the choices was mentioned.
    pub(crate) fn newest_of<'a>(&self, kind: &str, choices: &'a [Choice]) -> Option<&'a Choice> {
        let mentioned = self.mentioned.iter().rev().filter(|(known, _)| known == kind);
        mentioned.into_iter().find_map(|(_, mentioned)| choices.iter().find(|choice| choice.value == mentioned.value))
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

    /// Returns the last mentioned entity of a kind, ignoring those in `except`.
    pub(crate) fn newest(&self, kind: &str, except: &[&Choice]) -> Option<&Choice> {
        let is_other = |choice: &Choice| except.iter().all(|known| known.value != choice.value);
        self.mentioned.iter().rev().find(|(known, choice)| known == kind && is_other(choice)).map(|(_, choice)| choice)
    }

    /// Like [`newest`](Self::newest), but also ignores facts about the user.
    pub(crate) fn newest_topic(&self, kind: &str, except: &[&Choice]) -> Option<&Choice> {
        let facts = self.facts.iter().filter(|(known, _)| known == kind).map(|(_, choice)| choice);
        let except: Vec<&Choice> = except.iter().copied().chain(facts).collect();
        self.newest(kind, &except)
    }
}
