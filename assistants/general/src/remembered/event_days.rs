//! The days that statements are about: "yesterday I planted the beans" is about the day before it was said.

use jiff::tz::TimeZone;
use jiff::{Span, Zoned};
use threadkeep::agent::{Excerpt, Failure, SourceQuery};
use threadkeep::core::text::{Language, indexed_terms};
use threadkeep::dialogue::time::{Direction, Period, TimeExpression, find_times};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{Role, Timestamp};

use super::{messages_within, recent_threads, span};
use crate::evidence::heading::{DATE_LENGTH, with_day, with_meaning};
use crate::evidence::question::Question;
use crate::evidence::statements;
use crate::evidence::terms::Terms;

/// The maximum number of recent threads that are read for the events of a day.
const MAX_THREADS_READ: usize = 8;

/// A period of days, with an exclusive end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Days {
    start: Timestamp,
    end: Timestamp,
}

impl Days {
    fn overlap(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn first_day(self) -> String {
        self.start.to_string().chars().take(DATE_LENGTH).collect()
    }
}

/// If the question names a day, keeps only the messages that are about that day: "what did I sow on 6 April?", "how far did I run yesterday?"
pub(super) fn retain_on_day(excerpts: &mut Vec<Excerpt>, question: &Question, now: Timestamp) {
    let Some(time) = question.time.filter(|_| !question.asks_what_was_said) else { return };
    let Some(asked) = asked_days(time, now) else { return };
    let asks_past = (question.asks_about_user || question.asks_past) && asked.start <= now;
    // "Who has the key today?" does not ask for what happened today.
    let is_relative = matches!(time.period, Some(Period::RelativeDay(_)));
    if !asks_past && !is_relative {
        return;
    }
    let is_on_day = |excerpt: &Excerpt| {
        let Some(said_at) = said_at(excerpt) else { return false };
        let named = days_of(&excerpt.text, said_at);
        let terms = indexed_terms(&excerpt.text);
        let mentions_day =
            !is_relative && question.time_words.iter().all(|stems| stems.iter().any(|stem| terms.contains(stem)));
        let is_named = named.iter().any(|days| days.overlap(asked));
        mentions_day || is_named || asks_past && named.is_empty() && (asked.start..asked.end).contains(&said_at)
    };
    let is_answer = |excerpt: &Excerpt| {
        let terms = Terms::new(&excerpt.text);
        is_on_day(excerpt) && question.topic.iter().any(|word| terms.contains(word).is_some())
    };
    let has_answer =
        if question.asks_about_user { excerpts.iter().any(is_on_day) } else { excerpts.iter().any(is_answer) };
    if has_answer {
        excerpts.retain(is_on_day);
    }
}

/// Finds the messages that are about the day that a question asks about: "what have I got on today?"
pub(super) async fn find_events(source_query: &SourceQuery<'_>, question: &Question) -> Result<Vec<Excerpt>, Failure> {
    let now = source_query.memory.now();
    let Some(asked) = question.time.and_then(|time| asked_days(time, now)) else { return Ok(Vec::new()) };
    let is_past = question.asks_about_user || question.asks_past;
    let mut found = Vec::new();
    for thread in
        recent_threads(source_query.memory, source_query.scope, None).await?.into_iter().take(MAX_THREADS_READ)
    {
        for message in messages_within(source_query, thread, None, None).await? {
            let text = message.plain_text().into_owned();
            let is_statement =
                message.content.role == Role::User && !is_question(&text) && !statements(&text).is_empty();
            let named = days_of(&text, message.created_at);
            let happened = is_past && named.is_empty() && (asked.start..asked.end).contains(&message.created_at);
            if !is_statement || !(happened || named.iter().any(|days| days.overlap(asked))) {
                continue;
            }
            if let Some(mut excerpt) = Excerpt::of_message(thread, &message) {
                excerpt.heading = with_day(&excerpt.heading, &asked.first_day());
                found.push((message.created_at, excerpt));
            }
        }
    }
    found.sort_by_key(|(said_at, _)| *said_at);
    let first = found.len().saturating_sub(source_query.limit);
    Ok(found.into_iter().skip(first).map(|(_, excerpt)| excerpt).collect())
}

/// Adds to each heading how long ago the day is that its message is about, if the question asks for that: "how many days ago was that?"
pub(super) fn add_distances(excerpts: &mut [Excerpt], question: &Question, query: &str, now: Timestamp) {
    if !question.asks_distance {
        return;
    }
    let is_spanish = Language::of(query) == Some(Language::Spanish);
    for excerpt in excerpts {
        let Some(said_at) = said_at(excerpt) else { continue };
        let named = match &days_of(&excerpt.text, said_at)[..] {
            [only] => only.start,
            [] => said_at,
            _ => continue,
        };
        let (Some(named), Some(today)) = (zoned(named), zoned(now)) else { continue };
        let days = (today.date() - named.date()).get_days();
        let meaning = match (is_spanish, days) {
            (false, 0) => "today".to_owned(),
            (false, 1) => "1 day ago".to_owned(),
            (false, 2..) => format!("{days} days ago"),
            (false, -1) => "in 1 day".to_owned(),
            (false, _) => format!("in {} days", -days),
            (true, 0) => "hoy".to_owned(),
            (true, 1) => "hace 1 día".to_owned(),
            (true, 2..) => format!("hace {days} días"),
            (true, -1) => "dentro de 1 día".to_owned(),
            (true, _) => format!("dentro de {} días", -days),
        };
        excerpt.heading = with_meaning(&excerpt.heading, &meaning);
    }
}

/// Returns when the message of an excerpt was sent.
fn said_at(excerpt: &Excerpt) -> Option<Timestamp> {
    excerpt.source.fields.get("said_at")?.as_str()?.parse().ok()
}

fn asked_days(time: TimeExpression, now: Timestamp) -> Option<Days> {
    match span(time, now)? {
        (Some(start), Some(end)) => Some(Days { start, end }),
        _ => None,
    }
}

/// Returns the days that a text names, as of the time when it was sent. Of a day without its year or week, the nearest one is meant, or
/// the last one in a text about the past.
fn days_of(text: &str, said_at: Timestamp) -> Vec<Days> {
    let utterance = Utterance::new(text);
    let Some(now) = zoned(said_at) else { return Vec::new() };
    let is_past = utterance.words().iter().any(|word| {
        matches!(&*word.folded, "was" | "were" | "did" | "had" | "went" | "got" | "ago" | "fue" | "era")
            || word.folded.len() > 4 && word.folded.ends_with("ed")
    });
    let days = |time: TimeExpression, direction: Direction| -> Option<Days> {
        let (Some(start), Some(end)) = time.span(&now, direction)? else { return None };
        // A time of a day is named of as that day.
        let start = start.start_of_day().ok()?;
        let end = if end.checked_sub(Span::new().hours(20)).ok()? < start {
            start.checked_add(Span::new().days(1)).ok()?
        } else {
            end
        };
        let instant = |at: Zoned| Timestamp::from_micros(at.timestamp().as_microsecond()).ok();
        Some(Days { start: instant(start)?, end: instant(end)? })
    };
    let distance = |days: &Days| (days.start.as_millis() - said_at.as_millis()).abs();
    let found = find_times(&utterance).into_iter().filter(|found| names_day(found.time.period));
    let nearest = found.filter_map(|found| {
        let (past, future) = (days(found.time, Direction::Past), days(found.time, Direction::Future));
        match is_past {
            true => past.or(future),
            false => [future, past].into_iter().flatten().min_by_key(distance),
        }
    });
    nearest.collect()
}

fn names_day(period: Option<Period>) -> bool {
    period.is_some_and(|period| {
        period.names_day() || matches!(period, Period::RelativeMinutes(minutes) if minutes.abs() >= MINUTES_OF_DAY)
    })
}

/// "Two weeks ago" is about a day, "20 minutes ago" of a time.
const MINUTES_OF_DAY: i32 = 24 * 60;

fn zoned(at: Timestamp) -> Option<Zoned> {
    Some(jiff::Timestamp::from_microsecond(at.as_micros()).ok()?.to_zoned(TimeZone::UTC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_about_days() {
        let said_at: Timestamp = "2026-05-06T10:00:00Z".parse().unwrap();
        let days = |text: &str| days_of(text, said_at).into_iter().map(Days::first_day).collect::<Vec<_>>();
        for (text, expected) in [
            ("yesterday I planted the beans", &["2026-05-05"][..]),
            ("the dentist is tomorrow at 16:15", &["2026-05-07"]),
            ("on 2 May I sold the bike", &["2026-05-02"]),
            ("on Thursday it's the parents' evening", &["2026-05-07"]),
            ("we signed the lease two weeks ago", &["2026-04-22"]),
            ("ayer corrí 8 km", &["2026-05-05"]),
            ("the gym opens at nine", &[]),
        ] {
            assert_eq!(days(text), expected, "{text}");
        }
    }
}
