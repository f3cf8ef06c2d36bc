//! Tasks that are spawned on a [`Runtime`] and can be awaited and aborted.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::{AbortHandle, abortable};
use threadkeep_core::Runtime;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// A handle to a spawned task, which is aborted when the handle is dropped. As a future, the handle resolves to the task's
/// output, or to `None` if the runtime ended first. A panic in the task is resumed in the awaiting task.
#[derive(Debug)]
pub(crate) struct Task<T> {
    abort: AbortHandle,
    output: oneshot::Receiver<std::thread::Result<T>>,
}

impl<T: Send + 'static> Task<T> {
    /// Runs a future as a separate task.
    pub(crate) fn spawn(runtime: &dyn Runtime, work: impl Future<Output = T> + Send + 'static) -> Self {
        let (sender, output) = oneshot::channel();
        let (work, abort) = abortable(async move {
            // Sending fails if the handle has been dropped. The output is not needed then.
            drop(sender.send(AssertUnwindSafe(work).catch_unwind().await));
        });
        runtime.spawn(Box::pin(work.map(drop)));
        Self { abort, output }
    }

    /// Whether the task has ended, by itself or with its runtime. Consumes the output, so do not await the task afterwards.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.output.try_recv(), Err(TryRecvError::Empty))
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.output.poll_unpin(context)) {
            Ok(Ok(output)) => Some(output),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => None,
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::platform::TokioRuntime;

    #[tokio::test]
    async fn tasks_resolve_to_their_output() {
        assert_eq!(Task::spawn(&TokioRuntime, async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn tasks_end_when_their_handle_or_runtime_is_dropped() {
        let (sender, dropped) = oneshot::channel::<()>();
        let mut task = Task::spawn(&TokioRuntime, async move {
            let _sender = sender;
            pending::<()>().await;
        });
        assert!(!task.has_ended());
        drop(task);
        dropped.await.unwrap_err();

        #[expect(clippy::disallowed_methods, reason = "starts a separate runtime")]
        let thread = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _inside = runtime.enter();
            Task::spawn(&TokioRuntime, pending::<()>())
        });
        assert!(thread.join().unwrap().has_ended());
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn panics_are_resumed_in_the_awaiting_task() {
        Task::spawn(&TokioRuntime, async { panic!("broken") }).await;
    }
}
