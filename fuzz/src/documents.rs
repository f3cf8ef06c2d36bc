//! Documents that assistants answer from, and assistants that are written down.

use threadkeep_formats::{DOCUMENT_PASSAGES, DocumentFormat, PASSAGE_CHARACTERS, split_document};
use threadkeep_general::Manifest;
use unicode_segmentation::UnicodeSegmentation;

/// Characters of the headings above a passage: six of 1,000 bytes, and what stands between.
const HEADINGS: usize = 6 * 1_004;

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
    assert!(document.passages.len() <= DOCUMENT_PASSAGES, "as many passages as are allowed");
    for passage in document.passages {
        assert!(!passage.text.is_empty() && !passage.place.is_empty(), "a passage has words and a place");
        let is_bounded = passage.text.chars().count() <= PASSAGE_CHARACTERS + HEADINGS;
        assert!(is_bounded || holds_a_long_character(&passage.text), "a passage is bounded");
    }
}

/// One character as readers see it may have any number of marks, and is kept whole.
fn holds_a_long_character(text: &str) -> bool {
    text.graphemes(true).any(|character| character.chars().count() > PASSAGE_CHARACTERS)
}

pub(crate) fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(manifest) = Manifest::from_yaml(text, "file") {
        let _ = (manifest.options(), manifest.memory.retention());
    }
}
