use serde::{Deserialize, Serialize};
use threadkeep_core::{TokenCount, limits};

use crate::ContextError;

/// What a context may hold, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextPolicy {
    /// Stands first, never cut.
    pub system_prompt: Option<String>,
    /// Messages of the thread at most, exactly (the tool messages of a pair count too). `None` leaves it to the budget.
    /// Default: 20.
    pub window: Option<usize>,
    /// Tokens of the final rendering at most, whatever it holds. `None` sets no bound. Default: none.
    pub budget: Option<TokenCount>,
    /// Characters (Unicode scalar values) after which a message of the history is cut; the newest message is not.
    pub message_characters: Option<usize>,
    /// What stands in for messages that fell out. `None` for nothing.
    pub summary: Option<SummaryPolicy>,
    /// How much room recalled messages get.
    pub recall: RecallPolicy,
    /// Choosing the window by relevance to the question instead of by age alone.
    pub pruning: Option<Pruning>,
    /// How the history is shortened when it does not fit.
    pub trimming: Trimming,
    /// How the context is written.
    pub rendering: Rendering,
    /// Sources of earlier answers that are given back at most. Default: 15.
    pub max_sources: usize,
    /// Whether what the user prefers is told. Default: yes.
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
    /// A policy that shows the newest `messages` and nothing else of the thread: no summary.
    #[must_use]
    pub fn window(messages: usize) -> Self {
        Self { window: Some(messages), summary: None, ..Self::default() }
    }

    /// Checks that the policy makes sense.
    ///
    /// # Errors
    /// `Invalid` with the field's name.
    pub fn check(&self) -> Result<(), ContextError> {
        if self.window == Some(0) {
            return Err(ContextError::invalid("window", "0; show at least 1 message"));
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
                return Err(ContextError::invalid("pruning", "a stable prefix cannot be chosen anew by relevance"));
            }
        }
        if self.pruning.is_some() && self.window.is_none() {
            return Err(ContextError::invalid("pruning", "needs a window to choose for"));
        }
        Ok(())
    }
}

/// The summary of what fell out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryPolicy {
    /// Characters that are kept at most. Default: 4,000.
    pub characters: usize,
    /// The share of the budget that it may take, in percent. Default: 20.
    pub share_percent: u8,
}

impl Default for SummaryPolicy {
    fn default() -> Self {
        Self { characters: 4_000, share_percent: 20 }
    }
}

/// Which messages are recalled, and the room that they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallPolicy {
    /// Where whoever loads the context looks for messages that bear on the question. Messages that were found otherwise
    /// and are given to the assembly have the same room. Default: nowhere.
    pub from: RecallFrom,
    /// Messages at most. Default: 50.
    pub messages: usize,
    /// The share of the budget that they may take before the history; what the history leaves is theirs too. Default: 50.
    pub share_percent: u8,
    /// Characters after which a recalled message is cut. Default: 1,000.
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
            return Err(ContextError::invalid("recall.messages", "0; recall at least 1, or from nowhere"));
        }
        if self.from != RecallFrom::Nowhere && self.messages > limits::PAGE {
            return Err(ContextError::invalid("recall.messages", "more than a search gives"));
        }
        Ok(())
    }
}

/// Where messages that bear on the question are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallFrom {
    /// Nothing is looked for; a context costs no search.
    #[default]
    Nowhere,
    /// In the thread itself. Each context costs a search, and reading some hundred messages at most, however long the
    /// thread is.
    Thread,
    /// In all threads of the user whom the thread belongs to; in itself alone where it belongs to no user, so that what
    /// is private stays so. Costs as a search of the thread does, and looking its owner up.
    User,
}

/// Choosing by relevance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pruning {
    /// Newest messages that are always chosen. Default: 4.
    pub newest: usize,
    /// Newest messages that are chosen from. Default: 200.
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
    /// The oldest messages go, as many as must: the beginning moves with every turn.
    #[default]
    Sliding,
    /// The history begins at an anchor that stays until it overflows, so that a model's cache of the prefix holds. Then
    /// it is shortened at once to a share of window and budget.
    Steps {
        /// What is left after a step, in percent.
        keep_percent: u8,
    },
}

/// How a context is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rendering {
    /// As messages with roles and tool parts.
    #[default]
    Chat,
    /// As one user message: the history as text between markers, then the newest message.
    Transcript,
}
