//! Buffers streamed text that may become a tool call, so that markup is never displayed.

use threadkeep_core::ChatRequest;

use super::markup::MARKERS;

/// Filters the text stream of a provider.
#[derive(Debug)]
pub(crate) struct StreamFilter {
    /// Prefixes that start a call only at the start of the text.
    at_start: Vec<String>,
    passes_everything: bool,
    pending: String,
    /// The number of bytes of whitespace at the start of the pending text that were scanned so far.
    blank_bytes: usize,
    emitted_bytes: usize,
}

impl StreamFilter {
    pub(crate) fn new(request: &ChatRequest) -> Self {
        let mut at_start: Vec<String> = Vec::new();
        if !request.tools.is_empty() {
            at_start.extend(["{", "[", "```"].map(str::to_owned));
            at_start.extend(
                request.tools.iter().flat_map(|tool| [format!("{}{{", tool.name), format!("{} {{", tool.name)]),
            );
        }
        Self {
            at_start,
            passes_everything: request.tools.is_empty(),
            pending: String::new(),
            blank_bytes: 0,
            emitted_bytes: 0,
        }
    }

    /// Adds a piece. Returns the text that can be emitted.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.passes_everything {
            self.emitted_bytes += piece.len();
            return piece.to_owned();
        }
        self.pending.push_str(piece);
        // Whitespace is scanned incrementally, because it may arrive in any number of pieces.
        let blank_bytes = self.pending[self.blank_bytes..].len() - self.pending[self.blank_bytes..].trim_start().len();
        self.blank_bytes += blank_bytes;
        let end = self.safe_end();
        self.blank_bytes = self.blank_bytes.saturating_sub(end);
        self.emitted_bytes += end;
        self.pending.drain(..end).collect()
    }

    /// Returns the part of the final text that was not emitted yet. The final text must start with the emitted text.
    pub(crate) fn unsent<'a>(&self, final_text: &'a str) -> &'a str {
        final_text.get(self.emitted_bytes..).unwrap_or("")
    }

    /// Returns the length of the pending text that cannot become a call.
    fn safe_end(&self) -> usize {
        if self.emitted_bytes == 0 && self.may_start_with_call() {
            return 0;
        }
        let starts = self.pending.char_indices().filter(|(_, character)| matches!(character, '<' | '[' | '\\'));
        for (at, _) in starts {
            let rest = &self.pending[at..];
            if MARKERS.iter().any(|marker| rest.starts_with(marker) || marker.starts_with(rest)) {
                return at;
            }
        }
        self.pending.len()
    }

    fn may_start_with_call(&self) -> bool {
        let text = &self.pending[self.blank_bytes..];
        text.is_empty() || self.at_start.iter().any(|start| text.starts_with(start.as_str()) || start.starts_with(text))
    }
}
