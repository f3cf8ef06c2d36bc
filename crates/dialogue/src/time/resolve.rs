//! Resolves time expressions relative to a current time.

use jiff::civil::{Date, DateTime, Time, Weekday, date};
use jiff::{Span, Zoned};

use super::{Clock, DayPart, Direction, Period, Relation, TimeExpression, Which};

impl TimeExpression {
    /// Returns the times that the expression covers, as a start and an exclusive end; `None` at an open end. A time of day
    /// covers its minute.
    ///
    /// Returns `None` if the result is outside the supported years.
    #[must_use]
    pub fn span(&self, now: &Zoned, direction: Direction) -> Option<(Option<Zoned>, Option<Zoned>)> {
        let (start, end) = self.civil_span(now, direction)?;
        let zoned = |at: DateTime| at.to_zoned(now.time_zone().clone()).ok();
        let (start, end) = (zoned(start)?, zoned(end)?);
        Some(match self.relation {
            Relation::At => (Some(start), Some(end)),
            Relation::Before => (None, Some(start)),
            Relation::By | Relation::Until => (None, Some(end)),
            Relation::After => (Some(end), None),
            Relation::Since => (Some(start), None),
        })
    }

    /// Returns the instant that the expression names: the time of day on its day, or the start of the part of the day. `None`
    /// if it names only a day or a longer period.
    ///
    /// If the half of the day is unknown, the hour is the next one after `now`: said in the afternoon, "at 8" is 20:00.
    /// With another day, the hour is between 6:00 and 17:59.
    #[must_use]
    pub fn instant(&self, now: &Zoned, direction: Direction) -> Option<Zoned> {
        if let (Some(Period::RelativeMinutes(minutes)), None) = (self.period, self.clock) {
            return now.checked_add(Span::new().minutes(i64::from(minutes))).ok();
        }
        let at = match (self.clock, self.part) {
            (Some(clock), _) => self.clock_on_its_day(clock, now, direction)?,
            (None, Some(part)) => {
                let day = self.period.map_or(Some(now.date()), |period| day_of(period, now, direction))?;
                day.to_datetime(part_of_day(part).0)
            }
            (None, None) => return None,
        };
        at.to_zoned(now.time_zone().clone()).ok()
    }

    fn clock_on_its_day(&self, clock: Clock, now: &Zoned, direction: Direction) -> Option<DateTime> {
        let time = |hour: i8| Time::new(hour, clock.minute, 0, 0).ok();
        let other_half = clock.hour % 12 + if clock.hour < 12 { 12 } else { 0 };
        if let Some(period) = self.period {
            let mut day = day_of(period, now, direction)?;
            let mut hour = clock.hour;
            if self.part == Some(DayPart::Night) && !clock.is_before_midnight() {
                // "tonight at 2:30am" is after midnight.
                day = day.tomorrow().ok()?;
            }
            if !clock.is_24_hour {
                let is_day_hour = (6..18).contains(&hour);
                let has_passed = day == now.date() && day.to_datetime(time(hour)?) < now.datetime();
                if direction == Direction::Future && has_passed && other_half > hour || !is_day_hour && other_half < 18
                {
                    hour = other_half;
                }
            }
            return Some(day.to_datetime(time(hour)?));
        }
        let today = now.date();
        let mut hours = vec![clock.hour];
        if !clock.is_24_hour {
            hours.push(other_half);
        }
        let days = [today.yesterday().ok()?, today, today.tomorrow().ok()?];
        let mut times: Vec<DateTime> = Vec::new();
        for day in days {
            for hour in &hours {
                times.push(day.to_datetime(time(*hour)?));
            }
        }
        times.sort();
        let current = now.datetime();
        match direction {
            // The current minute counts as the future.
            Direction::Future => times.into_iter().find(|at| at.duration_since(current).as_secs() > -60),
            Direction::Past => times.into_iter().rev().find(|at| *at <= current),
        }
    }

    fn civil_span(&self, now: &Zoned, direction: Direction) -> Option<(DateTime, DateTime)> {
        if let Some(clock) = self.clock {
            let start = self.clock_on_its_day(clock, now, direction)?;
            return Some((start, start.checked_add(Span::new().minutes(1)).ok()?));
        }
        if let Some(Period::RelativeMinutes(minutes)) = self.period {
            let at = now.datetime().checked_add(Span::new().minutes(i64::from(minutes))).ok()?;
            // A distance is approximate.
            let margin = i64::from(minutes.abs() / 4).max(5);
            return Some((
                at.checked_sub(Span::new().minutes(margin)).ok()?,
                at.checked_add(Span::new().minutes(margin)).ok()?,
            ));
        }
        let (first, after) = match self.period {
            Some(period) => days_of(period, now, direction)?,
            None => (now.date(), now.date().tomorrow().ok()?),
        };
        match self.part {
            Some(part) => {
                let (start, end) = part_of_day(part);
                let end_day = if end <= start { first.tomorrow().ok()? } else { first };
                Some((first.to_datetime(start), end_day.to_datetime(end)))
            }
            None => Some((first.to_datetime(Time::midnight()), after.to_datetime(Time::midnight()))),
        }
    }
}

