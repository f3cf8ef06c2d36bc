//! Frames: intents with filled and open slots.

mod choices;
mod completion;
mod days;
mod ends;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use threadkeep_core::text::Language;

use crate::annotated::{AnnotatedUtterance, KindMention, contraction};
use crate::extract::Choice;
use crate::intent::{Intent, Slot, Slots};
pub(crate) use choices::{closest, is_same_entity, select_choice, shares_name};

/// An intent with its slots, for one question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) intent: usize,
    pub(crate) slots: Slots,
    /// The slots to ask the user about, in this order.
    pub(crate) open: Vec<OpenSlot>,
    /// The meanings of ambiguous names, by slot.
    pub(crate) alternatives: Vec<(String, Vec<Choice>)>,
    /// The aspect of the answer that the message asks for.
    pub(crate) aspect: Option<usize>,
    /// The slots that the last message filled.
    pub(crate) filled: Vec<String>,
    /// Mentions that fill no slot, as written.
    pub(crate) unused: Vec<String>,
    /// Content words that neither the intent nor a slot explains, as written.
    pub(crate) unexplained: Vec<String>,
}

impl Frame {
    /// Creates the frame of an earlier message from the slots of its calls.
    pub(crate) fn restored(intent: usize, slots: Slots) -> Self {
        Self {
            intent,
            slots,
            open: Vec::new(),
            alternatives: Vec::new(),
            aspect: None,
            filled: Vec::new(),
            unused: Vec::new(),
            unexplained: Vec::new(),
        }
    }

    /// Returns the same question without the aspect and the unused words of its message.
    pub(crate) fn repeated(&self) -> Self {
        Self { aspect: None, unused: Vec::new(), unexplained: Vec::new(), ..self.clone() }
    }
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
    /// The slots before this message.
    previous: Slots,
    /// The slots that the message before this one filled.
    previously_filled: Vec<String>,
    slots: Slots,
    open: Vec<OpenSlot>,
    alternatives: Vec<(String, Vec<Choice>)>,
    used: HashSet<usize>,
    filled: HashSet<usize>,
    /// The words that text slots took verbatim.
    texts: Vec<Range<usize>>,
    /// The slots filled from a pronoun, each with whether the pronoun means where the user is ("here").
    by_pronoun: HashMap<usize, bool>,
}

impl<'a> SlotFiller<'a> {
    /// Starts with known slots.
    pub(crate) fn new(intent: &'a Intent, annotated: &'a AnnotatedUtterance, slots: Slots) -> Self {
        let previous = slots.clone();
        Self {
            intent,
            annotated,
            previous,
            previously_filled: Vec::new(),
            slots,
            open: Vec::new(),
            alternatives: Vec::new(),
            used: HashSet::new(),
            filled: HashSet::new(),
            texts: Vec::new(),
            by_pronoun: HashMap::new(),
        }
    }

    /// Continues a frame.
    pub(crate) fn continuing(intent: &'a Intent, annotated: &'a AnnotatedUtterance, last: &Frame) -> Self {
        let mut slots = last.slots.clone();
        intent.slots.iter().filter(|slot| slot.is_momentary).for_each(|slot| slots.put(&slot.name, None));
        // The results were those of the earlier question.
        intent.records.iter().for_each(|(name, _)| slots.put(name, None));
        Self { previously_filled: last.filled.clone(), ..Self::new(intent, annotated, slots) }
    }

    /// Fills a slot with a choice, which takes precedence over mentions.
    pub(crate) fn set(&mut self, slot: usize, choice: Choice) {
        self.filled.insert(slot);
        self.slots.set(&self.intent.slots[slot].name, choice);
    }

    /// Excludes a mention from filling slots.
    pub(crate) fn exclude_mention(&mut self, mention: usize) {
        self.used.insert(mention);
    }

