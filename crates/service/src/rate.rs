//! Rate limits: a token bucket for each caller, per instance.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::keys::KeyError;

/// Once there are this many buckets, full buckets are removed.
const MAX_BUCKETS: usize = 10_000;

/// A maximum number of requests per minute, which is also the maximum burst. Tokens are refilled at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateLimit {
    /// Requests per minute, at least 1.
    pub per_minute: u32,
}

impl FromStr for RateLimit {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let per_minute = text.parse().ok().filter(|per_minute| *per_minute > 0);
        per_minute
            .map(|per_minute| Self { per_minute })
            .ok_or(KeyError::Invalid("a rate limit must be at least 1 per minute"))
    }
}

/// A rate limit after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStatus {
    /// The maximum number of requests per minute.
    pub limit: u32,
    /// The number of requests that the caller can make now.
    pub remaining: u32,
    /// The time until the caller can make as many requests as the limit allows.
    pub reset: Duration,
}

/// The buckets of all callers.
#[derive(Default)]
pub(crate) struct RateLimits {
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// The number of tokens left after the last token was taken, and when it was taken; `None` for a full bucket.
    last: Option<(f64, Instant)>,
}

impl Bucket {
    /// Takes a token.
    ///
    /// # Errors
    /// Returns the time until there is a token, if there is none.
    pub(crate) fn take(&mut self, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        let wait = self.time_until_token(limit, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.last = Some((self.tokens(limit, now) - 1.0, now));
        Ok(())
    }

    /// Returns the time until there is a token; zero if there is one.
    pub(crate) fn time_until_token(&self, limit: RateLimit, now: Instant) -> Duration {
        let missing = (1.0 - self.tokens(limit, now)).max(0.0);
        Duration::from_secs_f64(missing * 60.0 / capacity(limit))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "tokens are between 0 and the capacity"
    )]
    fn status(&self, limit: RateLimit, now: Instant) -> RateStatus {
        let tokens = self.tokens(limit, now).max(0.0);
        let reset = Duration::from_secs_f64((capacity(limit) - tokens).max(0.0) * 60.0 / capacity(limit));
        RateStatus { limit: limit.per_minute, remaining: tokens as u32, reset }
    }

    pub(crate) fn is_full(&self, limit: RateLimit, now: Instant) -> bool {
        self.tokens(limit, now) >= capacity(limit)
    }

    fn tokens(&self, limit: RateLimit, now: Instant) -> f64 {
        let Some((tokens, at)) = self.last else { return capacity(limit) };
        let refilled = now.saturating_duration_since(at).as_secs_f64() * capacity(limit) / 60.0;
        (tokens + refilled).min(capacity(limit))
    }

    /// Whether the bucket is full, whatever its limit: one minute after the last token was taken, every bucket is full.
    fn is_refilled(&self, now: Instant) -> bool {
        self.last.is_none_or(|(_, at)| now.saturating_duration_since(at) >= Duration::from_secs(60))
    }
}

fn capacity(limit: RateLimit) -> f64 {
    f64::from(limit.per_minute.max(1))
}

impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimits")
    }
}

impl RateLimits {
    /// Counts a request from a caller.
    ///
    /// # Errors
    /// Returns the time to wait if the limit is exceeded.
    pub(crate) fn count(&self, key: &str, limit: RateLimit, now: Instant) -> Result<RateStatus, Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(key) {
            buckets.retain(|_, bucket| !bucket.is_refilled(now));
        }
        let bucket = buckets.entry(key.to_owned()).or_default();
        bucket.take(limit, now).map(|()| bucket.status(limit, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_refills_evenly() {
        let (limits, limit, start) = (RateLimits::default(), RateLimit { per_minute: 2 }, Instant::now());
        let status = |remaining, seconds| RateStatus { limit: 2, remaining, reset: Duration::from_secs(seconds) };
        assert_eq!(limits.count("a", limit, start), Ok(status(1, 30)));
        assert_eq!(limits.count("a", limit, start), Ok(status(0, 60)));
        assert_eq!(limits.count("a", limit, start), Err(Duration::from_secs(30)));
        assert!(limits.count("b", limit, start).is_ok(), "each key has its own bucket");
        assert!(limits.count("a", limit, start + Duration::from_secs(29)).is_err());
        assert!(limits.count("a", limit, start + Duration::from_secs(30)).is_ok());
        assert!(limits.count("a", limit, start + Duration::from_secs(30)).is_err());
    }
}
