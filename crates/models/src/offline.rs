//! A model without a network: it turns what it knows how to read into tool calls, and their results into plain answers.

mod extract;
mod frame;
mod history;
mod intent;
mod memory;
mod mind;
mod outcome;
mod pattern;
mod phrases;
mod quote;
mod reading;
mod respond;
mod utterance;

use std::fmt;

use async_trait::async_trait;
use threadkeep_core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, ModelError, Portable};

pub use extract::{Choice, Extractor, Mention, Names, Numbers};
pub use intent::{Intent, Slot, Slots};
pub use outcome::Outcome;
pub use phrases::Phrases;
pub use quote::{Passage, is_question};
pub use utterance::{Utterance, Word};

use crate::Turn;
use mind::Mind;

/// What an offline model is called, in a turn and in its answers.
const NAME: &str = "offline";

/// A [`ChatModel`] without a network. An assistant declares what its users may want ([`Intent`]) and what they may
/// mention ([`Extractor`]); a message becomes the tool calls that a language model would make, and their results a plain
/// answer.
///
/// It keeps nothing: everything comes from the request, so the same request has the same answer. Follow-ups ("and the
/// express?") are read from the messages before, as far as the context shows them. What it does not understand it says,
/// and what it is, too.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use threadkeep_core::{ChatMessage, ChatModel, ChatRequest, JsonText, Role, ToolDescription};
/// use threadkeep_models::{Intent, Names, OfflineModel, Slot};
///
/// let model = OfflineModel::builder("I know when the library is open.")
///     .kind("day", Names::words(["Monday", "Tuesday", "Sunday"]))
///     .intent(
///         Intent::new("opening")
///             .example("When do you open on Sunday?")
///             .pattern("when|what open*|close*")
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
///     description: "Says when the library is open.".to_owned(),
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
/// let call = answer.tool_calls().next().expect("it has all it needs");
/// assert_eq!((call.name.as_str(), call.arguments.as_str()), ("opening_hours", r#"{"day":"Sunday"}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OfflineModel {
    about: String,
    mind: Mind,
    otherwise: Vec<Otherwise>,
    quotes: Option<Box<dyn Passages>>,
}

/// Answers what no intent explains.
type Otherwise = Box<dyn Answers>;
/// Finds passages in a request.
trait Passages: Portable + Fn(&Turn<'_>) -> Vec<Passage> {}
impl<F: Portable + Fn(&Turn<'_>) -> Vec<Passage>> Passages for F {}

trait Answers: Portable + Fn(&Turn<'_>) -> Option<String> {}
impl<F: Portable + Fn(&Turn<'_>) -> Option<String>> Answers for F {}

impl OfflineModel {
    /// Begins a model. `about` says in a sentence what it is good for; it stands in what it says of itself.
    #[must_use]
    pub fn builder(about: impl Into<String>) -> OfflineModelBuilder {
        let model = Self { about: about.into(), mind: Mind::default(), otherwise: Vec::new(), quotes: None };
        OfflineModelBuilder { model }
    }
}

impl fmt::Debug for OfflineModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfflineModel").field("intents", &self.mind.intents).finish_non_exhaustive()
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

/// Makes an [`OfflineModel`].
#[derive(Debug)]
pub struct OfflineModelBuilder {
    model: OfflineModel,
}

impl OfflineModelBuilder {
    /// Says how things of a kind are found in what a user says.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>, extractor: impl Extractor) -> Self {
        self.model.mind.kinds.push((kind.into(), Box::new(extractor)));
        self
    }

    /// Lets words ("there", "that one") stand for the thing of a kind that was mentioned last. A single word does so
    /// where it ends a sentence or stands behind a cue.
    #[must_use]
    pub fn pronoun(mut self, words: &str, kind: impl Into<String>) -> Self {
        self.model.mind.pronouns.push((utterance::folded_words(words), kind.into()));
        self
    }

    /// Adds something that a user may want.
    #[must_use]
    pub fn intent(mut self, intent: Intent) -> Self {
        self.model.mind.intents.push(intent);
        self
    }

    /// Answers what no intent explains, or leaves it to the next: a refusal, a quotation. Several are asked in order.
    #[must_use]
    pub fn otherwise(mut self, answers: impl Fn(&Turn<'_>) -> Option<String> + Portable) -> Self {
        self.model.otherwise.push(Box::new(answers));
        self
    }

    /// Answers what no intent explains by quoting what the user said before ("You said on 2026-05-04: …"), as far as the
    /// context shows or recalls it, and passages from elsewhere: documents that stand in the request.
    #[must_use]
    pub fn quotes(mut self, passages: impl Fn(&Turn<'_>) -> Vec<Passage> + Portable) -> Self {
        self.model.quotes = Some(Box::new(passages));
        self
    }

    /// Speaks with these phrases; without, in English.
    #[must_use]
    pub fn phrases(mut self, phrases: Phrases) -> Self {
        self.model.mind.phrases = phrases;
        self
    }

    /// Finishes it.
    ///
    /// # Errors
    /// An intent asks for a kind that nothing finds or results yield, or two intents share a name.
    pub fn build(self) -> Result<OfflineModel, OfflineModelError> {
        let mind = &self.model.mind;
        let is_known = |kind: &str| mind.kinds.iter().any(|(known, _)| known == kind);
        for (index, intent) in mind.intents.iter().enumerate() {
            if mind.intents[..index].iter().any(|other| other.name == intent.name) {
                return Err(OfflineModelError::SameIntent(intent.name.clone()));
            }
            let captured: Vec<&str> = intent.patterns.iter().filter_map(|pattern| pattern.capture()).collect();
            let slots = intent.slots.iter().filter(|slot| !captured.contains(&slot.name.as_str()));
            let named = intent.patterns.iter().chain(&intent.excluded).flat_map(|pattern| pattern.kinds());
            for kind in named.chain(slots.map(|slot| slot.kind.as_str())) {
                if !is_known(kind) {
                    let (intent, kind) = (intent.name.clone(), kind.to_owned());
                    return Err(OfflineModelError::UnknownKind { intent, kind });
                }
            }
        }
        Ok(self.model)
    }
}

/// What is wrong with an offline model as it was declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfflineModelError {
    /// Two intents share a name.
    #[error("intent {0} is declared twice")]
    SameIntent(String),
    /// Nothing finds things of this kind.
    #[error("intent {intent} asks for the kind {kind}, which nothing finds")]
    UnknownKind {
        /// The intent.
        intent: String,
        /// The kind.
        kind: String,
    },
}
