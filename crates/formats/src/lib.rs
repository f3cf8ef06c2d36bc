//! Readers for conversation files: exports of other programs, data sets, and Threadkeep's own export.
//!
//! [`open`] detects the [`Format`] of a file and returns a [`Reader`], an iterator over
//! [`ImportItem`](threadkeep_core::exchange::ImportItem)s: a thread, then its messages, then the next thread. A record that
//! cannot be read yields a [`RecordError`] with its conversation and line, and iteration continues with the next record.
//! A message that exceeds the limits of the stores is skipped without affecting the rest of its conversation. In formats that
//! record branches, a conversation is a single [`ImportedTree`](threadkeep_core::exchange::ImportedTree) instead.
//!
//! Memory is bounded by one record (a conversation, or a line), never by the file: at most [`LINE_BYTES`] for a line
//! and [`ELEMENT_BYTES`] for an element of a list. This crate does not access a store; the importer uses the
//! identities below to skip items that it has already imported.
//!
//! # Identities
//!
//! The key of a thread is `import:FORMAT:ID` with the id from the source, or `import:FORMAT:INDEX:HASH` with the record's
//! index in the file (from 0) and a hash of its text if the source has no id. A message's external id is its id in the source,
//! or its position in the conversation (from 1) and a hash of its role and content. Importing a file again therefore creates no
//! duplicates, and two equal conversations in one file stay separate.
//!
//! # Documents
//!
//! [`split_document`] splits a text, Markdown or HTML file into passages that can be cited with their location.
//!
//! # Where to start reading
//!
//! `reader` (the iterator), `records` (splitting a file into records), then one module per format.
#![warn(missing_docs)]

mod chatgpt;
mod claude;
mod conversation;
mod detect;
mod error;
mod fields;
mod format;
mod identity;
mod input;
mod locomo;
mod name;
mod openai_chat;
mod passages;
mod reader;
mod records;
mod sgd;
mod share_gpt;
mod threadkeep;
mod tree;

pub use error::{ConversationName, Fault, FormatError, RecordError};
pub use format::Format;
pub use passages::{
    DOCUMENT_BYTES, DOCUMENT_PASSAGES, DocumentError, DocumentFormat, DocumentPassage, NESTED_BLOCKS,
    PASSAGE_CHARACTERS, SplitDocument, SplitError, TAG_ATTRIBUTES, read_document, split_document,
};
pub use reader::{Reader, open, open_stream};
pub use records::{ELEMENT_BYTES, LINE_BYTES};
