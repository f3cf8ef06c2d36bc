use super::arrivals::when;
use super::station::{LAST_STOP, place};
use crate::arrivals::LiveStatus;
use crate::place::Assumption;
use crate::route::{RideLeg, RouteAnswer, RouteLeg, RouteSource, RouteWithArrivals, rides};
use crate::transfer::TransferTiming;

/// Formats a route, step by step.
pub(crate) fn route(route: &RouteAnswer) -> String {
    super::lines_of([
        conditions(route),
        Some(steps(route)),
        Some(source(&route.source)),
        assumptions(&route.assumptions),
    ])
}

/// Formats the conditions that the route meets, and what they mean without a timetable.
fn conditions(route: &RouteAnswer) -> Option<String> {
    let met = &route.conditions;
    let has_times = route.departs.is_some();
    let mut parts: Vec<String> = Vec::new();
    if let Some(at) = &met.leave_at {
        parts.push(format!("Leaving {at}."));
    }
    if let Some(at) = &met.arrive_by {
        parts.push(match has_times {
            true => format!("To arrive by {at}."),
            false => format!("To arrive by {at}, leave at least {} min before, and allow for the wait.", route.minutes),
        });
    }
    if (met.leave_at.is_some() || met.arrive_by.is_some()) && !has_times {
        parts.push("There is no timetable for that time, so I do not know which trains run then.".to_owned());
    }
    if !met.avoided.is_empty() {
        parts.push(format!("Avoiding the {}.", met.avoided.join(", ")));
    }
    if met.step_free {
        let known =
            "Step-free platforms only; I do not know which elevators work now, or whether each change is step-free.";
        parts.push(known.to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

pub(crate) fn route_with_arrivals(answer: &RouteWithArrivals) -> String {
    let route = &answer.route;
    let board = rides(route).next().filter(|_| !answer.next_trains.is_empty()).map(|first| {
        let trains: Vec<String> =
            answer.next_trains.iter().map(|train| format!("- {} {}", train.line, when(train))).collect();
        format!("Next trains at {}{} (live):\n{}", first.from, sign(first), trains.join("\n"))
    });
    let silence = (answer.next_trains.is_empty() && answer.live == LiveStatus::Available)
        .then(|| "No train is announced there right now.".to_owned());
    let live = super::live(&answer.live);
    super::lines_of([
        conditions(route),
        Some(steps(route)),
        board.or(silence),
        live,
        Some(source(&route.source)),
        assumptions(&route.assumptions),
    ])
}

pub(crate) fn transfer_timing(timing: &TransferTiming) -> String {
    let route = &timing.route;
    let mut legs = rides(route);
    let (Some(first), Some(second), Some(transfer)) = (legs.next(), legs.next(), &timing.transfer_at) else {
        let none = format!("No change is needed from {} to {}.", place(&route.from), place(&route.to));
        return super::lines_of([Some(none), Some(self::route(route))]);
    };
    let onwards = timing.connection.as_ref().map_or(&second.line, |train| &train.line);
    let head = format!("Change at {transfer} from the {} to the {onwards}.", first.line);
    let first_train = timing.first_train.as_ref().map(|train| {
        let there = timing
            .arrives_in_minutes
            .map_or_else(String::new, |minutes| format!(", and is at {transfer} {}", super::wait(minutes)));
        format!("The next {} leaves {} {}{there}.", train.line, first.from, when(train))
    });
    let connection = timing.connection.as_ref().map(|train| {
        let wait = timing
            .wait_minutes
            .map_or_else(String::new, |wait| format!(": {wait} min after the arrival, including the walk"));
        format!("The connecting {} leaves {} {}{wait}.", train.line, second.from, when(train))
    });
    let missing = match (&timing.first_train, &timing.connection) {
        _ if timing.live == LiveStatus::Unavailable => None,
        (None, _) => Some(format!("No {} is announced at {}, so the change cannot be timed.", first.line, first.from)),
        (_, None) => Some(format!("No connecting {} is announced there yet.", second.line)),
        _ => None,
    };
    let live = super::live(&timing.live);
    let arrival =
        timing.arrives_at.as_ref().map(|time| format!("With these trains you are at {} at {time}.", place(&route.to)));
    super::lines_of([Some(head), first_train, connection, arrival, missing, live, Some(self::route(route))])
}

fn steps(route: &RouteAnswer) -> String {
    let about = if route.departs.is_some() { "" } else { "about " };
    let changes = super::counted(route.changes, "change", "changes");
    let clocks = route.departs.as_ref().zip(route.arrives.as_ref());
    let clocks = clocks.map_or_else(String::new, |(departs, arrives)| format!(", {departs} to {arrives}"));
    let (from, to) = (place(&route.from), place(&route.to));
    let head = format!("{from} to {to}: {about}{} min, {changes}{clocks}.", route.minutes);
    let before = [None].into_iter().chain(route.legs.iter().map(Some));
    let legs = (1..).zip(route.legs.iter().zip(before));
    let legs = legs.map(|(number, (leg, before))| Some(format!("{number}. {}", step(leg, before))));
    super::lines_of([Some(head)].into_iter().chain(legs))
}

fn step(leg: &RouteLeg, before: Option<&RouteLeg>) -> String {
    match leg {
        RouteLeg::Walk { from, to, seconds } if from == to => {
            format!("Change platforms at {from} ({}).", super::minutes(i64::from(*seconds)))
        }
        RouteLeg::Walk { from, to, seconds } => {
            format!("Walk from {from} to {to} ({}).", super::minutes(i64::from(*seconds)))
        }
        RouteLeg::Ride(ride) => {
            let stops = super::counted(ride.stops, "stop", "stops");
            let clocks = ride.departs.as_ref().zip(ride.arrives.as_ref());
            let clocks = clocks.map_or_else(String::new, |(departs, arrives)| format!(", {departs} to {arrives}"));
            let minutes = super::minutes(i64::from(ride.seconds));
            let board = match before {
                Some(RouteLeg::Ride(earlier)) if earlier.to != ride.from => {
                    format!("Walk to {} in the same complex and take the {}{}", ride.from, ride.line, sign(ride))
                }
                _ => format!("Take the {}{} from {}", ride.line, sign(ride), ride.from),
            };
            format!("{board} to {}: {stops}, {minutes}{clocks}.", ride.to)
        }
    }
}

/// Formats the direction on the signs where the user boards.
fn sign(ride: &RideLeg) -> String {
    if ride.towards == LAST_STOP { String::new() } else { format!(" ({})", ride.towards) }
}

fn source(source: &RouteSource) -> String {
    match source {
        RouteSource::Timetable => "Times are from the timetable, not live.".to_owned(),
        RouteSource::LiveTrains => "Times are live, based on the trains running now.".to_owned(),
        RouteSource::OlderTimetable { date } => {
            format!("Times are from the timetable of {date}, not live: the loaded timetable does not cover today.")
        }
        RouteSource::TwoMinutesAStop => {
            "Times are estimates, not live: 2 min a stop and 7 min a change, without the wait for the first train."
                .to_owned()
        }
    }
}

fn assumptions(assumptions: &[Assumption]) -> Option<String> {
    let lines: Vec<String> = assumptions.iter().map(super::assumption).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
