//! Valid and invalid files, read through the public interface.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod archives;
mod bounds;
mod branches;
mod claude_code;
mod damage;
mod detection;
mod export;
mod hostile;
mod identities;
mod programs;
mod properties;
mod snapshots;
mod streaming;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep_formats::{FileName, Format, FormatError, Reader, RecordError, open_named_stream, open_stream};

/// One fixture per format, with its number of threads and messages.
const FIXTURES: [(Format, &str, usize, usize); 16] = [
    (Format::Threadkeep, "threadkeep.jsonl", 2, 3),
    (Format::OpenAiChat, "openai-chat.jsonl", 3, 12),
    (Format::ChatGptExport, "chatgpt.json", 2, 10),
    (Format::ClaudeExport, "claude.json", 2, 3),
    (Format::ShareGpt, "sharegpt.json", 3, 11),
    (Format::Locomo, "locomo.json", 2, 6),
    (Format::Sgd, "sgd.jsonl", 2, 6),
    (Format::ClaudeCode, "claude-code.jsonl", 1, 20),
    (Format::Codex, "codex.jsonl", 1, 12),
    (Format::GeminiCli, "gemini-cli.jsonl", 1, 8),
    (Format::Continue, "continue.json", 1, 6),
    (Format::Cline, "cline.json", 1, 4),
    (Format::Aider, "aider.md", 2, 7),
    (Format::OpenWebUi, "open-webui.json", 1, 4),
    (Format::LibreChat, "librechat.json", 1, 3),
    (Format::SlackExport, "slack.json", 1, 4),
];

fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixture_path(name)).unwrap()
}

fn open(bytes: impl Into<Vec<u8>>, format: Option<Format>) -> Result<Reader, FormatError> {
    open_stream(Box::new(Cursor::new(bytes.into())), format)
}

/// Opens bytes as a file in a folder.
fn open_named(bytes: impl Into<Vec<u8>>, name: &str, folder: &str) -> Reader {
    let file = FileName { name: Some(name.to_owned()), folder: Some(folder.to_owned()), changed_at: None };
    open_named_stream(Box::new(Cursor::new(bytes.into())), file, None).unwrap()
}

/// Returns all items of a file without invalid records.
fn items(bytes: impl Into<Vec<u8>>, format: Option<Format>) -> Vec<ImportItem> {
    open(bytes, format).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Returns the items of a file, and the errors of its invalid records.
fn items_and_errors(bytes: impl Into<Vec<u8>>, format: Format) -> (Vec<ImportItem>, Vec<RecordError>) {
    let (good, bad): (Vec<_>, Vec<_>) = open(bytes, Some(format)).unwrap().partition(Result::is_ok);
    (good.into_iter().map(Result::unwrap).collect(), bad.into_iter().map(Result::unwrap_err).collect())
}

fn errors(bytes: impl Into<Vec<u8>>, format: Format) -> Vec<String> {
    items_and_errors(bytes, format).1.iter().map(RecordError::to_string).collect()
}

fn threads(items: &[ImportItem]) -> Vec<&ImportedThread> {
    let mut threads: Vec<&ImportedThread> = Vec::new();
    for item in items {
        match item {
            ImportItem::Thread(thread) => threads.push(thread),
            ImportItem::Tree(tree) => threads.push(&tree.thread),
            _ => {}
        }
    }
    threads
}

/// Returns all messages, including those of all branches.
fn messages(items: &[ImportItem]) -> Vec<&ImportedMessage> {
    let mut messages: Vec<&ImportedMessage> = Vec::new();
    for item in items {
        match item {
            ImportItem::Message(message) => messages.push(message),
            ImportItem::Tree(tree) => messages.extend(tree.nodes.iter().map(|node| &node.message)),
            _ => {}
        }
    }
    messages
}

fn keys(items: &[ImportItem]) -> Vec<&str> {
    threads(items).iter().map(|thread| thread.key.as_ref().unwrap().as_str()).collect()
}

fn external_ids(items: &[ImportItem]) -> Vec<&str> {
    messages(items).iter().map(|message| message.external_id.as_deref().unwrap()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
