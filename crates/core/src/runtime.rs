use std::future::{Future, poll_fn};
use std::ops::Add;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::future::BoxFuture;

use crate::Portable;

/// The async runtime: how this library waits and spawns tasks.
pub trait Runtime: Portable {
    /// Returns the current time of a monotonic clock. For dates, use a [`crate::Clock`].
    fn now(&self) -> MonotonicTime;
    /// Waits for a duration, starting at the call. Dropping the future ends the wait. After the duration, the next poll must return
    /// ready: a runtime with cooperative scheduling must exempt this future from it, or a timeout could not end work that never waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
    /// Spawns a task. It runs until it is complete or the runtime shuts down, which drops the future.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

impl dyn Runtime {
    /// Waits until a time. Returns immediately if it has passed.
    pub async fn sleep_until(&self, deadline: MonotonicTime) {
        let remaining = deadline.since(self.now());
        if !remaining.is_zero() {
            self.sleep(remaining).await;
        }
    }

    /// Waits for a future, for at most a duration. Returns `None` on timeout.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Option<F::Output> {
        self.timeout_at(self.now() + duration, future).await
    }

    /// Waits for a future, at most until a deadline. Returns `None` on timeout. A future that is ready at the first poll never times
    /// out.
    pub async fn timeout_at<F: Future>(&self, deadline: MonotonicTime, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            // The timer is created only if the future is not ready at the first poll and the deadline has not passed.
            let sleep = match &mut sleep {
                Some(sleep) => sleep,
                None => match deadline.since(self.now()) {
                    Duration::ZERO => return Poll::Ready(None),
                    remaining => sleep.insert(self.sleep(remaining)),
                },
            };
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

/// A time on the monotonic clock of a [`Runtime`], in nanoseconds. Times of different runtimes cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicTime {
    nanos: i64,
}

impl MonotonicTime {
    /// Creates a time from the nanoseconds since the origin of the runtime's clock, negative before it.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// Returns the duration since an earlier time; zero if `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.nanos) - i128::from(earlier.nanos);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = Self;

    /// Saturates at the maximum, 292 years after the origin.
    fn add(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self { nanos: self.nanos.saturating_add(nanos) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use super::*;

    /// A runtime whose sleeps end immediately and advance its time.
    struct FakeRuntime {
        now: Mutex<MonotonicTime>,
    }

    impl Runtime for FakeRuntime {
        fn now(&self) -> MonotonicTime {
            *self.now.lock().unwrap()
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            assert!(!duration.is_zero(), "a timer for a deadline that has passed");
            let mut now = self.now.lock().unwrap();
            *now = *now + duration;
            Box::pin(std::future::ready(()))
        }

        fn spawn(&self, _: BoxFuture<'static, ()>) {
            unreachable!("no task is spawned");
        }
    }

    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future is pending"),
        }
    }

    #[test]
    fn timeout_sleeps_only_while_the_future_is_not_ready() {
        let fake = FakeRuntime { now: Mutex::new(MonotonicTime::from_nanos(-5)) };
        let runtime: &dyn Runtime = &fake;
        assert_eq!(ready(runtime.timeout(Duration::ZERO, std::future::ready(7))), Some(7));
        assert_eq!(runtime.now(), MonotonicTime::from_nanos(-5));
        assert_eq!(ready(runtime.timeout(Duration::ZERO, std::future::pending::<()>())), None);
        assert_eq!(ready(runtime.timeout(Duration::from_nanos(8), std::future::pending::<()>())), None);
        assert_eq!(runtime.now(), MonotonicTime::from_nanos(3));
        ready(runtime.sleep_until(MonotonicTime::from_nanos(1)));
        assert_eq!(runtime.now(), MonotonicTime::from_nanos(3));
        ready(runtime.sleep_until(MonotonicTime::from_nanos(9)));
        assert_eq!(runtime.now(), MonotonicTime::from_nanos(9));
    }

    #[test]
    fn monotonic_time_saturates() {
        let (first, last) = (MonotonicTime::from_nanos(i64::MIN), MonotonicTime::from_nanos(i64::MAX));
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(last.since(first), Duration::from_nanos(u64::MAX));
        assert_eq!(first.since(last), Duration::ZERO);
    }
}
