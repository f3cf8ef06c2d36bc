use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_core::Portable;

/// The first backoff. Each further attempt doubles it.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// The longest backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// The longest wait that a provider may request. If it requests a longer one, the call fails.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// The randomness and the pauses between attempts. Tests replace both.
#[async_trait]
pub trait Pacing: Portable + std::fmt::Debug {
    /// Returns a random number from 0 to 1.
    fn random_fraction(&self) -> f64;

    /// Waits for the duration.
    async fn pause(&self, wait: Duration);
}

/// System randomness and real time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemPacing;

#[async_trait]
impl Pacing for SystemPacing {
    fn random_fraction(&self) -> f64 {
        // Each `RandomState` has its own keys, seeded by the system's source of randomness.
        RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
    }

    async fn pause(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

/// Returns the wait after an attempt (0-based), or `None` if the provider requests a wait longer than the maximum.
pub(super) fn wait_before_next(attempt: u32, retry_after: Option<Duration>, fraction: f64) -> Option<Duration> {
    match retry_after {
        Some(retry_after) if retry_after > MAX_RETRY_AFTER => None,
        Some(retry_after) => Some(retry_after),
        None => {
            let full = FIRST_BACKOFF.saturating_mul(2u32.saturating_pow(attempt)).min(MAX_BACKOFF);
            // Jitter: between three quarters of the backoff and all of it, so that callers do not retry simultaneously.
            Some(full.mul_f64(1.0 - fraction.clamp(0.0, 1.0) / 4.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_respect_the_providers_request() {
        let millis = |attempt, retry_after, fraction| {
            wait_before_next(attempt, retry_after, fraction).map(|wait| wait.as_millis())
        };
        assert_eq!(millis(0, None, 0.0), Some(500));
        assert_eq!(millis(0, None, 1.0), Some(375));
        assert_eq!(millis(2, None, 0.0), Some(2_000));
        assert_eq!(millis(40, None, 0.0), Some(8_000));
        assert_eq!(millis(0, Some(Duration::from_secs(7)), 1.0), Some(7_000));
        assert_eq!(millis(0, Some(Duration::from_secs(120)), 1.0), Some(120_000));
        assert_eq!(millis(0, Some(Duration::from_secs(121)), 1.0), None);
    }

    #[test]
    fn random_fractions_are_between_0_and_1() {
        let fractions: Vec<f64> = (0..100).map(|_| SystemPacing.random_fraction()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction)));
        assert!(fractions.iter().any(|fraction| *fraction != fractions[0]));
    }
}
