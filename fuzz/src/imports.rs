//! Targets for conversation files of other programs, optionally compressed.

use std::io::Cursor;

use threadkeep::core::codec;
use threadkeep::exchange::ImportItem;
use threadkeep_formats::{Format, SecretMask, open_stream};

/// Reads to the end of the file, or to the first error that ends reading.
fn read(data: &[u8], format: Option<Format>) {
    let Ok(reader) = open_stream(Box::new(Cursor::new(data.to_vec())), format) else { return };
    let mut mask = SecretMask::default();
    for mut item in reader {
        item.as_mut().into_iter().for_each(|item| mask.mask(item));
        match item {
            Ok(ImportItem::Message(message)) => {
                codec::encode_content(&message.content).expect("an imported message can be stored");
            }
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
        }
    }
}

pub(crate) fn any(data: &[u8]) {
    read(data, None);
}

pub(crate) fn chatgpt(data: &[u8]) {
    read(data, Some(Format::ChatGptExport));
}

pub(crate) fn claude(data: &[u8]) {
    read(data, Some(Format::ClaudeExport));
}

pub(crate) fn locomo(data: &[u8]) {
    read(data, Some(Format::Locomo));
}

pub(crate) fn openai_chat(data: &[u8]) {
    read(data, Some(Format::OpenAiChat));
}

/// Reads the input in each format of programs that store conversations.
pub(crate) fn programs(data: &[u8]) {
    let formats = [
        Format::ClaudeCode,
        Format::Codex,
        Format::GeminiCli,
        Format::Continue,
        Format::Cline,
        Format::Aider,
        Format::OpenWebUi,
        Format::LibreChat,
        Format::SlackExport,
    ];
    formats.into_iter().for_each(|format| read(data, Some(format)));
}

pub(crate) fn sgd(data: &[u8]) {
    read(data, Some(Format::Sgd));
}

pub(crate) fn share_gpt(data: &[u8]) {
    read(data, Some(Format::ShareGpt));
}

pub(crate) fn threadkeep(data: &[u8]) {
    read(data, Some(Format::Threadkeep));
}
