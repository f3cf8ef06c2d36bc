//! Writes the server's log to standard error from a separate thread, so that no request waits for a slow reader. If the
//! reader stalls and the buffer is full, lines are dropped.

use std::io::{self, BufWriter, Stderr, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// The maximum number of buffered lines. A line has a few hundred bytes.
const MAX_LINES: usize = 16 * 1024;
/// The size of the buffer that combines lines into one write.
const BUFFER_BYTES: usize = 64 * 1024;

/// The time for which lines accumulate after a write.
const WRITE_INTERVAL: Duration = Duration::from_millis(5);

/// The worker of the log. A process has only one log.
static WORKER: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Starts writing lines to standard error.
pub(crate) fn to_standard_error() -> NonBlocking {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(MAX_LINES).thread_name("log");
    let (lines, guard) = builder.finish(BatchWriter(BufWriter::with_capacity(BUFFER_BYTES, io::stderr())));
    *WORKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    lines
}

/// Flushes the log with a timeout and closes it. Later lines are dropped.
pub(crate) fn close() {
    drop(WORKER.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Pauses after each flush so that lines accumulate, because waking the thread for a single line costs more than writing it.
struct BatchWriter(BufWriter<Stderr>);

impl Write for BatchWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.write(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        std::thread::sleep(WRITE_INTERVAL);
        Ok(())
    }
}

/// Closes the log when dropped, which happens at the end of the program or on a panic.
pub(crate) struct LogGuard;

impl Drop for LogGuard {
    fn drop(&mut self) {
        close();
    }
}
