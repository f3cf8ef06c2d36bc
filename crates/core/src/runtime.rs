use std::future::{Future, poll_fn};
use std::ops::Add;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::future::BoxFuture;

use crate::Portable;

/// The async runtime that a program has: how this library waits and runs tasks.
pub trait Runtime: Portable {
    /// The moment now, on a clock that never goes back. It tells nothing of the date: that is a [`crate::Clock`]'s.
    fn now(&self) -> MonotonicTime;
    /// Waits for a length of time, from the call on. Dropping the future ends the wait. Once the time is over, the next poll says so:
    /// a runtime that makes busy tasks yield leaves this one out, or a timeout of work that never waits would never end it.
    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()>;
    /// Runs a future beside the caller's until it ends, or the runtime does, which drops it.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

impl dyn Runtime {
    /// Waits until a moment; not at all for one that has passed.
    pub async fn sleep_until(&self, moment: MonotonicTime) {
        let left = moment.since(self.now());
        if !left.is_zero() {
            self.sleep(left).await;
        }
    }

    /// Waits for a future for a length of time at most; `None` where that was not enough.
    pub async fn timeout<F: Future>(&self, length: Duration, future: F) -> Option<F::Output> {
        self.timeout_at(self.now() + length, future).await
    }

    /// Waits for a future until a moment at most; `None` where that was not enough. A future that is ready is never late.
    pub async fn timeout_at<F: Future>(&self, deadline: MonotonicTime, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            // What is ready at once needs no timer, and neither does what is late already.
            let sleep = match &mut sleep {
                Some(sleep) => sleep,
                None => match deadline.since(self.now()) {
                    Duration::ZERO => return Poll::Ready(None),
                    left => sleep.insert(self.sleep(left)),
                },
            };
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

/// A moment on the clock of a [`Runtime`], to the nanosecond. Moments of two runtimes cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicTime {
    nanos: i64,
}

impl MonotonicTime {
    /// The moment so many nanoseconds after the one that the runtime counts from, or before it.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// How long after another moment this is; zero where it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.nanos) - i128::from(earlier.nanos);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = Self;

    /// A moment too far away is the last one that there is, in 292 years.
    fn add(self, length: Duration) -> Self {
        let nanos = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        Self { nanos: self.nanos.saturating_add(nanos) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use super::*;

    /// Its time moves only with the sleeps that are asked for, which are over at once.
    struct Hurried {
        now: Mutex<MonotonicTime>,
    }

    impl Runtime for Hurried {
        fn now(&self) -> MonotonicTime {
            *self.now.lock().unwrap()
        }

        fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
            assert!(!length.is_zero(), "what has passed needs no timer");
            let mut now = self.now.lock().unwrap();
            *now = *now + length;
            Box::pin(std::future::ready(()))
        }

        fn spawn(&self, _: BoxFuture<'static, ()>) {
            unreachable!("nothing is spawned");
        }
    }

    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_timeout_sleeps_only_while_the_future_is_not_ready() {
        let hurried = Hurried { now: Mutex::new(MonotonicTime::from_nanos(-5)) };
        let runtime: &dyn Runtime = &hurried;
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
    fn moments_end_nowhere() {
        let (first, last) = (MonotonicTime::from_nanos(i64::MIN), MonotonicTime::from_nanos(i64::MAX));
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(last.since(first), Duration::from_nanos(u64::MAX));
        assert_eq!(first.since(last), Duration::ZERO);
    }
}
