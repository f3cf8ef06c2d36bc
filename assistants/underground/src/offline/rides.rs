//! Questions about the stops of a ride: the first one, and the one before the user gets off.

use serde_json::json;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};
use threadkeep_transit::offline::{
    ENDS, Leg, last_result_text, legs_in, lines_of, on_lines, station, trip_arguments, with_saved,
};
use threadkeep_transit::wording::join_with_and;

use super::SPEECH;
use crate::lines::{find_network_lines, line_runs};
use crate::network::network;

const AFTER_START: &str = "after the start";
const BEFORE_END: &str = "before the end";

/// Finds "the first stop after leaving", "the stop before mine".
pub(super) fn find_ride_stops(message: &Utterance) -> Vec<Mention> {
    const MAX_WORDS: usize = 12;
    let count = message.words().len();
    let is_stop = |at: usize| matches!(message.word(at), "stop" | "station");
    let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
    if count > MAX_WORDS || has(&["many", "long", "when", "lift", "lifts", "free"]) {
        return Vec::new();
    }
    let found = (0..count).filter(|at| is_stop(*at)).find_map(|at| {
        let before = at.checked_sub(1).map_or("", |at| message.word(at));
        let is_own = |at: usize| {
            matches!(message.word(at), "mine" | "ours")
                || matches!(message.word(at), "i" | "we") && matches!(message.word(at + 1), "get" | "alight" | "arrive")
                || message.word(at) == "my" && matches!(message.word(at + 1), "stop" | "station" | "one")
        };
        let ending = (at + 1..count).find(|at| message.word(*at) == "before").filter(|at| is_own(at + 1));
        if ending.is_some() {
            return Some((at, BEFORE_END));
        }
        let mut next = at + 1;
        while matches!(message.word(next), "is" | "it" | "will" | "be" | "do" | "we" | "i" | "pass" | "after") {
            next += 1;
        }
        let leaves = matches!(message.word(next), "" | "leaving" | "departure" | "departing" | "boarding" | "setting");
        (matches!(before, "first" | "next") && leaves && line_runs(message).is_empty()).then_some((at, AFTER_START))
    });
    let mention = found.map(|(at, which)| Mention::incidental(at..at + 1, vec![Choice::new(json!(which), which)]));
    mention.into_iter().collect()
}

/// "What stop is just before mine?"
pub(super) fn ride_stops() -> Intent {
    let intent = Intent::new("ride_stops")
        .decided_by("ridestop", |_, _| true)
        .slot(
            Slot::required(ENDS[0], "station")
                .after(["from", "at", "leaving"])
                .asks("From which station?")
                .carried_from("station")
                .narrowed_by(on_lines),
        )
        .slot(Slot::optional(ENDS[1], "station").after(["to", "towards"]).inherited_by(|earlier, now| {
            let is_same = earlier.get(ENDS[0])?.label == now.get(ENDS[0])?.label;
            earlier.get(ENDS[1]).filter(|_| is_same).cloned()
        }))
        .slot(Slot::optional("avoid_lines", "avoided").inherited_by(|earlier, _| earlier.get("avoid_lines").cloned()))
        .slot(Slot::optional("lines", "lines").inherited_by(|earlier, _| earlier.get("lines").cloned()))
        .slot(Slot::optional("ridestop", "ridestop").momentary());
    with_saved(intent, &ENDS).then_calls("get_route", trip_arguments).says(answer)
}

fn answer(outcome: &Outcome<'_>) -> String {
    let slots = outcome.slots();
    if slots.get(ENDS[1]).is_none() {
        let from = station(outcome, ENDS[0]).unwrap_or_default();
        return next_stops(&from, &lines_of(&slots.value("lines")));
    }
    let text = last_result_text(outcome);
    let legs = legs_in(&text);
    let is_end = slots.value("ridestop") == BEFORE_END;
    let leg = if is_end { legs.last() } else { legs.first() };
    let Some((leg, stations)) = leg.and_then(|leg| Some((leg, stations_of(leg)?))) else { return text };
    let line = &leg.line;
    let (first, last) = (&stations[0], &stations[stations.len() - 1]);
    match is_end {
        true => format!("On the {line}, the stop before {last} is {}.", stations[stations.len() - 2]),
        false => format!("On the {line}, the first stop after {first} is {}.", stations[1]),
    }
}

/// Returns the stations of a ride, in order.
fn stations_of(leg: &Leg) -> Option<Vec<String>> {
    let ids =
        |name: &str| SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<String>>();
    let (from, to) = (ids(&leg.from), ids(&leg.to));
    let known = find_network_lines(&leg.line).ok()?;
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    let rides = pairs.filter_map(|(from, to)| network().ride(&known.first()?.id, from, to));
    let shortest = rides.min_by_key(|ride| ride.stations.len())?;
    Some(shortest.stations.iter().map(|station| station.name.clone()).collect())
}

/// Says at which stations the trains from a station stop next.
fn next_stops(from: &str, lines: &[String]) -> String {
    let ids: Vec<String> = SPEECH.system.places(from).into_iter().flat_map(|place| place.stations).collect();
    let mut found: Vec<String> = Vec::new();
    for line in network().lines().iter().filter(|line| lines.is_empty() || lines.contains(&line.id)) {
        for sequence in &line.sequences {
            let stations = sequence.stations.iter().map(|index| &network().stations()[*index]);
            let stations: Vec<_> = stations.collect();
            let at = stations.iter().position(|station| ids.contains(&station.id));
            if let Some(next) = at.and_then(|at| stations.get(at + 1)) {
                let text = format!("{} ({})", next.name, line.name);
                if !found.contains(&text) {
                    found.push(text);
                }
            }
        }
    }
    match found.is_empty() {
        true => format!("I know no stop after {from}."),
        false => format!("The next stop after {from}: {}.", join_with_and(&found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_stops_of_a_ride_are_found() {
        for (text, which) in [
            ("what stop is just before mine so i know", Some(BEFORE_END)),
            ("which station is before i get off", Some(BEFORE_END)),
            ("first stop after leaving?", Some(AFTER_START)),
            ("what is the next stop", Some(AFTER_START)),
            ("which stop is before Kew Gardens", None),
            ("how many stops before mine", None),
            ("first stop in zone 1", None),
        ] {
            let found = find_ride_stops(&Utterance::new(text));
            assert_eq!(found.first().and_then(|mention| mention.choices[0].value.as_str()), which, "{text}");
        }
    }
}
