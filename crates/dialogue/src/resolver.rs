//! Resolves the last message of a conversation to intents with filled slots.

use std::ops::Range;

use threadkeep_core::text::Language;
use threadkeep_core::{Role, Value};

use crate::acts::{Act, OFF_TOPIC};
use crate::annotated::{AnnotatedUtterance, KindMention};
use crate::classifier::Classifier;
use crate::dialogue_state::DialogueState;
use crate::extract::{Choice, Extractor, Mention};
use crate::frame::{Frame, OpenSlot, SlotFiller, content_words, is_correction, is_same_entity, select_choice};
use crate::history::History;
use crate::intent::{Intent, Slot, Slots};
use crate::outcome::Outcome;
use crate::phrases::Phrases;
use crate::turn::{Exchange, exchanges};
use crate::utterance::{Utterance, folded_words};

/// The maximum number of questions into which a message is split.
const MAX_QUESTIONS: usize = 4;
/// The number of earlier user messages that a message can refer to.
const MAX_EARLIER_MESSAGES: usize = 20;

/// The minimum score of an accepted class.
const MIN_SCORE: i64 = 250;
/// The minimum score of a class that is tried after the best one, in percent of the best score.
const MIN_PERCENT_OF_BEST: i64 = 45;
/// The minimum lead of the off-topic class over the next one, in percent, if a message mentions entities.
const OFF_TOPIC_LEAD_PERCENT: i64 = 30;
/// The minimum score of an intent, in percent of the best score, at which a message is not off topic.
const NEARLY_BEST_PERCENT: i64 = 85;
/// The minimum score of an intent, in percent of the best score, at which a message with several entities asks more than a class
/// without slots answers.
const NEAR_ANSWER_PERCENT: i64 = 65;
/// The amount added to the score of an intent if the message starts with the cue of one of its text slots.
const TEXT_CUE_SCORE: i64 = 500;
/// The minimum score at which a part of a message is a separate question.
const MIN_SPLIT_SCORE: i64 = 500;
/// The minimum score at which a part of a message is a separate question that is answered without slots and calls.
const MIN_REFERRAL_SCORE: i64 = 900;
/// The minimum score of both parts of a split message, in percent of the score of the whole message.
const MIN_PERCENT_OF_WHOLE: i64 = 80;
/// The value of [`MIN_PERCENT_OF_WHOLE`] if the message, interpreted as one question, leaves mentions unused.
const MIN_PERCENT_IF_UNUSED: i64 = 50;
/// The minimum score of the class "change", in percent of the best intent's score, at which a message that consists of
/// mentions changes the last question.
const MIN_CHANGE_PERCENT: i64 = 60;
/// The number of classes that are tried, best first.
const MAX_TRIED: usize = 4;
/// The least share of the best score for an intent that uses more mentions than the best one.
const MIN_MORE_COMPLETE_PERCENT: i64 = 40;

/// The result of resolving a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolution {
    /// Frames, in the order of the message.
    Frames(Vec<Frame>),
    /// An act that refers to no frame.
    Act(Act),
    /// A class that is answered without slots and calls.
    Answer(usize),
    /// Several questions, some of which are answered without slots and calls: the frames, then these classes.
    Mixed(Vec<Frame>, Vec<usize>),
    /// The message concerns none of the intents.
    OffTopic,
    /// No intent is likely enough.
    NotUnderstood,
}

impl Resolution {
    /// Returns the frames.
    pub(crate) fn frames(&self) -> &[Frame] {
        match self {
            Self::Frames(frames) | Self::Mixed(frames, _) => frames,
            _ => &[],
        }
    }
}

/// The meaning of a class of the classifier.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Intent(usize),
    Act(Act),
    /// An aspect of an answer.
    Aspect(String),
    OffTopic,
    /// A class that is answered without slots and calls.
    Answer(usize),
    /// An intent that this assistant does not have.
    Absent,
}

/// A function that returns the word that a misspelt word of an utterance stands for.
pub(crate) type SpellingFn = fn(&Utterance, usize) -> Option<String>;

/// A class and its score for a clause.
type Ranked = (usize, i64);

/// The declarations of an assistant, and their interpretation.
#[derive(Default)]
pub(crate) struct IntentResolver {
    pub(crate) kinds: Vec<(String, Box<dyn Extractor>)>,
    /// Words that refer to the last mentioned entity of a kind.
    pub(crate) pronouns: Vec<(Vec<String>, String)>,
    /// Kinds whose pronouns may also refer to the entities of another kind.
    pub(crate) pronoun_kinds: Vec<(String, String)>,
    /// The kind of places.
    pub(crate) place_kind: Option<String>,
    pub(crate) intents: Vec<Intent>,
    /// The classes that are answered without slots and calls.
    pub(crate) answers: Vec<String>,
    /// Those of `answers` that may be one of several questions of a message.
    pub(crate) referrals: Vec<usize>,
    /// Corrects the spelling of words.
    pub(crate) spelling: Option<SpellingFn>,
    /// The phrases of each language, the default first. Messages may be in any of these languages.
    pub(crate) phrases: Vec<Phrases>,
    classifier: Classifier,
    /// The meanings of the classifier's classes, in their order.
    classes: Vec<Class>,
}

impl IntentResolver {
    pub(crate) fn set_classifier(&mut self, classifier: Classifier) {
        let class = |name: &String| {
            let intent = self.intents.iter().position(|intent| intent.name == *name).map(Class::Intent);
            let act = || Act::ALL.into_iter().find(|act| act.class() == name).map(Class::Act);
            let aspect = || name.starts_with("ask:").then(|| Class::Aspect(name.clone()));
            let off_topic = || (name == OFF_TOPIC).then_some(Class::OffTopic);
            let answer = || self.answers.iter().position(|class| class == name).map(Class::Answer);
            intent.or_else(answer).or_else(act).or_else(aspect).or_else(off_topic).unwrap_or(Class::Absent)
        };
        self.classes = classifier.classes().iter().map(class).collect();
        self.classifier = classifier;
    }

    /// Returns the classes of a message and their scores, best first.
    pub(crate) fn scores(&self, text: &str) -> Vec<(String, i64)> {
        let annotated = self.annotate(text, &DialogueState::default());
        let tokens = annotated.tokens(&(0..annotated.utterance.words().len()));
        let scores = self.classifier.scores(&self.classifier.features(&tokens)).into_iter();
        scores.map(|score| (self.classifier.classes()[score.class].clone(), score.score)).collect()
    }

    /// Resolves the last message. Earlier messages are resolved first, because later messages may refer to them.
    pub(crate) fn resolve(&self, history: &History) -> Resolution {
        let mut dialogue = DialogueState::default();
        let is_user_message = |at: &usize| history.earlier[*at].role == Role::User;
        let user_messages: Vec<usize> = (0..history.earlier.len()).filter(is_user_message).collect();
        let first = user_messages.len().saturating_sub(MAX_EARLIER_MESSAGES);
        for (index, at) in user_messages.iter().enumerate().skip(first) {
            let until = user_messages.get(index + 1).copied().unwrap_or(history.earlier.len());
            let replies = &history.earlier[at + 1..until];
            let resolution = self.resolve_message(&history.earlier[*at].plain_text(), &mut dialogue);
            if resolution.frames().is_empty() {
                self.restore(replies, &mut dialogue);
            }
            self.learn_entities(replies, &mut dialogue);
        }
        self.resolve_message(&history.question, &mut dialogue)
    }

