//! The list of a line's stops, and parts of it.

use std::ops::Range;

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots};

use super::Speech;
use super::boards::{lines_of, on_lines};
use super::listing::{Listing, Pick, decides, listing};
use super::trips::ENDS;
use crate::{Line, Station, wording};

/// A question about the stops of a line.
#[must_use]
pub fn stations_on_line(speech: &'static Speech, example: &str) -> Intent {
    let place = |name: &str| Slot::optional(name, "station").narrowed_by(on_lines).narrowing_assumed();
    Intent::new("stations_on_line")
        .example(example)
        .decided_by("listing", decides)
        .slot(Slot::required("lines", "lines").asks("Which line?").relocated_by(lines_at_start))
        .slot(Slot::optional("listing", "listing"))
        .slot(
            place("start")
                .after(["after", "from", "past", "before", "between", "right after", "right before"])
                .inherited_by(|earlier, now| end_of_trip(earlier, now, ENDS[0])),
        )
        .slot(
            place("end")
                .after(["to", "and", "until", "towards"])
                .inherited_by(|earlier, now| end_of_trip(earlier, now, ENDS[1])),
        )
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("step_free", "stepfree"))
        .about_trip("ask:stops", move |now, trip| speech.counts_ride(now, trip))
        .aspect("ask:stops", move |outcome| speech.stops_of_line(outcome))
        .then_calls("find_stations_on_line", |outcome| line(outcome, 0))
        .then_calls("find_stations_on_line", |outcome| line(outcome, 1))
        .says(move |outcome| speech.stops_of_line(outcome))
}

/// Returns the lines of the place after or before which a stop is asked for, if the line of an earlier question does not stop there.
fn lines_at_start(known: &Choice, slots: &Slots) -> Option<Choice> {
    let start = slots.get("start").filter(|_| {
        listing(&slots.value("listing")).is_some_and(|asked| matches!(asked.pick, Pick::After | Pick::Before))
    })?;
    let named = lines_of(&known.value);
    // The last hints are the area and the trunk line.
    if start.hints.is_empty() || named.iter().any(|line| start.hints.contains(line)) {
        return None;
    }
    let [lines @ .., _, _] = &start.hints[..] else { return None };
    (!lines.is_empty()).then(|| Choice::new(json!(lines), "the lines there"))
}

fn line(outcome: &Outcome<'_>, number: usize) -> Option<Value> {
    let lines = lines_of(&outcome.slots().value("lines"));
    lines.get(number).map(|line| json!({"line": line}))
}

/// Returns an end of an earlier trip, if the message asks for the stops between its ends.
fn end_of_trip(earlier: &Slots, now: &Slots, end: &str) -> Option<Choice> {
    let asked = listing(&now.value("listing"))?;
    let place = if asked.pick == Pick::Nearest && end == ENDS[0] {
        ["station", "station_name", end].iter().find_map(|slot| earlier.get(slot))
    } else {
        earlier.get(end).filter(|_| asked.is_between)
    };
    place.filter(|place| place.value.is_string()).cloned()
}

impl Speech {
    /// Whether a question for the number of a line's stops is about the ride of a trip, because the line makes it.
    fn counts_ride(&self, now: &Slots, trip: &Slots) -> bool {
        let is_bare = listing(&now.value("listing")).is_some_and(|listing| listing.is_bare_count());
        let names_part = ["start", "end", "direction", "step_free"].iter().any(|slot| now.get(slot).is_some());
        let [from, to] = ENDS.map(|end| trip.get(end));
        let (Some(from), Some(to)) = (from, to) else { return false };
        let lines = lines_of(&now.value("lines"));
        is_bare
            && !names_part
            && !lines.is_empty()
            && lines.iter().all(|line| self.has_direct_ride(from, to, &json!([line])))
    }

    /// Words the answer: the whole list as the tool gave it, or the part that the message asks for.
    fn stops_of_line(&self, outcome: &Outcome<'_>) -> String {
        let slots = outcome.slots();
        let asked = listing(&slots.value("listing")).unwrap_or_default();
        let names = lines_of(&slots.value("lines"));
        let parts: Vec<Option<String>> =
            names.iter().take(2).map(|name| self.part_of_line(name, &asked, outcome)).collect();
        match parts.iter().any(Option::is_some) {
            true => wording::join_lines(parts),
            false => all_texts(outcome),
        }
    }

