//! Provides the clock that commands use.

use std::sync::Arc;

use threadkeep::{Clock, SystemClock, Timestamp};

/// Returns the system clock, or a clock fixed at `now` that reproduces a situation.
pub(crate) fn clock(now: Option<Timestamp>) -> Arc<dyn Clock> {
    match now {
        Some(now) => Arc::new(FixedClock { now }),
        None => Arc::new(SystemClock),
    }
}

#[derive(Debug)]
struct FixedClock {
    now: Timestamp,
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}
