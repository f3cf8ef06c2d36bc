//! Stored text, backups, and the words of texts that are searched.

use threadkeep::core::{codec, text};
use threadkeep::memory::Platform;
use threadkeep::memory::migrate::BackupReader;
use threadkeep::{JsonText, Value};

pub(crate) fn codec(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(content) = codec::decode_content(text)
        && let Ok(again) = codec::encode_content(&content)
    {
        assert_eq!(codec::decode_content(&again).ok(), Some(content), "what is written can be read");
    }
    if let Ok(words) = codec::decode_thread(text) {
        let again = codec::decode_thread(&codec::encode_thread(&words));
        assert_eq!(again.ok(), Some(words), "what is written can be read");
    }
    if let Ok(json) = JsonText::new(text) {
        assert_eq!(json.as_str(), text.trim_matches([' ', '\n', '\r', '\t']), "the text is kept as it is");
        // A number may be too large for a value, and a surrogate may stand alone.
        let _ = json.read::<Value>();
    }
}

/// Each line is one of a backup, read into a store in memory.
pub(crate) fn backup(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let backend = threadkeep::open_backend("memory:").await.expect("a store in memory");
        let mut reader = BackupReader::into(backend, &Platform::default());
        for line in text.lines() {
            if Box::pin(reader.line(line)).await.is_err() {
                return;
            }
        }
        let _ = reader.finish();
    });
}

pub(crate) fn words(data: &[u8]) {
    let Ok(words) = std::str::from_utf8(data) else { return };
    let _ = (text::terms(words), text::distinct_terms(words), text::stems(words), text::indexed_terms(words));
    let _ = (text::alternatives(words), text::fold(words));
    let lookup = text::Lookup::new(&text::stems("opening hours on Sundays"));
    let _ = lookup.count(words);
}
