use serde::{Deserialize, Serialize};
use threadkeep_core::{TokenCount, limits};

use crate::ContextError;

/// Determines what a context contains and how it is rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextPolicy {
    /// The system prompt: the first message, never truncated.
    pub system_prompt: Option<String>,
    /// The maximum number of messages of the thread, including tool calls and results. `None` for no limit other than the
    /// budget. Default: 20.
    pub window: Option<usize>,
    /// The maximum number of tokens of the rendered context. `None` for no limit. Default: none.
    pub budget: Option<TokenCount>,
    /// The maximum length of a message of the history in Unicode scalar values; longer ones are truncated. Does not apply to
    /// the newest message.
    pub message_characters: Option<usize>,
    /// Limits of the summary of messages that no longer fit. `None` for no summary.
    pub summary: Option<SummaryPolicy>,
    /// The source and limits of recalled messages.
    pub recall: RecallPolicy,
    /// Selects the window by relevance to the question instead of by age alone.
    pub pruning: Option<Pruning>,
    /// How a history that does not fit is shortened.
    pub trimming: Trimming,
    /// How the context is rendered.
    pub rendering: Rendering,
    /// The maximum number of sources of earlier answers to return. Default: 15.
    pub max_sources: usize,
    /// Whether the user's preferences are included. Default: true.
    pub preferences: bool,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            system_prompt: None,
            window: Some(20),
            budget: None,
            message_characters: None,
            summary: Some(SummaryPolicy::default()),
            recall: RecallPolicy::default(),
            pruning: None,
            trimming: Trimming::Sliding,
            rendering: Rendering::Chat,
            max_sources: 15,
            preferences: true,
        }
    }
}

impl ContextPolicy {
    /// Creates a policy that includes the newest `messages` messages, without a summary.
    #[must_use]
    pub fn window(messages: usize) -> Self {
        Self { window: Some(messages), summary: None, ..Self::default() }
    }

    /// Validates the policy.
    ///
    /// # Errors
    /// `Invalid`, with the field's name.
    pub fn check(&self) -> Result<(), ContextError> {
        if self.window == Some(0) {
            return Err(ContextError::invalid("window", "0; must be at least 1"));
        }
        self.recall.check()?;
        if self.summary.is_some_and(|summary| summary.share_percent > 100) {
            return Err(ContextError::invalid("summary.share_percent", "more than 100"));
        }
        if let Trimming::Steps { keep_percent } = self.trimming {
            if keep_percent == 0 || keep_percent > 100 {
                return Err(ContextError::invalid("trimming.keep_percent", "not between 1 and 100"));
            }
            if self.pruning.is_some() {
                return Err(ContextError::invalid("pruning", "cannot be combined with trimming in steps"));
            }
        }
        if self.pruning.is_some() && self.window.is_none() {
            return Err(ContextError::invalid("pruning", "requires a window"));
        }
        Ok(())
    }
}

/// Limits of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryPolicy {
    /// The maximum length of the stored summary, in characters. Default: 4,000.
    pub characters: usize,
    /// The maximum share of the budget, in percent. Default: 20.
    pub share_percent: u8,
}

impl Default for SummaryPolicy {
    fn default() -> Self {
        Self { characters: 4_000, share_percent: 20 }
    }
}

/// The source and limits of recalled messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallPolicy {
    /// Where the code that loads the context searches for relevant messages. The limits below apply to all recalled
    /// messages that are passed to the assembly, including those from other searches. Default: nowhere.
    pub from: RecallFrom,
    /// The maximum number of recalled messages. Default: 50.
    pub messages: usize,
    /// The share of the budget that is reserved for recalled messages, in percent. Recalled messages also get the tokens
    /// that the history does not use. Default: 50.
    pub share_percent: u8,
    /// The maximum length of a recalled message in characters; longer ones are truncated. Default: 1,000.
    pub message_characters: usize,
}

impl Default for RecallPolicy {
    fn default() -> Self {
        Self { from: RecallFrom::Nowhere, messages: 50, share_percent: 50, message_characters: 1_000 }
    }
}

impl RecallPolicy {
    fn check(&self) -> Result<(), ContextError> {
        if self.share_percent > 100 {
            return Err(ContextError::invalid("recall.share_percent", "more than 100"));
        }
        if self.from != RecallFrom::Nowhere && self.messages == 0 {
            return Err(ContextError::invalid(
                "recall.messages",
                "0; recall at least 1 message, or set recall.from to nowhere",
            ));
        }
        if self.from != RecallFrom::Nowhere && self.messages > limits::PAGE {
            return Err(ContextError::invalid("recall.messages", "more than a search can return"));
        }
        Ok(())
    }
}

/// Where to search for messages that are relevant to the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallFrom {
    /// Nowhere: assembling a context costs no search.
    #[default]
    Nowhere,
    /// In the thread itself. Each context costs a search and reads up to a few hundred messages, however long the thread is.
    Thread,
    /// In all threads of the thread's owner. For a thread without an owner, only in the thread itself, to protect private
    /// content. Costs a search and a lookup of the owner.
    User,
}

/// Selection of the window by relevance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pruning {
    /// The number of newest messages that are always included. Default: 4.
    pub newest: usize,
    /// The number of newest messages among which the most relevant are selected. Default: 200.
    pub consider: usize,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { newest: 4, consider: 200 }
    }
}

/// How a history that does not fit is shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trimming {
    /// Drops the oldest messages as needed, so the start of the history moves with every turn.
    #[default]
    Sliding,
    /// Starts the history at an anchor that is fixed until the history overflows, so that providers can cache the prefix.
    /// On overflow, the history is shortened at once to a share of the window and the budget.
    Steps {
        /// The share that remains after a step, in percent.
        keep_percent: u8,
    },
}

/// The form of a rendered context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rendering {
    /// Messages with roles and tool parts.
    #[default]
    Chat,
    /// One user message: the history as text between markers, then the newest message.
    Transcript,
}
