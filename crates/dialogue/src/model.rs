//! A model without a network: it matches messages against declared intents, turns them into tool calls, and renders their
//! results.

use std::fmt;
use std::sync::LazyLock;

use async_trait::async_trait;
use threadkeep_core::{ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, DeltaSink, ModelError, Portable};

use crate::acts::{self, Act};
use crate::annotated::AnnotatedUtterance;
use crate::classifier::{Classifier, tokens_with};
use crate::extract::Extractor;
use crate::intent::Intent;
use crate::phrases::Phrases;
use crate::quote::Passage;
use crate::resolver::IntentResolver;
use crate::templates::{PhraseError, sections};
use crate::turn::Turn;
use crate::utterance::{Utterance, folded_words};

/// The name of the model.
pub(crate) const NAME: &str = "offline";

/// A [`ChatModel`] without a network. An assistant declares the intents of its users ([`Intent`]) and the entities that
/// they mention ([`Extractor`]). The model converts a message into the tool calls that a language model would make, and
/// their results into an answer.
///
/// The model is stateless: the answer depends only on the request. Follow-ups ("and the express?") refer to the earlier
/// messages that the context includes. If the model does not understand a message, it says so. If asked, it says that
/// it is not a language model.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use threadkeep_core::{ChatMessage, ChatModel, ChatRequest, JsonText, Role, ToolDescription};
/// use threadkeep_dialogue::{Intent, Names, OfflineModel, Slot};
///
/// let model = OfflineModel::builder("I know when the library is open.")
///     .kind("day", Names::words(["Monday", "Tuesday", "Sunday"]))
///     .intent(
///         Intent::new("opening")
///             .example("When do you open on Sunday?")
///             .examples(["when do you open (on {day}|)", "what are the opening hours", "until when are you open"])
///             .slot(Slot::required("day", "day").asks("On which day?"))
///             .calls("opening_hours")
///             .says(|outcome| {
///                 let hours = outcome.result("opening_hours");
///                 format!("On {} from {} to {}.", outcome.slots().label("day"), hours["from"], hours["to"])
///             }),
///     )
///     .build()?;
///
/// let tool = ToolDescription {
///     name: "opening_hours".to_owned(),
///     description: "Returns the opening hours of the library.".to_owned(),
///     parameters: JsonText::new(r#"{"type": "object"}"#)?,
///     is_strict: None,
/// };
/// let mut request = ChatRequest {
///     messages: vec![ChatMessage::text(Role::User, "When do you open?")],
///     tools: vec![tool],
///     ..ChatRequest::default()
/// };
/// let answer = model.answer(&request, &mut |_| {}).await?;
/// assert_eq!(answer.text(), "On which day?");
///
/// request.messages.extend([answer.message(), ChatMessage::text(Role::User, "Sunday")]);
/// let answer = model.answer(&request, &mut |_| {}).await?;
/// let call = answer.tool_calls().next().expect("the slot is filled");
/// assert_eq!((call.name.as_str(), call.arguments.as_str()), ("opening_hours", r#"{"day":"Sunday"}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OfflineModel {
    pub(crate) about: String,
    /// Example messages of classes that are not intents, such as aspects and off-topic messages.
    examples: Vec<(String, String)>,
    weights: Option<Classifier>,
    pub(crate) resolver: IntentResolver,
    pub(crate) fallbacks: Vec<Fallback>,
    pub(crate) replies: Vec<(Act, Reply)>,
    /// The functions that answer classes, in the order of the resolver's classes.
    pub(crate) answers: Vec<Reply>,
    pub(crate) quotes: Option<Box<dyn PassagesFn>>,
    /// The intents whose messages count as not understood if they lead to no call.
    pub(crate) unanswered_without_call: Vec<String>,
    /// Completes a message that continues an earlier one.
    pub(crate) completes: Option<CompletesFn>,
    /// Whether `completes` reads the earlier messages as the user wrote them.
    pub(crate) completes_from_said: bool,
}

/// A function that completes a message from the messages before it.
pub(crate) type CompletesFn = fn(&str, &[ChatMessage]) -> Option<String>;

/// Why a message could not be resolved to intents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The message concerns none of the intents.
    OffTopic,
    /// No intent is likely enough.
    NotUnderstood,
}

