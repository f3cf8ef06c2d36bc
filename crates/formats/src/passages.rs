//! Splits text, Markdown and HTML files into passages with locations, which answers can cite.
//!
//! A file is read into blocks (headings and paragraphs, with line numbers). The blocks are packed into passages of up to
//! [`PASSAGE_CHARACTERS`], each preceded by its headings.

mod block;
mod html;
mod markdown;
mod pack;
mod plain;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The version of the code that splits documents into passages. It changes whenever the code splits a document differently.
pub const SPLIT_VERSION: &str = "1";
/// The maximum size of a file, in bytes.
pub const DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of characters (Unicode scalar values) in a passage, not counting its headings.
pub const PASSAGE_CHARACTERS: usize = 1_200;

/// The maximum number of passages in a document.
pub const DOCUMENT_PASSAGES: usize = 20_000;
/// The maximum number of attributes in an HTML tag.
pub const TAG_ATTRIBUTES: usize = 128;

/// The maximum nesting depth of block quotes and lists in Markdown.
pub const NESTED_BLOCKS: usize = 100;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentFormat {
    /// Plain text: paragraphs separated by blank lines.
    Text,
    /// Markdown: CommonMark with tables.
    Markdown,
    /// HTML.
    Html,
}

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPassage {
    /// The location as displayed, with line numbers in the file: `Opening hours > Sundays, lines 12-20`.
    pub place: String,
    /// The text. The first line contains the headings above it.
    pub text: String,
}

/// A document split into passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitDocument {
    /// The title of an HTML page, or otherwise the first heading of the highest level.
    pub title: Option<String>,
    /// The passages, in order. Empty for a document without text.
    pub passages: Vec<DocumentPassage>,
}

/// An error in reading a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} exceeds {DOCUMENT_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8 text.
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
}

/// An error in splitting a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// A tag of an HTML page has too many attributes.
    #[error("line {line}: a tag has more than {TAG_ATTRIBUTES} attributes")]
    Attributes {
        /// The line on which the tag starts. For an end tag, the line on which the preceding text ends.
        line: usize,
    },
    /// Block quotes or lists in a Markdown document are nested too deeply.
    #[error("line {line}: block quotes and lists are nested more than {NESTED_BLOCKS} levels deep")]
    Nesting {
        /// The line on which the limit is exceeded.
        line: usize,
    },
    /// The document has too many passages.
    #[error("the document has more than {DOCUMENT_PASSAGES} passages; split it into several files")]
    Passages,
}

impl DocumentFormat {
    /// Returns the format for a file name extension: `.txt`, `.text`, `.md`, `.markdown`, `.html`, `.htm`, `.xhtml`.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" | "text" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Reads a complete document.
///
/// # Errors
/// The file cannot be read, exceeds [`DOCUMENT_BYTES`], or is not UTF-8 text.
pub fn read_document(path: &Path) -> Result<String, DocumentError> {
    let read_error = |source| DocumentError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(DOCUMENT_BYTES + 1).read_to_end(&mut bytes)).map_err(read_error)?;
    if bytes.len() as u64 > DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge { path: path.to_owned() });
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(DocumentError::NotText { path: path.to_owned() }),
    }
}

/// Splits a document into passages at headings and paragraphs. A paragraph that is too long for one passage is split between
/// sentences if possible, otherwise between words, otherwise between grapheme clusters.
///
/// # Errors
/// A tag has more than [`TAG_ATTRIBUTES`] attributes, block quotes and lists are nested more than [`NESTED_BLOCKS`] levels deep, or
/// the document has more than [`DOCUMENT_PASSAGES`] passages.
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
