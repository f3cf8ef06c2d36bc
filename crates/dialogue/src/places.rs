//! Places in a conversation: nouns that refer to a place mentioned earlier ("back to the hotel"), and names that fill
//! no slot, about which the user is asked.

use std::ops::Range;

use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::extract::{Choice, Mention};
use crate::frame::{Frame, OpenSlot, SlotFiller, is_correction, is_same_entity};
use crate::resolver::IntentResolver;
use crate::utterance::{Utterance, folded_words};

/// Nouns whose place a message can state: "our hotel is near Columbus Circle".
const NOUNS: [&str; 13] = [
    "hotel",
    "hostel",
    "airbnb",
    "apartment",
    "flat",
    "place",
    "house",
    "gym",
    "school",
    "uni",
    "college",
    "clinic",
    "bnb",
];
/// Verbs by which users say where they stay, as at a hotel.
const STAYING: [&str; 3] = ["staying", "stay", "lodging"];
/// Words before a noun that refers to a place mentioned earlier.
const DETERMINERS: [&str; 6] = ["the", "my", "our", "that", "your", "this"];
/// The maximum number of words between a noun and its place.
const MAX_GAP: usize = 4;
/// Words that occur in many names and do not name a place on their own.
const COMMON_WORDS: [&str; 15] = [
    "london", "west", "east", "north", "south", "upper", "lower", "high", "great", "city", "town", "street", "road",
    "park", "side",
];
/// The minimum length of a word that may be part of a place's name.
const MIN_NAME_WORD: usize = 4;