    /// Returns the part of a line's stops that is asked for; `None` for all of them.
    fn part_of_line(&self, name: &str, asked: &Listing, outcome: &Outcome<'_>) -> Option<String> {
        let found = (self.system.find_lines)(name).ok()?;
        let line = found.first()?.name.as_str();
        let start = outcome.slots().get("start").and_then(|start| start.value.as_str().map(str::to_owned));
        let end = outcome.slots().get("end").and_then(|end| end.value.as_str().map(str::to_owned));
        // The part of an earlier question does not matter.
        let (start, end) = if asked.is_whole { (None, None) } else { (start, end) };
        if asked.of_end && start.is_none() {
            return Some(self.before_ends(line, &found, outcome.slots().label("direction")));
        }
        if matches!(asked.pick, Pick::After | Pick::Before) {
            let direction = outcome.slots().label("direction");
            let direction = if direction.is_empty() { outcome.slots().label("end") } else { direction };
            return start.map(|start| self.neighbours(line, &found, &start, asked.pick, direction));
        }
        if asked.pick == Pick::Nearest {
            return start.map(|start| self.nearest_step_free(line, &found, &start));
        }
        if asked.pick == Pick::Skipped {
            let text = start.zip(end).map(|(start, end)| self.skipped_stops(line, &found, &start, &end));
            return Some(text.unwrap_or_else(|| format!("Between which stations of the {line}?")));
        }
        if let (Some(start), Some(end)) = (&start, &end) {
            return Some(self.stops_between(line, &found, start, end, asked));
        }
        let step_free = asked.step_free || outcome.slots().get("step_free").is_some();
        let stations = self.distinct_stations(&found);
        match (&asked.area, asked.pick) {
            (Some(area), Pick::Whether) => Some(self.whether_in(line, &stations, area)),
            (Some(area), Pick::Border) => Some(self.borders_of(line, &found, area)),
            (None, Pick::All | Pick::Whether | Pick::Border) if !step_free => None,
            (area, pick) => Some(self.filtered(line, &stations, area.as_deref(), step_free, pick)),
        }
    }

