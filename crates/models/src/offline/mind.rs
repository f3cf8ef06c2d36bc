//! From a conversation to what its last message asks for.

use std::ops::Range;

use threadkeep_core::Role;

use super::extract::{Choice, Extractor, Mention};
use super::frame::{Filling, Frame, Open, content_words, pick};
use super::history::History;
use super::intent::{Intent, Slots};
use super::memory::Memory;
use super::outcome::Outcome;
use super::pattern::Fit;
use super::phrases::Phrases;
use super::reading::{Found, Reading};
use super::utterance::{Utterance, folded_words};
use crate::turn::exchanges;

/// Questions in one message; what is behind them is not heard.
const QUESTIONS: usize = 4;
/// Messages of a user that count for what a new one refers to.
const EARLIER_QUESTIONS: usize = 20;

/// What a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Understood {
    /// These, in order.
    Frames(Vec<Frame>),
    /// What the model is.
    Myself,
    Nothing,
}

/// What an assistant declared.
#[derive(Default)]
pub(super) struct Mind {
    pub(super) kinds: Vec<(String, Box<dyn Extractor>)>,
    /// Words that stand for the thing of a kind that was mentioned last.
    pub(super) pronouns: Vec<(Vec<String>, String)>,
    pub(super) intents: Vec<Intent>,
    pub(super) phrases: Phrases,
}

impl Mind {
    /// Reads a conversation: each message of the user changes what the next one may refer to.
    pub(super) fn understand(&self, history: &History) -> Understood {
        let mut memory = Memory::default();
        let is_question = |role: Role| role == Role::User;
        let questions: Vec<usize> =
            (0..history.earlier.len()).filter(|at| is_question(history.earlier[*at].role)).collect();
        let first = questions.len().saturating_sub(EARLIER_QUESTIONS);
        for (index, at) in questions.iter().enumerate().skip(first) {
            let until = questions.get(index + 1).copied().unwrap_or(history.earlier.len());
            self.hear(&history.earlier[*at].plain_text(), &mut memory);
            self.learn(&history.earlier[at + 1..until], &mut memory);
        }
        self.hear(&history.question, &mut memory)
    }

    fn hear(&self, text: &str, memory: &mut Memory) -> Understood {
        let reading = self.read(text, memory);
        let understood = self.understand_reading(&reading, memory);
        for found in &reading.mentions {
            if let [choice] = &found.mention.choices[..] {
                memory.mention(&found.kind, choice);
            }
        }
        if let Understood::Frames(frames) = &understood {
            for frame in frames {
                self.remember(frame, &reading, memory);
            }
            memory.frames.clone_from(frames);
        }
        understood
    }

    /// A name that turned out to mean one thing was mentioned too.
    fn remember(&self, frame: &Frame, reading: &Reading, memory: &mut Memory) {
        for found in reading.mentions.iter().filter(|found| found.mention.choices.len() > 1) {
            let slots = self.intents[frame.intent].slots.iter().filter(|slot| slot.kind == found.kind);
            let chosen = slots.filter_map(|slot| frame.slots.get(&slot.name));
            if let Some(choice) = chosen.into_iter().find(|choice| found.mention.choices.contains(choice)) {
                memory.mention(&found.kind, choice);
            }
        }
    }

    fn learn(&self, messages: &[threadkeep_core::ChatMessage], memory: &mut Memory) {
        let exchanges = exchanges(messages);
        for frame in memory.frames.clone() {
            let Some(yields) = &self.intents[frame.intent].yields else { continue };
            for (kind, choice) in yields(&Outcome { slots: &frame.slots, exchanges: exchanges.clone() }) {
                memory.learn(&kind, &choice);
            }
        }
    }

    fn read(&self, text: &str, memory: &Memory) -> Reading {
        let said = Utterance::new(text);
        let mut reading = Reading::of(said, &self.kinds);
        let learnt = memory.find_learnt(&reading.said).map(|(kind, mention)| Found { kind: kind.to_owned(), mention });
        let referred = self.pronouns.iter().flat_map(|(words, kind)| self.referred(&reading, words, kind, memory));
        let more: Vec<Found> = learnt.chain(referred).collect();
        for found in more {
            reading.add(found);
        }
        reading
    }

    /// Where a word such as "there" stands for a thing: at the end of a sentence, or behind a cue. In "is there a
    /// delay" it stands for nothing.
    fn referred(&self, reading: &Reading, words: &[String], kind: &str, memory: &Memory) -> Vec<Found> {
        let said = &reading.said;
        let stands_at = |at: usize| words.iter().enumerate().all(|(i, word)| said.word(at + i) == word);
        let is_meant = |at: usize| {
            let end = at + words.len();
            let closes = end == said.words().len() || said.words()[end - 1].ends_sentence;
            closes || words.len() > 1 || (at > 0 && self.is_cue(said.word(at - 1)))
        };
        let places = (0..said.words().len()).filter(|at| stands_at(*at) && is_meant(*at));
        places
            .filter_map(|at| {
                let choice = self.mentioned_before(reading, kind, at).or_else(|| memory.newest(kind, &[]))?;
                let mention = Mention { words: at..at + words.len(), choices: vec![choice.clone()] };
                Some(Found { kind: kind.to_owned(), mention })
            })
            .collect()
    }

