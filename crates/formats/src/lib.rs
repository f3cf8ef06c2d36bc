//! Reads conversation files: exports of other programs, data sets, and Threadkeep's own export.
//!
//! [`open`] detects the [`Format`] of a file and returns a [`Reader`], an iterator over
//! [`ImportItem`](threadkeep_core::exchange::ImportItem)s: a thread, then its messages, then the next thread. If a record
//! cannot be read, the reader yields a [`RecordError`] with its conversation and line, and continues with the next record. A
//! message that exceeds the limits of the stores is skipped, which does not affect the rest of its conversation. In formats
//! that record branches, a conversation is a single [`ImportedTree`](threadkeep_core::exchange::ImportedTree) instead.
//!
//! Memory is bounded by the size of one record (a conversation or a line), not of the file: at most [`LINE_BYTES`] for a
//! line and [`ELEMENT_BYTES`] for an element of a list. This crate does not access a store. The importer uses the identities
//! below to skip items that it has imported before.
//!
//! # Identities
//!
//! The key of a thread is `import:FORMAT:ID`, where `ID` is the conversation's id in the source. Without such an id,
//! the key is `import:FORMAT:INDEX:HASH`, with the 0-based index of the record in the file and a hash of its text. The
//! external id of a message is its id in the source, otherwise its 1-based position in the conversation and a hash of
//! its role and content. So importing a file again creates no duplicates, and two equal conversations in one file stay
//! separate.
//!
//! # Documents
//!
//! [`split_document`] splits a text, Markdown or HTML file into passages that can be cited with their location.
//! [`read_exported_documents`] returns the documents of projects and the custom instructions in an export.
//!
//! # Where to start reading
//!
//! Start with `reader` (the iterator), then `records` (splits a file into records), then the module of a format.
#![warn(missing_docs)]

mod aider;
mod archive;
mod chatgpt;
mod claude;
mod claude_code;
mod cline;
mod codex;
mod continue_dev;
mod conversation;
mod detect;
mod error;
mod export_documents;
mod fields;
mod file;
mod format;
mod gemini_cli;
mod identity;
mod input;
mod librechat;
mod locomo;
mod name;
mod open_webui;
mod openai_chat;
mod passages;
mod reader;
mod records;
mod secrets;
mod session;
mod sgd;
mod share_gpt;
mod slack_export;
mod threadkeep;
mod tool_parts;
mod tree;

pub use archive::{ARCHIVE_ENTRIES, Archive, ArchiveEntry};
pub use error::{ConversationName, Fault, FormatError, RecordError};
pub use export_documents::{ExportedDocument, ExportedDocuments, read_exported_documents};
pub use file::FileName;
pub use format::Format;
pub use passages::{
    DOCUMENT_BYTES, DOCUMENT_PASSAGES, DocumentError, DocumentFormat, DocumentPassage, NESTED_BLOCKS,
    PASSAGE_CHARACTERS, SPLIT_VERSION, SplitDocument, SplitError, TAG_ATTRIBUTES, read_document, split_document,
};
pub use reader::{Reader, open, open_named_stream, open_stream};
pub use records::{ELEMENT_BYTES, LINE_BYTES};
pub use secrets::SecretMask;
