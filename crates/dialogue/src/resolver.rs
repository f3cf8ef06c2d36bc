//! Resolves the last message of a conversation to intents with filled slots.

mod annotation;
mod changes;
mod clause;
mod context;
mod coverage;
mod decided;
mod follow_ups;
mod questions;
mod ranking;
mod subject;

use std::ops::Range;

use threadkeep_core::text::Language;
use threadkeep_core::{Role, Value};

use crate::acts::{Act, OFF_TOPIC};
use crate::annotated::AnnotatedUtterance;
use crate::classifier::Classifier;
use crate::dialogue_state::DialogueState;
use crate::extract::{Choice, Extractor};
use crate::frame::Frame;
use crate::history::History;
use crate::intent::{Intent, Slots};
use crate::outcome::Outcome;
use crate::phrases::Phrases;
use crate::turn::{Exchange, exchanges};
use crate::utterance::Utterance;

/// The maximum number of questions into which a message is split.
const MAX_QUESTIONS: usize = 4;
/// The number of earlier user messages that a message can refer to.
const MAX_EARLIER_MESSAGES: usize = 20;

/// The minimum score of an accepted class.
const MIN_SCORE: i64 = 250;
/// The minimum score of an intent, in percent of the best score, at which a message is not off topic.
const NEARLY_BEST_PERCENT: i64 = 85;
/// The minimum score at which part of a message is a separate question.
const MIN_SPLIT_SCORE: i64 = 500;
/// The number of classes that are tried, best first.
const MAX_TRIED: usize = 4;

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

/// A function that returns whether a message asks for an aspect.
pub(crate) type AsksFn = fn(&Utterance) -> bool;

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
    /// The indexes of those `answers` that may also be one of several questions in a message.
    pub(crate) referrals: Vec<usize>,
    /// The phrases that ask for an aspect, by its class.
    pub(crate) aspect_phrases: Vec<(String, Vec<Vec<String>>)>,
    /// The classes of aspects, and whether a message also asks for them.
    pub(crate) aspect_tests: Vec<(String, AsksFn)>,
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

    /// Returns the frame of the intent that calls this tool, with the arguments as its slots.
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
        if exchanges.is_empty() {
            return;
        }
        for (at, frame) in dialogue.frames.clone().iter().enumerate() {
            let intent = &self.intents[frame.intent];
            let (slots, exchanges) = (&frame.slots, exchanges.clone());
            let outcome = Outcome { slots, exchanges, language: Language::English, aspect: None };
            if let Some((name, reads)) = &intent.records {
                dialogue.frames[at].slots.put(name, reads(&outcome));
            }
            for (kind, choice) in intent.yields.iter().flat_map(|yields| yields(&outcome)) {
                dialogue.learn(&kind, &choice);
            }
        }
    }

    fn resolve_annotated(&self, annotated: &AnnotatedUtterance, dialogue: &DialogueState) -> Resolution {
        if let Some(act) = self.closing_act(annotated) {
            return Resolution::Act(act);
        }
        let clauses = self.clauses(annotated, dialogue).into_iter();
        let clauses: Vec<Range<usize>> = clauses.map(|clause| self.without_interjections(annotated, clause)).collect();
        let whole = self.resolve_questions(annotated, &clauses, dialogue);
        match &clauses[..] {
            [clause] => {
                let apart = self.after_context(annotated, clause, dialogue, &whole);
                apart.or_else(|| self.before_aside(annotated, clause, dialogue, &whole)).unwrap_or(whole)
            }
            _ => whole,
        }
    }

    /// Whether a frame adds nothing to a statement about the user that the same message made before.
    fn only_confirms(&self, frame: &Frame, earlier: &[Frame]) -> bool {
        let is_statement = |frame: &Frame| self.intents[frame.intent].is_about_user;
        is_statement(frame) && frame.filled.is_empty() && earlier.iter().any(is_statement)
    }

    /// Resolves the questions of a message.
    fn resolve_questions(
        &self,
        annotated: &AnnotatedUtterance,
        clauses: &[Range<usize>],
        dialogue: &DialogueState,
    ) -> Resolution {
        let mut dialogue = dialogue.clone();
        let mut frames: Vec<Frame> = Vec::new();
        let mut answers: Vec<usize> = Vec::new();
        let mut other = None;
        for (index, clause) in clauses.iter().enumerate() {
            // A correction before a question is only context for it, so its frames are dropped.
            if index > 0 && self.corrects(annotated, &clauses[index - 1], &dialogue) {
                frames.clear();
            }
            let clause = clause.clone();
            match self.resolve_by_subject(annotated, &clause, &dialogue) {
                // "Home is X. Save it too" is saved once.
                Resolution::Frames(found) if found.iter().all(|frame| self.only_confirms(frame, &frames)) => {}
                Resolution::Frames(found) => {
                    for found in annotated.within(&clause) {
                        if let [choice] = &found.mention.choices[..] {
                            dialogue.mention(&found.kind, choice);
                        }
                    }
                    let of_both = |frame: &Frame| {
                        let compared = || self.compared(frame, annotated, &clause, &dialogue);
                        self.of_both(frame, annotated, &clause, &dialogue).or_else(compared)
                    };
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
}
