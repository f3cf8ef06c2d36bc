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
    /// A session file of the Codex CLI.
    Codex,
    /// A session file of the Gemini CLI.
    GeminiCli,
    /// A session file of Continue.
    Continue,
    /// A session or task of Cline or Roo Code.
    Cline,
    /// The chat history of Aider, a Markdown file.
    Aider,
    /// Chats exported from Open WebUI.
    OpenWebUi,
    /// A conversation exported from LibreChat.
    LibreChat,
    /// A file of a Slack export: the messages of one channel and day.
    SlackExport,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 16] = [
        Self::Threadkeep,
        Self::OpenAiChat,
        Self::ChatGptExport,
        Self::ClaudeExport,
        Self::ShareGpt,
        Self::Locomo,
        Self::Sgd,
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Continue,
        Self::Cline,
        Self::Aider,
        Self::OpenWebUi,
        Self::LibreChat,
        Self::SlackExport,
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
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Continue => "continue",
            Self::Cline => "cline",
            Self::Aider => "aider",
            Self::OpenWebUi => "open-webui",
            Self::LibreChat => "librechat",
            Self::SlackExport => "slack",
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
