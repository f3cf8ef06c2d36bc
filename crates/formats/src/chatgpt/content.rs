//! What a message of the export says.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, Part};

use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, exact, kind};

const RAW_FORMAT: &str = "chatgpt.export";

/// Reads the words and pictures into parts. What else stands beside the words goes to the metadata.
pub(super) fn read(json: &RawValue, content: &mut Content) -> Result<(), Refusal> {
    let mut said = Fields::read(json).map_err(|refusal| refusal.at("content"))?;
    let content_type = said.take_text("content_type")?.unwrap_or_default();
    if matches!(content_type.as_str(), "text" | "multimodal_text") {
        let parts = said.take_list("parts")?.unwrap_or_default();
        for part in parts {
            content.parts.extend(read_part(part).map_err(|refusal| refusal.at("content"))?);
        }
        return Ok(());
    }
    match words(&mut said) {
        Some(words) => {
            content.parts.extend(some_text(words));
            content.metadata.insert("content_type".to_owned(), content_type.into());
            content.metadata.extend(said.into_map()?);
        }
        None => content.parts.push(raw(json)?),
    }
    Ok(())
}

/// Code, what it printed, and what was read on the web come as `text` or `result`.
fn words(said: &mut Fields<'_>) -> Option<String> {
    let name =
        ["text", "result"].into_iter().find(|name| said.get(name).is_some_and(|json| kind(json) == Kind::Text))?;
    said.take_text(name).ok()?
}

fn read_part(json: &RawValue) -> Result<Option<Part>, Refusal> {
    if kind(json) == Kind::Text {
        return Ok(some_text(fields::text(json)?));
    }
    let Ok(mut part) = Fields::read(json) else { return Ok(Some(raw(json)?)) };
    let known = match part.take_text("content_type")?.as_deref() {
        Some("image_asset_pointer") => {
            let description = description(&mut part);
            part.take_text("asset_pointer")?.map(|url| Part::Image(ImageReference { url, description }))
        }
        Some("audio_transcription") => part.take_text("text")?.map(Part::Text),
        _ => None,
    };
    known.map_or_else(|| raw(json), Ok).map(Some)
}

/// What a picture was made from, where the program made it.
fn description(part: &mut Fields<'_>) -> Option<String> {
    let mut made = part.take_fields("metadata").ok()??.take_fields("dalle").ok()??;
    made.take_text("prompt").ok()?.filter(|prompt| !prompt.is_empty())
}

fn some_text(text: String) -> Option<Part> {
    (!text.is_empty()).then_some(Part::Text(text))
}

fn raw(json: &RawValue) -> Result<Part, Refusal> {
    Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? })
}