    /// Returns the stations of lines in order, each once.
    fn distinct_stations(&self, lines: &[&'static Line]) -> Vec<&'static Station> {
        let network = (self.system.network)();
        let mut stations: Vec<&Station> = Vec::new();
        for station in lines.iter().flat_map(|line| network.stations_on(&line.id)) {
            let is_regular =
                station.lines.iter().any(|known| lines.iter().any(|line| line.name == *known || line.id == *known));
            if is_regular && !stations.iter().any(|known| known.id == station.id) {
                stations.push(station);
            }
        }
        stations
    }

    fn area_of(&self, station: &Station) -> String {
        (self.system.area)(&station.area)
    }

    fn filtered(&self, line: &str, stations: &[&Station], area: Option<&str>, step_free: bool, pick: Pick) -> String {
        let is_meant = |station: &&&Station| {
            area.is_none_or(|area| self.area_of(station) == area) && (!step_free || !station.accessible.is_empty())
        };
        let found: Vec<&str> = stations.iter().filter(is_meant).map(|station| station.name.as_str()).collect();
        let usually = self.system.words.usually;
        let place = area.map(|area| format!(" in {area}")).unwrap_or_default();
        let access = if step_free { "step-free " } else { "" };
        let count = wording::counted(found.len(), &format!("{access}station"), &format!("{access}stations"));
        match pick == Pick::Count || found.is_empty() {
            true => format!("The {line} stops at {count}{place}{usually}."),
            false => format!("The {line} stops at {count}{place}{usually}: {}.", found.join(" · ")),
        }
    }

    fn whether_in(&self, line: &str, stations: &[&Station], area: &str) -> String {
        const MAX_NAMED: usize = 6;
        let usually = self.system.words.usually;
        let there: Vec<&str> = stations
            .iter()
            .filter(|station| self.area_of(station) == area)
            .map(|station| station.name.as_str())
            .collect();
        let (Some(first), Some(last)) = (there.first(), there.last()) else {
            let mut areas: Vec<String> = Vec::new();
            for area in stations.iter().map(|station| self.area_of(station)) {
                if !areas.contains(&area) {
                    areas.push(area);
                }
            }
            return format!(
                "No, the {line} does not stop in {area}{usually}, only in {}.",
                wording::join_with_and(&areas)
            );
        };
        match there.len() {
            1..=MAX_NAMED => {
                format!("Yes, the {line} stops in {area}{usually}: at {}.", wording::join_with_and(&there))
            }
            count => format!("Yes, the {line} stops at {count} stations in {area}{usually}, from {first} to {last}."),
        }
    }

    /// Says at which stations a line enters an area.
    fn borders_of(&self, line: &str, lines: &[&Line], area: &str) -> String {
        let network = (self.system.network)();
        let mut found: Vec<String> = Vec::new();
        for sequence in lines.iter().flat_map(|line| &line.sequences) {
            let stations: Vec<&Station> = sequence.stations.iter().map(|index| &network.stations()[*index]).collect();
            for (one, next) in stations.iter().zip(stations.iter().skip(1)) {
                let (before, after) = (self.area_of(one), self.area_of(next));
                let text = format!("coming from {before}, {}", next.name);
                if before != area && after == area && !found.contains(&text) {
                    found.push(text);
                }
            }
        }
        let mut terminals: Vec<&str> = Vec::new();
        for end in lines.iter().flat_map(|line| &line.sequences).filter_map(|sequence| sequence.stations.last()) {
            let station = &network.stations()[*end];
            if self.area_of(station) == area && !terminals.contains(&station.name.as_str()) {
                terminals.push(&station.name);
            }
        }
        let terminals = match &terminals[..] {
            [] => String::new(),
            names => format!(" Trains of the line end in {area} at {}.", names.join(" and ")),
        };
        let ends = || {
            let all = self.distinct_stations_in(lines, area);
            match (all.first(), all.last()) {
                (Some(first), Some(last)) => format!("In {area} the {line} stops from {first} to {last}."),
                _ => format!("The {line} does not stop in {area}."),
            }
        };
        match found.is_empty() {
            true => ends(),
            false => format!(
                "The {line}'s first stop in {area}, or the last when leaving it: {}.{terminals}",
                found.join("; ")
            ),
        }
    }

    fn distinct_stations_in(&self, lines: &[&Line], area: &str) -> Vec<&'static str> {
        let network = (self.system.network)();
        let all = lines.iter().flat_map(|line| network.stations_on(&line.id));
        all.filter(|station| self.area_of(station) == area).map(|station| station.name.as_str()).collect()
    }

    /// Says which step-free stations of a line are nearest to a place, by stops.
    fn nearest_step_free(&self, line: &str, lines: &[&'static Line], place: &str) -> String {
        const MAX_NAMED: usize = 2;
        let places = self.system.places(place);
        let stations = self.distinct_stations(lines);
        let is_here = |station: &&Station| places.iter().any(|place| place.stations.contains(&station.id));
        let Some(at) = stations.iter().position(is_here) else {
            return format!("The {line} does not stop at {place}.");
        };
        let mut others: Vec<(usize, &str)> = stations
            .iter()
            .enumerate()
            .filter(|(index, station)| *index != at && !station.accessible.is_empty())
            .map(|(index, station)| (index.abs_diff(at), station.name.as_str()))
            .collect();
        others.sort_by_key(|(distance, _)| *distance);
        let rows = others.iter().take(MAX_NAMED);
        let rows: Vec<String> =
            rows.map(|(distance, name)| format!("{name} ({})", wording::counted(*distance, "stop", "stops"))).collect();
        match rows.is_empty() {
            true => format!("No station of the {line} is step-free."),
            false => format!(
                "The step-free stations of the {line} nearest to {}: {}.",
                stations[at].name,
                wording::join_with_and(&rows)
            ),
        }
    }

    /// Says at which station a line stops after or before another one.
    fn neighbours(&self, line: &str, lines: &[&Line], place: &str, pick: Pick, direction: &str) -> String {
        let network = (self.system.network)();
        let places = self.system.places(place);
        let is_here = |station: &Station| places.iter().any(|place| place.stations.contains(&station.id));
        let mut found: Vec<(String, String)> = Vec::new();
        let mut here = String::new();
        for sequence in lines.iter().flat_map(|line| &line.sequences) {
            let stations: Vec<&Station> = sequence.stations.iter().map(|index| &network.stations()[*index]).collect();
            let Some(at) = stations.iter().position(|station| is_here(station)) else { continue };
            let next = if pick == Pick::After { Some(at + 1) } else { at.checked_sub(1) };
            let Some(next) = next.and_then(|next| stations.get(next)) else { continue };
            stations[at].name.clone_into(&mut here);
            let sign = stations[at].towards.iter().find(|(way, _)| *way == sequence.way).map(|(_, sign)| sign.clone());
            let terminal = stations.last().map(|station| station.name.clone()).unwrap_or_default();
            let is_meant = self.is_direction(direction, &sequence.way, sign.as_deref(), &stations[at..]);
            let row = (sign.unwrap_or(terminal), next.name.clone());
            if is_meant && !found.contains(&row) {
                found.push(row);
            }
        }
        let preposition = if pick == Pick::After { "after" } else { "before" };
        let rows: Vec<String> = found.iter().map(|(sign, next)| format!("{next} (towards {sign})")).collect();
        match rows.is_empty() {
            true => format!("I found no stop of the {line} {preposition} {place}."),
            false => format!("The stop of the {line} {preposition} {here}: {}.", rows.join("; ")),
        }
    }

    /// Says at which stations the trains of a line stop last before their ends.
    fn before_ends(&self, line: &str, lines: &[&Line], direction: &str) -> String {
        let network = (self.system.network)();
        let mut rows: Vec<String> = Vec::new();
        for sequence in lines.iter().flat_map(|line| &line.sequences) {
            let [.., before, end] = &sequence.stations[..] else { continue };
            let (before, end) = (&network.stations()[*before], &network.stations()[*end]);
            let row = format!("{} (towards {})", before.name, end.name);
            if self.is_direction(direction, &sequence.way, None, &[end]) && !rows.contains(&row) {
                rows.push(row);
            }
        }
        match rows.is_empty() {
            true => format!("I found no such stop of the {line}."),
            false => format!("The last stop of the {line} before the end: {}.", rows.join("; ")),
        }
    }

    /// Whether a train in a direction of the network goes where a message says; true if the words name no direction here.
    fn is_direction(&self, said: &str, way: &str, sign: Option<&str>, rest: &[&Station]) -> bool {
        let said = said.to_lowercase();
        let compass = match said.as_str() {
            "" => return true,
            "uptown" | "northbound" => "n",
            "downtown" | "southbound" => "s",
            _ => "",
        };
        if !compass.is_empty() && matches!(way, "N" | "S") {
            return way.eq_ignore_ascii_case(compass);
        }
        let ends = rest.first().zip(rest.last()).filter(|_| rest.len() > 1);
        if let Some((here, end)) = ends {
            match said.as_str() {
                "northbound" => return end.latitude > here.latitude,
                "southbound" => return end.latitude < here.latitude,
                "eastbound" => return end.longitude > here.longitude,
                "westbound" => return end.longitude < here.longitude,
                _ => {}
            }
        }
        let goes_there = || {
            rest.iter().any(|station| {
                said.contains(&station.name.to_lowercase()) || self.area_of(station).to_lowercase() == said
            })
        };
        sign.is_some_and(|sign| sign.to_lowercase().contains(&said)) || goes_there()
    }

    /// Lists the stops between two places on a line.
    fn stops_between(&self, line: &str, lines: &[&Line], start: &str, end: &str, asked: &Listing) -> String {
        let network = (self.system.network)();
        let ids = |name: &str| -> Vec<String> {
            self.system.places(name).into_iter().flat_map(|place| place.stations).collect()
        };
        let (from, to) = (ids(start), ids(end));
        let rides = lines.iter().flat_map(|line| {
            let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
            pairs.filter_map(|(from, to)| network.ride(&line.id, from, to)).collect::<Vec<_>>()
        });
        let Some(ride) = rides.into_iter().min_by_key(crate::LineRide::stops) else {
            return format!("The {line} does not run between {start} and {end}.");
        };
        let inner = 1..ride.stations.len().saturating_sub(1);
        let between = ride.stations.get::<Range<usize>>(inner).unwrap_or_default();
        let is_meant = |station: &&&Station| asked.area.as_ref().is_none_or(|area| self.area_of(station) == *area);
        let names: Vec<&str> = between.iter().filter(is_meant).map(|station| station.name.as_str()).collect();
        let (first, last) = (ride.stations[0], ride.stations[ride.stations.len() - 1]);
        let ends = format!("{} and {}", first.name, last.name);
        let count = wording::counted(names.len(), "station", "stations");
        match names.is_empty() {
            true => format!("The {line} makes no stop between {ends}."),
            false => format!("The {line} stops at {count} between {ends}: {}.", names.join(" · ")),
        }
    }
}

fn all_texts(outcome: &Outcome<'_>) -> String {
    let texts = outcome.exchanges().iter().filter_map(|exchange| exchange.value().as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n\n")
}
