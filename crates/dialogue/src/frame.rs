//! Frames: intents with filled and open slots.

use std::collections::HashSet;
use std::ops::Range;

use threadkeep_core::text::Language;

use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::extract::Choice;
use crate::intent::{Intent, Slot, Slots};

/// An intent with its slots, for one question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) intent: usize,
    pub(crate) slots: Slots,
    /// Slots to ask the user about, in this order.
    pub(crate) open: Vec<OpenSlot>,
}

/// A slot that is not filled yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenSlot {
    pub(crate) slot: usize,
    /// The ambiguous words; empty if nothing was mentioned.
    pub(crate) ambiguous_text: String,
    pub(crate) choices: Vec<Choice>,
}

/// Fills the slots of an intent from a message.
pub(crate) struct SlotFiller<'a> {
    intent: &'a Intent,
    annotated: &'a AnnotatedUtterance,
    slots: Slots,
    open: Vec<OpenSlot>,
    used: HashSet<usize>,
    filled: HashSet<usize>,
}

impl<'a> SlotFiller<'a> {
    /// Starts with known slots.
    pub(crate) fn new(intent: &'a Intent, annotated: &'a AnnotatedUtterance, slots: Slots) -> Self {
        Self { intent, annotated, slots, open: Vec::new(), used: HashSet::new(), filled: HashSet::new() }
    }

    /// Fills a slot with precedence over mentions.
    pub(crate) fn set(&mut self, slot: usize, choice: Choice) {
        self.filled.insert(slot);
        self.slots.set(&self.intent.slots[slot].name, choice);
    }

    /// Excludes a mention from filling slots.
    pub(crate) fn exclude_mention(&mut self, mention: usize) {
        self.used.insert(mention);
    }

    /// Fills slots from the mentions of a clause: first those after cues, then the others in order. `is_follow_up` starts with
    /// the last slot, because follow-ups change the destination more often than the origin.
    pub(crate) fn fill_from_mentions(&mut self, clause: &Range<usize>, is_follow_up: bool) {
        let intent = self.intent;
        for (index, slot) in intent.slots.iter().enumerate() {
            let after_cue = |found: &KindMention| is_after_cue(self.annotated, found, slot);
            if let Some(at) = self.find_mention(clause, slot, after_cue) {
                self.fill(index, at);
            }
        }
        let order: Vec<usize> =
            if is_follow_up { (0..intent.slots.len()).rev().collect() } else { (0..intent.slots.len()).collect() };
        for index in order {
            let slot = &intent.slots[index];
            if self.filled.contains(&index) || (!slot.is_required && !slot.cues.is_empty()) {
                continue;
            }
            if let Some(at) = self.find_mention(clause, slot, |_| true) {
                self.fill(index, at);
            }
        }
    }

    fn find_mention(&self, clause: &Range<usize>, slot: &Slot, fits: impl Fn(&KindMention) -> bool) -> Option<usize> {
        let is_free = |found: &KindMention| {
            let range = &found.mention.words;
            clause.start <= range.start
                && range.end <= clause.end
                && self.used.iter().all(|used| {
                    let occupied = &self.annotated.mentions[*used].mention.words;
                    range.end <= occupied.start || occupied.end <= range.start
                })
        };
        self.annotated.mentions.iter().position(|found| found.kind == slot.kind && is_free(found) && fits(found))
    }

    fn fill(&mut self, slot: usize, mention: usize) {
        let found = &self.annotated.mentions[mention].mention;
        self.used.insert(mention);
        self.filled.insert(slot);
        match &found.choices[..] {
            [choice] => self.slots.set(&self.intent.slots[slot].name, choice.clone()),
            choices => {
                let ambiguous_text = self.annotated.utterance.said(found.words.clone()).to_owned();
                self.open.push(OpenSlot { slot, ambiguous_text, choices: choices.to_vec() });
            }
        }
    }

    /// Whether any slot was filled from a mention.
    pub(crate) fn has_filled(&self) -> bool {
        !self.filled.is_empty()
    }

    pub(crate) fn has_used_all_mentions(&self, clause: &Range<usize>) -> bool {
        self.annotated.within(clause).all(|found| {
            self.used.iter().any(|used| {
                let occupied = &self.annotated.mentions[*used].mention.words;
                occupied.start < found.mention.words.end && found.mention.words.start < occupied.end
            })
        })
    }

