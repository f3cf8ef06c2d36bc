//! An answer while it is put together from the pieces of a provider.

use std::borrow::Cow;

use threadkeep_core::{Finish, JsonText, Value};

use crate::price::Tokens;

/// Calls in one answer that are taken.
const CALLS: usize = 128;

/// An answer as it came, before calls are repaired.
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
    /// An item of the wire that goes back as it came.
    Raw {
        format: &'static str,
        json: JsonText,
    },
    Call(DraftCall),
}

/// A call as the provider wrote it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DraftCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A text that stores take: models write NUL at times, and no store keeps it.
pub(in crate::provider) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

impl Draft {
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

    /// Adds a call and gives its number; `None` where there are too many.
    pub(super) fn push_call(&mut self, call: DraftCall) -> Option<usize> {
        let number = self.calls().count();
        (number < CALLS).then(|| {
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
