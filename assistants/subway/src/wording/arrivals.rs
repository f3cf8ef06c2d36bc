use jiff::Timestamp;

use super::station::{LAST_STOP, place};
use crate::arrivals::{ArrivalsAnswer, LiveStatus, TrainArrival, clock};

/// Trains that are told of each direction; the answer for programs has more.
const EACH_WAY: usize = 5;

/// A departure board.
pub(crate) fn arrivals(answer: &ArrivalsAnswer, now: Timestamp) -> String {
    let what = answer.line.as_ref().map_or_else(String::new, |line| format!(" of the {line}"));
    let station = place(&answer.station);
    let assumption = answer.assumption.as_ref().map(super::assumption);
    let live = super::live(&answer.live);
    if answer.arrivals.is_empty() {
        let nothing = match answer.live {
            LiveStatus::Unavailable => format!("I cannot tell the next trains{what} at {station}."),
            _ => format!("No train{what} is announced at {station}."),
        };
        return super::lines_of([Some(nothing), live, assumption]);
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
        let told: Vec<String> = trains.iter().take(EACH_WAY).map(|train| train_to(train)).collect();
        Some(format!("{}:\n{}", heading(towards), told.join("\n")))
    });
    super::lines_of([Some(head)].into_iter().chain(boards).chain([live, assumption]))
}

fn heading(towards: &str) -> &str {
    if towards == LAST_STOP { "Trains that end here" } else { towards }
}

/// A train with its destination.
fn train_to(train: &TrainArrival) -> String {
    format!("- {} to {} {}", train.line, train.destination, when(train))
}

/// When a train calls, and what speaks against relying on it.
pub(super) fn when(train: &TrainArrival) -> String {
    let doubts = [
        (!train.is_assigned, "planned, no train on its way yet"),
        (train.is_stalled, "not moving at present"),
        (train.is_rerouted, "on another track, may not stop here"),
    ];
    let doubts: String = doubts.iter().filter(|(holds, _)| *holds).map(|(_, doubt)| format!("; {doubt}")).collect();
    format!("{} ({}{doubts})", super::wait(train.minutes_until), train.clock)
}