    /// What an earlier question of the same message mentions.
    fn mentioned_before<'a>(&self, reading: &'a Reading, kind: &str, at: usize) -> Option<&'a Choice> {
        let border = self.borders(&reading.said).into_iter().map(|(end, _)| end).rfind(|end| *end <= at)?;
        let clause = 0..border;
        let newest = reading.within(&clause).rfind(|found| found.kind == kind);
        newest.and_then(|found| if let [choice] = &found.mention.choices[..] { Some(choice) } else { None })
    }

    fn is_cue(&self, word: &str) -> bool {
        matches!(word, "from" | "to" | "at" | "near" | "in" | "of" | "desde" | "hasta" | "en" | "de")
            || self.intents.iter().flat_map(|intent| &intent.slots).any(|slot| slot.cues.iter().any(|cue| cue == word))
    }

    fn understand_reading(&self, reading: &Reading, memory: &Memory) -> Understood {
        let whole = 0..reading.said.words().len();
        if self.asks_who(&reading.said) {
            return Understood::Myself;
        }
        let is_elliptic = self.is_elliptic(reading);
        let continued = self.continue_last(reading, memory);
        if is_elliptic {
            if let Some(frame) = self.answer_open(reading, memory) {
                return Understood::Frames(vec![frame]);
            }
            if let Some((frame, Explains::Everything)) = &continued
                && self.begins_as_continuation(&reading.said)
            {
                return Understood::Frames(vec![frame.clone()]);
            }
        }
        let clauses = self.clauses(reading, whole, memory);
        if !clauses.is_empty() {
            return Understood::Frames(self.frames(reading, &clauses, memory));
        }
        let continued = continued.map(|(frame, _)| frame);
        match self.answer_open(reading, memory).or(continued) {
            Some(frame) => Understood::Frames(vec![frame]),
            None => Understood::Nothing,
        }
    }

    fn asks_who(&self, said: &Utterance) -> bool {
        let words = || said.words().iter().map(|word| word.folded.as_str());
        self.phrases.who_are_you.iter().any(|phrase| words().eq(folded_words(phrase).iter().map(String::as_str)))
    }

    fn begins_as_continuation(&self, said: &Utterance) -> bool {
        self.phrases.continuations.iter().any(|phrase| {
            let words = folded_words(phrase);
            !words.is_empty() && words.iter().enumerate().all(|(at, word)| said.word(at) == word)
        })
    }

    /// Whether a message says nothing but what it mentions.
    fn is_elliptic(&self, reading: &Reading) -> bool {
        self.content_words(reading) == 0
    }

    fn content_words(&self, reading: &Reading) -> usize {
        let is_continuation =
            |word: &str| self.phrases.continuations.iter().any(|phrase| phrase.split(' ').any(|part| part == word));
        content_words(reading, |word| self.is_cue(word) || is_continuation(word))
    }

    /// Takes the message as an answer to what had to be asked back.
    fn answer_open(&self, reading: &Reading, memory: &Memory) -> Option<Frame> {
        let frame = memory.frames.iter().find(|frame| !frame.open.is_empty())?;
        let (open, later) = frame.open.split_first()?;
        let intent = &self.intents[frame.intent];
        let kind = &intent.slots[open.slot].kind;
        let mentioned = reading.mentions.iter().position(|found| found.kind == *kind);
        let picked = pick(reading, &open.choices, &self.phrases.ordinals).cloned().map(|choice| vec![choice]);
        let choices = match (mentioned, picked) {
            (Some(at), _) => among(&reading.mentions[at].mention.choices, &open.choices),
            (None, picked) => picked?,
        };
        let mut filling = Filling::new(intent, reading, frame.slots.clone());
        if let Some(at) = mentioned {
            filling.use_up(at);
        }
        let still_open = match &choices[..] {
            [choice] => {
                filling.set(open.slot, choice.clone());
                None
            }
            _ => Some(Open { choices, ..open.clone() }),
        };
        filling.take_mentions(&(0..reading.said.words().len()), false);
        let mut answered = filling.finish(frame.intent, memory);
        answered.open.retain(|new| new.slot != open.slot && later.iter().all(|known| known.slot != new.slot));
        let filled = |open: &Open| answered.slots.get(&intent.slots[open.slot].name).is_none();
        let later: Vec<Open> = later.iter().filter(|open| filled(open)).cloned().collect();
        answered.open.splice(0..0, still_open.into_iter().chain(later));
        Some(answered)
    }

    /// Takes the message as a change to what was asked last.
    fn continue_last(&self, reading: &Reading, memory: &Memory) -> Option<(Frame, Explains)> {
        let last = memory.frames.last()?;
        let allowed = usize::from(self.begins_as_continuation(&reading.said));
        if self.content_words(reading) > allowed {
            return None;
        }
        let whole = 0..reading.said.words().len();
        let intent = &self.intents[last.intent];
        if intent.excluded.iter().any(|pattern| pattern.fit(reading, &whole).is_some()) {
            return None;
        }
        let mut filling = Filling::new(intent, reading, last.slots.clone());
        filling.take_mentions(&whole, true);
        if !filling.has_taken() {
            return None;
        }
        let explains = if filling.has_taken_all(&whole) { Explains::Everything } else { Explains::Something };
        Some((filling.finish(last.intent, memory), explains))
    }

    /// Parts a message where a question may end, if both sides are questions of their own.
    fn clauses(&self, reading: &Reading, whole: Range<usize>, memory: &Memory) -> Vec<(Range<usize>, usize, Fit)> {
        let Some((intent, fit)) = self.best(reading, &whole, memory) else { return Vec::new() };
        if fit.capture.is_some() {
            return vec![(whole, intent, fit)];
        }
        let mut clauses = Vec::new();
        let mut rest = (whole, intent, fit);
        let borders: Vec<(usize, usize)> = self.borders(&reading.said);
        for (end, start) in borders {
            if clauses.len() + 1 == QUESTIONS || end <= rest.0.start || start >= rest.0.end {
                continue;
            }
            let (left, right) = (rest.0.start..end, start..rest.0.end);
            if let (Some((left_intent, left_fit)), Some((right_intent, right_fit))) =
                (self.best(reading, &left, memory), self.best(reading, &right, memory))
            {
                clauses.push((left, left_intent, left_fit));
                rest = (right, right_intent, right_fit);
            }
        }
        clauses.push(rest);
        clauses
    }

    /// Where one question may end and another begin.
    fn borders(&self, said: &Utterance) -> Vec<(usize, usize)> {
        let is_conjunction = |word: &str| self.phrases.conjunctions.iter().any(|known| known == word);
        let words = said.words().iter().enumerate();
        let borders = words.filter_map(|(at, word)| {
            if word.ends_sentence {
                Some((at + 1, at + 1))
            } else {
                is_conjunction(&word.folded).then_some((at, at + 1))
            }
        });
        borders.collect()
    }

    fn best(&self, reading: &Reading, clause: &Range<usize>, memory: &Memory) -> Option<(usize, Fit)> {
        let mut best: Option<(usize, Fit)> = None;
        let follows = |intent: &&Intent| {
            let mut last = memory.frames.iter().map(|frame| &self.intents[frame.intent].name);
            intent.follows.is_empty() || last.any(|name| intent.follows.contains(name))
        };
        for (index, intent) in self.intents.iter().enumerate().filter(|(_, intent)| follows(intent)) {
            let fits = intent.patterns.iter().filter_map(|pattern| pattern.fit(reading, clause));
            let Some(fit) = fits.max_by_key(|fit| fit.score) else { continue };
            let is_excluded = || intent.excluded.iter().any(|pattern| pattern.fit(reading, clause).is_some());
            if best.as_ref().is_none_or(|(_, known)| known.score < fit.score) && !is_excluded() {
                best = Some((index, fit));
            }
        }
        best
    }

    fn frames(&self, reading: &Reading, clauses: &[(Range<usize>, usize, Fit)], memory: &Memory) -> Vec<Frame> {
        let mut memory = memory.clone();
        let mut frames: Vec<Frame> = Vec::new();
        for (clause, index, fit) in clauses {
            let intent = &self.intents[*index];
            let mut slots = Slots::default();
            let mut mentioned = clause.clone();
            if let Some((name, words)) = &fit.capture {
                mentioned.end = words.start;
                slots.set(name, Choice::new(reading.said.said(words.clone()), reading.said.said(words.clone())));
            }
            let mut filling = Filling::new(intent, reading, slots);
            filling.take_mentions(&mentioned, false);
            let frame = filling.finish(*index, &memory);
            for found in reading.within(clause) {
                if let [choice] = &found.mention.choices[..] {
                    memory.mention(&found.kind, choice);
                }
            }
            self.remember(&frame, reading, &mut memory);
            if !frames.contains(&frame) {
                memory.frames = vec![frame.clone()];
                frames.push(frame);
            }
        }
        frames
    }
}

/// How much of a message a change to the last question explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explains {
    Everything,
    Something,
}

/// What a new name may mean, of what was asked about; a name for something else counts as it is.
fn among(said: &[Choice], asked: &[Choice]) -> Vec<Choice> {
    let both: Vec<Choice> =
        said.iter().filter(|choice| asked.iter().any(|known| known.value == choice.value)).cloned().collect();
    if both.is_empty() { said.to_vec() } else { both }
}
