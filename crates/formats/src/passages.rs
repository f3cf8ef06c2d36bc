//! Passages of documents: a text, Markdown or HTML file in pieces that one can quote, each with its place.
//!
//! A file is read into blocks (headings and paragraphs, each line of them with its place in the file), and the blocks
//! are packed into passages of about [`PASSAGE_CHARACTERS`], under the headings that they stand below.

mod block;
mod html;
mod markdown;
mod pack;
mod plain;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file.
pub const DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// Characters (Unicode scalar values) of a passage. One is longer only by the headings above it.
pub const PASSAGE_CHARACTERS: usize = 1_200;

/// Passages of a document.
pub const DOCUMENT_PASSAGES: usize = 20_000;
/// Attributes of an HTML tag.
pub const TAG_ATTRIBUTES: usize = 128;

/// Quotes and lists inside each other in Markdown.
pub const NESTED_BLOCKS: usize = 100;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentFormat {
    /// Paragraphs between empty lines.
    Text,
    /// Markdown, as CommonMark with tables.
    Markdown,
    /// HTML.
    Html,
}

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPassage {
    /// Where it stands, in words for a reader: `Opening hours > Sundays, lines 12-20`. Lines are those of the file.
    pub place: String,
    /// What it says; the headings above it in the first line.
    pub text: String,
}

/// A document in passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitDocument {
    /// What it calls itself: the title of a page, else the first heading of the highest level.
    pub title: Option<String>,
    /// What it says, in order. Empty for a document without words.
    pub passages: Vec<DocumentPassage>,
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file cannot be opened or read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} has more than {DOCUMENT_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8, or no text at all.
    #[error("{} is no text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
}

/// Why a document cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// A tag of an HTML page has too many attributes.
    #[error("line {line}: a tag has more than {TAG_ATTRIBUTES} attributes, the most that are read")]
    Attributes {
        /// The line on which the tag begins, or the text before an end tag ends.
        line: usize,
    },
    /// Quotes or lists of a Markdown document nest too deeply.
    #[error("line {line}: quotes and lists nest deeper than {NESTED_BLOCKS} levels, the most that are read")]
    Nesting {
        /// The line.
        line: usize,
    },
    /// The document has too many passages.
    #[error("the document has more than {DOCUMENT_PASSAGES} passages; split it into several files")]
    Passages,
}

impl DocumentFormat {
    /// The format that the end of a file's name tells: `.txt`, `.text`, `.md`, `.markdown`, `.html`, `.htm`, `.xhtml`.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" | "text" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Reads a document whole.
///
/// # Errors
/// It cannot be read, has more than [`DOCUMENT_BYTES`], or is no text in UTF-8.
pub fn read_document(path: &Path) -> Result<String, DocumentError> {
    let unread = |source| DocumentError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(DOCUMENT_BYTES + 1).read_to_end(&mut bytes)).map_err(unread)?;
    if bytes.len() as u64 > DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge { path: path.to_owned() });
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(DocumentError::NotText { path: path.to_owned() }),
    }
}

/// Splits a document into passages: at headings and paragraphs, and where a paragraph is too long for one passage, at
/// sentences, words, and never inside a character as readers see it.
///
/// # Errors
/// A tag has more than [`TAG_ATTRIBUTES`], quotes and lists nest deeper than [`NESTED_BLOCKS`], or the document has more
/// than [`DOCUMENT_PASSAGES`].
pub fn split_document(text: &str, format: DocumentFormat) -> Result<SplitDocument, SplitError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (title, blocks) = match format {
        DocumentFormat::Text => (None, plain::blocks(text)),
        DocumentFormat::Markdown => (None, markdown::blocks(text)?),
        DocumentFormat::Html => html::blocks(text)?,
    };
    let title = title.or_else(|| block::first_heading(&blocks));
    Ok(SplitDocument { title, passages: pack::passages(blocks)? })
}

#[cfg(test)]
mod tests;
