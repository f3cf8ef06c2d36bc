//! The lines of a server's log on their way to standard error, which a thread of its own writes: no request waits for whoever
//! reads them. Where nobody does, lines are lost rather than kept without bounds.

use std::io::{self, BufWriter, Stderr, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that wait at most; one has some hundred bytes.
const MOST_LINES: usize = 16 * 1024;
/// Lines that come together are one write.
const TOGETHER_BYTES: usize = 64 * 1024;

/// How long lines gather after some were written.
const PAUSE: Duration = Duration::from_millis(5);

/// There is one log in a process.
static OPEN: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Begins to write lines to standard error.
pub(crate) fn to_standard_error() -> NonBlocking {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(MOST_LINES).thread_name("log");
    let (lines, guard) = builder.finish(Gathered(BufWriter::with_capacity(TOGETHER_BYTES, io::stderr())));
    *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    lines
}

/// Writes what was logged, waiting for whoever takes it, though not for ever. What is logged after that is lost.
pub(crate) fn close() {
    drop(OPEN.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Writes what has come, and lets more come before it is asked again: to wake the thread for a line costs more than the line.
struct Gathered(BufWriter<Stderr>);

impl Write for Gathered {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.write(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        std::thread::sleep(PAUSE);
        Ok(())
    }
}

/// Closes the log when it is dropped: at the end of the program, also where that is a panic.
pub(crate) struct ClosedAtEnd;

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        close();
    }
}