    /// Fills slots from the mentions of a clause: first from those after cues, then from the others in order. With
    /// `is_follow_up`, starts with the last slot, because follow-ups change the destination more often than the origin.
    pub(crate) fn fill_from_mentions(&mut self, clause: &Range<usize>, is_follow_up: bool) {
        let intent = self.intent;
        self.fill_ends(clause);
        for (index, slot) in intent.slots.iter().enumerate() {
            if intent.is_end_of_trip(&slot.name) && self.filled.contains(&index) {
                continue;
            }
            // The slot with the longest cue takes the mention: "get off at" is more specific than "at".
            let after_cue = |found: &KindMention| {
                let length = cue_length(self.annotated, found, slot);
                let is_longer =
                    |other: &Slot| other.kind == slot.kind && cue_length(self.annotated, found, other) > length;
                length > 0 && !intent.slots.iter().any(is_longer)
            };
            // "Meeting a friend in Hammersmith, and I am at King's Cross": the longest cue says where the trip starts.
            let candidates =
                || self.annotated.within(clause).filter(|found| found.kind == slot.kind && after_cue(found));
            // "I arrive at Heathrow. How do I get to Covent Garden?": the last sentence says where the trip goes.
            let is_destination = intent.swaps.iter().any(|(_, end)| *end == slot.name);
            let last = candidates().map(|found| self.sentence_of(found)).max().filter(|_| is_destination);
            let is_in_last = |found: &KindMention| last.is_none_or(|last| self.sentence_of(found) == last);
            let longest = candidates().filter(|found| is_in_last(found));
            let longest = longest.map(|found| cue_length(self.annotated, found, slot)).max().unwrap_or_default();
            let is_longest = |found: &KindMention| {
                after_cue(found) && is_in_last(found) && cue_length(self.annotated, found, slot) == longest
            };
            if let Some(at) = self.find_mention(clause, slot, is_longest) {
                self.fill(index, at);
            }
        }
        if is_follow_up {
            self.fill_preferred(clause);
        }
        let mut order: Vec<usize> =
            if is_follow_up { (0..intent.slots.len()).rev().collect() } else { (0..intent.slots.len()).collect() };
        if let Some(replaced) = self.slot_to_replace(clause).filter(|_| is_follow_up) {
            order.sort_by_key(|slot| *slot != replaced);
        }
        if self.names_only_there(clause) {
            // In "which train goes there", the place is where the trip ends.
            order.sort_by_key(|slot| !intent.swaps.iter().any(|(_, end)| *end == intent.slots[*slot].name));
        }
        if is_follow_up {
            // Slots that have a value come first: of the times to leave and to arrive, a follow-up changes the known
            // one.
            order.sort_by_key(|slot| {
                let slot = &intent.slots[*slot];
                !slot.is_required && self.previous.get(&slot.name).is_none()
            });
        }
        for index in order {
            let slot = &intent.slots[index];
            if self.filled.contains(&index) || (!slot.is_required && !slot.cues.is_empty()) {
                continue;
            }
            while let Some(at) = self.find_mention(clause, slot, |_| true) {
                // "The Statue of Liberty ferry" may be two names of one place, which is only one end of a trip.
                if self.is_other_end(slot, at) {
                    self.used.insert(at);
                    continue;
                }
                self.fill(index, at);
                break;
            }
        }
    }

    /// Fills the slots that prefer a value to the other slots of its kind.
    fn fill_preferred(&mut self, clause: &Range<usize>) {
        for (index, slot) in self.intent.slots.iter().enumerate() {
            let Some(prefers) = slot.prefers.filter(|_| !self.filled.contains(&index)) else { continue };
            let is_preferred = |found: &KindMention| {
                matches!(&found.mention.choices[..], [choice] if prefers(choice, &self.slots))
                    && !found.mention.is_pronoun
                    && !self.follows_cue(found)
            };
            if let Some(at) = self.find_mention(clause, slot, is_preferred) {
                self.fill(index, at);
            }
        }
    }

    /// Whether a mention follows a cue of a slot.
    fn follows_cue(&self, found: &KindMention) -> bool {
        self.intent.slots.iter().any(|slot| slot.kind == found.kind && cue_length(self.annotated, found, slot) > 0)
    }

    /// Whether a mention is the place that the message already names as the other end of the trip.
    fn is_other_end(&self, slot: &Slot, mention: usize) -> bool {
        let [choice] = &self.annotated.mentions[mention].mention.choices[..] else { return false };
        let pairs = self.intent.swaps.iter().flat_map(|(one, other)| [(one, other), (other, one)]);
        let mut others = pairs.filter(|(one, _)| **one == slot.name).map(|(_, other)| other);
        others.any(|other| {
            let known = self.slots.get(other).filter(|_| self.is_filled(other));
            known.is_some_and(|known| {
                known.label == choice.label && !choice.hints.is_empty() && known.hints == choice.hints
            })
        })
    }

    /// Whether a clause refers to places only as "there".
    fn names_only_there(&self, clause: &Range<usize>) -> bool {
        let ends =
            || self.intent.swaps.iter().filter_map(|(_, end)| self.intent.slots.iter().find(|slot| slot.name == *end));
        let is_place = |found: &&KindMention| ends().any(|slot| slot.kind == found.kind);
        let mut places = self.annotated.within(clause).filter(is_place).peekable();
        places.peek().is_some()
            && places.all(|found| {
                found.mention.is_pronoun && self.annotated.utterance.word(found.mention.words.start) == "there"
            })
    }

