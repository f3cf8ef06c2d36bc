//! Formats and parses timestamps for people, in UTC.

use threadkeep::{StoreError, Timestamp};

/// Formats the day like `2026-05-04`.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().split('T').next().unwrap_or_default().to_owned()
}

/// Formats the time like `18:12`.
pub(crate) fn time(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('T').map_or_else(String::new, |(_, time)| time.chars().take(5).collect())
}

/// Formats the day and the time like `2026-05-04 18:12`.
pub(crate) fn minute(at: Timestamp) -> String {
    format!("{} {}", day(at), time(at))
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
    fn instants_are_formatted_to_the_minute() {
        let at: Timestamp = "2026-05-04T18:12:59.123456+00:00".parse().unwrap();
        assert_eq!((day(at).as_str(), time(at).as_str()), ("2026-05-04", "18:12"));
        assert_eq!(minute(at), "2026-05-04 18:12");
    }

    #[test]
    fn a_day_stands_for_its_start() {
        assert_eq!(parse("2026-05-04").unwrap(), parse("2026-05-04T02:00:00+02:00").unwrap());
        assert!(parse("yesterday").is_err() && parse("2026-05-04T10:00").is_err());
    }
}
