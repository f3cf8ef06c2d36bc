//! Timetables and messages of trains.

use std::io::{Cursor, Write};

use threadkeep_transit::{LiveFeed, Timetable};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(crate) fn gtfs_zip(data: &[u8]) {
    let _ = Timetable::from_zip(data.to_vec());
}

/// Tables as text, each behind a line `=== NAME`, packed without compression: no checksum stands in the fuzzer's way.
pub(crate) fn gtfs_tables(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for table in text.split("=== ").skip(1) {
        let (name, rows) = table.split_once('\n').unwrap_or((table, ""));
        let begun = archive.start_file(name, stored);
        if begun.is_err() || archive.write_all(rows.as_bytes()).is_err() {
            return;
        }
    }
    let Ok(bytes) = archive.finish() else { return };
    if let Ok(timetable) = Timetable::from_zip(bytes.into_inner()) {
        let again = Timetable::from_cache(&timetable.to_cache());
        assert!(again.is_ok(), "a timetable that was read can be kept");
    }
}

pub(crate) fn realtime(data: &[u8]) {
    if let Ok(feed) = LiveFeed::decode(data) {
        let _ = feed.is_stale(feed.made_at);
    }
}

/// What stands behind the head of a cache, which holds a checksum that would stand in the fuzzer's way.
pub(crate) fn timetable_cache(data: &[u8]) {
    let mut cache = b"TKTT".to_vec();
    cache.extend(1_u32.to_le_bytes());
    cache.extend(crc32fast::hash(data).to_le_bytes());
    cache.extend(data);
    let _ = Timetable::from_cache(&cache);
}
