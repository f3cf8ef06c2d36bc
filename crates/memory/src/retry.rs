//! Repeating what failed in passing.

use std::future::Future;
use std::time::Duration;

use threadkeep_core::{Runtime, StoreError};

/// The pauses between attempts, in milliseconds: eight attempts within about a second and a quarter.
const PAUSES_MS: [u64; 7] = [10, 20, 40, 80, 160, 320, 640];

/// What came of a call and its repetitions.
#[derive(Debug)]
pub(crate) struct Attempted<T> {
    /// The last answer. A failure after an attempt of unknown fate is itself of unknown fate.
    pub(crate) result: Result<T, StoreError>,
    /// Whether an attempt before the last one may have been applied.
    pub(crate) may_have_applied_before: bool,
}

/// Calls until it succeeds, fails for good, or the attempts are used up.
pub(crate) async fn repeat<T, F>(runtime: &dyn Runtime, mut call: impl FnMut() -> F) -> Attempted<T>
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
            result => return Attempted { result, may_have_applied_before },
        }
    }
    let result = call().await.map_err(|error| with_fate(error, may_have_applied_before));
    Attempted { result, may_have_applied_before }
}

/// As [`repeat`], for calls whose repetition needs no second thought.
pub(crate) async fn repeat_simply<T, F>(runtime: &dyn Runtime, call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    repeat(runtime, call).await.result
}

/// An attempt that certainly changed nothing does not tell what an earlier one did.
fn with_fate(error: StoreError, may_have_applied_before: bool) -> StoreError {
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
    async fn a_failure_in_passing_is_repeated() {
        let calls = Cell::new(0);
        let attempted = repeat(&TokioRuntime, || {
            calls.set(calls.get() + 1);
            let answer = if calls.get() < 8 { Err(StoreError::unavailable(Reason::Busy)) } else { Ok(calls.get()) };
            async move { answer }
        })
        .await;
        assert_eq!(attempted.result.unwrap(), 8);
        assert!(!attempted.may_have_applied_before);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_fate_stays_unknown() {
        let calls = Cell::new(0);
        let attempted = repeat(&TokioRuntime, || {
            calls.set(calls.get() + 1);
            let error = if calls.get() == 1 { lost_reply() } else { StoreError::unavailable(Reason::Disconnected) };
            async move { Err::<(), _>(error) }
        })
        .await;
        assert_eq!(calls.get(), 8);
        assert!(attempted.result.unwrap_err().maybe_applied());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_for_good_is_not_repeated() {
        for error in [StoreError::unavailable(Reason::Full), StoreError::invalid("x", "y")] {
            let mut error = Some(error);
            let attempted =
                repeat(&TokioRuntime, || std::future::ready(Err::<(), _>(error.take().expect("called once")))).await;
            assert!(attempted.result.is_err());
        }
    }
}
