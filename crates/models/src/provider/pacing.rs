use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_core::Portable;

/// The first wait; each next one is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait of our own choice.
const LONGEST: Duration = Duration::from_secs(8);
/// The longest wait that a provider may ask for; where it asks for more, the caller is told.
const LONGEST_ASKED: Duration = Duration::from_secs(120);

/// Chance and waiting between attempts. Tests put their own in its place.
#[async_trait]
pub trait Pacing: Portable + std::fmt::Debug {
    /// A number from 0 to 1, another one each time.
    fn chance(&self) -> f64;

    /// Waits.
    async fn pause(&self, wait: Duration);
}

/// Real chance and real time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemPacing;

#[async_trait]
impl Pacing for SystemPacing {
    fn chance(&self) -> f64 {
        // Each state has keys of its own, from the system's source of randomness.
        RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
    }

    async fn pause(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

/// How long to wait before the attempt after this one (counted from 0); `None` where the provider asks for longer than
/// anyone should wait here.
pub(super) fn wait_before_next(attempt: u32, asked: Option<Duration>, chance: f64) -> Option<Duration> {
    match asked {
        Some(asked) if asked > LONGEST_ASKED => None,
        Some(asked) => Some(asked),
        None => {
            let full = FIRST.saturating_mul(2u32.saturating_pow(attempt)).min(LONGEST);
            // Between three quarters and all of it, so that many callers do not come back at once.
            Some(full.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_obey_the_provider() {
        let millis = |attempt, asked, chance| wait_before_next(attempt, asked, chance).map(|wait| wait.as_millis());
        assert_eq!(millis(0, None, 0.0), Some(500));
        assert_eq!(millis(0, None, 1.0), Some(375));
        assert_eq!(millis(2, None, 0.0), Some(2_000));
        assert_eq!(millis(40, None, 0.0), Some(8_000));
        assert_eq!(millis(0, Some(Duration::from_secs(7)), 1.0), Some(7_000));
        assert_eq!(millis(0, Some(Duration::from_secs(120)), 1.0), Some(120_000));
        assert_eq!(millis(0, Some(Duration::from_secs(121)), 1.0), None);
    }

    #[test]
    fn chance_is_a_share() {
        let chances: Vec<f64> = (0..100).map(|_| SystemPacing.chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)));
        assert!(chances.iter().any(|chance| *chance != chances[0]));
    }
}
