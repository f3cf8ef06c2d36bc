//! The days on which services run.

use jiff::civil::{Date, Weekday};
use serde::{Deserialize, Serialize};

use super::Timetable;

/// A service: a weekly pattern within a range of dates, and exceptions to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) id: String,
    /// Monday first.
    pub(crate) weekdays: [bool; 7],
    /// The first and last date as `YYYYMMDD`, which sorts chronologically. `None` for a service that is only in
    /// `calendar_dates.txt`.
    pub(crate) range: Option<(u32, u32)>,
    /// Exceptional dates in order, each with whether the service runs.
    pub(crate) exceptions: Vec<(u32, bool)>,
}

impl Service {
    pub(crate) fn named(id: &str) -> Self {
        Self { id: id.to_owned(), weekdays: [false; 7], range: None, exceptions: Vec::new() }
    }

    pub(crate) fn runs_on(&self, date: Date) -> bool {
        let number = date_number(date);
        if let Ok(index) = self.exceptions.binary_search_by_key(&number, |(date, _)| *date) {
            return self.exceptions[index].1;
        }
        let is_in_range = self.range.is_some_and(|(first, last)| (first..=last).contains(&number));
        is_in_range && self.weekdays[weekday_index(date.weekday())]
    }
}

pub(crate) fn date_number(date: Date) -> u32 {
    let part = |value: i16| u32::try_from(value).unwrap_or(0);
    part(date.year()) * 10_000 + part(date.month().into()) * 100 + part(date.day().into())
}

fn weekday_index(weekday: Weekday) -> usize {
    usize::try_from(weekday.to_monday_zero_offset()).expect("an offset from Monday is 0 to 6")
}

impl Timetable {
    /// Returns the ids of the services that run on a service day.
    pub fn services_on(&self, date: Date) -> impl Iterator<Item = &str> {
        self.services.iter().filter(move |service| service.runs_on(date)).map(|service| service.id.as_str())
    }

    /// Returns the first and last date of the calendar, or `None` for a feed without dates.
    ///
    /// A date outside this range has no trips because it is not covered by the feed, not because there is no service.
    pub fn valid_dates(&self) -> Option<(Date, Date)> {
        let ranges = self.services.iter().filter_map(|service| service.range);
        let added = self.services.iter().flat_map(|service| &service.exceptions).filter(|(_, runs)| *runs);
        let all = ranges.chain(added.map(|(date, _)| (*date, *date)));
        let (first, last) = all.reduce(|all, range| (all.0.min(range.0), all.1.max(range.1)))?;
        Some((date_of(first)?, date_of(last)?))
    }
}

fn date_of(number: u32) -> Option<Date> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn weekday_service() -> Service {
        Service {
            id: "Weekday".to_owned(),
            weekdays: [true, true, true, true, true, false, false],
            range: Some((20_240_108, 20_240_427)),
            exceptions: vec![(20_240_219, false), (20_240_224, true)],
        }
    }

    #[test]
    fn exceptions_override_the_weekly_pattern() {
        let service = weekday_service();
        assert!(service.runs_on(date(2024, 3, 18)), "a Monday");
        assert!(!service.runs_on(date(2024, 3, 17)), "a Sunday");
        assert!(!service.runs_on(date(2024, 2, 19)), "a holiday Monday");
        assert!(service.runs_on(date(2024, 2, 24)), "an added Saturday");
        assert!(!service.runs_on(date(2024, 1, 5)), "before the range");
        assert!(!service.runs_on(date(2024, 4, 29)), "after the range");
    }

    #[test]
    fn a_service_without_a_range_runs_only_on_its_dates() {
        let mut service = Service::named("Special");
        service.exceptions = vec![(20_240_704, true)];
        assert!(service.runs_on(date(2024, 7, 4)));
        assert!(!service.runs_on(date(2024, 7, 5)));
    }
}
