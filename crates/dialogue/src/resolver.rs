//! Resolves the last message of a conversation to intents with filled slots.

use std::ops::Range;

use threadkeep_core::Role;

use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::dialogue_state::DialogueState;
use crate::extract::{Choice, Extractor, Mention};
use crate::frame::{Frame, OpenSlot, SlotFiller, count_content_words, select_choice};
use crate::history::History;
use crate::intent::{Intent, Slots};
use crate::outcome::Outcome;
use crate::pattern::PatternMatch;
use crate::phrases::Phrases;
use crate::turn::exchanges;
use crate::utterance::{Utterance, folded_words};

/// The maximum number of questions in a message; further ones are ignored.
const MAX_QUESTIONS: usize = 4;
/// The number of earlier user messages that a message can refer to.
const MAX_EARLIER_MESSAGES: usize = 20;

/// The result of resolving a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolution {
    /// Frames, in the order of the message.
    Frames(Vec<Frame>),
    /// A request for the model's description of itself.
    SelfDescription,
    /// No intent matches.
    Unknown,
}

/// The declarations of an assistant, and their interpretation.
#[derive(Default)]
pub(crate) struct IntentResolver {
    pub(crate) kinds: Vec<(String, Box<dyn Extractor>)>,
    /// Words that refer to the last mentioned entity of a kind.
    pub(crate) pronouns: Vec<(Vec<String>, String)>,
    pub(crate) intents: Vec<Intent>,
    pub(crate) phrases: Phrases,
}

impl IntentResolver {
    /// Resolves the last message. Every earlier message updates what later ones may refer to.
    pub(crate) fn resolve(&self, history: &History) -> Resolution {
        let mut dialogue = DialogueState::default();
        let is_user_message = |at: &usize| history.earlier[*at].role == Role::User;
        let user_messages: Vec<usize> = (0..history.earlier.len()).filter(is_user_message).collect();
        let first = user_messages.len().saturating_sub(MAX_EARLIER_MESSAGES);
        for (index, at) in user_messages.iter().enumerate().skip(first) {
            let until = user_messages.get(index + 1).copied().unwrap_or(history.earlier.len());
            self.resolve_message(&history.earlier[*at].plain_text(), &mut dialogue);
            self.learn(&history.earlier[at + 1..until], &mut dialogue);
        }
        self.resolve_message(&history.question, &mut dialogue)
    }

    fn resolve_message(&self, text: &str, dialogue: &mut DialogueState) -> Resolution {
        let annotated = self.annotate(text, dialogue);
        let resolution = self.resolve_annotated(&annotated, dialogue);
        for found in &annotated.mentions {
            if let [choice] = &found.mention.choices[..] {
                dialogue.mention(&found.kind, choice);
            }
        }
        if let Resolution::Frames(frames) = &resolution {
            for frame in frames {
                self.remember(frame, &annotated, dialogue);
            }
            dialogue.frames.clone_from(frames);
        }
        resolution
    }

    /// Records the entity that an ambiguous name was resolved to.
    fn remember(&self, frame: &Frame, annotated: &AnnotatedUtterance, dialogue: &mut DialogueState) {
        for found in annotated.mentions.iter().filter(|found| found.mention.choices.len() > 1) {
            let slots = self.intents[frame.intent].slots.iter().filter(|slot| slot.kind == found.kind);
            let chosen = slots.filter_map(|slot| frame.slots.get(&slot.name));
            if let Some(choice) = chosen.into_iter().find(|choice| found.mention.choices.contains(choice)) {
                dialogue.mention(&found.kind, choice);
            }
        }
    }

    fn learn(&self, messages: &[threadkeep_core::ChatMessage], dialogue: &mut DialogueState) {
        let exchanges = exchanges(messages);
        for frame in dialogue.frames.clone() {
            let Some(yields) = &self.intents[frame.intent].yields else { continue };
            for (kind, choice) in yields(&Outcome { slots: &frame.slots, exchanges: exchanges.clone() }) {
                dialogue.learn(&kind, &choice);
            }
        }
    }