    /// Returns the required slot that the first free mention replaces, if several slots could take it: in a correction,
    /// the slot whose value has a similar name; otherwise the one that the last message filled.
    fn slot_to_replace(&self, clause: &Range<usize>) -> Option<usize> {
        let intent = self.intent;
        let required = || intent.slots.iter().enumerate().filter(|(_, slot)| slot.is_required);
        let mention = required().find_map(|(_, slot)| self.find_mention(clause, slot, |_| true))?;
        let found = &self.annotated.mentions[mention];
        let mut slots = required().filter(|(index, slot)| slot.kind == found.kind && !self.filled.contains(index));
        let known: Vec<(usize, &Slot)> =
            slots.by_ref().filter(|(_, slot)| self.previous.get(&slot.name).is_some()).collect();
        let only = |fits: &dyn Fn(&Slot) -> bool| {
            let mut fitting = known.iter().filter(|(_, slot)| fits(slot));
            fitting.next().filter(|_| fitting.next().is_none()).map(|(index, _)| *index)
        };
        let is_similar = |slot: &Slot| {
            let old = self.previous.get(&slot.name);
            old.is_some_and(|old| found.mention.choices.iter().any(|choice| shares_name(choice, old)))
        };
        let similar = || only(&is_similar).filter(|_| is_correction(self.annotated, clause));
        similar().or_else(|| only(&|slot: &Slot| self.previously_filled.contains(&slot.name)))
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
        let takes = |found: &KindMention| found.kind == slot.kind && is_free(found) && fits(found);
        let mentions = &self.annotated.mentions;
        // In "is it running, the District I mean", the name explains the pronoun.
        let named = mentions.iter().position(|found| !found.mention.is_pronoun && takes(found));
        named.or_else(|| mentions.iter().position(takes))
    }

    fn fill(&mut self, slot: usize, mention: usize) {
        let found = &self.annotated.mentions[mention].mention;
        self.used.insert(mention);
        self.filled.insert(slot);
        if found.is_pronoun {
            let is_here = matches!(self.annotated.utterance.word(found.words.start), "here" | "aqui");
            self.by_pronoun.insert(slot, is_here);
        }
        match &found.choices[..] {
            [choice] => {
                if !choice.others.is_empty() {
                    let all = std::iter::once(choice).chain(&choice.others).cloned().collect();
                    self.alternatives.push((self.intent.slots[slot].name.clone(), all));
                }
                let choice = self.added_to_previous(slot, choice);
                let choice = self.on_earlier_day(slot, choice);
                self.slots.set(&self.intent.slots[slot].name, choice);
            }
            choices => {
                self.slots.0.retain(|(name, _)| *name != self.intent.slots[slot].name);
                self.alternatives.push((self.intent.slots[slot].name.clone(), choices.to_vec()));
                let ambiguous_text = self.annotated.utterance.said(found.words.clone()).to_owned();
                self.open.push(OpenSlot { slot, ambiguous_text, choices: choices.to_vec() });
            }
        }
    }

    /// Returns a list choice, with the slot's previous list prepended if the message adds to it: "and not the 5
    /// either".
    fn added_to_previous(&self, slot: usize, choice: &Choice) -> Choice {
        const ADDING: [&str; 7] = ["either", "also", "too", "neither", "nor", "additionally", "tampoco"];
        let slot = &self.intent.slots[slot];
        let adds = || self.annotated.utterance.words().iter().any(|word| ADDING.contains(&word.folded.as_str()));
        let previous = self.previous.get(&slot.name).filter(|_| slot.is_cumulative && adds());
        let lists = previous.and_then(|previous| Some((previous.value.as_array()?, choice.value.as_array()?)));
        let Some((old, new)) = lists else { return choice.clone() };
        let added = new.iter().filter(|value| !old.contains(value));
        let all: Vec<_> = old.iter().chain(added).cloned().collect();
        Choice { value: all.into(), ..choice.clone() }
    }

    /// Returns the words that text slots took verbatim.
    pub(crate) fn texts(&self) -> Vec<Range<usize>> {
        self.texts.clone()
    }

    /// Whether any slot was filled from a mention.
    pub(crate) fn has_filled(&self) -> bool {
        !self.filled.is_empty()
    }

