//! An intent with what is known for it.

use std::collections::HashSet;
use std::ops::Range;

use threadkeep_core::text::Language;

use super::extract::Choice;
use super::intent::{Intent, Slot, Slots};
use super::memory::Memory;
use super::reading::{Found, Reading};

/// What one question asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) intent: usize,
    pub(super) slots: Slots,
    /// What has to be asked back, in this order.
    pub(super) open: Vec<Open>,
}

/// A slot that nothing fills yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) slot: usize,
    /// The words that may mean several things; empty where nothing was said.
    pub(super) said: String,
    pub(super) choices: Vec<Choice>,
}

/// What a message does to the slots of an intent.
pub(super) struct Filling<'a> {
    intent: &'a Intent,
    reading: &'a Reading,
    slots: Slots,
    open: Vec<Open>,
    used: HashSet<usize>,
    filled: HashSet<usize>,
}

impl<'a> Filling<'a> {
    /// Begins with what is known already.
    pub(super) fn new(intent: &'a Intent, reading: &'a Reading, slots: Slots) -> Self {
        Self { intent, reading, slots, open: Vec::new(), used: HashSet::new(), filled: HashSet::new() }
    }

    /// Fills a slot before anything else does.
    pub(super) fn set(&mut self, slot: usize, choice: Choice) {
        self.filled.insert(slot);
        self.slots.set(&self.intent.slots[slot].name, choice);
    }

    /// Keeps mentions from filling anything.
    pub(super) fn use_up(&mut self, mention: usize) {
        self.used.insert(mention);
    }

    /// Takes mentions of a clause: those behind cues, then the others in order; `renews` begins with the last slot,
    /// because what a follow-up changes is where one goes rather than where one comes from.
    pub(super) fn take_mentions(&mut self, clause: &Range<usize>, renews: bool) {
        let intent = self.intent;
        for (index, slot) in intent.slots.iter().enumerate() {
            let behind_cue = |found: &Found| is_behind_cue(self.reading, found, slot);
            if let Some(at) = self.find_mention(clause, slot, behind_cue) {
                self.take(index, at);
            }
        }
        let order: Vec<usize> =
            if renews { (0..intent.slots.len()).rev().collect() } else { (0..intent.slots.len()).collect() };
        for index in order {
            let slot = &intent.slots[index];
            if self.filled.contains(&index) || (!slot.is_required && !slot.cues.is_empty()) {
                continue;
            }
            if let Some(at) = self.find_mention(clause, slot, |_| true) {
                self.take(index, at);
            }
        }
    }

    fn find_mention(&self, clause: &Range<usize>, slot: &Slot, fits: impl Fn(&Found) -> bool) -> Option<usize> {
        let is_free = |found: &Found| {
            let place = &found.mention.words;
            clause.start <= place.start
                && place.end <= clause.end
                && self.used.iter().all(|used| {
                    let taken = &self.reading.mentions[*used].mention.words;
                    place.end <= taken.start || taken.end <= place.start
                })
        };
        self.reading.mentions.iter().position(|found| found.kind == slot.kind && is_free(found) && fits(found))
    }

    fn take(&mut self, slot: usize, mention: usize) {
        let found = &self.reading.mentions[mention].mention;
        self.used.insert(mention);
        self.filled.insert(slot);
        match &found.choices[..] {
            [choice] => self.slots.set(&self.intent.slots[slot].name, choice.clone()),
            choices => {
                let said = self.reading.said.said(found.words.clone()).to_owned();
                self.open.push(Open { slot, said, choices: choices.to_vec() });
            }
        }
    }

    /// Whether anything was taken, and whether nothing was left.
    pub(super) fn has_taken(&self) -> bool {
        !self.filled.is_empty()
    }

    pub(super) fn has_taken_all(&self, clause: &Range<usize>) -> bool {
        self.reading.within(clause).all(|found| {
            self.used.iter().any(|used| {
                let taken = &self.reading.mentions[*used].mention.words;
                taken.start < found.mention.words.end && found.mention.words.start < taken.end
            })
        })
    }