impl Clock {
    fn is_before_midnight(self) -> bool {
        self.hour >= 12 || !self.is_24_hour && self.hour >= 6
    }
}

fn part_of_day(part: DayPart) -> (Time, Time) {
    let at = |hour: i8| Time::constant(hour, 0, 0, 0);
    match part {
        DayPart::Morning => (at(5), at(12)),
        DayPart::Afternoon => (at(12), at(17)),
        DayPart::Evening => (at(17), at(22)),
        DayPart::Night => (at(21), at(5)),
    }
}

/// Returns the first day of a period, to which a time of day refers.
fn day_of(period: Period, now: &Zoned, direction: Direction) -> Option<Date> {
    days_of(period, now, direction).map(|(first, _)| first)
}

/// Returns the first day of a period, and the day after its last.
fn days_of(period: Period, now: &Zoned, direction: Direction) -> Option<(Date, Date)> {
    let today = now.date();
    let days = |days: i32| today.checked_add(Span::new().try_days(days).ok()?).ok();
    let one_day = |first: Date| Some((first, first.tomorrow().ok()?));
    match period {
        Period::RelativeDay(offset) => one_day(days(offset)?),
        Period::Weekday(weekday, which) => one_day(nearest_weekday(weekday, which, today, direction)?),
        Period::Date { year: Some(year), month, day } => one_day(Date::new(year, month, day).ok()?),
        Period::Date { year: None, month, day } => {
            let years = (today.year() - 4)..=(today.year() + 4);
            let mut dates = years.filter_map(|year| Date::new(year, month, day).ok());
            one_day(match direction {
                Direction::Future => dates.find(|date| *date >= today)?,
                Direction::Past => dates.rfind(|date| *date <= today)?,
            })
        }
        Period::Month { year, month } => {
            let year = year.unwrap_or_else(|| match direction {
                Direction::Future if month < today.month() => today.year() + 1,
                Direction::Past if month > today.month() => today.year() - 1,
                _ => today.year(),
            });
            let first = Date::new(year, month, 1).ok()?;
            Some((first, first.checked_add(Span::new().months(1)).ok()?))
        }
        Period::Year(year) => Some((date(year, 1, 1), Date::new(year + 1, 1, 1).ok()?)),
        Period::RelativeWeek(offset) => {
            let monday = days(-i32::from(today.weekday().to_monday_zero_offset()) + offset * 7)?;
            Some((monday, monday.checked_add(Span::new().days(7)).ok()?))
        }
        Period::RelativeWeekend(offset) => {
            // On a Sunday, the current weekend started yesterday.
            let saturday = days(5 - i32::from(today.weekday().to_monday_zero_offset()) + offset * 7)?;
            Some((saturday, saturday.checked_add(Span::new().days(2)).ok()?))
        }
        Period::RelativeMonth(offset) => {
            let first = today.first_of_month().checked_add(Span::new().try_months(offset).ok()?).ok()?;
            Some((first, first.checked_add(Span::new().months(1)).ok()?))
        }
        Period::RelativeYear(offset) => {
            let first = today.first_of_year().checked_add(Span::new().try_years(offset).ok()?).ok()?;
            Some((first, first.checked_add(Span::new().years(1)).ok()?))
        }
        Period::Workdays => {
            let is_workday = |date: &Date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
            one_day((0..3).filter_map(days).find(is_workday)?)
        }
        Period::LastDays(count) => Some((days(-count)?, today.tomorrow().ok()?)),
        Period::RelativeMinutes(minutes) => {
            one_day(now.checked_add(Span::new().minutes(i64::from(minutes))).ok()?.date())
        }
    }
}

fn nearest_weekday(weekday: Weekday, which: Which, today: Date, direction: Direction) -> Option<Date> {
    let ahead = i32::from(today.weekday().until(weekday));
    let offset = match (which, direction) {
        // Said on a Monday, "last Monday" is a week ago. In contrast, "on Monday" in a memory may be today.
        (Which::Last, _) => {
            if ahead == 0 {
                -7
            } else {
                ahead - 7
            }
        }
        (Which::Next, _) => {
            if ahead == 0 {
                7
            } else {
                ahead
            }
        }
        (Which::Nearest, Direction::Future) => ahead,
        (Which::Nearest, Direction::Past) => {
            if ahead == 0 {
                0
            } else {
                ahead - 7
            }
        }
    };
    today.checked_add(Span::new().days(offset)).ok()
}

#[cfg(test)]
mod tests {
    use super::super::find_times;
    use super::*;
    use crate::Utterance;

