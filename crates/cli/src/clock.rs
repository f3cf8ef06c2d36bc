//! What counts as now.

use std::sync::Arc;

use threadkeep::{Clock, SystemClock, Timestamp};

/// The system's clock, or one that stands still at `now`, so that a situation can be looked at again.
pub(crate) fn clock(now: Option<Timestamp>) -> Arc<dyn Clock> {
    match now {
        Some(now) => Arc::new(StillClock { now }),
        None => Arc::new(SystemClock),
    }
}

#[derive(Debug)]
struct StillClock {
    now: Timestamp,
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}