    /// Returns the mentions of a clause, as written, except those that overlap with a mention that fills a slot.
    fn unused(&self, clause: &Range<usize>) -> Vec<String> {
        let is_used = |found: &&KindMention| {
            self.used.iter().any(|used| {
                let occupied = &self.annotated.mentions[*used].mention.words;
                occupied.start < found.mention.words.end && found.mention.words.start < occupied.end
            })
        };
        let is_of_used_kind = |kind: &str| self.used.iter().any(|used| self.annotated.mentions[*used].kind == *kind);
        // In "what about from there to the Fort?", the pronoun is an end of its own.
        let is_end = |found: &KindMention| {
            let before = found.mention.words.start.checked_sub(1);
            before
                .is_some_and(|at| matches!(self.annotated.utterance.word(at), "from" | "to" | "desde" | "hasta" | "de"))
        };
        let is_explained =
            |found: &KindMention| found.mention.is_pronoun && is_of_used_kind(&found.kind) && !is_end(found);
        let unused = self.annotated.within(clause).filter(|found| !is_used(found) && !found.mention.is_incidental);
        let unused = unused.filter(|found| !is_explained(found));
        let mut ranges: Vec<&Range<usize>> = unused.map(|found| &found.mention.words).collect();
        ranges.dedup();
        ranges.into_iter().map(|words| self.annotated.utterance.said(words.clone()).to_owned()).collect()
    }

    /// Returns the mentions that a clause rejects: the Y of "X instead of Y" and of "not Y but X". In a question, "no"
    /// does not reject the mention after it: "no, Y to X".
    pub(crate) fn rejected_mentions(
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        is_question: bool,
    ) -> Vec<usize> {
        let negations: &[&str] = if is_question {
            &["not", "instead", "rather", "vez", "lugar"]
        } else {
            &["not", "no", "instead", "rather", "vez", "lugar"]
        };
        const DROPPED: [&str; 5] = ["skip", "skipping", "forget", "scratch", "ditch"];
        let is_rejected = |at: &usize| {
            let words = &annotated.mentions[*at].mention.words;
            let before = position_with_articles(annotated, words.start);
            let word = |steps: usize| before.checked_sub(steps).map_or("", |at| annotated.utterance.word(at));
            let prefers = || clause.clone().any(|at| annotated.utterance.word(at).starts_with("prefer"));
            let is_negated = negations.contains(&word(1))
                || word(1) == "over" && prefers()
                || DROPPED.contains(&word(1))
                || matches!(word(1), "of" | "de" | "than") && negations.contains(&word(2));
            is_negated && clause.start <= words.start && words.end <= clause.end
        };
        (0..annotated.mentions.len()).filter(is_rejected).collect()
    }

    /// Excludes the Y of "X instead of Y" and "X, not Y" from a question that also has an X.
    pub(crate) fn exclude_rejected(&mut self, clause: &Range<usize>) {
        for rejected in Self::rejected_mentions(self.annotated, clause, true) {
            let found = &self.annotated.mentions[rejected];
            let words = &found.mention.words;
            let mut others = self.annotated.within(clause);
            if others.any(|other| other.kind == found.kind && other.mention.words != *words) {
                self.used.insert(rejected);
            }
        }
    }

    /// Applies "not X but Y": excludes X from filling slots, and puts Y into the slot that had X.
    pub(crate) fn apply_correction(&mut self, clause: &Range<usize>) {
        let mentions: Vec<usize> = (0..self.annotated.mentions.len())
            .filter(|at| {
                let words = &self.annotated.mentions[*at].mention.words;
                clause.start <= words.start && words.end <= clause.end
            })
            .collect();
        for rejected in &Self::rejected_mentions(self.annotated, clause, false) {
            let found = &self.annotated.mentions[*rejected];
            let other = mentions.iter().find(|at| {
                *at != rejected && self.annotated.mentions[**at].kind == found.kind && !self.used.contains(*at)
            });
            let Some(other) = other else { continue };
            let is_rejected = |choice: &Choice| found.mention.choices.iter().any(|known| is_same_entity(known, choice));
            let slot = self
                .intent
                .slots
                .iter()
                .position(|slot| slot.kind == found.kind && self.previous.get(&slot.name).is_some_and(is_rejected));
            self.used.insert(*rejected);
            // A cue takes precedence: in "to X instead of Y", X is the destination.
            let intent = self.intent;
            let other_found = &self.annotated.mentions[*other];
            let has_cue = intent
                .slots
                .iter()
                .any(|slot| slot.kind == other_found.kind && cue_length(self.annotated, other_found, slot) > 0);
            if let Some(slot) = slot.filter(|_| !has_cue) {
                self.fill(slot, *other);
            }
        }
    }

