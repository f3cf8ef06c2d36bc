//! Time expressions in English and Spanish messages: "tomorrow at 8am", "by 7pm", "last week", "el 2 de mayo".

mod parse;
mod resolve;
mod words;

use std::ops::Range;

use jiff::civil::Weekday;

pub use parse::find_times;

use crate::extract::{Choice, Extractor, Mention};
use crate::utterance::Utterance;

/// A time expression and its position in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeMention {
    /// The range of words, including the preposition.
    pub words: Range<usize>,
    /// The expression.
    pub time: TimeExpression,
}

/// A time as it was written. [`TimeExpression::span`] and [`TimeExpression::instant`] resolve it relative to a given
/// current time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeExpression {
    /// The relation to the time, such as "before".
    pub relation: Relation,
    /// The period, such as a day or a week.
    pub period: Option<Period>,
    /// The time of day.
    pub clock: Option<Clock>,
    /// The part of the day.
    pub part: Option<DayPart>,
}

/// The relation that a preposition or a verb expresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relation {
    /// "at", "on", "in", or nothing.
    #[default]
    At,
    /// "by", "arriving at", "to be there at".
    By,
    /// "before".
    Before,
    /// "after".
    After,
    /// "since".
    Since,
    /// "until".
    Until,
}

/// A period of one or more days, or an instant relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// One day, as a number of days from today: -1 is yesterday.
    RelativeDay(i32),
    /// A day of the week.
    Weekday(Weekday, Which),
    /// A date. Without a year, the nearest such date in the direction that the context implies.
    Date {
        /// The year.
        year: Option<i16>,
        /// The month, 1-based.
        month: i8,
        /// The day of the month, 1-based.
        day: i8,
    },
    /// A month of a year.
    Month {
        /// The year.
        year: Option<i16>,
        /// The month, 1-based.
        month: i8,
    },
    /// A year.
    Year(i16),
    /// One week from Monday to Sunday, as a number of weeks from the current week: 1 is next week.
    RelativeWeek(i32),
    /// One weekend, as a number of weekends from the current one; on a workday, from the coming one.
    RelativeWeekend(i32),
    /// One month, as a number of months from the current month: -1 is last month.
    RelativeMonth(i32),
    /// One year, as a number of years from the current year: -1 is last year.
    RelativeYear(i32),
    /// The days of the week from Monday to Friday.
    Workdays,
    /// A number of days that end now: "the last three days".
    LastDays(i32),
    /// An instant, as a number of minutes from now: "in 20 minutes", "two hours ago".
    RelativeMinutes(i32),
}

impl Period {
    /// Whether the period is named as a day, a week or a weekend.
    #[must_use]
    pub const fn names_day(self) -> bool {
        matches!(
            self,
            Self::RelativeDay(_)
                | Self::Weekday(..)
                | Self::Date { .. }
                | Self::RelativeWeek(_)
                | Self::RelativeWeekend(_)
        )
    }
}

/// Which day is meant by the name of a weekday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The nearest day in the direction that the context implies.
    Nearest,
    /// "last Monday".
    Last,
    /// "next Monday": the first Monday after today.
    Next,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The hour: 0 to 23, or 1 to 12 if `is_24_hour` is false.
    pub hour: i8,
    /// The minute.
    pub minute: i8,
    /// Whether `hour` counts from midnight. It does not in "at 8", which means 8:00 or 20:00.
    pub is_24_hour: bool,
}

/// A part of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayPart {
    /// 5:00 to 12:00.
    Morning,
    /// 12:00 to 17:00.
    Afternoon,
    /// 17:00 to 22:00.
    Evening,
    /// 21:00 to 5:00 of the next day.
    Night,
}

/// The direction in which an incomplete expression is completed: a plan is about the future, a memory about the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Not before now.
    Future,
    /// Not after now.
    Past,
}

/// Finds time expressions. The value of each mention is its original wording: [`find_times`] can parse it again.
#[derive(Clone, Debug)]
pub struct Times {
    relations: Vec<Relation>,
}

impl Times {
    /// Finds all expressions.
    #[must_use]
    pub fn all() -> Self {
        use Relation::{After, At, Before, By, Since, Until};
        Self { relations: vec![At, By, Before, After, Since, Until] }
    }

    /// Finds expressions with one of these relations.
    #[must_use]
    pub fn with(relations: impl IntoIterator<Item = Relation>) -> Self {
        Self { relations: relations.into_iter().collect() }
    }
}

impl Extractor for Times {
    fn find(&self, utterance: &Utterance) -> Vec<Mention> {
        let found = find_times(utterance).into_iter().filter(|found| self.relations.contains(&found.time.relation));
        let mention = |found: TimeMention| {
            let text = utterance.said(found.words.clone());
            Mention::new(found.words, vec![Choice::new(text, text)])
        };
        found.map(mention).collect()
    }
}