    /// Restores the frames of a message from its calls. A follow-up cannot be resolved again once the question that it
    /// refers to is no longer in the context.
    fn restore(&self, replies: &[threadkeep_core::ChatMessage], dialogue: &mut DialogueState) {
        let frames: Vec<Frame> =
            exchanges(replies).iter().filter_map(|exchange| self.frame_of_call(exchange)).collect();
        if frames.is_empty() {
            return;
        }
        for frame in &frames {
            for slot in &self.intents[frame.intent].slots {
                if let Some(choice) = frame.slots.get(&slot.name) {
                    dialogue.mention(&slot.kind, choice);
                }
            }
        }
        dialogue.set_frames(frames);
    }

    /// Returns the frame of the intent that makes such a call, with the arguments as its slots.
    fn frame_of_call(&self, exchange: &Exchange<'_>) -> Option<Frame> {
        let makes = |intent: &Intent| {
            intent.is_restorable
                && intent.rounds.iter().flat_map(|round| &round.calls).any(|call| call.tool == exchange.call.name)
        };
        let intent = self.intents.iter().position(makes)?;
        let arguments: Value = exchange.call.arguments.read().ok()?;
        let mut slots = Slots::default();
        for slot in &self.intents[intent].slots {
            let name = slot.argument.as_ref().unwrap_or(&slot.name);
            let value = &arguments[name];
            if let Some(choice) = self.choice_of_argument(&slot.kind, value) {
                slots.set(&slot.name, choice);
            }
        }
        Some(Frame::restored(intent, slots))
    }

