//! The lines of a server's log on their way to standard error: gathered in memory and written by a thread of their own.
//!
//! So a request waits for no reader of the log, and many lines cost one write. A line after a pause is written at once, and
//! so is a warning with all before it; others within [`PAUSE`]. Where more wait than [`MOST_BYTES`], or cannot be written,
//! lines are lost, and how many is told in their place.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long lines gather, at most, once one was written.
const PAUSE: Duration = Duration::from_millis(10);
/// So many bytes wait for no pause.
const MANY_BYTES: usize = 64 * 1024;
/// Bytes that wait at most.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// How long a program that ends waits for whoever takes its log.
const PATIENCE: Duration = Duration::from_secs(2);

/// There is one log in a process.
static STANDARD_ERROR: OnceLock<LogLines> = OnceLock::new();

/// Takes lines, and has them written. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct LogLines {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread that writes.
    wanted: Condvar,
    /// Wakes whoever waits until all is written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that found no room, or could not be written, and were not told yet.
    lost: usize,
    is_urgent: bool,
    /// Batches whose writing has begun, and those that are written or given up.
    begun: u64,
    ended: u64,
    /// Whether the thread waits for a first line, not for the end of a pause.
    is_idle: bool,
}

/// Lines that go to standard error.
pub(crate) fn to_standard_error() -> io::Result<LogLines> {
    if let Some(lines) = STANDARD_ERROR.get() {
        return Ok(lines.clone());
    }
    let lines = LogLines::begin(standard_error()?, tell_lost)?;
    Ok(STANDARD_ERROR.get_or_init(|| lines).clone())
}

/// Waits until what was logged is written, as a program does before it ends or says something else; not for ever.
pub(crate) fn flush() {
    if let Some(lines) = STANDARD_ERROR.get() {
        lines.flush();
    }
}

/// Says how many lines are not there, where a filter lets any line of the server through.
fn tell_lost(lost: usize) {
    tracing::error!(target: "threadkeep_server", lost, "lines of the log are lost: they were not taken in time");
}

/// Standard error without the lock that others of this process may hold.
#[cfg(unix)]
fn standard_error() -> io::Result<impl Write + Send + 'static> {
    use std::os::fd::AsFd;
    Ok(std::fs::File::from(io::stderr().as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn standard_error() -> io::Result<impl Write + Send + 'static> {
    Ok(io::stderr())
}

impl LogLines {
    /// Begins to write what it is given. How many lines are lost is told so that it is given too.
    fn begin(out: impl Write + Send + 'static, tell_lost: impl Fn(usize) + Send + 'static) -> io::Result<Self> {
        let lines = Self::default();
        let shared = Arc::clone(&lines.shared);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_out(out, tell_lost))?;
        Ok(lines)
    }

    fn flush(&self) {
        let mut state = self.shared.state();
        state.is_urgent = true;
        self.shared.wanted.notify_one();
        // What others log meanwhile is not waited for.
        let last = state.begun + u64::from(!state.waiting.is_empty());
        drop(self.shared.written.wait_timeout_while(state, PATIENCE, |state| state.ended < last));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, line: &[u8], is_urgent: bool) {
        let mut state = self.state();
        if state.waiting.len() + line.len() > MOST_BYTES {
            state.lost += 1;
            return;
        }
        state.waiting.extend_from_slice(line);
        let is_urgent = is_urgent || state.waiting.len() >= MANY_BYTES;
        // To wake a thread costs more than to leave a line: it is woken where it would not look by itself.
        let is_wanted = state.is_idle || (is_urgent && !state.is_urgent);
        state.is_urgent |= is_urgent;
        state.is_idle = false;
        drop(state);
        if is_wanted {
            self.wanted.notify_one();
        }
    }

    /// Writes what comes, as long as the process lives.
    fn write_out(&self, mut out: impl Write, tell_lost: impl Fn(usize)) {
        let mut batch = Vec::new();
        let mut can_write = true;
        loop {
            let lost = self.next(&mut batch, can_write);
            if lost > 0 {
                // It comes first of what is written next: after the lines before those that are lost.
                tell_lost(lost);
            }
            can_write = out.write_all(&batch).and_then(|()| out.flush()).is_ok();
            let mut state = self.state();
            if !can_write {
                state.lost += batch.iter().filter(|byte| **byte == b'\n').count();
            }
            state.ended += 1;
            self.written.notify_all();
            drop(self.wanted.wait_timeout_while(state, PAUSE, |state| !state.is_urgent));
        }
    }

    /// Waits for lines, and gives how many are lost after them, where that can be told.
    fn next(&self, batch: &mut Vec<u8>, can_write: bool) -> usize {
        let mut state = self.state();
        state.is_idle = state.waiting.is_empty();
        state = self.wanted.wait_while(state, |state| state.waiting.is_empty()).unwrap_or_else(PoisonError::into_inner);
        // One long wait does not hold its memory for ever.
        batch.clear();
        batch.shrink_to(2 * MANY_BYTES);
        std::mem::swap(batch, &mut state.waiting);
        (state.is_idle, state.is_urgent) = (false, false);
        state.begun += 1;
        if can_write { std::mem::take(&mut state.lost) } else { 0 }
    }
}

/// Writes one line.
pub(crate) struct Line<'a> {
    lines: &'a LogLines,
    is_urgent: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.shared.take(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: self, is_urgent: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line<'a> {
        Line { lines: self, is_urgent: *about.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// What was written. Each write takes a permit first; when nobody gives any more, none is needed.
    struct Taker {
        permits: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Taker {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.permits.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn taker() -> (Taker, mpsc::Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let ((permit, permits), written) = (mpsc::channel(), Arc::default());
        (Taker { permits, written: Arc::clone(&written) }, permit, written)
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_of_many_are_written_whole_and_in_the_order_of_each() {
        let (taker, permit, written) = taker();
        drop(permit);
        let lines = LogLines::begin(taker, |lost| panic!("{lost} are lost")).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let lines = &lines;
                scope.spawn(move || {
                    for line in 0..5_000 {
                        lines.make_writer().write_all(format!("{writer} {line}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        lines.flush();
        let text = text(&written);
        for writer in 0..4 {
            let of_writer = text.lines().filter_map(|line| line.strip_prefix(&format!("{writer} ")));
            assert!(of_writer.map(|line| line.parse::<usize>().unwrap()).eq(0..5_000), "{writer}");
        }
    }

    #[test]
    fn lines_that_nobody_takes_are_lost_in_a_bounded_way_and_told() {
        let (taker, permit, written) = taker();
        let (told, tells) = mpsc::channel();
        let lines = LogLines::begin(taker, move |lost| told.send(lost).unwrap()).unwrap();
        let (line, given) = ("x".repeat(1023), 3 * MOST_BYTES / 1024);
        for _ in 0..given {
            // Nobody takes any, and nobody who gives one waits.
            lines.shared.take(format!("{line}\n").as_bytes(), false);
        }
        drop(permit);
        lines.flush();
        lines.shared.take(b"the last\n", true);
        lines.flush();
        let text = text(&written);
        let kept = text.lines().filter(|written| **written == line).count();
        assert!(kept * 1024 >= MOST_BYTES && kept * 1024 <= 2 * MOST_BYTES, "{kept}");
        assert_eq!(kept + tells.try_iter().sum::<usize>(), given);
        assert!(text.ends_with("the last\n"));
    }
}
