//! A limited reader for the output of a server.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The maximum size of all messages between two calls, in bytes.
const UNREQUESTED_BYTES: u64 = 16 * 1024 * 1024;

/// What a reader counts, shared with the calls.
#[derive(Debug, Default)]
pub(crate) struct ReadCount {
    since_call: AtomicU64,
    /// The limit that the server exceeded.
    exceeded: Mutex<Option<String>>,
}

impl ReadCount {
    /// Records that a call starts.
    pub(crate) fn start_call(&self) {
        self.since_call.store(0, Ordering::Relaxed);
    }

    /// Returns the limit that the server exceeded, if that closed the connection.
    pub(crate) fn exceeded(&self) -> Option<String> {
        self.exceeded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn exceed(&self, reason: String) -> io::Error {
        *self.exceeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
        io::Error::other(reason)
    }
}

/// Reads lines of limited length. A longer line, and output that no call requested, end the stream with an error.
#[derive(Debug)]
pub(crate) struct LimitedReader<R> {
    inner: R,
    max_line: usize,
    line: usize,
    count: Arc<ReadCount>,
}

impl<R> LimitedReader<R> {
    pub(crate) fn new(inner: R, max_line: usize, count: Arc<ReadCount>) -> Self {
        Self { inner, max_line, line: 0, count }
    }
}

impl<R> LimitedReader<R> {
    /// Counts bytes.
    ///
    /// # Errors
    /// The limit that they exceed.
    fn count(&mut self, read: &[u8]) -> Result<(), String> {
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            self.line += part.len();
            if self.line > self.max_line {
                return Err(format!("the server sent a message of more than {} bytes", self.max_line));
            }
            if part.ends_with(b"\n") {
                self.line = 0;
            }
        }
        let bytes = read.len() as u64;
        if self.count.since_call.fetch_add(bytes, Ordering::Relaxed) + bytes > UNREQUESTED_BYTES {
            return Err(format!("the server sent more than {UNREQUESTED_BYTES} bytes without a call"));
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if !matches!(polled, Poll::Ready(Ok(()))) {
            return polled;
        }
        if let Err(reason) = self.count(&buffer.filled()[before..]) {
            // A read that fails must not have read anything.
            buffer.set_filled(before);
            return Poll::Ready(Err(self.count.exceed(reason)));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn long_lines_end_the_stream() {
        let count = Arc::<ReadCount>::default();
        let mut reader = LimitedReader::new(&b"abc\nabcd\nabcde\n"[..], 5, Arc::clone(&count));
        let error = reader.read_to_end(&mut Vec::new()).await.unwrap_err().to_string();
        assert_eq!(error, "the server sent a message of more than 5 bytes");
        assert_eq!(count.exceeded(), Some(error));
    }
}