    /// Chooses among what names may mean, and takes what is still missing from the conversation.
    pub(super) fn finish(mut self, at: usize, memory: &Memory) -> Frame {
        for open in std::mem::take(&mut self.open) {
            let slot = &self.intent.slots[open.slot];
            let left = slot.narrows.as_ref().map(|narrows| narrows(&open.choices, &self.slots)).unwrap_or_default();
            match left.len() {
                0 => self.open.push(open),
                1 => self.slots.0.extend(left.into_iter().map(|choice| (slot.name.clone(), choice))),
                _ => self.open.push(Open { choices: left, ..open }),
            }
        }
        for (index, slot) in self.intent.slots.iter().enumerate() {
            if self.slots.get(&slot.name).is_some() || self.open.iter().any(|open| open.slot == index) {
                continue;
            }
            if let Some(choice) = self.carried(slot, memory).or_else(|| slot.default.clone()) {
                self.slots.set(&slot.name, choice);
            } else if slot.is_required {
                self.open.push(Open { slot: index, said: String::new(), choices: Vec::new() });
            }
        }
        // The tool sees its arguments in the order of the slots, however they came to be known.
        let place = |name: &str| self.intent.slots.iter().position(|slot| slot.name == name);
        self.slots.0.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        Frame { intent: at, slots: self.slots, open: self.open }
    }

    fn carried(&self, slot: &Slot, memory: &Memory) -> Option<Choice> {
        if !slot.is_carried {
            return None;
        }
        let name = slot.carried_from.as_ref().unwrap_or(&slot.name);
        let here: Vec<&Choice> = self.slots.0.iter().map(|(_, choice)| choice).collect();
        let is_new = |choice: &&Choice| here.iter().all(|known| known.value != choice.value);
        let same_slot = memory.frames.iter().rev().find_map(|frame| frame.slots.get(name)).filter(is_new);
        same_slot.or_else(|| memory.newest(&slot.kind, &here)).cloned()
    }
}

fn is_behind_cue(reading: &Reading, found: &Found, slot: &Slot) -> bool {
    let mut before = found.mention.words.start;
    while before > 0 && matches!(reading.said.word(before - 1), "the" | "a" | "el" | "la" | "los" | "las") {
        before -= 1;
    }
    slot.cues.iter().any(|cue| {
        let words: Vec<&str> = cue.split(' ').collect();
        words.len() <= before
            && words.iter().enumerate().all(|(i, word)| reading.said.word(before - words.len() + i) == *word)
    })
}

/// Words that say something, beside mentions and those that are known to say nothing here.
pub(super) fn content_words(reading: &Reading, is_known: impl Fn(&str) -> bool) -> usize {
    let is_mentioned = |at: usize| reading.mentions.iter().any(|found| found.mention.words.contains(&at));
    let says_nothing =
        |word: &str| is_known(word) || Language::ALL.iter().any(|language| language.is_function_word(word));
    let words = reading.said.words().iter().enumerate();
    words.filter(|(at, word)| !is_mentioned(*at) && !says_nothing(&word.folded)).count()
}

/// Picks one of several choices by an ordinal, or by words that only its label and hints hold.
pub(super) fn pick<'a>(reading: &Reading, choices: &'a [Choice], ordinals: &[String]) -> Option<&'a Choice> {
    let said: HashSet<&str> = reading.said.words().iter().map(|word| word.folded.as_str()).collect();
    let ordinal = ordinals.iter().position(|ordinal| said.contains(ordinal.as_str()));
    if let Some(choice) = ordinal.and_then(|at| choices.get(at)) {
        return Some(choice);
    }
    let words: Vec<HashSet<String>> = choices.iter().map(words_of).collect();
    let shared = |word: &String| words.iter().all(|other| other.contains(word));
    let hits: Vec<usize> = words
        .iter()
        .map(|words| words.iter().filter(|word| said.contains(word.as_str()) && !shared(word)).count())
        .collect();
    let most = *hits.iter().max()?;
    let mut best = hits.iter().enumerate().filter(|(_, hits)| **hits == most && most > 0);
    match (best.next(), best.next()) {
        (Some((at, _)), None) => choices.get(at),
        _ => None,
    }
}

fn words_of(choice: &Choice) -> HashSet<String> {
    let texts = std::iter::once(&choice.label).chain(&choice.hints);
    texts.flat_map(|text| super::utterance::folded_words(text)).collect()
}