    fn now() -> Zoned {
        // A Tuesday.
        "2026-05-05T15:10:00-04:00[-04:00]".parse().unwrap()
    }

    fn instant(text: &str) -> String {
        let found = find_times(&Utterance::new(text));
        let [mention] = &found[..] else { return format!("{} times", found.len()) };
        let at = mention.time.instant(&now(), Direction::Future);
        at.map_or("none".to_owned(), |at| at.strftime("%m-%d %H:%M").to_string())
    }

    fn span(text: &str) -> String {
        let found = find_times(&Utterance::new(text));
        let [mention] = &found[..] else { return format!("{} times", found.len()) };
        let (start, end) = mention.time.span(&now(), Direction::Past).unwrap();
        let text = |at: Option<Zoned>| at.map_or(String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string());
        format!("{} to {}", text(start), text(end))
    }

    #[test]
    fn times_of_plans_are_in_the_future() {
        for (text, expected) in [
            ("tomorrow at 8am", "05-06 08:00"),
            ("at 8", "05-05 20:00"),
            ("leave at 2", "05-06 02:00"),
            ("to be there by 7pm", "05-05 19:00"),
            ("by 7:30pm tomorrow", "05-06 19:30"),
            ("at 2:30am tonight", "05-06 02:30"),
            ("tonight at 9", "05-05 21:00"),
            ("in 20 minutes", "05-05 15:30"),
            ("half past seven tomorrow morning", "05-06 07:30"),
            ("quarter to nine in the evening", "05-05 20:45"),
            ("on Saturday at noon", "05-09 12:00"),
            ("next Tuesday at 10:15", "05-12 10:15"),
            ("mañana a las 8 de la noche", "05-06 20:00"),
            ("a las siete y media", "05-05 19:30"),
            ("el viernes a las 18:05", "05-08 18:05"),
            ("at 17:45", "05-05 17:45"),
            ("830am tomorrow", "05-06 08:30"),
            ("this evening", "05-05 17:00"),
            ("on 2 June at 6 pm", "06-02 18:00"),
            ("at midnight", "05-06 00:00"),
            ("seven thirty pm", "05-05 19:30"),
        ] {
            assert_eq!(instant(text), expected, "{text}");
        }
    }

    #[test]
    fn periods_of_memories_are_in_the_past() {
        for (text, expected) in [
            ("yesterday", "2026-05-04 00:00 to 2026-05-05 00:00"),
            ("on 2 May", "2026-05-02 00:00 to 2026-05-03 00:00"),
            ("on December 24th", "2025-12-24 00:00 to 2025-12-25 00:00"),
            ("2026-04-30", "2026-04-30 00:00 to 2026-05-01 00:00"),
            ("last week", "2026-04-27 00:00 to 2026-05-04 00:00"),
            ("la semana pasada", "2026-04-27 00:00 to 2026-05-04 00:00"),
            ("on Monday", "2026-05-04 00:00 to 2026-05-05 00:00"),
            ("last Tuesday", "2026-04-28 00:00 to 2026-04-29 00:00"),
            ("this morning", "2026-05-05 05:00 to 2026-05-05 12:00"),
            ("last night", "2026-05-04 21:00 to 2026-05-05 05:00"),
            ("three days ago", "2026-05-02 00:00 to 2026-05-03 00:00"),
            ("hace dos semanas", "2026-04-21 00:00 to 2026-04-22 00:00"),
            ("in the last 3 days", "2026-05-02 00:00 to 2026-05-06 00:00"),
            ("in April", "2026-04-01 00:00 to 2026-05-01 00:00"),
            ("en diciembre de 2024", "2024-12-01 00:00 to 2025-01-01 00:00"),
            ("last month", "2026-04-01 00:00 to 2026-05-01 00:00"),
            ("since Friday", "2026-05-01 00:00 to "),
            ("before 1 May", " to 2026-05-01 00:00"),
            ("el 2 de mayo de 2025", "2025-05-02 00:00 to 2025-05-03 00:00"),
            ("ayer por la mañana", "2026-05-04 05:00 to 2026-05-04 12:00"),
            ("in 2024", "2024-01-01 00:00 to 2025-01-01 00:00"),
            ("last weekend", "2026-05-02 00:00 to 2026-05-04 00:00"),
        ] {
            assert_eq!(span(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_names_are_not_times() {
        for text in [
            "the 6 from 14 St",
            "at 14th street",
            "take a 6 to 23",
            "7 Av",
            "by 3 stops",
            "I may go",
            "march on",
            "4 5 6",
            "on the 7",
            "a few stops",
            "how many minutes",
            "the A at 125 St",
            "scale it to 3",
            "one more time",
        ] {
            assert_eq!(find_times(&Utterance::new(text)), [], "{text}");
        }
    }
}
