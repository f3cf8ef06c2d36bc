//! Understands messages without a language model.
//!
//! [`OfflineModel`] is a `ChatModel`: it matches messages against the intents that an assistant declares, and turns them into
//! tool calls. [`Classifier`] finds the class of a message with integer weights that were trained on example phrases.
//!
//! [`Turn`] interprets a request: the question, the tools called for it, and their results.
#![warn(missing_docs)]

mod acts;
mod annotated;
pub mod classifier;
mod dialogue_state;
mod extract;
mod frame;
mod history;
mod intent;
mod model;
mod outcome;
mod phrases;
mod places;
mod quote;
mod resolver;
mod respond;
mod templates;
pub mod time;
mod turn;
mod utterance;

pub use acts::Act;
pub use classifier::Classifier;
pub use extract::{Choice, Extractor, Mention, Names, Numbers};
pub use intent::{Intent, Slot, Slots};
pub use model::{LazyOfflineModel, OfflineModel, OfflineModelBuilder, OfflineModelError, Unanswered};
pub use outcome::Outcome;
pub use phrases::Phrases;
pub use quote::{Passage, is_question};
pub use templates::{PhraseError, Section, expand, sections};
pub use turn::{Exchange, Turn};
pub use utterance::{Utterance, Word};
