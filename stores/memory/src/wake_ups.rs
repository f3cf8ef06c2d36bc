use futures::stream;
use threadkeep_core::{WakeUp, WakeUps};
use tokio::sync::broadcast::{Sender, error::RecvError};

/// Subscribes to later wake-ups. A subscriber that lags receives [`WakeUp::Unspecified`].
pub(crate) fn subscribe(sender: &Sender<WakeUp>) -> WakeUps {
    Box::pin(stream::unfold(sender.subscribe(), |mut receiver| async move {
        match receiver.recv().await {
            Ok(wake_up) => Some((wake_up, receiver)),
            Err(RecvError::Lagged(_)) => Some((WakeUp::Unspecified, receiver)),
            Err(RecvError::Closed) => None,
        }
    }))
}
