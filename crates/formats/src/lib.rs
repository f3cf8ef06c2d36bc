//! Readers of conversation files: other programs' exports, data sets, and Threadkeep's own export.
//!
//! [`open`] finds out which [`Format`] a file has and gives a [`Reader`], an iterator over
//! [`ImportItem`](threadkeep_core::exchange::ImportItem)s: a thread, then its messages, then the next thread. A record that
//! cannot be read is a [`RecordError`] that names its conversation and its line, and the iteration goes on after it.
//! A message that no store would keep costs only itself. Where a file tells how its conversations branch, a conversation comes
//! as one [`ImportedTree`](threadkeep_core::exchange::ImportedTree) instead.
//!
//! Memory is bounded by one record (a conversation, or a line), never by the file: at most [`LINE_BYTES`] for a line
//! and [`ELEMENT_BYTES`] for an element of a list. Nothing is written and nothing is looked up in a store; whether an item
//! is there already is the importer's question, and the identities make it answerable.
//!
//! # Identities
//!
//! The key of a thread is `import:FORMAT:ID` with the source's own id, or `import:FORMAT:INDEX:HASH` with the record's
//! place in the file (from 0) and a hash of its text where the source has none. A message's external id is the source's,
//! or its position in the conversation (from 1) and a hash of role and content. So a second import finds everything, and two
//! equal conversations in one file stay two.
//!
//! # Documents
//!
//! [`split_document`] parts a text, Markdown or HTML file into passages that can be quoted with their place.
//!
//! # Where to start reading
//!
//! `reader` (the iterator), `records` (how a file becomes records), then one module per format.
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
