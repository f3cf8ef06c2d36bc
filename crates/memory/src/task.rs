//! Tasks of the runtime that whoever began them can wait for and end.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::{AbortHandle, abortable};
use threadkeep_core::Runtime;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// A task that ends when this is dropped. As a future it gives what the task makes, or `None` where the runtime ended before it;
/// a panic of the task goes on in whoever waits.
#[derive(Debug)]
pub(crate) struct Task<T> {
    end: AbortHandle,
    made: oneshot::Receiver<std::thread::Result<T>>,
}

impl<T: Send + 'static> Task<T> {
    /// Runs a future as a task of its own.
    pub(crate) fn spawn(runtime: &dyn Runtime, work: impl Future<Output = T> + Send + 'static) -> Self {
        let (tell, made) = oneshot::channel();
        let (work, end) = abortable(async move {
            // Nobody hears of it where the task was ended.
            drop(tell.send(AssertUnwindSafe(work).catch_unwind().await));
        });
        runtime.spawn(Box::pin(work.map(drop)));
        Self { end, made }
    }

    /// Whether the task has ended, also because its runtime did. Asked for by those who do not wait for what it makes.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.made.try_recv(), Err(TryRecvError::Empty))
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.made.poll_unpin(context)) {
            Ok(Ok(made)) => Some(made),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => None,
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.end.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::platform::TokioRuntime;

    #[tokio::test]
    async fn a_task_gives_what_it_makes() {
        assert_eq!(Task::spawn(&TokioRuntime, async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn a_task_ends_with_its_owner_and_with_its_runtime() {
        let (held, let_go) = oneshot::channel::<()>();
        let mut task = Task::spawn(&TokioRuntime, async move {
            let _held = held;
            pending::<()>().await;
        });
        assert!(!task.has_ended());
        drop(task);
        let_go.await.unwrap_err();

        #[expect(clippy::disallowed_methods, reason = "a runtime of its own")]
        let elsewhere = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _inside = runtime.enter();
            Task::spawn(&TokioRuntime, pending::<()>())
        });
        assert!(elsewhere.join().unwrap().has_ended());
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn a_panic_goes_on_in_whoever_waits() {
        Task::spawn(&TokioRuntime, async { panic!("broken") }).await;
    }
}
