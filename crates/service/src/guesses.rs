//! Wrong guesses of the key that clients share, and of the token of this machine's user: bounded for each source and in all.
//! Somebody chose them, and may have chosen badly; the keys that a server makes are found by no trying.
//!
//! A source that was wrong too often is refused before what it shows is looked at, so that a key cannot be found by trying.
//! Nobody is kept out by what others do: the first try of a source is always looked at, and so is every try of one that showed a
//! good key lately, as many may share an address. Like rates, guesses are counted in this instance alone.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::rate::{Bucket, RateLimit};

/// Wrong guesses of one source.
const OF_ONE: RateLimit = RateLimit { per_minute: 30 };
/// Wrong guesses of all sources together, but for the first of each.
const OF_ALL: RateLimit = RateLimit { per_minute: 600 };
/// Sources that are known at a time.
const SOURCES: usize = 10_000;
/// For how long a source is known for its good key.
const GOOD_FOR: Duration = Duration::from_hours(1);

/// Where a guess comes from: an address, or the network of 2^64 addresses that one client of IPv6 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// The other end of a connection, or whom a proxy on this machine speaks for.
    ///
    /// `forwarded_for` is what the proxy wrote, if anything: addresses with commas between them.
    #[must_use]
    pub fn of(peer: SocketAddr, forwarded_for: Option<&str>) -> Self {
        let peer = peer.ip().to_canonical();
        // Others may write whatever they like there.
        let told = if peer.is_loopback() { forwarded_for.and_then(last_address) } else { None };
        match told.unwrap_or(peer) {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// The last address: the one that the proxy added itself.
fn last_address(forwarded_for: &str) -> Option<IpAddr> {
    forwarded_for.rsplit(',').next()?.trim().parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The wrong guesses.
#[derive(Default)]
pub struct Guesses {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: Bucket,
    sources: HashMap<Source, Known>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    wrong: Bucket,
    good_at: Option<Instant>,
}

impl Known {
    fn is_good(&self, now: Instant) -> bool {
        self.good_at.is_some_and(|at| now.saturating_duration_since(at) < GOOD_FOR)
    }

    fn is_over(&self, now: Instant) -> bool {
        !self.is_good(now) && self.wrong.is_full(OF_ONE, now)
    }
}

impl fmt::Debug for Guesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guesses")
    }
}

impl Guesses {
    /// Says whether what a source shows may be looked at.
    ///
    /// # Errors
    /// How long the source has to wait.
    pub fn admit(&self, source: Source, now: Instant) -> Result<(), Duration> {
        let state = self.lock();
        let known = state.sources.get(&source).filter(|known| !known.is_good(now) && !known.is_over(now));
        let Some(known) = known else { return Ok(()) };
        let wait = known.wrong.wait(OF_ONE, now).max(state.all.wait(OF_ALL, now));
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Notes that a source showed a good key.
    pub fn note_good(&self, source: Source, now: Instant) {
        self.lock().known(source, now).good_at = Some(now);
    }

    /// Counts a wrong guess.
    ///
    /// # Errors
    /// How long the source has to wait, where there were too many.
    pub fn count_wrong(&self, source: Source, now: Instant) -> Result<(), Duration> {
        let mut state = self.lock();
        let known = state.known(source, now);
        let is_first = known.wrong.is_full(OF_ONE, now);
        known.wrong.take(OF_ONE, now)?;
        if is_first { Ok(()) } else { state.all.take(OF_ALL, now) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn known(&mut self, source: Source, now: Instant) -> &mut Known {
        if self.sources.len() >= SOURCES && !self.sources.contains_key(&source) {
            self.sources.retain(|_, known| !known.is_over(now));
            if self.sources.len() >= SOURCES {
                // Whoever is forgotten is looked at again; to keep others out would be worse.
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

    fn wrong_until_refused(guesses: &Guesses, source: Source, now: Instant) -> usize {
        std::iter::repeat_with(|| guesses.count_wrong(source, now)).take_while(Result::is_ok).count()
    }

    #[test]
    fn a_source_that_was_wrong_too_often_waits_and_no_other() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        assert_eq!(wrong_until_refused(&guesses, source(1), now), 30);
        assert_eq!(guesses.admit(source(1), now), Err(Duration::from_secs(2)));
        assert_eq!(guesses.admit(source(2), now), Ok(()));
        let later = now + Duration::from_secs(2);
        assert_eq!(guesses.admit(source(1), later), Ok(()));
        assert_eq!(guesses.count_wrong(source(1), later), Ok(()));
        assert!(guesses.admit(source(1), later).is_err());
    }

    #[test]
    fn a_source_that_showed_a_good_key_is_always_looked_at() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        guesses.note_good(source(1), now);
        assert_eq!(wrong_until_refused(&guesses, source(1), now), 30);
        assert_eq!(guesses.admit(source(1), now), Ok(()));
        let later = now + GOOD_FOR;
        assert_eq!(wrong_until_refused(&guesses, source(1), later), 30);
        assert!(guesses.admit(source(1), later).is_err(), "not for ever");
    }

    #[test]
    fn many_sources_together_are_bounded_but_for_the_first_try_of_each() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let counted: usize = (0..100).map(|number| wrong_until_refused(&guesses, source(number), now)).sum();
        // The first of each, and 600 others.
        assert_eq!(counted, 700);
        assert!(guesses.admit(source(99), now).is_err());
        assert_eq!(guesses.admit(source(100), now), Ok(()));
    }

    #[test]
    fn no_more_sources_are_known_than_that() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for number in 0..3 * u32::try_from(SOURCES).unwrap() {
            let _ = guesses.count_wrong(source(number), now);
            assert!(guesses.lock().sources.len() <= SOURCES);
        }
    }

    #[test]
    fn a_proxy_on_this_machine_says_for_whom_it_speaks() {
        let of = |peer: &str, told: &str| Source::of(format!("{peer}:1").parse().unwrap(), Some(told)).0.to_string();
        assert_eq!(of("127.0.0.1", "198.51.100.7, 203.0.113.9"), "203.0.113.9");
        assert_eq!(of("[::1]", "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("[::ffff:127.0.0.1]", "nobody"), "127.0.0.1");
        assert_eq!(of("192.0.2.1", "203.0.113.9"), "192.0.2.1", "others are not believed");
    }
}
