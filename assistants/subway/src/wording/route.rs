use jiff::Timestamp;
use threadkeep_transit::SECONDS_A_STOP;
use threadkeep_transit::wording::{self, sign};

use super::arrivals::when;
use super::place;
use crate::arrivals::{LiveStatus, TrainArrival, clock};
use crate::route::{RouteAnswer, RouteSource, RouteWithArrivals, rides};
use crate::system::{SUBWAY, network};
use crate::transfer::TransferTiming;

/// Formats a route, step by step.
pub(crate) fn route(route: &RouteAnswer) -> String {
    super::join_lines([Some(wording::route(&SUBWAY, route)), airtrain(route)])
}

/// Says how the trip continues from a station that is named after the airport.
fn airtrain(route: &RouteAnswer) -> Option<String> {
    let station = [&route.from, &route.to].into_iter().find(|place| place.name.contains("JFK"))?;
    Some(format!("The AirTrain runs between {} and the terminals of JFK; it has a separate fare.", station.name))
}

/// Estimates when a train of the first ride arrives at the destination, if the route has no clock times. Lines that make the same ride
/// differ in their stops.
fn estimated_arrival(route: &RouteAnswer, train: &TrainArrival) -> Option<Timestamp> {
    let first = rides(route).next().filter(|_| route.source == RouteSource::TwoMinutesAStop)?;
    let rides = network().lines_named(&train.line);
    let stops =
        rides.filter_map(|line| network().ride(&line.id, &first.from_stop, &first.to_stop)).map(|ride| ride.stops());
    let seconds = stops.min().map_or(first.seconds, |stops| stops * SECONDS_A_STOP);
    let rest = i64::from(route.minutes) * 60 - i64::from(first.seconds);
    Timestamp::from_second(train.at + i64::from(seconds) + rest).ok()
}

/// Names the train that arrives first, of the lines that the user named if any were named.
fn first_to_arrive(answer: &RouteWithArrivals) -> Option<String> {
    let trains = answer.next_trains.iter();
    let arriving = trains.filter_map(|train| Some((estimated_arrival(&answer.route, train)?, train)));
    let is_other = |train: &TrainArrival| {
        !answer.route.conditions.only.is_empty() && !answer.route.conditions.only.contains(&train.line)
    };
    let (at, train) = arriving.min_by_key(|(at, train)| (is_other(train), *at))?;
    Some(format!("With the {} at {} you arrive about {}.", train.line, train.clock, clock(at)))
}

pub(crate) fn route_with_arrivals(answer: &RouteWithArrivals) -> String {
    let route = &answer.route;
    let board = rides(route).next().filter(|_| !answer.next_trains.is_empty()).map(|first| {
        let is_only_ride = rides(route).count() == 1;
        let arrives = |train: &TrainArrival| estimated_arrival(route, train).filter(|_| is_only_ride);
        let line = |train: &TrainArrival| {
            let there = arrives(train).map(|at| format!(", there about {}", clock(at))).unwrap_or_default();
            format!("- {} {}{there}", train.line, when(train))
        };
        let trains: Vec<String> = answer.next_trains.iter().map(line).collect();
        format!("Next trains at {}{} (live):\n{}", first.from, sign(first), trains.join("\n"))
    });
    let silence = (answer.next_trains.is_empty() && answer.live == LiveStatus::Available)
        .then(|| "No train is announced there right now.".to_owned());
    let live = super::live(&answer.live);
    super::join_lines([
        wording::conditions(&SUBWAY, route),
        Some(wording::steps(&SUBWAY, route)),
        wording::direct(route),
        board.or(silence),
        first_to_arrive(answer),
        live,
        Some(wording::source(route)),
        airtrain(route),
        wording::assumptions(&SUBWAY, &route.assumptions),
    ])
}

pub(crate) fn transfer_timing(timing: &TransferTiming) -> String {
    let route = &timing.route;
    let mut legs = rides(route);
    let (Some(first), Some(second), Some(transfer)) = (legs.next(), legs.next(), &timing.transfer_at) else {
        let none = format!("No change is needed from {} to {}.", place(&route.from), place(&route.to));
        return super::join_lines([Some(none), Some(self::route(route))]);
    };
    let onwards = timing.connection.as_ref().map_or(&second.line, |train| &train.line);
    let head = format!("Change at {transfer} from the {} to the {onwards}.", first.line);
    let first_train = timing.first_train.as_ref().map(|train| {
        let there = timing
            .arrives_in_minutes
            .map_or_else(String::new, |minutes| format!(", and is at {transfer} {}", super::time_until(minutes)));
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
    super::join_lines([Some(head), first_train, connection, arrival, missing, live, Some(self::route(route))])
}
