//! Reads the content of a ChatGPT message.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, Part};

use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, exact, kind};

const RAW_FORMAT: &str = "chatgpt.export";

/// Reads text and images into parts. If the content is an object with a main text, its remaining fields are added to
/// the metadata.
pub(super) fn read(json: &RawValue, content: &mut Content) -> Result<(), Rejection> {
    let mut fields = Fields::read(json).map_err(|rejection| rejection.at("content"))?;
    let content_type = fields.take_text("content_type")?.unwrap_or_default();
    if matches!(content_type.as_str(), "text" | "multimodal_text") {
        let parts = fields.take_list("parts")?.unwrap_or_default();
        for part in parts {
            content.parts.extend(read_part(part).map_err(|rejection| rejection.at("content"))?);
        }
        return Ok(());
    }
    match take_main_text(&mut fields) {
        Some(text) => {
            content.parts.extend(non_empty(text));
            content.metadata.insert("content_type".to_owned(), content_type.into());
            content.metadata.extend(fields.into_map()?);
        }
        None => content.parts.push(raw(json)?),
    }
    Ok(())
}

/// Takes the main text (code, code output or a web page) from the field `text` or `result`.
fn take_main_text(fields: &mut Fields<'_>) -> Option<String> {
    let name =
        ["text", "result"].into_iter().find(|name| fields.get(name).is_some_and(|json| kind(json) == Kind::Text))?;
    fields.take_text(name).ok()?
}

fn read_part(json: &RawValue) -> Result<Option<Part>, Rejection> {
    if kind(json) == Kind::Text {
        return Ok(non_empty(fields::text(json)?));
    }
    let Ok(mut part) = Fields::read(json) else { return Ok(Some(raw(json)?)) };
    let known_part = match part.take_text("content_type")?.as_deref() {
        Some("image_asset_pointer") => {
            let description = description(&mut part);
            part.take_text("asset_pointer")?.map(|url| Part::Image(ImageReference { url, description, detail: None }))
        }
        Some("audio_transcription") => part.take_text("text")?.map(Part::Text),
        _ => None,
    };
    known_part.map_or_else(|| raw(json), Ok).map(Some)
}

/// Returns the prompt of a generated image.
fn description(part: &mut Fields<'_>) -> Option<String> {
    let mut generator = part.take_fields("metadata").ok()??.take_fields("dalle").ok()??;
    generator.take_text("prompt").ok()?.filter(|prompt| !prompt.is_empty())
}

fn non_empty(text: String) -> Option<Part> {
    (!text.is_empty()).then_some(Part::Text(text))
}

fn raw(json: &RawValue) -> Result<Part, Rejection> {
    Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? })
}
