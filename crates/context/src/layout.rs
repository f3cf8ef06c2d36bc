//! Renders the selected parts of a context as messages.

use threadkeep_core::{Part, Role, TokenCount};

use crate::ChatMessage;
use crate::chat::{HistoryEntry, chat_messages};
use crate::transcript::{block, escape, message_text, transcript};
use crate::{Recalled, Rendering};

/// The selected parts of a context, ready to be rendered.
#[derive(Clone, Debug, Default)]
pub(crate) struct SelectedParts<'a> {
    pub(crate) system_prompt: String,
    /// The rendered sentences, each after a blank line.
    pub(crate) enrichment: String,
    pub(crate) preferences: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) recalled: Vec<RecalledLine>,
    /// Ascending by position.
    pub(crate) history: Vec<HistoryEntry<'a>>,
    /// The question, if it is not a message of the history.
    pub(crate) question: Option<String>,
}

/// A rendered recalled message.
#[derive(Clone, Debug)]
pub(crate) struct RecalledLine {
    /// The index of the message in the search results.
    pub(crate) rank: usize,
    pub(crate) text: String,
    /// The approximate number of tokens of the line.
    pub(crate) cost: TokenCount,
}

const RECALLED: &str = "Earlier messages that may bear on the question:";

impl SelectedParts<'_> {
    pub(crate) fn render(&self, rendering: Rendering) -> Vec<ChatMessage> {
        match rendering {
            Rendering::Chat => self.render_chat(),
            Rendering::Transcript => self.render_transcript(),
        }
    }

    pub(crate) fn recalled_text(&self) -> Option<String> {
        let lines: Vec<&str> = self.recalled.iter().map(|line| line.text.as_str()).collect();
        (!lines.is_empty()).then(|| format!("{RECALLED}\n{}", lines.join("\n")))
    }

    /// Places parts that change with every question after the history, so that a provider's prompt cache stays valid for the
    /// prefix.
    fn render_chat(&self) -> Vec<ChatMessage> {
        let mut messages: Vec<ChatMessage> = self.system_message(None).into_iter().collect();
        messages.extend(chat_messages(&self.history));
        let question = self.question.as_ref().map(|question| ChatMessage::text(Role::User, question));
        let ends_with_user = messages.last().is_some_and(|last| last.role == Role::User);
        let newest = question.or_else(|| if ends_with_user { messages.pop() } else { None });
        messages.extend(self.recalled_text().map(|text| ChatMessage::text(Role::System, text)));
        messages.extend(newest);
        messages
    }

    fn render_transcript(&self) -> Vec<ChatMessage> {
        let (history, current) = match (&self.question, self.history.split_last()) {
            (Some(question), _) => (&self.history[..], Some(escape(question).into_owned())),
            (None, Some((newest, before))) if is_current(newest) => {
                (before, Some(message_text(&newest.parts, &newest.waiting)))
            }
            (None, _) => (&self.history[..], None),
        };
        let blocks: Vec<String> = history.iter().map(block).collect();
        let text = transcript(&blocks, current.as_deref());
        let messages =
            [self.system_message(self.recalled_text()), text.map(|text| ChatMessage::text(Role::User, text))];
        messages.into_iter().flatten().collect()
    }

    fn system_message(&self, recalled: Option<String>) -> Option<ChatMessage> {
        let prompt = format!("{}{}", self.system_prompt, self.enrichment);
        let prompt = if self.system_prompt.is_empty() { prompt.trim_start_matches('\n') } else { &prompt };
        let sections = [Some(prompt), self.preferences.as_deref(), self.summary.as_deref(), recalled.as_deref()];
        let sections: Vec<&str> = sections.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        (!sections.is_empty()).then(|| ChatMessage::text(Role::System, sections.join("\n\n")))
    }
}

/// Whether an entry of the history is a question by the user.
fn is_current(entry: &HistoryEntry<'_>) -> bool {
    let is_user_content = |part: &Part| matches!(part, Part::Text(_) | Part::Image(_));
    entry.message.content.role == Role::User && entry.parts.iter().all(is_user_content)
}

/// Renders a recalled message as a line. Continuation lines are indented so that they cannot be mistaken for lines of their
/// surroundings. Returns `None` if the message has no content.
pub(crate) fn recalled_line(recalled: &Recalled, characters: usize) -> Option<String> {
    let message = &recalled.message;
    let text = crate::relevance::text_of(message);
    // A message without text may still contain tool calls.
    let text = if text.trim().is_empty() { message_text(&message.content.parts, &[]) } else { text };
    if text.trim().is_empty() {
        return None;
    }
    let text = crate::cut::cut_marked(&text, characters).unwrap_or(text);
    let role = message.content.role.as_str();
    let speaker = match &message.content.author {
        Some(author) => format!("{role}, {}", crate::quote::one_line(author)),
        None => role.to_owned(),
    };
    Some(format!("- {} ({speaker}): {}", message.created_at, crate::quote::indent(&text)))
}
