use std::sync::atomic::{AtomicI64, Ordering};

use threadkeep::{Clock, Timestamp};

/// A clock that the test sets.
#[derive(Debug, Default)]
pub(crate) struct FakeClock {
    milliseconds: AtomicI64,
    random_count: AtomicI64,
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-11-21T08:00:00Z".parse().unwrap();
        start.plus_ms(self.milliseconds.load(Ordering::SeqCst))
    }

    fn random(&self) -> [u8; 10] {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.random_count.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        random
    }
}

impl FakeClock {
    /// Sets the time, in milliseconds since the start.
    pub(crate) fn set(&self, milliseconds: i64) {
        self.milliseconds.store(milliseconds, Ordering::SeqCst);
    }
}
