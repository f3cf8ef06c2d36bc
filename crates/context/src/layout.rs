//! The final rendering of what was chosen.

use threadkeep_core::{Part, Role, TokenCount};

use crate::ChatMessage;
use crate::chat::{Shown, chat_messages};
use crate::transcript::{block, escape, said, transcript};
use crate::{Recalled, Rendering};

/// What was chosen, ready to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen<'a> {
    pub(crate) system_prompt: String,
    /// With the blank line before each sentence.
    pub(crate) enrichment: String,
    pub(crate) preferences: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) recalled: Vec<RecalledLine>,
    /// In the order of positions.
    pub(crate) history: Vec<Shown<'a>>,
    /// What is asked, where it is no message of the history.
    pub(crate) question: Option<String>,
}

/// A recalled message as it is written.
#[derive(Clone, Debug)]
pub(crate) struct RecalledLine {
    /// Its place among those that were found.
    pub(crate) rank: usize,
    pub(crate) text: String,
    /// What it takes, roughly.
    pub(crate) cost: TokenCount,
}

const RECALLED: &str = "Earlier messages that may bear on the question:";

impl Chosen<'_> {
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

    /// What changes with every question stands behind the history, so that a model's cache of what comes before holds.
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
                (before, Some(said(&newest.parts, &newest.waiting)))
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

/// Whether the newest message is one that a user asks.
fn is_current(shown: &Shown<'_>) -> bool {
    let is_words = |part: &Part| matches!(part, Part::Text(_) | Part::Image(_));
    shown.message.content.role == Role::User && shown.parts.iter().all(is_words)
}

/// Writes a recalled message as a line, its further lines indented so that they cannot pass for one; `None` where it has
/// nothing to say.
pub(crate) fn recalled_line(recalled: &Recalled, characters: usize) -> Option<String> {
    let message = &recalled.message;
    let words = crate::relevance::words(message);
    // A message that only calls tools says so.
    let words = if words.trim().is_empty() { said(&message.content.parts, &[]) } else { words };
    if words.trim().is_empty() {
        return None;
    }
    let words = crate::cut::cut_marked(&words, characters).unwrap_or(words);
    let role = message.content.role.as_str();
    let speaker = match &message.content.author {
        Some(author) => format!("{role}, {}", crate::quote::one_line(author)),
        None => role.to_owned(),
    };
    Some(format!("- {} ({speaker}): {}", message.created_at, crate::quote::indent(&words)))
}
