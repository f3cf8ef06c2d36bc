//! The draft of an answer, assembled from the pieces that a provider sends.

use std::borrow::Cow;

use threadkeep_core::{Finish, JsonText, Value, limits};

use super::failure::ProviderFailure;
use crate::price::Tokens;

/// The maximum number of parts of an answer: a message must be able to store them.
const MAX_PARTS: usize = limits::PARTS;
/// The maximum number of calls in an answer.
const MAX_CALLS: usize = 128;

/// An answer as received, before its calls are repaired.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) parts: Vec<DraftPart>,
    pub(crate) finish: Option<Finish>,
    pub(crate) model: Option<String>,
    pub(crate) tokens: Option<Tokens>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DraftPart {
    Text(String),
    Reasoning(String),
    /// An item of the protocol that must be sent back unchanged.
    Raw {
        format: &'static str,
        json: JsonText,
    },
    Call(DraftCall),
}

/// A tool call as received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DraftCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// Replaces NUL characters. Models occasionally write them, and stores reject them.
pub(in crate::provider) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

impl Draft {
    /// Fails if the answer has more parts than a message may have.
    pub(super) fn check_parts(&self) -> Result<(), ProviderFailure> {
        if self.parts.len() <= MAX_PARTS {
            return Ok(());
        }
        Err(ProviderFailure::Invalid(format!("more than {MAX_PARTS} parts")))
    }

    pub(super) fn push_text(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(DraftPart::Text(text)) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.parts.push(DraftPart::Text(piece.to_owned())),
        }
    }

    pub(super) fn push_reasoning(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(DraftPart::Reasoning(text)) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.parts.push(DraftPart::Reasoning(piece.to_owned())),
        }
    }

    pub(super) fn push_raw(&mut self, format: &'static str, json: &Value) {
        self.parts.push(DraftPart::Raw { format, json: JsonText::from(json) });
    }

    /// Adds a call and returns its index, or `None` if there are too many calls.
    pub(super) fn push_call(&mut self, call: DraftCall) -> Option<usize> {
        let number = self.calls().count();
        (number < MAX_CALLS).then(|| {
            self.parts.push(DraftPart::Call(call));
            number
        })
    }

    pub(super) fn call_mut(&mut self, number: usize) -> Option<&mut DraftCall> {
        let calls = self.parts.iter_mut();
        calls.filter_map(|part| if let DraftPart::Call(call) = part { Some(call) } else { None }).nth(number)
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &DraftCall> {
        self.parts.iter().filter_map(|part| if let DraftPart::Call(call) = part { Some(call) } else { None })
    }

    pub(crate) fn text(&self) -> String {
        let texts =
            self.parts.iter().filter_map(|part| if let DraftPart::Text(text) = part { Some(&**text) } else { None });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use threadkeep_core::ChatRequest;

    use super::*;
    use crate::Provider;
    use crate::provider::fuzzing::read_answer;

    #[test]
    fn an_answer_has_at_most_as_many_parts_as_a_message() {
        let answer = |parts: usize| {
            let member = ["content", "reasoning"].into_iter().cycle();
            let events = member.take(parts).map(|member| {
                format!("data: {{\"choices\":[{{\"delta\":{{\"{member}\":\"x\"}},\"finish_reason\":\"stop\"}}]}}\n\n")
            });
            let events: String = events.collect();
            read_answer(Provider::OpenAi, true, events.as_bytes(), &ChatRequest::default()).map(|parts| parts.len())
        };
        assert_eq!(answer(MAX_PARTS), Some(MAX_PARTS));
        assert_eq!(answer(MAX_PARTS + 1), None);
    }
}
