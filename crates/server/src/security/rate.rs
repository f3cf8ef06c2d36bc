//! How many requests a key may make: a bucket for each, in this instance.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::keys::KeyError;

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

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimits")
    }
}

impl RateLimits {
    /// Counts a request of a key; refuses it with the time to wait.
    pub(crate) fn count(&self, key: &str, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        let most = f64::from(limit.per_minute.max(1));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= KEPT && !buckets.contains_key(key) {
            // After a minute every bucket is full again, whatever its size.
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < Duration::from_secs(60));
        }
        let bucket = buckets.entry(key.to_owned()).or_insert(Bucket { left: most, at: now });
        let refilled = now.saturating_duration_since(bucket.at).as_secs_f64() * most / 60.0;
        let left = (bucket.left + refilled).min(most);
        if left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - left) * 60.0 / most));
        }
        *bucket = Bucket { left: left - 1.0, at: now };
        Ok(())
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
