//! Formats timestamps for people, in the local time zone, and parses them.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use threadkeep::{StoreError, Timestamp};

/// The time zone of TZ or of the system; UTC if there is none.
static LOCAL: LazyLock<TimeZone> = LazyLock::new(TimeZone::system);

/// Formats the day like `2026-05-04`.
pub(crate) fn day(at: Timestamp) -> String {
    format(at, "%Y-%m-%d", &LOCAL)
}

/// Formats the time like `18:12`.
pub(crate) fn time(at: Timestamp) -> String {
    format(at, "%H:%M", &LOCAL)
}

/// Formats the day and the time like `2026-05-04 18:12`.
pub(crate) fn minute(at: Timestamp) -> String {
    format(at, "%Y-%m-%d %H:%M", &LOCAL)
}

/// Formats the day, the time and the offset from UTC like `2026-05-04 18:12 +02:00`, for texts that others read.
pub(crate) fn minute_with_offset(at: Timestamp) -> String {
    format(at, "%Y-%m-%d %H:%M %:z", &LOCAL)
}

fn format(at: Timestamp, format: &str, zone: &TimeZone) -> String {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).expect("a timestamp is in the years 0001 to 9999");
    at.to_zoned(zone.clone()).strftime(format).to_string()
}

/// Parses an RFC 3339 timestamp. A day without a time stands for its start in UTC.
pub(crate) fn parse(text: &str) -> Result<Timestamp, StoreError> {
    let is_day = text.len() == 10 && !text.contains(':');
    if is_day { format!("{text}T00:00:00Z").parse() } else { text.parse() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_formatted_to_the_minute_in_a_time_zone() {
        let at: Timestamp = "2026-05-04T18:12:59.123456+00:00".parse().unwrap();
        let formatted = |hours: i8| format(at, "%Y-%m-%d %H:%M %:z", &TimeZone::fixed(jiff::tz::offset(hours)));
        assert_eq!(formatted(0), "2026-05-04 18:12 +00:00");
        assert_eq!(formatted(9), "2026-05-05 03:12 +09:00");
        assert_eq!(formatted(-5), "2026-05-04 13:12 -05:00");
        assert_eq!(minute(at), std::format!("{} {}", day(at), time(at)));
        let extremes = [format(Timestamp::MIN, "%Y", &TimeZone::UTC), format(Timestamp::MAX, "%Y", &TimeZone::UTC)];
        assert_eq!(extremes, ["0001", "9999"]);
    }

    #[test]
    fn a_day_stands_for_its_start() {
        assert_eq!(parse("2026-05-04").unwrap(), parse("2026-05-04T02:00:00+02:00").unwrap());
        assert!(parse("yesterday").is_err() && parse("2026-05-04T10:00").is_err());
    }
}
