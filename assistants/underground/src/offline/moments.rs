//! Times of trips. A day and a time of day that stand apart are one moment, and an explicit time to arrive takes precedence over
//! the time of an event.

use std::ops::Range;

use threadkeep::dialogue::time::{Period, Relation, TimeExpression, find_times};
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::SPEECH;

/// The times of a message.
struct Moments {
    depart: Vec<Mention>,
    arrive: Vec<Mention>,
    /// Those that are part of another moment, or not about the trip.
    beside: Vec<Mention>,
}

/// Finds times to leave.
pub(super) fn find_departures(message: &Utterance) -> Vec<Mention> {
    moments(message).depart
}

/// Finds times to arrive.
pub(super) fn find_arrivals(message: &Utterance) -> Vec<Mention> {
    moments(message).arrive
}

/// Finds times that are part of another moment, or that say when an event starts, if the message also says when to arrive.
pub(super) fn find_beside(message: &Utterance) -> Vec<Mention> {
    let beside = moments(message).beside.into_iter();
    beside.map(|mention| Mention::incidental(mention.words, mention.choices)).collect()
}

fn moments(message: &Utterance) -> Moments {
    let mut depart = SPEECH.times([Relation::At, Relation::After, Relation::Since])(message);
    let mut arrive = SPEECH.times([Relation::By, Relation::Before, Relation::Until])(message);
    let mut beside = Vec::new();
    let is_explicit = |mention: &Mention| value_of(mention) == message.said(mention.words.clone());
    if arrive.iter().any(is_explicit) {
        let (explicit, of_events): (Vec<_>, Vec<_>) = arrive.into_iter().partition(is_explicit);
        arrive = explicit;
        beside.extend(of_events);
    }
    let is_day = |time: TimeExpression| {
        time.clock.is_none() && time.period.is_some_and(|period| !matches!(period, Period::RelativeMinutes(_)))
    };
    let is_lone_day = |mention: &Mention| time_of(mention).is_some_and(is_day);
    let is_lone_clock =
        |mention: &Mention| time_of(mention).is_some_and(|time| time.clock.is_some() && time.period.is_none());
    let day = depart.iter().position(is_lone_day).filter(|_| depart.iter().chain(&arrive).any(is_lone_clock));
    if let Some(day) = day.map(|at| depart.remove(at)) {
        let words = value_of(&day).to_owned();
        for mention in depart.iter_mut().chain(&mut arrive).filter(|mention| is_lone_clock(mention)) {
            let time = format!("{words} {}", value_of(mention));
            mention.choices = vec![Choice::new(time.as_str(), time.as_str())];
        }
        beside.push(day);
    }
    // A time belongs to one kind only.
    let overlaps = |one: &Range<usize>, other: &Range<usize>| one.start < other.end && other.start < one.end;
    beside.retain(|mention| !depart.iter().chain(&arrive).any(|known| overlaps(&known.words, &mention.words)));
    Moments { depart, arrive, beside }
}

fn value_of(mention: &Mention) -> &str {
    mention.choices.first().and_then(|choice| choice.value.as_str()).unwrap_or_default()
}

fn time_of(mention: &Mention) -> Option<TimeExpression> {
    find_times(&Utterance::new(value_of(mention))).first().map(|found| found.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(found: &[Mention]) -> Vec<&str> {
        found.iter().map(value_of).collect()
    }

    #[test]
    fn a_day_and_a_time_of_day_are_one_moment() {
        let message = Utterance::new("I start work tomorrow. Leaving Oval at 7 in the morning, when do I reach Bank?");
        let found = moments(&message);
        assert_eq!(values(&found.depart), ["tomorrow at 7 in the morning"]);
        assert_eq!(values(&found.beside), ["tomorrow"]);
        let message = Utterance::new("on Sunday I must be at Bank by 9");
        let found = moments(&message);
        assert_eq!((values(&found.depart).len(), values(&found.arrive)), (0, vec!["on Sunday by 9"]));
    }

    #[test]
    fn an_explicit_time_precedes_the_time_of_an_event() {
        let message = Utterance::new("kick off is 7.30, so I want to be at Wembley Park by 7pm");
        let found = moments(&message);
        assert_eq!((values(&found.arrive), values(&found.beside)), (vec!["by 7pm"], vec!["by 7.30"]));
    }
}
