//! The lines of a server's log on their way to standard error, which a thread of its own writes: no request waits for whoever
//! reads them. Where nobody does, lines are lost rather than kept without bounds.

use std::io::{BufWriter, stderr};
use std::sync::{Mutex, PoisonError};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that wait at most; one has some hundred bytes.
const MOST_LINES: usize = 16 * 1024;
/// Lines that come together are one write.
const TOGETHER_BYTES: usize = 64 * 1024;

/// There is one log in a process.
static OPEN: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Begins to write lines to standard error.
pub(crate) fn to_standard_error() -> NonBlocking {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(MOST_LINES).thread_name("log");
    let (lines, guard) = builder.finish(BufWriter::with_capacity(TOGETHER_BYTES, stderr()));
    *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    lines
}

/// Writes what was logged, waiting for whoever takes it, though not for ever. What is logged after that is lost.
pub(crate) fn close() {
    drop(OPEN.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Closes the log when it is dropped: at the end of the program, also where that is a panic.
pub(crate) struct ClosedAtEnd;

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        close();
    }
}
