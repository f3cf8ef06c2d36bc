//! Captures the log of a server in a test, at all levels.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tracing_subscriber::fmt::MakeWriter;

use crate::server::TIMEOUT;

/// The log of the current thread, and so of all tasks of a single-threaded test.
#[derive(Clone, Default)]
pub(crate) struct Log {
    written: Arc<Mutex<Vec<u8>>>,
    /// Notified after each write.
    has_grown: Arc<Notify>,
}

impl Log {
    /// Captures the log until the guard is dropped.
    pub(crate) fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
        let guard = tracing::subscriber::set_default(subscriber.with_ansi(false).finish());
        (log, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until the log contains `text`.
    pub(crate) async fn wait_for(&self, text: &str) {
        let found = async {
            while !self.text().contains(text) {
                self.has_grown.notified().await;
            }
        };
        tokio::time::timeout(TIMEOUT, found).await.unwrap_or_else(|_| panic!("not logged: {text}"));
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.written.lock().unwrap().extend_from_slice(bytes);
        // Stores a permit, so that a waiter that has not started to wait yet is notified too.
        self.has_grown.notify_one();
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
