//! Times of a follow-up: a time of day keeps the day of the time that it replaces.

use super::SlotFiller;
use crate::extract::Choice;
use crate::time::{TimeMention, find_times};
use crate::utterance::Utterance;

impl SlotFiller<'_> {
    /// Returns a time of day on the day of the time that it replaces: "at 9" after "tomorrow at 8" is tomorrow.
    pub(super) fn on_earlier_day(&self, slot: usize, choice: Choice) -> Choice {
        let name = &self.intent.slots[slot].name;
        let pairs = self.intent.alternatives.iter();
        let mut others = pairs.filter_map(|(one, other)| match name {
            name if name == one => Some(other),
            name if name == other => Some(one),
            _ => None,
        });
        let Some(other) = others.next() else { return choice };
        let earlier = [name, other].into_iter().find_map(|name| self.previous.get(name)?.value.as_str());
        let day = earlier.and_then(day_of);
        match (day, choice.value.as_str()) {
            (Some(day), Some(time)) if names_no_day(time) => {
                let time = format!("{day} {time}");
                Choice::new(time.as_str(), time.as_str())
            }
            _ => choice,
        }
    }
}

/// Whether words are a time of day without a day.
fn names_no_day(words: &str) -> bool {
    let found = find_times(&Utterance::new(words));
    found.first().is_some_and(|found| found.time.clock.is_some() && found.time.period.is_none())
}

/// Returns the day in words for a time, such as "tomorrow at 8".
fn day_of(words: &str) -> Option<String> {
    let utterance = Utterance::new(words);
    let count = utterance.words().len();
    let ranges = (0..count).flat_map(|start| (start + 1..=count).map(move |end| start..end));
    let days = ranges.map(|range| utterance.said(range).to_owned()).filter(|text| {
        let found = find_times(&Utterance::new(text.as_str()));
        let is_day = |found: &TimeMention| {
            found.time.period.is_some() && found.time.clock.is_none() && found.time.part.is_none()
        };
        matches!(&found[..], [found] if is_day(found) && found.words.len() == Utterance::new(text.as_str()).words().len())
    });
    days.max_by_key(String::len)
}