    /// Returns the entity that an argument names, as a message would mention it.
    fn choice_of_argument(&self, kind: &str, value: &Value) -> Option<Choice> {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            other => return Some(Choice::new(other.clone(), other.to_string())),
        };
        let (_, extractor) = self.kinds.iter().find(|(known, _)| known == kind)?;
        let utterance = Utterance::new(format!("at {text}"));
        let found = extractor.find(&utterance).into_iter().find(|found| found.choices.len() == 1);
        found.and_then(|found| found.choices.into_iter().next()).or_else(|| Some(Choice::new(text.clone(), text)))
    }

    fn resolve_message(&self, text: &str, dialogue: &mut DialogueState) -> Resolution {
        let annotated = self.annotate(text, dialogue);
        let resolution = self.resolve_annotated(&annotated, dialogue);
        let frames = resolution.frames();
        let is_fact = !frames.is_empty() && frames.iter().all(|frame| self.intents[frame.intent].is_about_user);
        for found in &annotated.mentions {
            if let [choice] = &found.mention.choices[..] {
                dialogue.mention(&found.kind, choice);
                if is_fact {
                    dialogue.mention_fact(&found.kind, choice);
                }
            }
        }
        for frame in frames {
            self.record_entities(frame, &annotated, dialogue);
        }
        self.record_nouns(&annotated, dialogue);
        if !frames.is_empty() {
            dialogue.set_frames(frames.to_vec());
        }
        resolution
    }

    /// Records the entity to which an ambiguous name was resolved.
    fn record_entities(&self, frame: &Frame, annotated: &AnnotatedUtterance, dialogue: &mut DialogueState) {
        for found in &annotated.mentions {
            let choices = &found.mention.choices;
            let slots = self.intents[frame.intent].slots.iter().filter(|slot| slot.kind == found.kind);
            let mut chosen = slots.filter_map(|slot| frame.slots.get(&slot.name));
            let named = choices.iter().filter(|_| choices.len() > 1);
            let meanings: Vec<&Choice> = named.chain(choices.iter().flat_map(|known| &known.others)).collect();
            let is_meaning = |choice: &&Choice| meanings.iter().any(|known| known.value == choice.value);
            if let Some(choice) = chosen.find(is_meaning) {
                choices.iter().for_each(|known| dialogue.forget(&found.kind, known));
                dialogue.mention(&found.kind, choice);
            }
        }
    }

    fn learn_entities(&self, messages: &[threadkeep_core::ChatMessage], dialogue: &mut DialogueState) {
        let exchanges = exchanges(messages);
        for frame in dialogue.frames.clone() {
            let Some(yields) = &self.intents[frame.intent].yields else { continue };
            for (kind, choice) in
                yields(&Outcome { slots: &frame.slots, exchanges: exchanges.clone(), language: Language::English })
            {
                dialogue.learn(&kind, &choice);
            }
        }
    }

    fn annotate(&self, text: &str, dialogue: &DialogueState) -> AnnotatedUtterance {
        let utterance = Utterance::new(text);
        let utterance = match self.spelling {
            Some(correct) => utterance.corrected(correct),
            None => utterance,
        };
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
        for found in self.find_nouns(&annotated, dialogue) {
            annotated.mentions.retain(|known| known.mention.words != found.mention.words);
            annotated.add(found);
        }
        annotated
    }

    /// Finds pronouns that refer to an entity, such as "there": at the end of a sentence, or after a cue. In "is there
    /// a delay", the word refers to nothing.
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
            // "Is there an elevator at Canal St" refers to nothing.
            if words.len() == 1 && at > 0 && matches!(utterance.word(at - 1), "is" | "are" | "was" | "if") {
                return end == utterance.words().len();
            }
            let closes = end == utterance.words().len() || utterance.words()[end - 1].ends_sentence;
            closes || words.len() > 1 || (at > 0 && self.is_cue(utterance.word(at - 1)))
        };
        let positions = (0..utterance.words().len()).filter(|at| matches_at(*at) && refers(*at));
        positions
            .filter_map(|at| {
                // In "how far is X from there", the pronoun does not refer to X.
                let named = annotated.mentions.iter().filter(|found| found.kind == kind);
                let named: Vec<&Choice> = named.flat_map(|found| &found.mention.choices).collect();
                let other = self.pronoun_kinds.iter().find(|(known, _)| known == kind).map(|(_, other)| other.as_str());
                let newest = || match other {
                    Some(other) if self.place_kind.as_deref() == Some(other) => self.heading(dialogue, kind),
                    Some(other) => dialogue.newest_among(&[kind, other]),
                    None => dialogue.newest(kind, &named),
                };
                let choice = self.mentioned_before(annotated, kind, at).or_else(newest)?;
                let words = at..at + words.len();
                let mention = Mention { is_pronoun: true, ..Mention::new(words, vec![choice.clone()]) };
                Some(KindMention { kind: kind.to_owned(), mention })
            })
            .collect()
    }

    /// Returns where the newest trip or board goes, for "that way".
    fn heading<'a>(&self, dialogue: &'a DialogueState, kind: &str) -> Option<&'a Choice> {
        dialogue.recent_frames().find_map(|frame| {
            let intent = &self.intents[frame.intent];
            let of_kind = |slot: &&Slot| slot.kind == kind || slot.opposite.is_some();
            let direct = intent.slots.iter().filter(of_kind).find_map(|slot| frame.slots.get(&slot.name));
            direct.or_else(|| intent.swaps.first().and_then(|(_, end)| frame.slots.get(end)))
        })
    }

    /// Returns the entity that an earlier question of the same message mentions last.
    fn mentioned_before<'a>(&self, annotated: &'a AnnotatedUtterance, kind: &str, at: usize) -> Option<&'a Choice> {
        let borders = self.borders(&annotated.utterance).into_iter().filter(|border| !border.is_comma);
        let border = borders.map(|border| border.end).rfind(|end| *end <= at)?;
        let clause = 0..border;
        let newest = annotated.within(&clause).rfind(|found| found.kind == kind);
        newest.and_then(|found| if let [choice] = &found.mention.choices[..] { Some(choice) } else { None })
    }

    fn is_cue(&self, word: &str) -> bool {
        matches!(word, "from" | "to" | "at" | "near" | "in" | "of" | "desde" | "hasta" | "en" | "de")
            || self.intents.iter().flat_map(|intent| &intent.slots).any(|slot| slot.cues.iter().any(|cue| cue == word))
    }

    fn resolve_annotated(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Resolution {
        let mut dialogue = dialogue.clone();
        let mut frames: Vec<Frame> = Vec::new();
        let mut answers: Vec<usize> = Vec::new();
        let mut other = None;
        let clauses = self.clauses(annotated, &dialogue);
        for (index, clause) in clauses.iter().enumerate() {
            // A correction before a question is context.
            if index > 0 && self.corrects(annotated, &clauses[index - 1], &dialogue) {
                frames.clear();
            }
            let clause = clause.clone();
            match self.resolve_clause(annotated, &clause, &dialogue) {
                Resolution::Frames(found) => {
                    for found in annotated.within(&clause) {
                        if let [choice] = &found.mention.choices[..] {
                            dialogue.mention(&found.kind, choice);
                        }
                    }
                    let of_both = |frame: &Frame| self.of_both(frame, annotated, &clause, &dialogue);
                    let found = found.into_iter().flat_map(|frame| {
                        let frames = of_both(&frame).unwrap_or_else(|| self.one_for_each(frame, annotated, &clause));
                        frames.into_iter().map(|frame| self.doubted(frame, annotated, &clause)).collect::<Vec<_>>()
                    });
                    for frame in found.collect::<Vec<_>>() {
                        self.record_entities(&frame, annotated, &mut dialogue);
                        dialogue.frames = vec![frame.clone()];
                        if !frames.contains(&frame) {
                            frames.push(frame);
                        }
                    }
                }
                Resolution::Answer(answer) if !answers.contains(&answer) => answers.push(answer),
                resolution => {
                    other.get_or_insert(resolution);
                }
            }
        }
        match (frames.is_empty(), &answers[..]) {
            (false, []) => Resolution::Frames(frames),
            (true, []) => other.unwrap_or(Resolution::NotUnderstood),
            (true, [answer]) => Resolution::Answer(*answer),
            _ => Resolution::Mixed(frames, answers),
        }
    }

    /// Returns the frames of a question about several entities of one kind: "is A accessible and B" asks about each.
    fn one_for_each(&self, frame: Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Vec<Frame> {
        let intent = &self.intents[frame.intent];
        let mut required = intent.slots.iter().filter(|slot| slot.is_required && !slot.is_text);
        let (Some(slot), None) = (required.next(), required.next()) else { return vec![frame] };
        if intent.is_about_user || frame.open.iter().any(|open| open.choices.is_empty()) {
            return vec![frame];
        }
        let is_joined = |found: &&KindMention| {
            let start = found.mention.words.start;
            let said = annotated.utterance.said(found.mention.words.clone());
            let before = |steps: usize| start.checked_sub(steps).map_or("", |at| annotated.utterance.word(at));
            let is_conjunction = |word: &str| matches!(word, "and" | "or" | "n" | "y" | "plus" | "also" | "&");
            let is_listed = (1..=3).any(|steps| is_conjunction(before(steps)));
            found.kind == slot.kind && is_listed && frame.unused.iter().any(|unused| unused == said)
        };
        let others: Vec<&KindMention> = annotated.within(clause).filter(is_joined).take(MAX_QUESTIONS - 1).collect();
        let mut frames = vec![frame.clone()];
        for other in others {
            let said = annotated.utterance.said(other.mention.words.clone());
            let choices = &other.mention.choices;
            let narrowed = slot.narrows.as_ref().map(|narrows| narrows(choices, &frame.slots)).unwrap_or_default();
            let choices = if narrowed.is_empty() { choices } else { &narrowed };
            let mut next = frame.repeated();
            next.aspect = frame.aspect;
            match &choices[..] {
                [choice] => next.slots.set(&slot.name, choice.clone()),
                _ => {
                    next.slots.put(&slot.name, None);
                    let index = intent.slots.iter().position(|known| known.name == slot.name).unwrap_or_default();
                    next.open =
                        vec![OpenSlot { slot: index, ambiguous_text: said.to_owned(), choices: choices.clone() }];
                }
            }
            for known in &mut frames {
                known.unused.retain(|unused| unused != said);
            }
            frames.push(next);
        }
        frames
    }

    fn resolve_clause(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Resolution {
        let ranked = self.rank(annotated, clause, dialogue);
        if !self.expresses_new_intent(annotated, clause, &ranked, dialogue)
            && let Some(frame) = self.answer_open_slot(annotated, clause, dialogue)
        {
            return Resolution::Frames(vec![frame]);
        }
        let has_mentions = annotated.within(clause).next().is_some();
        if self.has_only_mentions(annotated, clause)
            && has_mentions
            && let Some(frame) = self.frame_of_mentions(annotated, clause, &ranked, dialogue)
        {
            return Resolution::Frames(vec![frame]);
        }
        if let Some(frame) = self.statement_frame(annotated, clause, dialogue, &ranked) {
            return Resolution::Frames(vec![frame]);
        }
        let best = ranked.first().map_or(0, |(_, score)| *score);
        if self.is_clearly_off_topic(&ranked) && self.count_required_mentions(annotated, clause) < 2 {
            return Resolution::OffTopic;
        }
        if dialogue.frames.is_empty() && self.is_follow_up_without_reference(annotated, clause, best) {
            return Resolution::NotUnderstood;
        }
        let least = MIN_SCORE.max(best * MIN_PERCENT_OF_BEST / 100);
        for (class, _) in ranked.iter().take(MAX_TRIED).filter(|(_, score)| *score >= least) {
            let is_explained = || self.unexplained(annotated, clause, &[*class], &[]).is_empty();
            let frames = match &self.classes[*class] {
                Class::Intent(intent) => {
                    if let Some(frame) = self.condition_frame(*intent, annotated, clause, dialogue) {
                        return Resolution::Frames(vec![frame]);
                    }
                    let frame = self.new_frame(*intent, *class, annotated, clause, dialogue);
                    if self.lacks_mention(&frame) || self.leaves_words(&frame, annotated, clause) {
                        continue;
                    }
                    if let Some(frame) = self.more_complete(&frame, annotated, clause, dialogue, &ranked) {
                        return Resolution::Frames(vec![frame]);
                    }
                    // A question that lacks a slot is more likely to be about the last answer: "how many stops is
                    // that?"
                    let follow_up =
                        || self.follow_up_frame(&frame, annotated, clause, dialogue, &ranked).map(|frame| vec![frame]);
                    let is_incomplete = frame.open.iter().any(|open| open.choices.is_empty());
                    let explained = || self.is_explained(&frame, annotated, clause).then(|| vec![frame.clone()]);
                    if is_incomplete { follow_up().or_else(explained) } else { explained() }
                }
                Class::Aspect(name) => {
                    self.aspect_frame(name, *class, annotated, clause, dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Affirm) if is_explained() => {
                    self.confirmed_frame(clause, annotated, dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Correct | Act::Change | Act::Other) if self.refers_to_one(annotated, clause) => self
                    .selected_frame(annotated, dialogue)
                    .or_else(|| self.newest_changed_frame(annotated, clause, dialogue))
                    .map(|frame| vec![frame]),
                Class::Act(Act::Other) if !has_mentions && is_explained() => {
                    self.alternative_frame(dialogue).map(|frame| vec![frame])
                }
                Class::Act(Act::Again) if !has_mentions && is_explained() => self.repeated_frames(dialogue),
                Class::Act(Act::Reverse) => self.reversed_frame(annotated, clause, dialogue).map(|frame| vec![frame]),
                Class::Act(Act::Again | Act::Change | Act::Correct | Act::Other) => {
                    self.newest_changed_frame(annotated, clause, dialogue).map(|frame| vec![frame])
                }
                Class::Answer(answer) if !self.may_be_question_with_slots(annotated, clause, *class) => {
                    if let Some(frame) = self.leading_condition_frame(annotated, clause, dialogue) {
                        return Resolution::Frames(vec![frame]);
                    }
                    return Resolution::Answer(*answer);
                }
                Class::Act(_) | Class::OffTopic | Class::Absent | Class::Answer(_) => None,
            };
            // If the message may be off topic, a follow-up must explain its words.
            let is_off_topic = ranked.first().is_some_and(|(class, _)| self.classes[*class] == Class::OffTopic);
            let has_topic = |frame: &Frame| is_off_topic && !self.is_explained(frame, annotated, clause);
            if let Some(frames) = frames.filter(|frames| !frames.iter().any(has_topic)) {
                return Resolution::Frames(frames);
            }
            // A class without frames is accepted only if it is the best.
            let is_best = *class == ranked[0].0 && !has_mentions;
            match &self.classes[*class] {
                Class::Act(act) if is_best && is_explained() => {
                    return Resolution::Act(*act);
                }
                Class::OffTopic if is_best && !self.is_nearly_an_intent(annotated, clause, &ranked, dialogue) => {
                    return Resolution::OffTopic;
                }
                _ => {}
            }
        }
        match self.newest_changed_frame(annotated, clause, dialogue) {
            Some(frame) if self.is_explained(&frame, annotated, clause) => Resolution::Frames(vec![frame]),
            _ if !has_mentions && self.is_unfamiliar(annotated, clause) => Resolution::OffTopic,
            _ => Resolution::NotUnderstood,
        }
    }

    /// Returns the frame of an intent about the user that alone requires a kind of mention which the clause contains, such as the
    /// words "I live at", if it has a slot for each mention.
    fn statement_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        let requires =
            |intent: &Intent, kind: &str| intent.slots.iter().any(|slot| slot.is_required && slot.kind == kind);
        let mut stated = annotated.within(clause).filter_map(|found| {
            let mut owners = (0..self.intents.len()).filter(|intent| requires(&self.intents[*intent], &found.kind));
            owners.next().filter(|owner| owners.next().is_none() && self.intents[*owner].is_about_user)
        });
        let intent = stated.next()?;
        let is_class = |(class, _): &&Ranked| matches!(self.classes[*class], Class::Intent(own) if own == intent);
        let (class, _) = ranked.iter().find(is_class)?;
        let frame = self.new_frame(intent, *class, annotated, clause, dialogue);
        (frame.open.is_empty() && frame.unused.is_empty()).then_some(frame)
    }

    /// Returns the frame of an intent that scores less but has a slot for each mention, if this one leaves some unused.
    fn more_complete(
        &self,
        frame: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        if frame.unused.is_empty() {
            return None;
        }
        // A question is not taken for a statement about the user, which would change what is stored.
        let may_state = self.intents[frame.intent].is_about_user;
        let best = ranked.first().map_or(0, |(_, score)| *score);
        let near = ranked.iter().take(MAX_TRIED).filter(|(_, score)| score * 100 >= best * MIN_MORE_COMPLETE_PERCENT);
        let mut others = near.filter_map(|(class, _)| match self.classes[*class] {
            Class::Intent(intent) if intent != frame.intent && (may_state || !self.intents[intent].is_about_user) => {
                Some(self.new_frame(intent, *class, annotated, clause, dialogue))
            }
            _ => None,
        });
        others.find(|other| {
            other.unused.is_empty()
                && other.open.is_empty()
                && !self.intents[other.intent].slots.is_empty()
                && other.filled.len() > frame.filled.len()
                && self.is_explained(other, annotated, clause)
        })
    }

    /// Interprets a clause that only states conditions, such as "it has to be step-free" after a route, as a change of the last
    /// frame, although another intent scores higher. `None` if the clause asks something or names what a question needs.
    fn condition_frame(
        &self,
        intent: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        const ASKING: [&str; 40] = [
            "is", "are", "does", "do", "can", "could", "which", "what", "whats", "when", "whens", "where", "wheres",
            "how", "hows", "any", "will", "would", "why", "who", "should", "last", "first", "next", "did", "has",
            "list", "show", "es", "hay", "puedo", "cual", "que", "cuando", "donde", "como", "cuanto", "am", "was",
            "were",
        ];
        let last = dialogue.frames.last().filter(|last| last.intent != intent)?;
        let first = clause.clone().find(|at| {
            let word = annotated.utterance.word(*at);
            !self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|known| known == word)
        })?;
        if ASKING.contains(&annotated.utterance.word(first)) {
            return None;
        }
        let required = || self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_required);
        let is_condition = |found: &KindMention| !required().any(|slot| slot.kind == found.kind);
        let mut mentions = annotated.within(clause).filter(|found| !found.mention.is_incidental).peekable();
        mentions.peek()?;
        if !mentions.all(is_condition) {
            return None;
        }
        self.changed_frame(last, annotated, clause, dialogue).filter(|frame| frame.unused.is_empty())
    }

    /// Like [`condition_frame`](Self::condition_frame), if the condition starts the clause: "avoid the 2, it is packed" gives a reason
    /// that is a topic of its own.
    fn leading_condition_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let first = clause.clone().find(|at| {
            let word = annotated.utterance.word(*at);
            !self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|known| known == word)
        })?;
        let mut leading = annotated.within(clause).filter(|found| found.mention.words.start == first);
        leading.find(|found| found.mention.words.len() > 1 && !found.mention.is_incidental)?;
        self.condition_frame(usize::MAX, annotated, clause, dialogue)
    }

    /// Whether a clause only corrects the last question: "I meant Morgan, not Jefferson".
    fn corrects(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, dialogue: &DialogueState) -> bool {
        const MAX_WORDS: usize = 12;
        !dialogue.frames.is_empty()
            && clause.len() <= MAX_WORDS
            && is_correction(annotated, clause)
            && self.count_required_mentions(annotated, clause) > 0
    }

    /// Whether an intent without slots explains no content word of the message, or leaves a mention unused: "what time do you open
    /// on Saturdays?" is not "what time is it?".
    fn leaves_words(&self, frame: &Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let unexplained = frame.unexplained.len();
        let explains_none = unexplained > 0 && unexplained == self.content_words(annotated, clause).len();
        self.intents[frame.intent].slots.is_empty() && (explains_none || !frame.unused.is_empty())
    }

    /// Whether a clause mentions an entity that only this intent takes from it: a calculation.
    fn has_own_mention(&self, intent: usize, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let is_own = |slot: &&Slot| slot.is_required && !slot.is_carried && slot.questions.is_empty() && !slot.is_text;
        let mut own = self.intents[intent].slots.iter().filter(is_own);
        own.any(|slot| annotated.within(clause).any(|found| found.kind == slot.kind))
    }

    /// Whether a slot is empty that only the message can fill: it is neither carried nor asked about.
    fn lacks_mention(&self, frame: &Frame) -> bool {
        frame.open.iter().filter(|open| open.choices.is_empty()).any(|open| {
            let slot = &self.intents[frame.intent].slots[open.slot];
            !slot.is_carried && slot.questions.is_empty()
        })
    }

    /// Whether a clause is clearly a follow-up, such as "and back?". `best` is the best score of the classes that
    /// apply.
    fn is_follow_up_without_reference(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, best: i64) -> bool {
        let features = self.classifier.features(&annotated.tokens(clause));
        let scores = self.classifier.scores(&features);
        let is_follow_up = |class: usize| {
            let acts = [Act::Again, Act::Reverse, Act::Change, Act::Other];
            acts.iter().any(|act| self.classes[class] == Class::Act(*act))
        };
        scores.first().is_some_and(|top| {
            is_follow_up(top.class) && top.score >= MIN_SPLIT_SCORE && best * 100 < top.score * NEARLY_BEST_PERCENT
        })
    }

    /// Whether a message is off topic even if it mentions entities: "the weather at Times Square".
    fn is_clearly_off_topic(&self, ranked: &[Ranked]) -> bool {
        let [(class, best), (_, second), ..] = ranked else { return false };
        self.classes[*class] == Class::OffTopic
            && *best >= MIN_SPLIT_SCORE
            && second * 100 <= best * (100 - OFF_TOPIC_LEAD_PERCENT)
    }

    /// Whether an intent whose slots are complete scores almost as high as the best class and explains most words.
    fn is_nearly_an_intent(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> bool {
        let best = ranked.first().map_or(0, |(_, score)| *score);
        let near = ranked.iter().take(MAX_TRIED).filter(|(_, score)| score * 100 >= best * NEARLY_BEST_PERCENT);
        near.filter_map(|(class, _)| match self.classes[*class] {
            Class::Intent(intent) => Some(self.new_frame(intent, *class, annotated, clause, dialogue)),
            _ => None,
        })
        .any(|frame| frame.open.is_empty() && self.is_explained(&frame, annotated, clause))
    }

    /// Whether a clause is likely to be a question with slots although the best class has none: it mentions two
    /// entities that slots require, and contains no word of the class.
    fn may_be_question_with_slots(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, class: usize) -> bool {
        let is_near = || {
            let features = self.classifier.features(&annotated.tokens(clause));
            let scores = self.classifier.scores(&features);
            let best = scores.first().map_or(0, |best| best.score);
            let mut near = scores.iter().filter(|score| score.score * 100 >= best * NEAR_ANSWER_PERCENT);
            near.any(|score| matches!(self.classes[score.class], Class::Intent(_)))
        };
        self.count_required_mentions(annotated, clause) >= 2
            && (!self.has_word_of(annotated, clause, class) || is_near())
    }

    /// Returns the number of mentions of kinds that slots require.
    fn count_required_mentions(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> usize {
        let slots = || self.intents.iter().flat_map(|intent| &intent.slots).filter(|slot| slot.is_required);
        let is_main = |found: &&KindMention| slots().any(|slot| slot.kind == found.kind && !slot.is_text);
        annotated.within(clause).filter(is_main).count()
    }

    /// Returns the classes that apply in this state of the dialogue with their scores, best first.
    fn rank(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, dialogue: &DialogueState) -> Vec<Ranked> {
        let features = self.classifier.features(&annotated.tokens(clause));
        let applies = |class: &Class| match class {
            Class::Intent(intent) => {
                let follows = &self.intents[*intent].follows;
                let mut last = dialogue.frames.iter().map(|frame| &self.intents[frame.intent].name);
                follows.is_empty() || last.any(|name| follows.contains(name))
            }
            Class::Act(Act::Again | Act::Reverse | Act::Change | Act::Correct | Act::Other) | Class::Aspect(_) => {
                !dialogue.frames.is_empty()
            }
            Class::Act(_) | Class::Answer(_) | Class::OffTopic | Class::Absent => true,
        };
        let scores = self.classifier.scores(&features).into_iter();
        let mut ranked: Vec<Ranked> = scores
            .map(|score| (score.class, score.score))
            .filter(|(class, _)| applies(&self.classes[*class]))
            .collect();
        for (class, score) in &mut ranked {
            if let Class::Intent(intent) = &self.classes[*class]
                && (self.starts_with_text_cue(*intent, annotated, clause)
                    || self.has_own_mention(*intent, annotated, clause))
            {
                *score += TEXT_CUE_SCORE;
            }
        }
        ranked.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        ranked
    }

    /// Whether a clause starts with the cue of a text slot, such as "remember that my". The text after it is arbitrary
    /// and indicates no intent.
    fn starts_with_text_cue(&self, intent: usize, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let cues = self.intents[intent].slots.iter().filter(|slot| slot.is_text).flat_map(|slot| &slot.cues);
        cues.map(|cue| cue.split(' ').collect::<Vec<_>>()).any(|words| {
            words.len() > 1
                && words.len() < clause.len()
                && words.iter().enumerate().all(|(at, word)| annotated.utterance.word(clause.start + at) == *word)
        })
    }

    /// Whether a clause refers to one of several choices: "the one on Lexington".
    fn refers_to_one(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let word = |at: usize| annotated.utterance.word(at);
        clause
            .clone()
            .any(|at| matches!(word(at), "one" | "uno" | "el" | "la" | "station" | "stop") && at > clause.start)
    }

    /// Whether a clause expresses another intent than the one that the model asked about.
    fn expresses_new_intent(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> bool {
        let Some((class, score)) = ranked.first() else { return false };
        let intent = match self.classes[*class] {
            Class::Intent(intent) => intent,
            Class::Answer(_) => return *score >= MIN_SPLIT_SCORE && self.has_word_of(annotated, clause, *class),
            _ => return false,
        };
        let is_open = dialogue.frames.iter().any(|frame| frame.intent == intent && !frame.open.is_empty());
        !is_open && *score >= MIN_SPLIT_SCORE && self.has_word_of(annotated, clause, *class)
    }

    /// Whether a content word of a clause occurs in an example of a class.
    fn has_word_of(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, class: usize) -> bool {
        let words = self.content_words(annotated, clause);
        words.into_iter().any(|at| self.classifier.is_attested(annotated.utterance.word(at), class))
    }

    /// Interprets a clause that consists of mentions: as a change of the last frame, or as an intent whose slots they
    /// fill completely.
    fn frame_of_mentions(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        ranked: &[Ranked],
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let changed = self.newest_changed_frame(annotated, clause, dialogue).filter(|frame| frame.unused.is_empty());
        let best = ranked.iter().find_map(|(class, score)| match self.classes[*class] {
            Class::Intent(intent) if *score >= MIN_SCORE => Some((*class, intent, *score)),
            _ => None,
        });
        let Some((class, intent, score)) = best else { return changed };
        let fresh = self.new_frame(intent, class, annotated, clause, &DialogueState::default());
        let is_complete = fresh.open.iter().all(|open| !open.choices.is_empty()) && fresh.unused.is_empty();
        let is_continuation = self.starts_as_continuation(&annotated.utterance, clause);
        let change = ranked.iter().find(|(class, _)| self.classes[*class] == Class::Act(Act::Change));
        let is_change = || change.is_some_and(|(_, change)| *change * 100 >= score * MIN_CHANGE_PERCENT);
        // "Whens the next R towards Forest Hills" after a trip asks something else.
        if changed.as_ref().is_some_and(|frame| frame.intent != intent)
            && score >= MIN_SPLIT_SCORE
            && !is_continuation
            && !is_change()
        {
            let other = self.new_frame(intent, class, annotated, clause, dialogue);
            if other.open.is_empty() && other.unused.is_empty() {
                return Some(other);
            }
        }
        // "Is 28 St accessible" is a new question, although it could also change the last one.
        let asks = || matches!(annotated.utterance.word(clause.start), "is" | "are" | "does");
        if is_complete && asks() {
            // Of several stations with the name, the one that was spoken of is meant.
            return Some(self.new_frame(intent, class, annotated, clause, dialogue));
        }
        match changed {
            Some(frame) if is_continuation || !is_complete || frame.intent == intent || is_change() => Some(frame),
            _ => is_complete.then_some(fresh),
        }
    }

    fn starts_as_continuation(&self, utterance: &Utterance, clause: &Range<usize>) -> bool {
        self.phrases.iter().flat_map(|phrases| &phrases.continuations).any(|phrase| {
            let words = folded_words(phrase);
            !words.is_empty() && words.iter().enumerate().all(|(at, word)| utterance.word(clause.start + at) == word)
        })
    }

    fn new_frame(
        &self,
        intent: usize,
        class: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Frame {
        let mut filler = SlotFiller::new(&self.intents[intent], annotated, Slots::default());
        filler.exclude_rejected(clause);
        filler.fill_from_text(clause);
        filler.fill_from_mentions(clause, false);
        let texts = filler.texts();
        let mut frame = filler.finish(intent, clause, dialogue);
        frame.unexplained = self.unexplained(annotated, clause, &[class], &texts);
        frame
    }

    /// Returns the best interpretation of a clause as a follow-up instead of an incomplete question.
    fn follow_up_frame(
        &self,
        incomplete: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
        ranked: &[Ranked],
    ) -> Option<Frame> {
        let has_frame = dialogue.frames.iter().any(|frame| frame.open.is_empty() && frame.intent != incomplete.intent);
        let aspects = ranked.iter().take(MAX_TRIED).filter_map(|(class, score)| match &self.classes[*class] {
            Class::Aspect(name) if *score >= MIN_SCORE => Some((name, *class)),
            _ => None,
        });
        let mut frames = aspects.filter(|_| has_frame).filter_map(|(name, class)| {
            let frame = self.aspect_frame(name, class, annotated, clause, dialogue)?;
            frame.open.is_empty().then_some(frame)
        });
        frames.next()
    }

    fn aspect_frame(
        &self,
        name: &str,
        class: usize,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let has_aspect = |frame: &Frame| self.aspect(frame.intent, name).is_some();
        let answering = |frame: &Frame| {
            if has_aspect(frame) {
                return Some(frame.clone());
            }
            let continued = self.continued(frame).filter(has_aspect)?;
            let changed = || self.changed_frame(&continued, annotated, clause, dialogue);
            (self.is_complete(&continued) || changed().is_some_and(|changed| self.is_complete(&changed)))
                .then_some(continued)
        };
        let Some(last) = dialogue.recent_frames().find_map(answering) else {
            let intent =
                self.intents.iter().position(|intent| intent.answers_aspects.iter().any(|known| known == name))?;
            let mut frame = self.new_frame(intent, class, annotated, clause, dialogue);
            // Words that ask for the aspect, such as "accessible", are not a condition.
            frame.unused.clear();
            return Some(frame);
        };
        let mut frame = self.changed_frame(&last, annotated, clause, dialogue).unwrap_or_else(|| last.repeated());
        frame.aspect = self.aspect(frame.intent, name);
        frame.unexplained = self.unexplained(annotated, clause, &[class], &[]);
        Some(frame)
    }

    fn aspect(&self, intent: usize, name: &str) -> Option<usize> {
        self.intents[intent].aspects.iter().position(|aspect| aspect.name == name)
    }

    /// Returns the frame of the intent that "yes" confirms.
    fn confirmed_frame(
        &self,
        clause: &Range<usize>,
        annotated: &AnnotatedUtterance,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let name = self.intents[last.intent].confirmed_by.as_ref()?;
        let intent = self.intents.iter().position(|intent| intent.name == *name)?;
        let filler = SlotFiller::new(&self.intents[intent], annotated, Slots::default());
        Some(filler.finish(intent, clause, dialogue))
    }

    /// Replaces the value of an ambiguous name with the next of its meanings.
    fn alternative_frame(&self, dialogue: &DialogueState) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let (name, choices) = last.alternatives.last()?;
        let current = last.slots.get(name)?;
        let at = choices.iter().position(|choice| choice.value == current.value)?;
        let mut frame = last.repeated();
        frame.slots.set(name, choices[(at + 1) % choices.len()].clone());
        Some(frame)
    }

    /// Replaces the value of an ambiguous name with the meaning that the message selects: "the one on Lexington".
    fn selected_frame(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Option<Frame> {
        let last = dialogue.frames.last()?;
        let (name, choices) = last.alternatives.last()?;
        let choice = self.select_choice(annotated, choices)?;
        let mut frame = last.repeated();
        frame.slots.set(name, choice.clone());
        Some(frame)
    }

    fn repeated_frames(&self, dialogue: &DialogueState) -> Option<Vec<Frame>> {
        (!dialogue.frames.is_empty()).then(|| dialogue.frames.iter().map(Frame::repeated).collect())
    }

    fn reversed_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let turned =
            |frame: &Frame| self.opposite_frame(frame).or_else(|| self.opposite_frame(&self.continued(frame)?));
        let turned = dialogue.recent_frames().find_map(turned)?;
        Some(self.changed_frame(&turned, annotated, clause, dialogue).unwrap_or(turned))
    }

    /// Returns a frame in the opposite direction; `None` if the frame has no direction.
    fn opposite_frame(&self, last: &Frame) -> Option<Frame> {
        let mut turned = last.repeated();
        turned.filled.clear();
        let mut has_turned = false;
        for (one, other) in &self.intents[last.intent].swaps {
            let (first, second) = (last.slots.get(one).cloned(), last.slots.get(other).cloned());
            has_turned |= first.is_some() || second.is_some();
            turned.slots.put(one, second);
            turned.slots.put(other, first);
        }
        for slot in &self.intents[last.intent].slots {
            let derived = |choice: &Choice| slot.opposite.and_then(|opposite| opposite(choice));
            let opposite = |choice: &Choice| choice.opposite.as_deref().cloned().or_else(|| derived(choice));
            let opposite = last.slots.get(&slot.name).and_then(opposite);
            if let Some(opposite) = opposite {
                has_turned = true;
                turned.slots.set(&slot.name, opposite);
            }
        }
        has_turned.then_some(turned)
    }

    /// Applies the mentions of a clause to the newest frame that has slots for them.
    fn newest_changed_frame(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        if let Some(frame) = self.frame_with_rejected(annotated, clause, dialogue) {
            return Some(frame);
        }
        dialogue.recent_frames().find_map(|frame| {
            let changed = self.changed_frame(frame, annotated, clause, dialogue);
            let continued = || {
                let continued = self.changed_frame(&self.continued(frame)?, annotated, clause, dialogue)?;
                self.is_complete(&continued).then_some(continued)
            };
            match changed {
                Some(changed) if changed.unused.is_empty() && !self.replaces_all(frame, &changed) => Some(changed),
                Some(changed) => {
                    let continued = continued().filter(|continued| continued.unused.len() <= changed.unused.len());
                    Some(continued.unwrap_or(changed))
                }
                None => continued(),
            }
        })
    }

    /// Replaces the Y of "X instead of Y" in the newest frame that has it.
    fn frame_with_rejected(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let rejected = SlotFiller::rejected_mentions(annotated, clause, true);
        let places = rejected.iter().map(|at| &annotated.mentions[*at]);
        let places = places.filter(|found| self.place_kind.as_ref() == Some(&found.kind));
        let rejected = places.flat_map(|found| &found.mention.choices);
        let rejected: Vec<&Choice> = rejected.collect();
        let has = |frame: &&Frame| {
            frame.slots.0.iter().any(|(_, value)| rejected.iter().any(|known| is_same_entity(known, value)))
        };
        dialogue.recent_frames().find(has).and_then(|frame| self.changed_frame(frame, annotated, clause, dialogue))
    }

    /// Whether a changed frame has another value in every required slot.
    fn replaces_all(&self, last: &Frame, changed: &Frame) -> bool {
        let required = || self.intents[last.intent].slots.iter().filter(|slot| slot.is_required);
        // "And at Bleecker?" after a board is the same question.
        required().count() > 1
            && required().all(|slot| {
                let (old, new) = (last.slots.get(&slot.name), changed.slots.get(&slot.name));
                old.map(|choice| &choice.value) != new.map(|choice| &choice.value)
            })
    }

    /// Returns the frame of the intent that continues a frame's. Its slots take the values of the slots that they are carried from, if
    /// they have no value of the same name: a trip after a departure board starts there.
    fn continued(&self, frame: &Frame) -> Option<Frame> {
        let name = self.intents[frame.intent].continued_by.as_ref()?;
        let intent = self.intents.iter().position(|intent| intent.name == *name)?;
        let mut slots = Slots::default();
        let mut alternatives = Vec::new();
        for slot in &self.intents[intent].slots {
            let names = std::iter::once(&slot.name).chain(&slot.carried_from);
            if let Some((name, choice)) = names.filter_map(|name| Some((name, frame.slots.get(name)?))).next() {
                slots.set(&slot.name, choice.clone());
                let of_slot = frame.alternatives.iter().filter(|(known, _)| known == name);
                alternatives.extend(of_slot.map(|(_, choices)| (slot.name.clone(), choices.clone())));
            }
        }
        Some(Frame { alternatives, ..Frame::restored(intent, slots) })
    }

    /// Whether all required slots of a frame have values.
    fn is_complete(&self, frame: &Frame) -> bool {
        let mut required = self.intents[frame.intent].slots.iter().filter(|slot| slot.is_required);
        required.all(|slot| frame.slots.get(&slot.name).is_some())
    }

    fn changed_frame(
        &self,
        last: &Frame,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let intent = &self.intents[last.intent];
        let mut filler = SlotFiller::continuing(intent, annotated, last);
        filler.apply_correction(clause);
        filler.fill_from_text(clause);
        filler.fill_from_mentions(clause, true);
        if !filler.has_filled() {
            return None;
        }
        let texts = filler.texts();
        let mut frame = filler.finish(last.intent, clause, dialogue);
        let class = self.classes.iter().position(|class| *class == Class::Intent(last.intent));
        let change = self.classes.iter().position(|class| *class == Class::Act(Act::Change));
        let correct = self.classes.iter().position(|class| *class == Class::Act(Act::Correct));
        let classes: Vec<usize> = class.into_iter().chain(change).chain(correct).collect();
        frame.unexplained = self.unexplained(annotated, clause, &classes, &texts);
        Some(frame)
    }

    /// Returns the positions of content words. Mentions, function words, cues and continuations are not content words.
    fn content_words(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> Vec<usize> {
        let is_continuation = |word: &str| {
            let mut all = self.phrases.iter().flat_map(|phrases| &phrases.continuations);
            all.any(|phrase| phrase.split(' ').any(|part| part == word))
        };
        content_words(annotated, clause, |word| self.is_cue(word) || is_continuation(word))
    }

    /// Whether a clause consists only of mentions and function words.
    fn has_only_mentions(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        self.content_words(annotated, clause).is_empty()
    }

    /// Whether a clause has words other than mentions and the words that connect them.
    fn has_own_words(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let is_mentioned = |at: usize| annotated.mentions.iter().any(|found| found.mention.words.contains(&at));
        let is_connecting = |at: usize| {
            let word = annotated.utterance.word(at);
            self.is_cue(word) || matches!(word, "the" | "a" | "el" | "la" | "train" | "station")
        };
        clause.clone().any(|at| !is_mentioned(at) && !is_connecting(at))
    }

    /// Returns the content words that occur in no example of these classes and that no text slot took.
    fn unexplained(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        classes: &[usize],
        texts: &[Range<usize>],
    ) -> Vec<String> {
        let is_explained = |at: &usize| {
            if texts.iter().any(|words| words.contains(at)) {
                return true;
            }
            let word = annotated.utterance.word(*at);
            classes.iter().any(|class| self.classifier.is_attested(word, *class))
        };
        let words = self.content_words(annotated, clause).into_iter().filter(|at| !is_explained(at));
        words.map(|at| annotated.utterance.said(at..at + 1).to_owned()).collect()
    }

    /// Whether at least half of the content words are explained by the intent and its mentions.
    fn is_explained(&self, frame: &Frame, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let words = self.content_words(annotated, clause).len();
        let mentions = annotated.within(clause).count();
        frame.unexplained.len() * 2 <= words + mentions
    }

    /// Whether most content words occur in no example.
    fn is_unfamiliar(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        let words = self.content_words(annotated, clause);
        let is_known = |at: &&usize| self.classifier.is_known(annotated.utterance.word(**at));
        let known = words.iter().filter(is_known).count();
        !words.is_empty() && known * 2 < words.len()
    }

    /// Splits a message at the ends of sentences and at conjunctions if both sides are separate questions.
    fn clauses(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Vec<Range<usize>> {
        let mut rest = 0..annotated.utterance.words().len();
        let mut clauses = Vec::new();
        for Border { end, start, is_comma } in self.borders(&annotated.utterance) {
            if clauses.len() + 1 == MAX_QUESTIONS || end <= rest.start || start >= rest.end {
                continue;
            }
            let (left, right) = (rest.start..end, start..rest.end);
            let corrects = self.corrects(annotated, &left, dialogue);
            if is_comma && !corrects {
                continue;
            }
            let mut parts = [&left, &right].map(|clause| self.score_as_question(annotated, clause, dialogue));
            if corrects {
                parts[0] = parts[0].or(parts[1].filter(|_| self.asks(annotated, &right)));
            }
            let whole = self.best_score(annotated, &rest);
            // If one question leaves mentions unused, the message is more likely to contain two questions.
            let least = || {
                if self.leaves_mentions(annotated, &rest, dialogue) {
                    MIN_PERCENT_IF_UNUSED
                } else {
                    MIN_PERCENT_OF_WHOLE
                }
            };
            if let [Some(left_score), Some(right_score)] = parts
                && (corrects || left_score.min(right_score) * 100 > whole * least())
            {
                clauses.push(left);
                rest = right;
            }
        }
        clauses.push(rest);
        clauses
    }

    /// Whether a clause starts as a question.
    fn asks(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> bool {
        const ASKING: [&str; 14] = [
            "is", "are", "does", "do", "can", "which", "what", "whats", "when", "whens", "where", "how", "any", "next",
        ];
        ASKING.contains(&annotated.utterance.word(clause.start))
    }

    /// Whether the best intent of a clause leaves mentions unused.
    fn leaves_mentions(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>, dialogue: &DialogueState) -> bool {
        let ranked = self.rank(annotated, clause, dialogue);
        let Some((class, _)) = ranked.first() else { return false };
        match self.classes[*class] {
            Class::Intent(intent) => !self.new_frame(intent, *class, annotated, clause, dialogue).unused.is_empty(),
            _ => false,
        }
    }

    fn best_score(&self, annotated: &AnnotatedUtterance, clause: &Range<usize>) -> i64 {
        let features = self.classifier.features(&annotated.tokens(clause));
        self.classifier.scores(&features).first().map_or(0, |best| best.score)
    }

    /// Returns the score of a clause if it is a separate question.
    fn score_as_question(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<i64> {
        let features = self.classifier.features(&annotated.tokens(clause));
        let best = self.classifier.scores(&features).into_iter().next()?;
        let is_intent = match &self.classes[best.class] {
            Class::Intent(intent) => {
                let intent = &self.intents[*intent];
                // A text slot may contain sentences and conjunctions.
                !intent.slots.iter().any(|slot| slot.is_text) || intent.is_about_user
            }
            Class::Aspect(_) => true,
            Class::Act(Act::Reverse | Act::Again) => !dialogue.frames.is_empty(),
            Class::Answer(answer) => self.referrals.contains(answer) && best.score >= MIN_REFERRAL_SCORE,
            Class::Act(_) | Class::OffTopic | Class::Absent => false,
        };
        let mentions = annotated.within(clause).count();
        let has_content = self.has_own_words(annotated, clause) || mentions > 1;
        let is_question = is_intent && best.score >= MIN_SPLIT_SCORE && has_content;
        is_question.then_some(best.score)
    }

    /// Interprets a message as the answer to an open question of the model.
    fn answer_open_slot(
        &self,
        annotated: &AnnotatedUtterance,
        clause: &Range<usize>,
        dialogue: &DialogueState,
    ) -> Option<Frame> {
        let frame = dialogue.frames.iter().find(|frame| !frame.open.is_empty())?;
        let (open, later) = frame.open.split_first()?;
        let intent = &self.intents[frame.intent];
        let kind = &intent.slots[open.slot].kind;
        let mentioned = annotated.mentions.iter().position(|found| found.kind == *kind);
        let selected = self.select_choice(annotated, &open.choices).cloned().map(|choice| vec![choice]);
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
        filler.fill_from_mentions(clause, false);
        let mut answered = filler.finish(frame.intent, clause, dialogue);
        answered.open.retain(|new| new.slot != open.slot && later.iter().all(|known| known.slot != new.slot));
        let is_unfilled = |open: &OpenSlot| answered.slots.get(&intent.slots[open.slot].name).is_none();
        let later: Vec<OpenSlot> = later.iter().filter(|open| is_unfilled(open)).cloned().collect();
        answered.open.splice(0..0, still_open.into_iter().chain(later));
        Some(answered)
    }

    fn select_choice<'a>(&self, annotated: &AnnotatedUtterance, choices: &'a [Choice]) -> Option<&'a Choice> {
        self.phrases.iter().find_map(|phrases| select_choice(annotated, choices, &phrases.ordinals))
    }

    /// Returns the positions where one question may end and another start.
    fn borders(&self, utterance: &Utterance) -> Vec<Border> {
        let is_conjunction =
            |word: &str| self.phrases.iter().flat_map(|phrases| &phrases.conjunctions).any(|known| known == word);
        let words = utterance.words().iter().enumerate();
        let borders = words.filter_map(|(at, word)| {
            let next = utterance.words().get(at + 1).map_or(word.place.end, |next| next.place.start);
            let between = &utterance.text()[word.place.end..next];
            if word.ends_sentence || between.starts_with(": ") {
                Some(Border { end: at + 1, start: at + 1, is_comma: false })
            } else if between.contains(',') {
                Some(Border { end: at + 1, start: at + 1, is_comma: true })
            } else {
                is_conjunction(&word.folded).then_some(Border { end: at, start: at + 1, is_comma: false })
            }
        });
        borders.collect()
    }
}

/// A position where one question may end and another start.
#[derive(Clone, Copy, Debug)]
struct Border {
    /// The end of the first question.
    end: usize,
    /// The start of the second one.
    start: usize,
    /// Whether only a comma separates them.
    is_comma: bool,
}

/// Restricts the meanings of a new name to the offered choices, if any of them match.
fn restrict_choices(mentioned: &[Choice], offered: &[Choice]) -> Vec<Choice> {
    let both: Vec<Choice> =
        mentioned.iter().filter(|choice| offered.iter().any(|known| known.value == choice.value)).cloned().collect();
    if both.is_empty() { mentioned.to_vec() } else { both }
}
