//! Holds back streamed text that may become a call, so that nobody sees markup.

use threadkeep_core::ChatRequest;

use super::markup::MARKERS;

/// What lies between the text of a provider and whoever reads along.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The beginnings of calls that stand at the beginning of the text only.
    at_start: Vec<String>,
    is_open: bool,
    held: String,
    /// How many bytes of white space the held text begins with, as far as it was looked at.
    blank: usize,
    shown: usize,
}

impl Gate {
    pub(crate) fn new(request: &ChatRequest) -> Self {
        let mut at_start: Vec<String> = Vec::new();
        if !request.tools.is_empty() {
            at_start.extend(["{", "[", "```"].map(str::to_owned));
            at_start.extend(
                request.tools.iter().flat_map(|tool| [format!("{}{{", tool.name), format!("{} {{", tool.name)]),
            );
        }
        Self { at_start, is_open: request.tools.is_empty(), held: String::new(), blank: 0, shown: 0 }
    }

    /// Takes a piece; gives what may be shown.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.is_open {
            self.shown += piece.len();
            return piece.to_owned();
        }
        self.held.push_str(piece);
        // Looked at once: a text of nothing but white space comes in any number of pieces.
        let blank = self.held[self.blank..].len() - self.held[self.blank..].trim_start().len();
        self.blank += blank;
        let end = self.safe_end();
        self.blank = self.blank.saturating_sub(end);
        self.shown += end;
        self.held.drain(..end).collect()
    }

    /// Gives what is left of the text that is shown in the end, which begins with all that was shown before.
    pub(crate) fn rest<'a>(&self, shown_in_the_end: &'a str) -> &'a str {
        shown_in_the_end.get(self.shown..).unwrap_or("")
    }

    /// Up to where the held text can be nothing but words.
    fn safe_end(&self) -> usize {
        if self.shown == 0 && self.may_be_at_start() {
            return 0;
        }
        let begins = self.held.char_indices().filter(|(_, character)| matches!(character, '<' | '[' | '\\'));
        for (at, _) in begins {
            let rest = &self.held[at..];
            if MARKERS.iter().any(|marker| rest.starts_with(marker) || marker.starts_with(rest)) {
                return at;
            }
        }
        self.held.len()
    }

    fn may_be_at_start(&self) -> bool {
        let text = &self.held[self.blank..];
        text.is_empty() || self.at_start.iter().any(|start| text.starts_with(start.as_str()) || start.starts_with(text))
    }
}