/// A fallback for messages that match no intent.
pub(crate) type Fallback = Box<dyn FallbackFn>;
pub(crate) trait FallbackFn: Portable + Fn(&Turn<'_>, Unanswered) -> Option<String> {}
impl<F: Portable + Fn(&Turn<'_>, Unanswered) -> Option<String>> FallbackFn for F {}

/// A reply to an act.
pub(crate) type Reply = Box<dyn ReplyFn>;
pub(crate) trait ReplyFn: Portable + Fn(&Turn<'_>) -> String {}
impl<F: Portable + Fn(&Turn<'_>) -> String> ReplyFn for F {}

/// A function that finds passages in a request.
pub(crate) trait PassagesFn: Portable + Fn(&Turn<'_>) -> Vec<Passage> {}
impl<F: Portable + Fn(&Turn<'_>) -> Vec<Passage>> PassagesFn for F {}

impl OfflineModel {
    /// Starts the declaration of a model. `about` is a sentence about the purpose of the assistant, which is part of
    /// the model's description of itself.
    #[must_use]
    pub fn builder(about: impl Into<String>) -> OfflineModelBuilder {
        let model = Self {
            about: about.into(),
            examples: Vec::new(),
            weights: None,
            resolver: IntentResolver::default(),
            fallbacks: Vec::new(),
            replies: Vec::new(),
            answers: Vec::new(),
            quotes: None,
            unanswered_without_call: Vec::new(),
            completes: None,
            completes_from_said: false,
        };
        OfflineModelBuilder { model }
    }
}

impl OfflineModel {
    /// Returns the classes of a message with their scores, best first, without regard to a conversation. Useful for
    /// tuning the examples.
    #[must_use]
    pub fn scores(&self, message: &str) -> Vec<(String, i64)> {
        self.resolver.scores(message)
    }
}

impl fmt::Debug for OfflineModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfflineModel").field("intents", &self.resolver.intents).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for OfflineModel {
    fn name(&self) -> &str {
        NAME
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let answer = self.respond(request);
        let text = answer.text();
        if !text.is_empty() {
            deltas(ChatDelta::Text(text));
        }
        Ok(answer)
    }
}

/// An [`OfflineModel`] that is built for its first request. Building one takes milliseconds and megabytes, and most programs open
/// assistants that are never asked anything.
pub struct LazyOfflineModel(LazyLock<OfflineModel>);

impl LazyOfflineModel {
    /// Takes the function that builds the model.
    #[must_use]
    pub const fn new(build: fn() -> OfflineModel) -> Self {
        Self(LazyLock::new(build))
    }
}

impl fmt::Debug for LazyOfflineModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyOfflineModel").finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for LazyOfflineModel {
    fn name(&self) -> &str {
        NAME
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        self.0.answer(request, deltas).await
    }
}

/// Builds an [`OfflineModel`].
#[derive(Debug)]
pub struct OfflineModelBuilder {
    model: OfflineModel,
}

impl OfflineModelBuilder {
    /// Declares a kind of entity and how to find it in a message.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>, extractor: impl Extractor) -> Self {
        self.model.resolver.kinds.push((kind.into(), Box::new(extractor)));
        self
    }

    /// Declares words ("there", "that one") that refer to the last mentioned entity of a kind. A single word is a
    /// pronoun only at the end of a sentence or after a cue.
    #[must_use]
    pub fn pronoun(mut self, words: &str, kind: impl Into<String>) -> Self {
        self.model.resolver.pronouns.push((folded_words(words), kind.into()));
        self
    }

    /// Declares words ("avoid it") that refer to the last mentioned entity of a kind or of another kind with the same values.
    #[must_use]
    pub fn pronoun_of(mut self, words: &str, kind: impl Into<String>, other: impl Into<String>) -> Self {
        let kind = kind.into();
        self.model.resolver.pronoun_kinds.push((kind.clone(), other.into()));
        self.pronoun(words, kind)
    }

    /// Declares phrases that ask for an aspect of the answer, such as "travel time". A message that is otherwise not understood, and
    /// that consists of them and of entities, asks for this aspect of the last answer.
    #[must_use]
    pub fn asked_by(mut self, class: &str, phrases: &[&str]) -> Self {
        let phrases = phrases.iter().map(|phrase| folded_words(phrase)).collect();
        self.model.resolver.aspect_phrases.push((class.to_owned(), phrases));
        self
    }

    /// Declares that messages for which `asks` returns true also ask for an aspect of the answer, whatever they change: "and back, when
    /// is the next one?"
    #[must_use]
    pub fn asked_if(mut self, class: &str, asks: fn(&Utterance) -> bool) -> Self {
        self.model.resolver.aspect_tests.push((class.to_owned(), asks));
        self
    }

    /// Declares the kind of places. "The hotel" can then refer to a place mentioned earlier, and the model asks about a
    /// place in the message that fills no slot.
    #[must_use]
    pub fn places(mut self, kind: impl Into<String>) -> Self {
        self.model.resolver.place_kind = Some(kind.into());
        self
    }

    /// Declares an intent.
    #[must_use]
    pub fn intent(mut self, intent: Intent) -> Self {
        self.model.resolver.intents.push(intent);
        self
    }

    /// Sets the reply to an act that refers to no intent. Default: a phrase of [`Phrases`].
    #[must_use]
    pub fn reply(mut self, act: Act, reply: impl Fn(&Turn<'_>) -> String + Portable) -> Self {
        self.model.replies.push((act, Box::new(reply)));
        self
    }

    /// Answers messages of a class without slots and calls, such as statements, or questions that are answered by
    /// quotations.
    #[must_use]
    pub fn answer(mut self, class: &str, reply: impl Fn(&Turn<'_>) -> String + Portable) -> Self {
        self.model.resolver.answers.push(class.to_owned());
        self.model.answers.push(Box::new(reply));
        self
    }

    /// Like [`answer`](Self::answer), but also answers a question of the class if it is one of several in a message:
    /// "and the way back, and what is the fare?".
    #[must_use]
    pub fn referral(mut self, class: &str, reply: impl Fn(&Turn<'_>) -> String + Portable) -> Self {
        self.model.resolver.referrals.push(self.model.resolver.answers.len());
        self.answer(class, reply)
    }

    /// Answers a message as not understood if it expresses this intent, but leads to no call: a preference without a value.
    #[must_use]
    pub fn unanswered_without_call(mut self, intent: impl Into<String>) -> Self {
        self.model.unanswered_without_call.push(intent.into());
        self
    }

    /// Corrects misspelt words before messages are interpreted. `correct` returns the normalized word that the word at a position
    /// stands for, or `None`.
    #[must_use]
    pub fn spelling(mut self, correct: fn(&Utterance, usize) -> Option<String>) -> Self {
        self.model.resolver.spelling = Some(correct);
        self
    }

    /// Completes messages that continue an earlier one in a way specific to the assistant's domain: "plus 20%" after a
    /// calculation. `complete` returns the complete message, given the message and those before it, or `None`.
    #[must_use]
    pub fn completes(mut self, complete: fn(&str, &[ChatMessage]) -> Option<String>) -> Self {
        self.model.completes = Some(complete);
        self
    }

    /// As [`Self::completes`], but `complete` reads the messages before as the user wrote them. A complete message lacks statements that
    /// later messages may refer to.
    #[must_use]
    pub fn completes_from_said(self, complete: fn(&str, &[ChatMessage]) -> Option<String>) -> Self {
        let mut builder = self.completes(complete);
        builder.model.completes_from_said = true;
        builder
    }

    /// Adds a fallback for messages that match no intent, such as a refusal. Fallbacks are called in order; `None` passes
    /// the message to the next one.
    #[must_use]
    pub fn otherwise(mut self, answers: impl Fn(&Turn<'_>, Unanswered) -> Option<String> + Portable) -> Self {
        self.model.fallbacks.push(Box::new(answers));
        self
    }

    /// Answers messages that match no intent with quotations: of earlier user messages that the context includes or recalls
    /// ("You said on 2026-05-04: …"), and of other passages, such as documents in the request.
    #[must_use]
    pub fn quotes(mut self, passages: impl Fn(&Turn<'_>) -> Vec<Passage> + Portable) -> Self {
        self.model.quotes = Some(Box::new(passages));
        self
    }

    /// Adds the phrases of a language. Messages in this language are answered with them. The first language is the
    /// default. Without any phrases, the model uses English.
    #[must_use]
    pub fn phrases(mut self, phrases: Phrases) -> Self {
        self.model.resolver.phrases.push(phrases);
        self
    }

    /// Adds example messages of a class: of an aspect (`ask:duration`), an act, an intent, or `off_topic`.
    #[must_use]
    pub fn examples<'a>(mut self, class: &str, examples: impl IntoIterator<Item = &'a str>) -> Self {
        self.model.examples.extend(examples.into_iter().map(|example| (class.to_owned(), example.to_owned())));
        self
    }

    /// Adds the example messages of a phrase file.
    ///
    /// # Errors
    /// A line is outside a section, or its parentheses or braces are not balanced.
    pub fn phrase_file(mut self, text: &str) -> Result<Self, PhraseError> {
        for section in sections(text)? {
            self = self.examples(section.class, section.lines);
        }
        Ok(self)
    }

    /// Uses a trained classifier. Without one, [`build`](Self::build) trains one, which takes time.
    #[must_use]
    pub fn classifier(mut self, classifier: Classifier) -> Self {
        self.model.weights = Some(classifier);
        self
    }

    /// Trains the classifier on all example messages.
    #[must_use]
    pub fn train(&self) -> Classifier {
        let intents = self.model.resolver.intents.iter();
        let of_intents =
            intents.flat_map(|intent| intent.examples.iter().map(|example| (intent.name.as_str(), example.as_str())));
        let others = self.model.examples.iter().map(|(class, example)| (class.as_str(), example.as_str()));
        let kinds: Vec<&str> = self.model.resolver.kinds.iter().map(|(kind, _)| kind.as_str()).collect();
        // Examples are tokenized like messages, so that names of entities in examples are mentions.
        let mentions = |text: &str| {
            let annotated = AnnotatedUtterance::of(Utterance::new(text), &self.model.resolver.kinds);
            annotated.tokens(&(0..annotated.utterance.words().len()))
        };
        acts::train(&acts::examples(of_intents.chain(others), &kinds), |text| tokens_with(text, mentions))
    }

    /// Checks in a test that `weights` equal the result of training. If the environment contains `THREADKEEP_TRAIN`,
    /// writes the result of training to `path` instead.
    ///
    /// # Panics
    /// If the weights differ, or the file cannot be written.
    pub fn check_classifier(&self, path: &str, weights: &[u8]) {
        let trained = self.train().to_bytes();
        if std::env::var_os("THREADKEEP_TRAIN").is_some() {
            std::fs::write(path, trained).expect("the file can be written");
        } else {
            assert!(trained == weights, "the phrases changed: run `cargo xtask train`");
        }
    }

    /// Builds the model.
    ///
    /// # Errors
    /// An intent uses an undeclared kind, or two intents have the same name.
    pub fn build(self) -> Result<OfflineModel, OfflineModelError> {
        let resolver = &self.model.resolver;
        let is_known = |kind: &str| resolver.kinds.iter().any(|(known, _)| known == kind);
        for (index, intent) in resolver.intents.iter().enumerate() {
            if resolver.intents[..index].iter().any(|other| other.name == intent.name) {
                return Err(OfflineModelError::SameIntent(intent.name.clone()));
            }
            let kinds = intent.slots.iter().filter(|slot| !slot.is_text).map(|slot| slot.kind.as_str());
            if let Some(kind) = kinds.into_iter().find(|kind| !is_known(kind)) {
                return Err(OfflineModelError::UnknownKind { intent: intent.name.clone(), kind: kind.to_owned() });
            }
        }
        let classifier = self.model.weights.clone().unwrap_or_else(|| self.train());
        let mut model = self.model;
        if model.resolver.phrases.is_empty() {
            model.resolver.phrases.push(Phrases::english());
        }
        model.resolver.set_classifier(classifier);
        Ok(model)
    }
}

/// An error in the declaration of an offline model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfflineModelError {
    /// Two intents have the same name.
    #[error("intent {0} is declared twice")]
    SameIntent(String),
    /// An intent uses an undeclared kind.
    #[error("intent {intent} uses the undeclared kind {kind}")]
    UnknownKind {
        /// The intent.
        intent: String,
        /// The kind.
        kind: String,
    },
}
