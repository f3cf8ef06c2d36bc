//! Targets for timetables and realtime messages.

use std::io::{Cursor, Write};

use threadkeep_transit::{LiveFeed, Timetable};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(crate) fn gtfs_zip(data: &[u8]) {
    let _ = Timetable::from_zip(data.to_vec());
}

/// Reads tables from text, each after a line `=== NAME`. The archive is built here, so that the fuzzer does not have to
/// guess checksums.
pub(crate) fn gtfs_tables(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for table in text.split("=== ").skip(1) {
        let (name, rows) = table.split_once('\n').unwrap_or((table, ""));
        let started = archive.start_file(name, stored);
        if started.is_err() || archive.write_all(rows.as_bytes()).is_err() {
            return;
        }
    }
    let Ok(bytes) = archive.finish() else { return };
    if let Ok(timetable) = Timetable::from_zip(bytes.into_inner()) {
        let cached = Timetable::from_cache(&timetable.to_cache());
        assert!(cached.is_ok(), "a timetable can be cached");
    }
}

pub(crate) fn realtime(data: &[u8]) {
    if let Ok(feed) = LiveFeed::decode(data) {
        let _ = feed.is_stale(feed.made_at);
    }
}

/// Reads the payload of a cache. The header is built here, so that the fuzzer does not have to guess its checksum.
pub(crate) fn timetable_cache(data: &[u8]) {
    let mut cache = b"TKTT".to_vec();
    cache.extend(1_u32.to_le_bytes());
    cache.extend(crc32fast::hash(data).to_le_bytes());
    cache.extend(data);
    let _ = Timetable::from_cache(&cache);
}
