//! Holds the head of a streamed response until the model has sent something. A request that fails before that gets an ordinary error
//! response, with the same status as without streaming.

use tokio::sync::oneshot;

use crate::app::App;
use crate::error::ApiError;

/// Releases the head of a response, or replaces the response with an error.
#[derive(Debug)]
pub(super) struct HeadSender(Option<oneshot::Sender<ApiError>>);

/// The head of a response.
#[derive(Debug)]
pub(super) struct HeldHead(oneshot::Receiver<ApiError>);

pub(super) fn hold() -> (HeadSender, HeldHead) {
    let (sender, receiver) = oneshot::channel();
    (HeadSender(Some(sender)), HeldHead(receiver))
}

impl HeadSender {
    /// Releases the head, if it is still held.
    pub(super) fn release(&mut self) {
        self.0 = None;
    }

    /// Replaces the response with an error.
    ///
    /// # Errors
    /// Returns the error if the head has been sent. The stream then has to report the error.
    pub(super) fn fail(&mut self, error: ApiError) -> Result<(), ApiError> {
        match self.0.take() {
            Some(sender) => sender.send(error),
            None => Err(error),
        }
    }
}

impl HeldHead {
    /// Waits until the head is released, but at most for [`crate::ServerOptions::stream_head`].
    ///
    /// # Errors
    /// The error that replaces the response.
    pub(super) async fn wait_until_released(self, app: &App) -> Result<(), ApiError> {
        let mut receiver = self.0;
        match tokio::time::timeout(app.options().stream_head, &mut receiver).await {
            Ok(Ok(error)) => Err(error),
            Ok(Err(_)) => Ok(()),
            Err(_) => {
                // An error may have been sent just as the time ran out.
                receiver.close();
                receiver.try_recv().map_or(Ok(()), Err)
            }
        }
    }
}
