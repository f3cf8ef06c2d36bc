use crate::feeds::Files;
use threadkeep_transit::{CacheError, Timetable};

#[test]
fn a_cache_round_trips_and_other_bytes_are_rejected() {
    let timetable = Files::crossing().read().unwrap();
    let cache = timetable.to_cache();
    assert_eq!(Timetable::from_cache(&cache).unwrap(), timetable);
    assert!(matches!(Timetable::from_cache(b"TK"), Err(CacheError::NotACache)));
    assert!(matches!(Timetable::from_cache(b"something else"), Err(CacheError::NotACache)));
    let mut other = cache.clone();
    other[4] = 200;
    assert!(matches!(Timetable::from_cache(&other), Err(CacheError::OtherVersion { found: 200 })));
    assert!(matches!(Timetable::from_cache(&cache[..cache.len() - 1]), Err(CacheError::Corrupt)));
}

/// The checksum detects damage to any byte. If the checksum is corrected, reading does not panic.
#[test]
fn damage_to_any_byte_is_detected() {
    let cache = Files::crossing().read().unwrap().to_cache();
    for at in 12..cache.len() {
        let mut damaged = cache.clone();
        damaged[at] ^= 0x55;
        assert!(matches!(Timetable::from_cache(&damaged), Err(CacheError::Corrupt)), "byte {at}");
        let checksum = crc32fast::hash(&damaged[12..]);
        damaged[8..12].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(timetable) = Timetable::from_cache(&damaged) {
            let timetable = std::sync::Arc::new(timetable);
            let schedule =
                threadkeep_transit::Schedule::of_service(&timetable, "W", &threadkeep_transit::Walks::default());
            if let Some(schedule) = schedule {
                schedule.earliest_arrival(&threadkeep_transit::Query::new("A", "D"), threadkeep_transit::Time(0));
            }
        }
    }
}
