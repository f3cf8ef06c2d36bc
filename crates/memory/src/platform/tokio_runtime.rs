use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use threadkeep_core::{MonotonicTime, Runtime};
use tokio::task::coop::unconstrained;

/// The caller's tokio runtime, with its timer. Respects tokio's paused clock in tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioRuntime;

/// The origin of monotonic times.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Runtime for TokioRuntime {
    fn now(&self) -> MonotonicTime {
        let now = tokio::time::Instant::now().into_std();
        let nanos = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        MonotonicTime::from_nanos(match now.checked_duration_since(*START) {
            Some(since) => nanos(since),
            // A paused clock may be before the origin.
            None => -nanos(START.duration_since(now)),
        })
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        // Without `unconstrained`, work that uses up the task's cooperative budget would prevent its own timeout from firing.
        Box::pin(unconstrained(tokio::time::sleep(length)))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn paused_time_advances_with_sleeps() {
        let runtime: &dyn Runtime = &TokioRuntime;
        let started = runtime.now();
        runtime.sleep(Duration::from_secs(3_600)).await;
        assert_eq!(runtime.now(), started + Duration::from_secs(3_600));
        assert_eq!(runtime.timeout(Duration::from_secs(60), std::future::pending::<()>()).await, None);
        assert_eq!(runtime.now().since(started), Duration::from_secs(3_660));
    }

    #[tokio::test]
    async fn work_that_never_waits_times_out() {
        let runtime: &dyn Runtime = &TokioRuntime;
        let started = runtime.now();
        let work = async {
            // Always ready, like a socket that always has data, so only tokio's budget makes the task yield.
            while runtime.now().since(started) < Duration::from_secs(30) {
                tokio::task::coop::consume_budget().await;
            }
        };
        assert_eq!(runtime.timeout(Duration::from_millis(20), work).await, None);
    }
}