    fn annotate(&self, text: &str, dialogue: &DialogueState) -> AnnotatedUtterance {
        let utterance = Utterance::new(text);
        let mut annotated = AnnotatedUtterance::of(utterance, &self.kinds);
        let learnt = dialogue
            .find_learnt(&annotated.utterance)
            .map(|(kind, mention)| KindMention { kind: kind.to_owned(), mention });
        let pronoun_mentions =
            self.pronouns.iter().flat_map(|(words, kind)| self.find_pronouns(&annotated, words, kind, dialogue));
        let more: Vec<KindMention> = learnt.chain(pronoun_mentions).collect();
        for found in more {
            annotated.add(found);
        }
        annotated
    }

    /// Finds pronouns such as "there" that refer to an entity: at the end of a sentence, or after a cue. In "is there a
    /// delay", it refers to nothing.
    fn find_pronouns(
        &self,
        annotated: &AnnotatedUtterance,
        words: &[String],
        kind: &str,
        dialogue: &DialogueState,
    ) -> Vec<KindMention> {
        let utterance = &annotated.utterance;
        let matches_at = |at: usize| words.iter().enumerate().all(|(i, word)| utterance.word(at + i) == word);
        let refers = |at: usize| {
            let end = at + words.len();
            let closes = end == utterance.words().len() || utterance.words()[end - 1].ends_sentence;
            closes || words.len() > 1 || (at > 0 && self.is_cue(utterance.word(at - 1)))
        };
        let positions = (0..utterance.words().len()).filter(|at| matches_at(*at) && refers(*at));
        positions
            .filter_map(|at| {
                let choice = self.mentioned_before(annotated, kind, at).or_else(|| dialogue.newest(kind, &[]))?;
                let mention = Mention { words: at..at + words.len(), choices: vec![choice.clone()] };
                Some(KindMention { kind: kind.to_owned(), mention })
            })
            .collect()
    }

