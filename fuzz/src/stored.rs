//! Targets for stored text, backups, and tokenisation for search.

use threadkeep::core::{codec, text};
use threadkeep::memory::Platform;
use threadkeep::memory::migrate::BackupReader;
use threadkeep::{JsonText, Value};

pub(crate) fn codec(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(content) = codec::decode_content(text)
        && let Ok(encoded) = codec::encode_content(&content)
    {
        assert_eq!(codec::decode_content(&encoded).ok(), Some(content), "encoded content can be decoded");
    }
    if let Ok(thread) = codec::decode_thread(text) {
        let decoded = codec::decode_thread(&codec::encode_thread(&thread));
        assert_eq!(decoded.ok(), Some(thread), "an encoded thread can be decoded");
    }
    if let Ok(json) = JsonText::new(text) {
        assert_eq!(json.as_str(), text.trim_matches([' ', '\n', '\r', '\t']), "the text is unchanged");
        // Fails for a number that is too large for a value, and for an unpaired surrogate.
        let _ = json.read::<Value>();
    }
}

/// Restores the lines of a backup into an in-memory store.
pub(crate) fn backup(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("failed to create a runtime");
    runtime.block_on(async {
        let backend = threadkeep::open_backend("memory:").await.expect("failed to open an in-memory store");
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
    let Ok(input) = std::str::from_utf8(data) else { return };
    let _ = (text::terms(input), text::distinct_terms(input), text::stems(input), text::indexed_terms(input));
    let _ = (text::query_terms(input), text::fold(input));
    let matcher = text::TermMatcher::new(&text::stems("opening hours on Sundays"));
    let _ = matcher.count(input);
}

/// Every text is a valid query, and a query can be applied to any text.
pub(crate) fn search_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let query = threadkeep::core::query::TextQuery::parse(&text);
    let _ = query.matches_text(&text);
    let _ = query.matches_thread(Some(&text), Some(&text), &threadkeep::Map::new());
}