    /// Narrows ambiguous names, and fills missing slots from the dialogue.
    pub(crate) fn finish(mut self, at: usize, dialogue: &DialogueState) -> Frame {
        for open in std::mem::take(&mut self.open) {
            let slot = &self.intent.slots[open.slot];
            let left = slot.narrows.as_ref().map(|narrows| narrows(&open.choices, &self.slots)).unwrap_or_default();
            match left.len() {
                0 => self.open.push(open),
                1 => self.slots.0.extend(left.into_iter().map(|choice| (slot.name.clone(), choice))),
                _ => self.open.push(OpenSlot { choices: left, ..open }),
            }
        }
        for (index, slot) in self.intent.slots.iter().enumerate() {
            if self.slots.get(&slot.name).is_some() || self.open.iter().any(|open| open.slot == index) {
                continue;
            }
            if let Some(choice) = self.carried(slot, dialogue).or_else(|| slot.default.clone()) {
                self.slots.set(&slot.name, choice);
            } else if slot.is_required {
                self.open.push(OpenSlot { slot: index, ambiguous_text: String::new(), choices: Vec::new() });
            }
        }
        // Tools receive arguments in the order of declaration, however they were filled.
        let position = |name: &str| self.intent.slots.iter().position(|slot| slot.name == name);
        self.slots.0.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
        Frame { intent: at, slots: self.slots, open: self.open }
    }

    fn carried(&self, slot: &Slot, dialogue: &DialogueState) -> Option<Choice> {
        if !slot.is_carried {
            return None;
        }
        let name = slot.carried_from.as_ref().unwrap_or(&slot.name);
        let here: Vec<&Choice> = self.slots.0.iter().map(|(_, choice)| choice).collect();
        let is_new = |choice: &&Choice| here.iter().all(|known| known.value != choice.value);
        let same_slot = dialogue.frames.iter().rev().find_map(|frame| frame.slots.get(name)).filter(is_new);
        same_slot.or_else(|| dialogue.newest(&slot.kind, &here)).cloned()
    }
}

fn is_after_cue(annotated: &AnnotatedUtterance, found: &KindMention, slot: &Slot) -> bool {
    let mut before = found.mention.words.start;
    while before > 0 && matches!(annotated.utterance.word(before - 1), "the" | "a" | "el" | "la" | "los" | "las") {
        before -= 1;
    }
    slot.cues.iter().any(|cue| {
        let words: Vec<&str> = cue.split(' ').collect();
        words.len() <= before
            && words.iter().enumerate().all(|(i, word)| annotated.utterance.word(before - words.len() + i) == *word)
    })
}

/// Counts the words that are neither part of a mention nor function words nor known to be irrelevant.
pub(crate) fn count_content_words(annotated: &AnnotatedUtterance, is_known: impl Fn(&str) -> bool) -> usize {
    let is_mentioned = |at: usize| annotated.mentions.iter().any(|found| found.mention.words.contains(&at));
    let is_irrelevant =
        |word: &str| is_known(word) || Language::ALL.iter().any(|language| language.is_function_word(word));
    let words = annotated.utterance.words().iter().enumerate();
    words.filter(|(at, word)| !is_mentioned(*at) && !is_irrelevant(&word.folded)).count()
}

/// Selects one of several choices by an ordinal, or by words that only its label and hints contain.
pub(crate) fn select_choice<'a>(
    annotated: &AnnotatedUtterance,
    choices: &'a [Choice],
    ordinals: &[String],
) -> Option<&'a Choice> {
    let message_words: HashSet<&str> = annotated.utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let ordinal = ordinals.iter().position(|ordinal| message_words.contains(ordinal.as_str()));
    if let Some(choice) = ordinal.and_then(|at| choices.get(at)) {
        return Some(choice);
    }
    let words: Vec<HashSet<String>> = choices.iter().map(words_of).collect();
    let shared = |word: &String| words.iter().all(|other| other.contains(word));
    let hits: Vec<usize> = words
        .iter()
        .map(|words| words.iter().filter(|word| message_words.contains(word.as_str()) && !shared(word)).count())
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
    texts.flat_map(|text| crate::utterance::folded_words(text)).collect()
}
