//! What a server logs in a test, at every level.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tracing_subscriber::fmt::MakeWriter;

use crate::server::PATIENCE;

/// The log of everything that this thread runs, and so of all tasks of a test that has one thread.
#[derive(Clone, Default)]
pub(crate) struct Log {
    written: Arc<Mutex<Vec<u8>>>,
    grown: Arc<Notify>,
}

impl Log {
    /// Begins to keep the log, until the guard is dropped.
    pub(crate) fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let kept = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
        let guard = tracing::subscriber::set_default(kept.with_ansi(false).finish());
        (log, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until it says something.
    pub(crate) async fn wait_for(&self, words: &str) {
        let said = async {
            while !self.text().contains(words) {
                self.grown.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, said).await.unwrap_or_else(|_| panic!("{words}"));
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.written.lock().unwrap().extend_from_slice(bytes);
        // Whoever looks next is let through, also where it had not begun to wait.
        self.grown.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
