//! Names of places beside each other: one says which of several stations, or which part of a station, the other means.

use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;
use super::stations::follows_a_break;
use super::words::COMMON_WORDS;

impl Speech {
    /// Narrows a name that several stations share by the place after it: "Grand Street in Chinatown" is the one nearest
    /// to Chinatown.
    pub(super) fn narrowed_by_places(&self, message: &Utterance, mentions: Vec<Mention>) -> Vec<Mention> {
        let mut narrowed: Vec<Mention> = Vec::new();
        for mention in mentions {
            let nearest = narrowed.last().and_then(|before| {
                let between = before.words.end..mention.words.start;
                let mut words = between.clone().map(|at| message.word(at));
                let joins =
                    !between.is_empty() && words.all(|word| matches!(word, "in" | "by" | "near" | "around" | "the"));
                let is_open = before.choices.len() > 1 || before.choices.iter().any(|choice| !choice.others.is_empty());
                // "30 Av in Astoria" is one place.
                let is_within = between.clone().all(|at| message.word(at) == "in");
                (joins && (is_open || is_within))
                    .then(|| self.nearest_to(&before.choices, mention.choices.first()?))
                    .flatten()
            });
            let nearest = nearest.or_else(|| self.one_of_two_names(message, narrowed.last()?, &mention));
            let nearest = nearest.or_else(|| named_within(message, narrowed.last()?, &mention));
            match (nearest, narrowed.last_mut()) {
                (Some(choice), Some(before)) => {
                    *before = Mention::new(before.words.start..mention.words.end, vec![choice]);
                }
                (None, Some(before)) if explains_unknown(message, before, &mention) => {
                    *before = Mention::new(before.words.start..mention.words.end, mention.choices);
                }
                _ => narrowed.push(mention),
            }
        }
        narrowed
    }

    /// Returns the station that two adjacent names mean together: "jackson heights 74th st", "Bay Ridge 86th Street".
    fn one_of_two_names(&self, message: &Utterance, first: &Mention, second: &Mention) -> Option<Choice> {
        /// About 1.4 km in degrees of latitude.
        const NEAR: f64 = 0.013;
        if first.words.end != second.words.start || follows_a_break(message, second.words.start) {
            return None;
        }
        let is_open =
            |mention: &Mention| mention.choices.len() > 1 || mention.choices.iter().any(|one| !one.others.is_empty());
        let complex = |choice: &Choice| {
            let place = self.system.places(choice.value.as_str()?).into_iter().next()?;
            Some(place.complex)
        };
        match (is_open(first), is_open(second), &first.choices[..], &second.choices[..]) {
            (false, false, [one], [other]) if complex(one).is_some() && complex(one) == complex(other) => {
                Some(one.clone())
            }
            (false, true, [one], choices) => self.nearest_within(choices, one, NEAR),
            (true, false, choices, [one]) => self.nearest_within(choices, one, NEAR),
            _ => None,
        }
    }

    /// Returns the choice whose station is nearest to a place; `None` if none is near it.
    pub(super) fn nearest_to(&self, choices: &[Choice], place: &Choice) -> Option<Choice> {
        /// About 2.2 km in degrees of latitude.
        const NEAR: f64 = 0.02;
        self.nearest_within(choices, place, NEAR)
    }

    /// Returns the choice whose station is nearest to a place, at most `degrees` away.
    fn nearest_within(&self, choices: &[Choice], place: &Choice, degrees: f64) -> Option<Choice> {
        let position = |choice: &Choice| {
            let place = self.system.places(choice.value.as_str()?).into_iter().next()?;
            let station = self.system.station(place.stations.first()?)?;
            Some((station.latitude, station.longitude))
        };
        let (latitude, longitude) = position(place)?;
        let all = choices.iter().chain(choices.iter().flat_map(|choice| &choice.others));
        let distances = all.filter_map(|choice| {
            let (north, east) = position(choice)?;
            Some(((north - latitude).powi(2) + (east - longitude).powi(2), choice))
        });
        let (distance, nearest) = distances.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        (distance < degrees * degrees).then(|| Choice { others: Vec::new(), ..nearest.clone() })
    }
}

/// Returns the place after an ordinary word that also occurs in names, which that place explains: "the beach at Coney Island", "the
/// 7th Avenue side of Penn Station".
fn named_within(message: &Utterance, word: &Mention, place: &Mention) -> Option<Choice> {
    let [choice] = &place.choices[..] else { return None };
    let is_known = |choice: &Choice| !choice.hints.is_empty();
    let gap = word.words.end..place.words.start;
    let words: Vec<&str> = gap.clone().map(|at| message.word(at)).collect();
    let is_side = |word: &str| matches!(word, "side" | "end" | "exit" | "entrance");
    let is_side_of = match words[..] {
        ["of"] => is_side(message.word(word.words.end - 1)),
        [side, "of"] => is_side(side),
        _ => false,
    };
    let is_ordinary = word.words.len() == 1 && COMMON_WORDS.contains(&message.word(word.words.start));
    let joins = matches!(words[..], ["at" | "in" | "by" | "near" | "on"]);
    let is_open = word.choices.len() > 1 || word.choices.iter().any(|one| !one.others.is_empty());
    (is_known(choice) && (is_side_of || is_ordinary && joins && is_open)).then(|| choice.clone())
}

/// Whether a place says where the unknown place before it is: "the Marriott Marquis in Times Square", "Wythe Hotel, Bedford Avenue stop".
fn explains_unknown(message: &Utterance, unknown: &Mention, known: &Mention) -> bool {
    const MAX_GAP: usize = 4;
    const JOINING: [&str; 16] = [
        "in", "near", "at", "by", "on", "off", "around", "the", "next", "corner", "of", "a", "which", "is", "close",
        "station",
    ];
    let is_unknown =
        |mention: &Mention| mention.choices.iter().all(|choice| choice.hints.is_empty() && choice.value.is_string());
    if unknown.words.end > known.words.start {
        return false;
    }
    let gap = unknown.words.end..known.words.start;
    let has_comma = message.words().get(known.words.start).is_some_and(|next| {
        let end = message.words()[unknown.words.end - 1].span.end;
        message.text()[end..next.span.start].contains(',')
    });
    let joins = gap.clone().all(|at| JOINING.contains(&message.word(at)));
    is_unknown(unknown) && !is_unknown(known) && gap.len() <= MAX_GAP && joins && (has_comma || !gap.is_empty())
}
