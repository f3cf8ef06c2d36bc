//! What the cases need of an executor. Each run brings its own ([`crate::run_case`]), so that the suite runs in a browser as well.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::channel::oneshot;
use futures::future::{AbortHandle, abortable};
use threadkeep_core::Runtime;

/// Spawns a task whose result can be awaited.
pub(crate) fn spawn<T: Send + 'static>(
    runtime: &Arc<dyn Runtime>,
    future: impl Future<Output = T> + Send + 'static,
) -> Task<T> {
    let (sender, result) = oneshot::channel();
    let (future, abort) = abortable(async move {
        // Sending fails if no one waits for the result.
        let _ = sender.send(future.await);
    });
    runtime.spawn(Box::pin(async move {
        let _ = future.await;
    }));
    Task { result, abort }
}

/// A spawned task. It continues if this value is dropped. Awaiting it fails if the task was aborted or panicked.
pub(crate) struct Task<T> {
    result: oneshot::Receiver<T>,
    abort: AbortHandle,
}

impl<T> Task<T> {
    pub(crate) fn abort(&self) {
        self.abort.abort();
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, oneshot::Canceled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(context)
    }
}

/// Lets other tasks run.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
