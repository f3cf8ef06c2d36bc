//! Opens a file as text: counts bytes, decompresses gzip and skips a byte order mark.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use crate::FormatError;

const BUFFER_BYTES: usize = 64 * 1024;
/// Enough to recognise a format by the start of its text.
const PREFIX_BYTES: usize = 32;
const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Unsupported file types, recognised by their first bytes.
const UNSUPPORTED: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a zip archive (pass the path of its file; an archive cannot be read from a stream)"),
    (b"SQLite format 3\0", "a SQLite database"),
    (&[0xff, 0xfe], "UTF-16 text (convert it to UTF-8)"),
    (&[0xfe, 0xff], "UTF-16 text (convert it to UTF-8)"),
    (GZIP, "gzip data inside gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data (decompress it)"),
];

/// Decompressed input.
pub(crate) type Input = Box<dyn BufRead + Send>;

/// Decompresses gzip data, which is recognised by its first bytes, and skips a byte order mark.
pub(crate) fn open(source: Box<dyn Read + Send>, count: Arc<AtomicU64>) -> Result<Input, FormatError> {
    let (magic, source) = split_prefix(Box::new(CountingReader { source, count }), GZIP.len())?;
    let unsplit = Cursor::new(magic.clone()).chain(source);
    let text: Box<dyn Read + Send> =
        if magic == GZIP { Box::new(MultiGzDecoder::new(unsplit)) } else { Box::new(unsplit) };
    let (mut prefix, rest) = split_prefix(text, PREFIX_BYTES)?;
    if let Some((_, found)) = UNSUPPORTED.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return Err(FormatError::Unrecognised { found: (*found).to_owned() });
    }
    if prefix.starts_with(BYTE_ORDER_MARK) {
        prefix.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, Cursor::new(prefix).chain(rest))))
}

type Source = Box<dyn Read + Send>;

/// Reads a prefix. A source may return one byte at a time, so a single `read` is not enough.
fn split_prefix(mut source: Source, bytes: usize) -> io::Result<(Vec<u8>, Source)> {
    let mut prefix = Vec::with_capacity(bytes);
    source.by_ref().take(bytes as u64).read_to_end(&mut prefix)?;
    Ok((prefix, source))
}

/// Counts the bytes read from the file, for a progress bar.
struct CountingReader {
    source: Source,
    count: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.source.read(buffer) {
                // Retried here, so that callers need not handle interruptions.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(bytes) => {
                    self.count.fetch_add(bytes as u64, Ordering::Relaxed);
                    return Ok(bytes);
                }
                failed => return failed,
            }
        }
    }
}