    /// Fills the text slots, which take words verbatim.
    pub(crate) fn fill_from_text(&mut self, clause: &Range<usize>) {
        for (index, slot) in self.intent.slots.iter().enumerate().filter(|(_, slot)| slot.is_text) {
            if let Some(words) = words_after_cue(self.annotated, clause, slot) {
                let text = self.annotated.utterance.said(words.clone());
                if slot.accepts.as_ref().is_some_and(|accepts| !accepts(text)) {
                    continue;
                }
                for (at, found) in self.annotated.mentions.iter().enumerate() {
                    if words.start <= found.mention.words.start && found.mention.words.end <= words.end {
                        self.used.insert(at);
                    }
                }
                self.filled.insert(index);
                self.slots.set(&slot.name, Choice::new(text, text));
                self.texts.push(words);
            }
        }
    }
}

/// Whether a clause corrects what the user said before.
pub(crate) fn is_correction(annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
    const WORDS: [&str; 12] =
        ["no", "not", "meant", "mean", "sorry", "wrong", "wait", "oops", "typo", "actually", "perdon", "digo"];
    clause.clone().any(|at| WORDS.contains(&annotated.utterance.word(at)))
}

/// Returns the position of the first article directly before a word, or the position of the word if it has no article.
fn position_with_articles(annotated: &AnnotatedUtterance, mut at: usize) -> usize {
    while at > 0 && matches!(annotated.utterance.word(at - 1), "the" | "a" | "el" | "la" | "los" | "las") {
        at -= 1;
    }
    at
}

/// Returns the number of words of the longest cue of a slot before a mention; 0 if there is none.
pub(crate) fn cue_length(annotated: &AnnotatedUtterance, found: &KindMention, slot: &Slot) -> usize {
    let before = position_with_articles(annotated, found.mention.words.start);
    let lengths = slot.cues.iter().filter_map(|cue| {
        let words: Vec<&str> = cue.split(' ').collect();
        let precedes = words.len() <= before
            && words.iter().enumerate().all(|(i, word)| annotated.utterance.word(before - words.len() + i) == *word);
        precedes.then_some(words.len())
    });
    lengths.max().unwrap_or(0)
}

/// Returns the words after the first cue of a slot. Of cues that start at the same word, the longest is used. If the
/// slot has no cues, returns all words.
fn words_after_cue(annotated: &AnnotatedUtterance, clause: &Range<usize>, slot: &Slot) -> Option<Range<usize>> {
    if slot.cues.is_empty() {
        return Some(clause.clone());
    }
    let length_at = |at: usize| {
        let lengths = slot.cues.iter().filter_map(|cue| {
            let words: Vec<&str> = cue.split(' ').collect();
            let is_here = words.iter().enumerate().all(|(i, word)| annotated.utterance.word(at + i) == *word);
            is_here.then_some(words.len())
        });
        lengths.max()
    };
    let (at, length) = clause.clone().find_map(|at| Some((at, length_at(at)?)))?;
    (at + length < clause.end).then_some(at + length..clause.end)
}

/// Words that add nothing to a request.
const COURTESY_WORDS: &[&str] = &[
    "please", "pls", "plz", "thanks", "hey", "hi", "hello", "ok", "okay", "just", "maybe", "kindly", "well", "oh",
    "um", "so", "fastest", "quickest", "possible", "guys", "bro", "now", "favor", "gracias", "hola", "oye", "bueno",
    "pues", "quick", "question", "tho", "though", "lol", "haha", "nice", "cool", "great", "perfect", "lovely", "sweet",
    "ugh", "hmm", "hm", "wow", "damn", "yo", "hiya", "ta", "cheers", "yeah", "yes", "dear", "exactly",
];

/// Returns the positions of the content words. Mentions, function words, courtesy words and words for which `is_known`
/// returns true are not content words.
pub(crate) fn content_words(
    annotated: &AnnotatedUtterance,
    clause: &Range<usize>,
    is_known: impl Fn(&str) -> bool,
) -> Vec<usize> {
    let is_mentioned = |at: usize| annotated.mentions.iter().any(|found| found.mention.words.contains(&at));
    let is_irrelevant = |word: &str| {
        COURTESY_WORDS.contains(&word)
            || contraction(word).is_some()
            || is_known(word)
            || Language::ALL.iter().any(|language| language.is_function_word(word))
    };
    clause.clone().filter(|at| !is_mentioned(*at) && !is_irrelevant(annotated.utterance.word(*at))).collect()
}