    /// Returns the entity that an earlier question of the same message mentions last.
    fn mentioned_before<'a>(&self, annotated: &'a AnnotatedUtterance, kind: &str, at: usize) -> Option<&'a Choice> {
        let border = self.borders(&annotated.utterance).into_iter().map(|(end, _)| end).rfind(|end| *end <= at)?;
        let clause = 0..border;
        let newest = annotated.within(&clause).rfind(|found| found.kind == kind);
        newest.and_then(|found| if let [choice] = &found.mention.choices[..] { Some(choice) } else { None })
    }

    fn is_cue(&self, word: &str) -> bool {
        matches!(word, "from" | "to" | "at" | "near" | "in" | "of" | "desde" | "hasta" | "en" | "de")
            || self.intents.iter().flat_map(|intent| &intent.slots).any(|slot| slot.cues.iter().any(|cue| cue == word))
    }

    fn resolve_annotated(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Resolution {
        let whole = 0..annotated.utterance.words().len();
        if self.asks_for_self_description(&annotated.utterance) {
            return Resolution::SelfDescription;
        }
        let has_only_mentions = self.has_only_mentions(annotated);
        let continued = self.continue_last(annotated, dialogue);
        if has_only_mentions {
            if let Some(frame) = self.answer_open_slot(annotated, dialogue) {
                return Resolution::Frames(vec![frame]);
            }
            if let Some((frame, Coverage::AllMentions)) = &continued
                && self.starts_as_continuation(&annotated.utterance)
            {
                return Resolution::Frames(vec![frame.clone()]);
            }
        }
        let clauses = self.clauses(annotated, whole, dialogue);
        if !clauses.is_empty() {
            return Resolution::Frames(self.make_frames(annotated, &clauses, dialogue));
        }
        let continued = continued.map(|(frame, _)| frame);
        match self.answer_open_slot(annotated, dialogue).or(continued) {
            Some(frame) => Resolution::Frames(vec![frame]),
            None => Resolution::Unknown,
        }
    }

    fn asks_for_self_description(&self, utterance: &Utterance) -> bool {
        let words = || utterance.words().iter().map(|word| word.folded.as_str());
        self.phrases.who_are_you.iter().any(|phrase| words().eq(folded_words(phrase).iter().map(String::as_str)))
    }

    fn starts_as_continuation(&self, utterance: &Utterance) -> bool {
        self.phrases.continuations.iter().any(|phrase| {
            let words = folded_words(phrase);
            !words.is_empty() && words.iter().enumerate().all(|(at, word)| utterance.word(at) == word)
        })
    }

    /// Whether a message consists only of mentions and function words.
    fn has_only_mentions(&self, annotated: &AnnotatedUtterance) -> bool {
        self.count_content_words(annotated) == 0
    }

    fn count_content_words(&self, annotated: &AnnotatedUtterance) -> usize {
        let is_continuation =
            |word: &str| self.phrases.continuations.iter().any(|phrase| phrase.split(' ').any(|part| part == word));
        count_content_words(annotated, |word| self.is_cue(word) || is_continuation(word))
    }

    /// Interprets the message as the answer to an open question of the model.
    fn answer_open_slot(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Option<Frame> {
        let frame = dialogue.frames.iter().find(|frame| !frame.open.is_empty())?;
        let (open, later) = frame.open.split_first()?;
        let intent = &self.intents[frame.intent];
        let kind = &intent.slots[open.slot].kind;
        let mentioned = annotated.mentions.iter().position(|found| found.kind == *kind);
        let selected =
            select_choice(annotated, &open.choices, &self.phrases.ordinals).cloned().map(|choice| vec![choice]);
        let choices = match (mentioned, selected) {
            (Some(at), _) => restrict_choices(&annotated.mentions[at].mention.choices, &open.choices),
            (None, selected) => selected?,
        };
        let mut filler = SlotFiller::new(intent, annotated, frame.slots.clone());
        if let Some(at) = mentioned {
            filler.exclude_mention(at);
        }
        let still_open = match &choices[..] {
            [choice] => {
                filler.set(open.slot, choice.clone());
                None
            }
            _ => Some(OpenSlot { choices, ..open.clone() }),
        };
        filler.fill_from_mentions(&(0..annotated.utterance.words().len()), false);
        let mut answered = filler.finish(frame.intent, dialogue);
        answered.open.retain(|new| new.slot != open.slot && later.iter().all(|known| known.slot != new.slot));
        let is_unfilled = |open: &OpenSlot| answered.slots.get(&intent.slots[open.slot].name).is_none();
        let later: Vec<OpenSlot> = later.iter().filter(|open| is_unfilled(open)).cloned().collect();
        answered.open.splice(0..0, still_open.into_iter().chain(later));
        Some(answered)
    }

    /// Interprets the message as a change of the last frame.
    fn continue_last(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Option<(Frame, Coverage)> {
        let last = dialogue.frames.last()?;
        let allowed = usize::from(self.starts_as_continuation(&annotated.utterance));
        if self.count_content_words(annotated) > allowed {
            return None;
        }
        let whole = 0..annotated.utterance.words().len();
        let intent = &self.intents[last.intent];
        if intent.excluded.iter().any(|pattern| pattern.find_match(annotated, &whole).is_some()) {
            return None;
        }
        let mut filler = SlotFiller::new(intent, annotated, last.slots.clone());
        filler.fill_from_mentions(&whole, true);
        if !filler.has_filled() {
            return None;
        }
        let coverage =
            if filler.has_used_all_mentions(&whole) { Coverage::AllMentions } else { Coverage::SomeMentions };
        Some((filler.finish(last.intent, dialogue), coverage))
    }

    /// Splits a message at sentence ends and conjunctions if both sides match an intent.
    fn clauses(
        &self,
        annotated: &AnnotatedUtterance,
        whole: Range<usize>,
        dialogue: &DialogueState,
    ) -> Vec<(Range<usize>, usize, PatternMatch)> {
        let Some((intent, pattern_match)) = self.best_match(annotated, &whole, dialogue) else { return Vec::new() };
        if pattern_match.capture.is_some() {
            return vec![(whole, intent, pattern_match)];
        }
        let mut clauses = Vec::new();
        let mut rest = (whole, intent, pattern_match);
        let borders: Vec<(usize, usize)> = self.borders(&annotated.utterance);
        for (end, start) in borders {
            if clauses.len() + 1 == MAX_QUESTIONS || end <= rest.0.start || start >= rest.0.end {
                continue;
            }
            let (left, right) = (rest.0.start..end, start..rest.0.end);
            if let (Some((left_intent, left_match)), Some((right_intent, right_match))) =
                (self.best_match(annotated, &left, dialogue), self.best_match(annotated, &right, dialogue))
            {
                clauses.push((left, left_intent, left_match));
                rest = (right, right_intent, right_match);
            }
        }
        clauses.push(rest);
        clauses
    }

    /// Returns the positions where one question may end and another start.
    fn borders(&self, utterance: &Utterance) -> Vec<(usize, usize)> {
        let is_conjunction = |word: &str| self.phrases.conjunctions.iter().any(|known| known == word);
        let words = utterance.words().iter().enumerate();
        let borders = words.filter_map(|(at, word)| {
            if word.ends_sentence {
                Some((at + 1, at + 1))
            } else {
                is_conjunction(&word.folded).then_some((at, at + 1))
            }
        });
        borders.collect()
    }

    fn best_match(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<(usize, PatternMatch)> {
        let mut best: Option<(usize, PatternMatch)> = None;
        let follows = |intent: &&Intent| {
            let mut last = dialogue.frames.iter().map(|frame| &self.intents[frame.intent].name);
            intent.follows.is_empty() || last.any(|name| intent.follows.contains(name))
        };
        for (index, intent) in self.intents.iter().enumerate().filter(|(_, intent)| follows(intent)) {
            let matches = intent.patterns.iter().filter_map(|pattern| pattern.find_match(annotated, clause));
            let Some(pattern_match) = matches.max_by_key(|pattern_match| pattern_match.score) else { continue };
            let is_excluded = || intent.excluded.iter().any(|pattern| pattern.find_match(annotated, clause).is_some());
            if best.as_ref().is_none_or(|(_, known)| known.score < pattern_match.score) && !is_excluded() {
                best = Some((index, pattern_match));
            }
        }
        best
    }

    fn make_frames(
        &self,
        annotated: &AnnotatedUtterance,
        clauses: &[(Range<usize>, usize, PatternMatch)],
        dialogue: &DialogueState,
    ) -> Vec<Frame> {
        let mut dialogue = dialogue.clone();
        let mut frames: Vec<Frame> = Vec::new();
        for (clause, index, pattern_match) in clauses {
            let intent = &self.intents[*index];
            let mut slots = Slots::default();
            let mut mentioned = clause.clone();
            if let Some((name, words)) = &pattern_match.capture {
                mentioned.end = words.start;
                slots.set(
                    name,
                    Choice::new(annotated.utterance.said(words.clone()), annotated.utterance.said(words.clone())),
                );
            }
            let mut filler = SlotFiller::new(intent, annotated, slots);
            filler.fill_from_mentions(&mentioned, false);
            let frame = filler.finish(*index, &dialogue);
            for found in annotated.within(clause) {
                if let [choice] = &found.mention.choices[..] {
                    dialogue.mention(&found.kind, choice);
                }
            }
            self.remember(&frame, annotated, &mut dialogue);
            if !frames.contains(&frame) {
                dialogue.frames = vec![frame.clone()];
                frames.push(frame);
            }
        }
        frames
    }
}

/// How much of a message a change of the last frame accounts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    AllMentions,
    SomeMentions,
}

/// Restricts the meanings of a new name to the offered choices, if any of them match.
fn restrict_choices(mentioned: &[Choice], offered: &[Choice]) -> Vec<Choice> {
    let both: Vec<Choice> =
        mentioned.iter().filter(|choice| offered.iter().any(|known| known.value == choice.value)).cloned().collect();
    if both.is_empty() { mentioned.to_vec() } else { both }
}
