use std::sync::Arc;

use tokio::sync::watch;

/// Stops turns from outside. Cheap to clone; all clones are the same one.
///
/// A turn that is stopped ends as failed, with code `stopped`; what it had done until then stays in the conversation.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Makes one that stops nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Stops every turn that was given it, now and later.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn wait(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as this does, so waiting fails for no other reason than that.
        drop(receiver.wait_for(|is_stopped| *is_stopped).await);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
