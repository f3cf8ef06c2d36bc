use jiff::Timestamp;
use threadkeep_transit::wording::LAST_STOP;

use super::station::place;
use crate::arrivals::{ArrivalsAnswer, LiveStatus, TrainArrival, clock};

/// Maximum number of trains per direction in the text; the JSON value has more.
const MAX_TRAINS_PER_DIRECTION: usize = 5;

/// Formats a departure board.
pub(crate) fn arrivals(answer: &ArrivalsAnswer, now: Timestamp) -> String {
    let what = answer.line.as_ref().map_or_else(String::new, |line| format!(" of the {line}"));
    let what = answer.to.as_ref().map_or(what.clone(), |to| format!("{what} to {to}"));
    let station = place(&answer.station);
    let assumption = answer.assumption.as_ref().map(super::assumption);
    let live = super::live(&answer.live);
    if answer.arrivals.is_empty() {
        let no_trains = match answer.live {
            LiveStatus::Unavailable => format!("I cannot look up the next trains{what} at {station}."),
            _ => format!("No train{what} is announced at {station}."),
        };
        return super::join_lines([Some(no_trains), live, assumption]);
    }
    let head = format!("Next trains{what} at {station} (live, {}):", clock(now));
    let mut ways: Vec<(&str, Vec<&TrainArrival>)> = Vec::new();
    for train in &answer.arrivals {
        match ways.iter_mut().find(|(towards, _)| *towards == train.towards) {
            Some((_, trains)) => trains.push(train),
            None => ways.push((&train.towards, vec![train])),
        }
    }
    let boards = ways.iter().map(|(towards, trains)| {
        let lines: Vec<String> = trains.iter().take(MAX_TRAINS_PER_DIRECTION).map(|train| train_to(train)).collect();
        Some(format!("{}:\n{}", heading(towards), lines.join("\n")))
    });
    super::join_lines([Some(head)].into_iter().chain(boards).chain([live, assumption]))
}

fn heading(towards: &str) -> &str {
    if towards == LAST_STOP { "Trains that end here" } else { towards }
}

/// Formats a train with its destination.
fn train_to(train: &TrainArrival) -> String {
    format!("- {} to {} {}", train.line, train.destination, when(train))
}

/// Formats the arrival time of a train, with reasons why it may not be reliable.
pub(super) fn when(train: &TrainArrival) -> String {
    let doubts = [
        (!train.is_assigned, "planned, no train on its way yet"),
        (train.is_stalled, "not moving at present"),
        (train.is_rerouted, "on another track, may not stop here"),
    ];
    let doubts: String = doubts.iter().filter(|(holds, _)| *holds).map(|(_, doubt)| format!("; {doubt}")).collect();
    format!("{} ({}{doubts})", super::time_until(train.minutes_until), train.clock)
}
