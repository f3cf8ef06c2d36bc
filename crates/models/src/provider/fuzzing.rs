//! Entry points for fuzz targets: the parsers of providers' answers, without a network.

use threadkeep_core::{ChatRequest, Part};

use super::failure::ProviderFailure;
use super::sse::EventParser;
use super::{Assembly, Draft, DraftPart, Provider};
use crate::repair::{self, StreamFilter};

/// Parses an answer, streamed or not, and repairs its calls.
///
/// # Panics
/// Fuzz targets look for panics.
#[must_use]
pub fn read_answer(provider: Provider, is_stream: bool, bytes: &[u8], request: &ChatRequest) -> Option<Vec<Part>> {
    let draft = if is_stream { read_events(provider, bytes) } else { read_whole(provider, bytes) };
    repair::parts(&draft.ok()?, request).ok()
}

/// Parses calls that a model wrote as text or that an error contains. The text arrives in pieces of `piece_bytes` bytes.
///
/// # Panics
/// Fuzz targets look for panics.
#[must_use]
pub fn read_text_calls(text: &str, piece_bytes: usize, request: &ChatRequest) -> Option<Vec<Part>> {
    let mut filter = StreamFilter::new(request);
    let mut remaining = text;
    let mut emitted = String::new();
    while !remaining.is_empty() {
        let end = remaining.ceil_char_boundary(piece_bytes.max(1));
        emitted.push_str(&filter.push(&remaining[..end]));
        remaining = &remaining[end..];
    }
    assert!(text.starts_with(&emitted), "the emitted text is a prefix of the text");
    let _ = repair::is_failed_call(text).then(|| repair::parts_of_failure(text, request));
    let draft = Draft { parts: vec![DraftPart::Text(text.to_owned())], ..Draft::default() };
    repair::parts(&draft, request).ok()
}

fn read_events(provider: Provider, bytes: &[u8]) -> Result<Draft, ProviderFailure> {
    let mut assembly = Assembly::new(provider.protocol());
    let mut parser = EventParser::default();
    let mut events = Vec::new();
    parser.push(bytes, |event| events.push(event)).map_err(|_| ProviderFailure::TooLong)?;
    events.extend(parser.finish().map_err(|_| ProviderFailure::TooLong)?);
    for event in &events {
        if assembly.take(event, &mut |_| {})? {
            break;
        }
    }
    assembly.finish()
}

fn read_whole(provider: Provider, bytes: &[u8]) -> Result<Draft, ProviderFailure> {
    let body = serde_json::from_slice(bytes).map_err(|error| ProviderFailure::Invalid(error.to_string()))?;
    let mut assembly = Assembly::new(provider.protocol());
    assembly.take_whole(&body)?;
    assembly.finish()
}
