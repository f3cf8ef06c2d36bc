//! Dates in arguments: an RFC 3339 timestamp, or a day, month or year in UTC.

use threadkeep::Timestamp;
use threadkeep::core::query::date_range;

use crate::ToolFailure;

/// Returns the first instant of a date.
pub(crate) fn start(argument: &str, text: &str) -> Result<Timestamp, ToolFailure> {
    resolve(argument, text).map(|(start, _)| start)
}

/// Returns the first instant after a date.
pub(crate) fn end(argument: &str, text: &str) -> Result<Timestamp, ToolFailure> {
    resolve(argument, text).map(|(_, end)| end)
}

fn resolve(argument: &str, text: &str) -> Result<(Timestamp, Timestamp), ToolFailure> {
    date_range(text).ok_or_else(|| {
        ToolFailure::argument(argument, "expected a date such as 2026-03-14, 2026-03, 2026 or 2026-03-14T09:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_cover_their_whole_day_month_or_year() {
        for (text, from, until) in [
            ("2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("2026-03", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"),
            ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("2026-03-31", "2026-03-31T00:00:00Z", "2026-04-01T00:00:00Z"),
            ("2026-03-31T10:00:00+02:00", "2026-03-31T08:00:00Z", "2026-03-31T08:00:00.000001Z"),
        ] {
            let dates = (start("since", text).unwrap(), end("until", text).unwrap());
            assert_eq!(dates, (from.parse().unwrap(), until.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn errors_for_invalid_dates_name_the_argument() {
        for text in ["", "March", "2026-13", "2026-02-30", "26-03", "-026", "9999999999", "2026-03-14T09", "10:00"] {
            let error = start("since", text).unwrap_err().to_string();
            assert!(error.starts_with("invalid argument since: expected a date"), "{text}: {error}");
        }
    }
}
