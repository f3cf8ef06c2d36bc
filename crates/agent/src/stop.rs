use std::sync::Arc;

use tokio::sync::watch;

/// A handle that stops turns from outside. Cheap to clone; all clones share one state.
///
/// A stopped turn ends as failed, with code `stopped`. Its tool calls and results up to that point remain in the
/// conversation.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Creates a handle that has not been triggered.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Stops all turns that use this handle, including turns that are started later.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn wait(&self) {
        let mut receiver = self.0.subscribe();
        // Waiting fails only if the sender is dropped; `self` keeps it alive.
        drop(receiver.wait_for(|is_stopped| *is_stopped).await);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
