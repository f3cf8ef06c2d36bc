//! What the fuzz targets call: the readers of providers' answers, without a network.

use threadkeep_core::{ChatRequest, Part};

use super::sse::EventParser;
use super::trouble::Trouble;
use super::{Assembly, Draft, DraftPart, Provider};
use crate::repair::{self, Gate};

/// Reads an answer, which comes as events or in one piece, and repairs its calls.
///
/// # Panics
/// What the fuzz targets look for.
#[must_use]
pub fn read_answer(provider: Provider, is_stream: bool, bytes: &[u8], request: &ChatRequest) -> Option<Vec<Part>> {
    let draft = if is_stream { read_events(provider, bytes) } else { read_whole(provider, bytes) };
    repair::parts(&draft.ok()?, request).ok()
}

/// Reads the calls that a model wrote as text, or that stand in an error; the text comes in pieces of some bytes.
///
/// # Panics
/// What the fuzz targets look for.
#[must_use]
pub fn read_written_calls(text: &str, piece_bytes: usize, request: &ChatRequest) -> Option<Vec<Part>> {
    let mut gate = Gate::new(request);
    let mut rest = text;
    let mut shown = String::new();
    while !rest.is_empty() {
        let end = rest.ceil_char_boundary(piece_bytes.max(1));
        shown.push_str(&gate.push(&rest[..end]));
        rest = &rest[end..];
    }
    assert!(text.starts_with(&shown), "what is shown is the beginning of what was said");
    let _ = repair::is_failed_call(text).then(|| repair::parts_of_failure(text, request));
    let draft = Draft { parts: vec![DraftPart::Text(text.to_owned())], ..Draft::default() };
    repair::parts(&draft, request).ok()
}

fn read_events(provider: Provider, bytes: &[u8]) -> Result<Draft, Trouble> {
    let mut assembly = Assembly::new(provider.wire());
    let mut parser = EventParser::default();
    let mut events = Vec::new();
    parser.push(bytes, |event| events.push(event)).map_err(|_| Trouble::TooLong)?;
    events.extend(parser.finish().map_err(|_| Trouble::TooLong)?);
    for event in &events {
        if assembly.take(event, &mut |_| {})? {
            break;
        }
    }
    assembly.finish()
}

fn read_whole(provider: Provider, bytes: &[u8]) -> Result<Draft, Trouble> {
    let body = serde_json::from_slice(bytes).map_err(|error| Trouble::Invalid(error.to_string()))?;
    let mut assembly = Assembly::new(provider.wire());
    assembly.take_whole(&body)?;
    assembly.finish()
}
