use std::time::{SystemTime, UNIX_EPOCH};

use threadkeep_core::{Clock, Timestamp};

/// The system's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since_epoch) => i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX),
            Err(before_epoch) => i64::try_from(before_epoch.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        let micros = micros.clamp(Timestamp::MIN.as_micros(), Timestamp::MAX.as_micros());
        Timestamp::from_micros(micros).expect("clamped to the range above")
    }

    fn random(&self) -> [u8; 10] {
        let bytes = uuid::Uuid::new_v4().into_bytes();
        let mut random = [0; 10];
        // Bytes 6 and 8 contain the version and variant, which are not random.
        random[..6].copy_from_slice(&bytes[..6]);
        random[6..].copy_from_slice(&bytes[9..13]);
        random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bits_are_random() {
        let drawn: Vec<[u8; 10]> = (0..200).map(|_| SystemClock.random()).collect();
        for index in 0..10 {
            let seen = drawn.iter().fold((0_u8, 0xff_u8), |(any, all), bytes| (any | bytes[index], all & bytes[index]));
            assert_eq!(seen, (0xff, 0), "byte {index} has a fixed bit");
        }
    }

    #[test]
    fn now_is_after_the_start_of_2026() {
        assert!(SystemClock.now() > "2026-01-01T00:00:00Z".parse().unwrap());
    }
}
