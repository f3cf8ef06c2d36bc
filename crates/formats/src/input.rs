//! From a file's bytes to its text: counted, unpacked, without a byte order mark.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use crate::FormatError;

const BUFFER_BYTES: usize = 64 * 1024;
const PREFIX_BYTES: usize = 16;
const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// What is there instead of JSON, told by the first bytes.
const STRANGERS: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a zip archive (unpack it; ChatGPT and Claude keep the conversations in conversations.json)"),
    (b"SQLite format 3\0", "a SQLite database"),
    (&[0xff, 0xfe], "text in UTF-16 (save it as UTF-8)"),
    (&[0xfe, 0xff], "text in UTF-16 (save it as UTF-8)"),
    (GZIP, "gzip data inside gzip data"),
    (b"\x28\xb5\x2f\xfd", "data packed by zstd (unpack it)"),
];

/// Text that is being read.
pub(crate) type Input = Box<dyn BufRead + Send>;

/// Unpacks gzip data, which is known by its first bytes, and skips a byte order mark.
pub(crate) fn open(source: Box<dyn Read + Send>, count: Arc<AtomicU64>) -> Result<Input, FormatError> {
    let (packed, source) = split_prefix(Box::new(Counting { source, count }), GZIP.len())?;
    let whole = Cursor::new(packed.clone()).chain(source);
    let text: Box<dyn Read + Send> =
        if packed == GZIP { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    let (mut prefix, rest) = split_prefix(text, PREFIX_BYTES)?;
    if let Some((_, saw)) = STRANGERS.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return Err(FormatError::Unrecognised { saw: (*saw).to_owned() });
    }
    if prefix.starts_with(BYTE_ORDER_MARK) {
        prefix.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, Cursor::new(prefix).chain(rest))))
}

type Source = Box<dyn Read + Send>;

/// A reader may give one byte at a time, so that one `read` is not enough for a prefix.
fn split_prefix(mut source: Source, bytes: usize) -> io::Result<(Vec<u8>, Source)> {
    let mut prefix = Vec::with_capacity(bytes);
    source.by_ref().take(bytes as u64).read_to_end(&mut prefix)?;
    Ok((prefix, source))
}

/// Counts what was read from the file, for a progress bar.
struct Counting {
    source: Source,
    count: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.source.read(buffer) {
                // Retried here, so that nobody above has to.
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
