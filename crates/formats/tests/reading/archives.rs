//! Zip archives: exports as services ship them, and archives that try to exhaust the reader.

use std::io::Write;
use std::path::PathBuf;

use threadkeep_formats::{Archive, Format, FormatError};
use zip::write::SimpleFileOptions;

use super::{fixture, keys, messages};

/// Writes an archive and returns its path, with the folder that is deleted at the end of the test.
fn archive(entries: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let mut writer = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
    (folder, path)
}

#[test]
fn each_file_of_an_archive_is_read_with_its_name() {
    let (chatgpt, slack) = (fixture("chatgpt.json"), fixture("slack.json"));
    let (_folder, path) =
        archive(&[("conversations.json", &chatgpt), ("chat.html", b"<html>"), ("general/2026-11-25.json", &slack)]);
    assert!(Archive::is_archive(&path));
    let archive = Archive::open(&path).unwrap();
    let names: Vec<_> = archive.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["conversations.json", "chat.html", "general/2026-11-25.json"]);
    let read = |index: usize| archive.read(&archive.entries()[index], None).unwrap();
    assert_eq!(read(0).format(), Format::ChatGptExport);
    let items: Vec<_> = read(0).map(Result::unwrap).collect();
    assert_eq!(messages(&items).len(), 10);
    let items: Vec<_> = read(2).map(Result::unwrap).collect();
    assert_eq!(keys(&items), ["import:slack:general"]);
    assert!(matches!(archive.read(&archive.entries()[1], None), Err(FormatError::Unrecognised { .. })));
}

#[test]
fn an_archive_that_expands_too_much_ends_with_an_error() {
    let line = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}\n", "x".repeat(1_000_000));
    let bomb = line.repeat(100);
    let (_folder, path) = archive(&[("bomb.jsonl", bomb.as_bytes())]);
    assert!(std::fs::metadata(&path).unwrap().len() < 400_000, "the archive is small");
    let archive = Archive::open(&path).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = archive.read(&archive.entries()[0], None).unwrap().partition(Result::is_ok);
    assert!(good.len() < 200, "{}", good.len());
    let error = bad.into_iter().next().unwrap().unwrap_err();
    assert!(error.fault.is_final());
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "the archive expands to more than 200 times its size");
    assert!(archive.read(&archive.entries()[0], None).is_err(), "the limit is for the whole archive");
}

#[test]
fn a_wrong_checksum_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let mut writer = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    writer.start_file("chats.jsonl", stored).unwrap();
    writer.write_all(b"{\"messages\":[{\"role\":\"user\",\"content\":\"The pier opens at nine.\"}]}\n").unwrap();
    writer.finish().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|word| word == b"nine").unwrap();
    bytes[at] = b'm';
    std::fs::write(&path, bytes).unwrap();
    let archive = Archive::open(&path).unwrap();
    let errors: Vec<_> = archive.read(&archive.entries()[0], None).unwrap().filter_map(Result::err).collect();
    let source = std::error::Error::source(&errors[0]).unwrap().to_string();
    assert_eq!((errors.len(), source.as_str()), (1, "the archive is damaged: the checksum of the file is wrong"));
}

#[test]
fn damaged_archives_are_reported() {
    let (_folder, path) = archive(&[("conversations.json", &fixture("chatgpt.json"))]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Archive::open(&path).unwrap_err().to_string();
    assert!(error.contains("a damaged zip archive"), "{error}");
    // Bytes in the middle are damaged: the text ends, or has invalid records.
    let mut damaged = bytes;
    let middle = damaged.len() / 3;
    damaged[middle..middle + 20].fill(0);
    std::fs::write(&path, &damaged).unwrap();
    if let Ok(archive) = Archive::open(&path)
        && let Ok(reader) = archive.read(&archive.entries()[0], None)
    {
        assert!(reader.count() < 1_000);
    }
}
