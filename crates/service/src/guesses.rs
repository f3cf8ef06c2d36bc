//! Limits failed attempts to guess the shared key of clients or the local token, for each source and in total. People choose these
//! secrets, so they may be weak; generated API keys cannot be guessed.
//!
//! A source with too many failures is rejected before its credential is checked. Failures of one source do not lock out others: the
//! first attempt of a source is always checked, and so is every attempt of a source that recently used a valid key, because many
//! clients may share an address. Like rate limits, failures are counted per instance.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::rate::{Bucket, RateLimit};

/// The limit of failures from one source.
const PER_SOURCE: RateLimit = RateLimit { per_minute: 30 };
/// The limit of failures from all sources together, not counting the first failure of each source.
const TOTAL: RateLimit = RateLimit { per_minute: 600 };
/// The maximum number of tracked sources.
const MAX_SOURCES: usize = 10_000;
/// How long a source is trusted after it has used a valid key.
const TRUSTED_FOR: Duration = Duration::from_hours(1);

/// The source of an attempt: an IPv4 address, or an IPv6 network with a 64-bit prefix, because a single client may own a whole
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// Returns the source of a request: the peer of the connection, or the client of a proxy on this machine.
    ///
    /// `forwarded_for` is the comma-separated list of addresses that the proxy sent.
    #[must_use]
    pub fn of(peer: SocketAddr, forwarded_for: Option<&str>) -> Self {
        let peer = peer.ip().to_canonical();
        // Only proxies on this machine are trusted: any client can send the header.
        let forwarded = if peer.is_loopback() { forwarded_for.and_then(last_address) } else { None };
        match forwarded.unwrap_or(peer) {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// Returns the last address of the list, which the proxy itself added.
fn last_address(forwarded_for: &str) -> Option<IpAddr> {
    forwarded_for.rsplit(',').next()?.trim().parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Limits failed attempts to authenticate.
#[derive(Default)]
pub struct GuessLimiter {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    total: Bucket,
    sources: HashMap<Source, SourceState>,
}

#[derive(Clone, Copy, Default)]
struct SourceState {
    failures: Bucket,
    succeeded_at: Option<Instant>,
}

impl SourceState {
    fn is_trusted(&self, now: Instant) -> bool {
        self.succeeded_at.is_some_and(|at| now.saturating_duration_since(at) < TRUSTED_FOR)
    }

    /// Whether the state is equivalent to that of a new source.
    fn is_unused(&self, now: Instant) -> bool {
        !self.is_trusted(now) && self.failures.is_full(PER_SOURCE, now)
    }
}

impl fmt::Debug for GuessLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuessLimiter")
    }
}

impl GuessLimiter {
    /// Checks whether an attempt of a source is allowed.
    ///
    /// # Errors
    /// Returns the time that the source has to wait if the attempt is not allowed.
    pub fn admit(&self, source: Source, now: Instant) -> Result<(), Duration> {
        let state = self.lock();
        let found = state.sources.get(&source).filter(|found| !found.is_trusted(now) && !found.is_unused(now));
        let Some(found) = found else { return Ok(()) };
        let wait = found.failures.time_until_token(PER_SOURCE, now).max(state.total.time_until_token(TOTAL, now));
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Records that a source used a valid key.
    pub fn record_success(&self, source: Source, now: Instant) {
        self.lock().source_mut(source, now).succeeded_at = Some(now);
    }

    /// Records a failed attempt.
    ///
    /// # Errors
    /// Returns the time that the source has to wait if there were too many failures.
    pub fn record_failure(&self, source: Source, now: Instant) -> Result<(), Duration> {
        let mut state = self.lock();
        let failures = &mut state.source_mut(source, now).failures;
        let is_first = failures.is_full(PER_SOURCE, now);
        failures.take(PER_SOURCE, now)?;
        if is_first { Ok(()) } else { state.total.take(TOTAL, now) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn source_mut(&mut self, source: Source, now: Instant) -> &mut SourceState {
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(&source) {
            self.sources.retain(|_, state| !state.is_unused(now));
            if self.sources.len() >= MAX_SOURCES {
                // This gives the cleared sources new attempts, but rejecting new sources would be worse.
                self.sources.clear();
            }
        }
        self.sources.entry(source).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u32) -> Source {
        Source(IpAddr::V4(number.into()))
    }

    fn failures_until_rejected(limiter: &GuessLimiter, source: Source, now: Instant) -> usize {
        std::iter::repeat_with(|| limiter.record_failure(source, now)).take_while(Result::is_ok).count()
    }

    #[test]
    fn source_with_too_many_failures_is_rejected() {
        let (limiter, now) = (GuessLimiter::default(), Instant::now());
        assert_eq!(failures_until_rejected(&limiter, source(1), now), 30);
        assert_eq!(limiter.admit(source(1), now), Err(Duration::from_secs(2)));
        assert_eq!(limiter.admit(source(2), now), Ok(()));
        let later = now + Duration::from_secs(2);
        assert_eq!(limiter.admit(source(1), later), Ok(()));
        assert_eq!(limiter.record_failure(source(1), later), Ok(()));
        assert!(limiter.admit(source(1), later).is_err());
    }

    #[test]
    fn source_with_a_valid_key_is_always_admitted() {
        let (limiter, now) = (GuessLimiter::default(), Instant::now());
        limiter.record_success(source(1), now);
        assert_eq!(failures_until_rejected(&limiter, source(1), now), 30);
        assert_eq!(limiter.admit(source(1), now), Ok(()));
        let later = now + TRUSTED_FOR;
        assert_eq!(failures_until_rejected(&limiter, source(1), later), 30);
        assert!(limiter.admit(source(1), later).is_err(), "trust expires");
    }

    #[test]
    fn total_failures_are_limited_not_counting_the_first_of_each_source() {
        let (limiter, now) = (GuessLimiter::default(), Instant::now());
        let total: usize = (0..100).map(|number| failures_until_rejected(&limiter, source(number), now)).sum();
        // The first failure of each of 100 sources, and 600 others.
        assert_eq!(total, 700);
        assert!(limiter.admit(source(99), now).is_err());
        assert_eq!(limiter.admit(source(100), now), Ok(()));
    }

    #[test]
    fn number_of_tracked_sources_is_limited() {
        let (limiter, now) = (GuessLimiter::default(), Instant::now());
        for number in 0..3 * u32::try_from(MAX_SOURCES).unwrap() {
            let _ = limiter.record_failure(source(number), now);
            assert!(limiter.lock().sources.len() <= MAX_SOURCES);
        }
    }

    #[test]
    fn forwarded_address_is_used_for_local_proxies_only() {
        let source_address = |peer: &str, forwarded_for: &str| {
            Source::of(format!("{peer}:1").parse().unwrap(), Some(forwarded_for)).0.to_string()
        };
        assert_eq!(source_address("127.0.0.1", "198.51.100.7, 203.0.113.9"), "203.0.113.9");
        assert_eq!(source_address("[::1]", "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(source_address("[::ffff:127.0.0.1]", "invalid"), "127.0.0.1");
        assert_eq!(source_address("192.0.2.1", "203.0.113.9"), "192.0.2.1", "the header of other peers is ignored");
    }
}
