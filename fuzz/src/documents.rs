//! Targets for library documents and assistant manifests.

use threadkeep_formats::{DOCUMENT_PASSAGES, DocumentFormat, PASSAGE_CHARACTERS, split_document};
use threadkeep_general::Manifest;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum number of characters of a passage's headings: six headings of 1,000 bytes, with separators.
const MAX_HEADING_CHARACTERS: usize = 6 * 1_004;

pub(crate) fn html(data: &[u8]) {
    split(data, DocumentFormat::Html);
}

pub(crate) fn markdown(data: &[u8]) {
    split(data, DocumentFormat::Markdown);
}

pub(crate) fn text(data: &[u8]) {
    split(data, DocumentFormat::Text);
}

fn split(data: &[u8], format: DocumentFormat) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(document) = split_document(text, format) else { return };
    assert!(document.passages.len() <= DOCUMENT_PASSAGES, "the number of passages is limited");
    for passage in document.passages {
        assert!(!passage.text.is_empty() && !passage.place.is_empty(), "a passage has a text and a location");
        let is_bounded = passage.text.chars().count() <= PASSAGE_CHARACTERS + MAX_HEADING_CHARACTERS;
        assert!(is_bounded || has_a_long_grapheme(&passage.text), "the length of a passage is limited");
    }
}

/// Whether the text has a grapheme longer than a passage. Graphemes are never split.
fn has_a_long_grapheme(text: &str) -> bool {
    text.graphemes(true).any(|character| character.chars().count() > PASSAGE_CHARACTERS)
}

pub(crate) fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(manifest) = Manifest::from_yaml(text, "file") {
        let _ = (manifest.options(), manifest.memory.retention());
    }
}
