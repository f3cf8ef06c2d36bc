use std::fmt;
use std::str::FromStr;

use crate::FormatError;

/// A supported conversation file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Threadkeep's own export: JSON Lines that start with a header.
    Threadkeep,
    /// OpenAI's chat format for fine-tuning: JSON Lines with `{"messages": […]}` on each line.
    OpenAiChat,
    /// `conversations.json` of ChatGPT's data export.
    ChatGptExport,
    /// `conversations.json` of Claude's data export.
    ClaudeExport,
    /// ShareGPT: `{"conversations": [{"from": …, "value": …}]}`, in a list or as JSON Lines.
    ShareGpt,
    /// LoCoMo: very long conversations in dated sessions.
    Locomo,
    /// Dialogues of the Schema-Guided Dialogue data set: JSON Lines with `{"dialogue_id": …, "turns": […]}` on each line.
    Sgd,
    /// A session file of Claude Code.
    ClaudeCode,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Threadkeep,
        Self::OpenAiChat,
        Self::ChatGptExport,
        Self::ClaudeExport,
        Self::ShareGpt,
        Self::Locomo,
        Self::Sgd,
        Self::ClaudeCode,
    ];

    /// Returns the name of the format, as used on the command line and in the keys of imported threads.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Threadkeep => "threadkeep",
            Self::OpenAiChat => "openai-chat",
            Self::ChatGptExport => "chatgpt",
            Self::ClaudeExport => "claude",
            Self::ShareGpt => "sharegpt",
            Self::Locomo => "locomo",
            Self::Sgd => "sgd",
            Self::ClaudeCode => "claude-code",
        }
    }

    pub(crate) fn list() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        let format = Self::ALL.into_iter().find(|format| format.as_str() == name);
        format.ok_or_else(|| FormatError::UnknownName { name: name.to_owned() })
    }
}
