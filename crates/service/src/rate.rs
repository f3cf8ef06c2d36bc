//! How many requests a key may make: a bucket for each, in this instance.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::keys::KeyError;

/// Buckets that are kept before those that are full again are dropped.
const KEPT: usize = 10_000;

/// How many requests may be made in a minute. As many may come at once; then they are let through evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateLimit {
    /// Requests in a minute, at least 1.
    pub per_minute: u32,
}

impl FromStr for RateLimit {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let per_minute = text.parse().ok().filter(|per_minute| *per_minute > 0);
        per_minute.map(|per_minute| Self { per_minute }).ok_or(KeyError::Invalid("a rate is at least 1 a minute"))
    }
}

/// The buckets.
#[derive(Default)]
pub(crate) struct RateLimits {
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// What a limit leaves at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// What was left when something was taken last; a bucket that nothing was taken from is full.
    last: Option<(f64, Instant)>,
}

impl Bucket {
    /// Takes one; else gives the time until there is one.
    pub(crate) fn take(&mut self, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        let wait = self.wait(limit, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.last = Some((self.left(limit, now) - 1.0, now));
        Ok(())
    }

    /// The time until there is one.
    pub(crate) fn wait(&self, limit: RateLimit, now: Instant) -> Duration {
        let lacking = (1.0 - self.left(limit, now)).max(0.0);
        Duration::from_secs_f64(lacking * 60.0 / most(limit))
    }

    pub(crate) fn is_full(&self, limit: RateLimit, now: Instant) -> bool {
        self.left(limit, now) >= most(limit)
    }

    fn left(&self, limit: RateLimit, now: Instant) -> f64 {
        let Some((left, at)) = self.last else { return most(limit) };
        let refilled = now.saturating_duration_since(at).as_secs_f64() * most(limit) / 60.0;
        (left + refilled).min(most(limit))
    }

    /// Whether whatever was taken is there again by now: after a minute, whatever the limit.
    fn is_outdated(&self, now: Instant) -> bool {
        self.last.is_none_or(|(_, at)| now.saturating_duration_since(at) >= Duration::from_secs(60))
    }
}

fn most(limit: RateLimit) -> f64 {
    f64::from(limit.per_minute.max(1))
}

impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimits")
    }
}

impl RateLimits {
    /// Counts a request of a key; refuses it with the time to wait.
    pub(crate) fn count(&self, key: &str, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= KEPT && !buckets.contains_key(key) {
            buckets.retain(|_, bucket| !bucket.is_outdated(now));
        }
        buckets.entry(key.to_owned()).or_default().take(limit, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_evenly() {
        let (limits, limit, start) = (RateLimits::default(), RateLimit { per_minute: 2 }, Instant::now());
        assert!(limits.count("a", limit, start).is_ok());
        assert!(limits.count("a", limit, start).is_ok());
        assert_eq!(limits.count("a", limit, start), Err(Duration::from_secs(30)));
        assert!(limits.count("b", limit, start).is_ok(), "another key has a bucket of its own");
        assert!(limits.count("a", limit, start + Duration::from_secs(29)).is_err());
        assert!(limits.count("a", limit, start + Duration::from_secs(30)).is_ok());
        assert!(limits.count("a", limit, start + Duration::from_secs(30)).is_err());
    }
}