impl IntentResolver {
    /// Records the nouns by which later messages may refer to the places of a message.
    pub(crate) fn record_nouns(&self, annotated: &AnnotatedUtterance, dialogue: &mut DialogueState) {
        for found in annotated.mentions.iter().filter(|found| self.is_place(&found.kind)) {
            let [choice] = &found.mention.choices[..] else { continue };
            if choice.hints.is_empty() {
                continue;
            }
            let words = &found.mention.words;
            // In "Terminal 5", the noun is before the number.
            let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
            let last = words.clone().rev().map(|at| annotated.utterance.word(at)).find(|word| !is_number(word));
            let last = last.unwrap_or_default();
            if words.len() > 1 && last.len() >= MIN_NAME_WORD && last.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                dialogue.set_noun(last, choice);
            }
            for at in words.start.saturating_sub(MAX_GAP)..words.start {
                let word = annotated.utterance.word(at);
                if NOUNS.contains(&word) {
                    dialogue.set_noun(word, choice);
                } else if STAYING.contains(&word) {
                    dialogue.set_noun("hotel", choice);
                }
            }
        }
    }

    /// Finds nouns that refer to places mentioned earlier: "the hotel", "the museum".
    pub(crate) fn find_nouns(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Vec<KindMention> {
        let Some(kind) = &self.place_kind else { return Vec::new() };
        let utterance = &annotated.utterance;
        let is_known = |at: usize| {
            let is_noun = NOUNS.contains(&utterance.word(at));
            let others = annotated.mentions.iter().filter(|found| found.mention.words.contains(&at));
            let mut others = others.filter(|found| !is_noun || found.mention.words.len() > 1);
            others.any(|found| found.mention.choices.iter().any(|choice| !choice.hints.is_empty()))
        };
        // "My hotel is near X" states the noun's place, so the noun does not refer to an earlier one.
        let is_explained = |at: usize| {
            let mut next = annotated.mentions.iter().filter(|found| found.kind == *kind);
            next.any(|found| {
                let start = found.mention.words.start;
                start > at + 1 && start <= at + MAX_GAP && !matches!(utterance.word(start - 1), "to" | "from")
            })
        };
        let nouns = (1..utterance.words().len()).filter_map(|at| {
            // "The Museum of Natural History" is a name.
            let is_same = at > 1 && utterance.word(at - 1) == "same" && utterance.word(at - 2) == "the";
            let is_whole = utterance.word(at + 1) != "of" && (is_same || DETERMINERS.contains(&utterance.word(at - 1)));
            let refers = is_whole && !is_known(at) && !is_explained(at);
            let choice = dialogue.noun(utterance.word(at)).filter(|_| refers)?;
            let mention = Mention::new(at..at + 1, vec![choice.clone()]);
            Some(KindMention { kind: kind.clone(), mention })
        });
        nouns.collect()
    }

    fn is_place(&self, kind: &str) -> bool {
        self.place_kind.as_deref() == Some(kind)
    }

    /// Asks which of two places is meant if the message names one that no slot takes.
    pub(crate) fn doubted(&self, frame: Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Frame {
        let Some(kind) = &self.place_kind else { return frame };
        let intent = &self.intents[frame.intent];
        let is_asked = |filled: &&String| {
            let slot = intent.slots.iter().find(|slot| slot.name == **filled);
            slot.is_some_and(|slot| slot.is_required && slot.kind == *kind)
        };
        let is_open = frame.open.iter().any(|open| open.choices.len() > 1);
        if is_open || intent.is_about_user || is_correction(annotated, clause) {
            return frame;
        }
        let Some((words, choice)) = self.place_left(&frame, annotated, clause) else { return frame };
        let is_known = |(_, known): &(String, Choice)| known.label == choice.label || is_same_entity(known, &choice);
        if frame.slots.0.iter().any(is_known) {
            return frame;
        }
        // A place from an earlier message is not offered as an alternative.
        let Some(named) = frame.filled.iter().find(is_asked) else { return frame };
        let Some(slot) = intent.slots.iter().position(|slot| slot.name == *named) else { return frame };
        let mut asking = frame;
        let known = asking.slots.get(&intent.slots[slot].name).cloned();
        let Some(known) = known.filter(|known| known.label != choice.label && !known.hints.is_empty()) else {
            return asking;
        };
        asking.unused.retain(|unused| *unused != words);
        asking.unexplained.retain(|unexplained| !words.split(' ').any(|word| word == unexplained));
        asking.slots.put(&intent.slots[slot].name, None);
        let choices = vec![known, choice];
        asking.open.insert(0, OpenSlot { slot, ambiguous_text: "station".to_owned(), choices });
        asking
    }

    /// Returns a place that the message names and no slot takes: a mention, or a word of a place's name.
    fn place_left(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
    ) -> Option<(String, Choice)> {
        let rejected = SlotFiller::rejected_mentions(annotated, clause, true);
        let mention = annotated.within(clause).find_map(|found| {
            let said = annotated.utterance.said(found.mention.words.clone());
            let is_left = self.is_place(&found.kind) && frame.unused.iter().any(|unused| unused == said);
            let is_rejected = rejected.iter().any(|at| annotated.mentions[*at].mention == found.mention);
            let choice = found.mention.choices.first().filter(|choice| !choice.hints.is_empty());
            choice.filter(|_| is_left && !is_rejected).map(|choice| (said.to_owned(), choice.clone()))
        });
        mention.or_else(|| {
            frame.unexplained.iter().filter(|word| word.len() >= MIN_NAME_WORD).find_map(|word| {
                let choice = self.place_with_word(word)?;
                Some((word.clone(), choice))
            })
        })
    }

    /// Returns the place that a word alone names, if its name contains the word.
    fn place_with_word(&self, word: &str) -> Option<Choice> {
        let kind = self.place_kind.as_ref()?;
        let (_, extractor) = self.kinds.iter().find(|(known, _)| known == kind)?;
        let folded = folded_words(word);
        let found = extractor.find(&Utterance::new(format!("at {word}"))).into_iter().next()?;
        let choice = found.choices.into_iter().next()?;
        let has_word = folded_words(&choice.label).iter().any(|known| folded.contains(known));
        let is_common = folded.iter().any(|word| COMMON_WORDS.contains(&word.as_str()));
        (has_word && !is_common && !choice.hints.is_empty()).then_some(choice)
    }

    /// Returns the frames of a question about both places mentioned last: "are both of them accessible?"
    pub(crate) fn of_both(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Vec<Frame>> {
        let kind = self.place_kind.as_ref()?;
        let asks_of_both = clause.clone().any(|at| annotated.utterance.word(at) == "both");
        let names_one = annotated.within(clause).any(|found| found.kind == *kind);
        let mut required = self.intents[frame.intent].slots.iter().filter(|slot| slot.is_required);
        let (Some(slot), None) = (required.next(), required.next()) else { return None };
        if !asks_of_both || names_one || slot.kind != *kind {
            return None;
        }
        let ends = dialogue.recent_frames().find_map(|frame| {
            let (one, other) = self.intents[frame.intent].swaps.first()?;
            Some((frame.slots.get(one)?, frame.slots.get(other)?))
        });
        let newest_two = || {
            let newest = dialogue.newest(kind, &[])?;
            Some((dialogue.newest(kind, &[newest])?, newest))
        };
        let (other, newest) = ends.or_else(newest_two)?;
        let of = |choice: &Choice| {
            let mut frame = frame.clone();
            frame.open.clear();
            frame.slots.set(&slot.name, choice.clone());
            frame
        };
        Some(vec![of(other), of(newest)])
    }
}
