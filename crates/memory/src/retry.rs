//! Retrying store calls that fail transiently.

use std::future::Future;
use std::time::Duration;

use threadkeep_core::{Runtime, StoreError};

/// The pauses between attempts, in milliseconds. They allow eight attempts within about 1.3 seconds.
const PAUSES_MS: [u64; 7] = [10, 20, 40, 80, 160, 320, 640];

/// The outcome of a call and its retries.
#[derive(Debug)]
pub(crate) struct RetryOutcome<T> {
    /// The result of the last attempt. If all attempts failed with `Unavailable` and any of them may have been applied, its
    /// `maybe_applied` is set.
    pub(crate) result: Result<T, StoreError>,
    /// Whether an attempt before the last one may have been applied.
    pub(crate) may_have_applied_before: bool,
}

/// Repeats `call` until it succeeds, fails permanently, or has used up its attempts. Returns how the attempts ended.
pub(crate) async fn retry_with_outcome<T, F>(runtime: &dyn Runtime, mut call: impl FnMut() -> F) -> RetryOutcome<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut may_have_applied_before = false;
    for pause_ms in PAUSES_MS {
        match call().await {
            Err(error) if error.is_retryable() || error.maybe_applied() => {
                may_have_applied_before |= error.maybe_applied();
                runtime.sleep(Duration::from_millis(pause_ms)).await;
            }
            result => return RetryOutcome { result, may_have_applied_before },
        }
    }
    let result = call().await.map_err(|error| with_earlier_attempts(error, may_have_applied_before));
    RetryOutcome { result, may_have_applied_before }
}

/// Retries an idempotent call, for which it does not matter whether an earlier attempt was applied.
pub(crate) async fn retry<T, F>(runtime: &dyn Runtime, call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    retry_with_outcome(runtime, call).await.result
}

/// Marks the failed call as possibly applied if an earlier attempt may have been applied.
fn with_earlier_attempts(error: StoreError, may_have_applied_before: bool) -> StoreError {
    match error {
        StoreError::Unavailable { reason, maybe_applied, source } => {
            StoreError::Unavailable { reason, maybe_applied: maybe_applied || may_have_applied_before, source }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use threadkeep_core::Reason;

    use super::*;
    use crate::platform::TokioRuntime;

    fn lost_reply() -> StoreError {
        StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_retried() {
        let calls = Cell::new(0);
        let outcome = retry_with_outcome(&TokioRuntime, || {
            calls.set(calls.get() + 1);
            let answer = if calls.get() < 8 { Err(StoreError::unavailable(Reason::Busy)) } else { Ok(calls.get()) };
            async move { answer }
        })
        .await;
        assert_eq!(outcome.result.unwrap(), 8);
        assert!(!outcome.may_have_applied_before);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_report_that_an_earlier_attempt_may_have_been_applied() {
        let calls = Cell::new(0);
        let outcome = retry_with_outcome(&TokioRuntime, || {
            calls.set(calls.get() + 1);
            let error = if calls.get() == 1 { lost_reply() } else { StoreError::unavailable(Reason::Disconnected) };
            async move { Err::<(), _>(error) }
        })
        .await;
        assert_eq!(calls.get(), 8);
        assert!(outcome.result.unwrap_err().maybe_applied());
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_failures_are_not_retried() {
        for error in [StoreError::unavailable(Reason::Full), StoreError::invalid("x", "y")] {
            let mut error = Some(error);
            let outcome = retry_with_outcome(&TokioRuntime, || {
                std::future::ready(Err::<(), _>(error.take().expect("called once")))
            })
            .await;
            assert!(outcome.result.is_err());
        }
    }
}
