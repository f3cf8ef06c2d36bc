use super::station::{LAST_STOP, place};
use crate::{Assumption, RideLeg, RouteAnswer, RouteLeg, RouteSource, System};

/// Formats a route, step by step.
#[must_use]
pub fn route(system: &System, route: &RouteAnswer) -> String {
    super::join_lines([
        conditions(system, route),
        Some(steps(system, route)),
        direct(route),
        Some(source(route)),
        assumptions(system, &route.assumptions),
    ])
}

/// Formats the conditions that the route meets, and what they mean without a timetable.
#[must_use]
pub fn conditions(system: &System, route: &RouteAnswer) -> Option<String> {
    let met = &route.conditions;
    let has_times = route.departs.is_some();
    let mut parts: Vec<String> = Vec::new();
    if let Some(at) = &met.leave_at {
        // Without a timetable, the arrival follows from the estimate.
        let arrival = clock_after(at, i64::from(route.minutes)).filter(|_| !has_times);
        parts.push(match arrival {
            Some(time) => format!("Leaving {at}, you arrive about {time}, plus the wait."),
            None => format!("Leaving {at}."),
        });
    }
    if let Some(at) = &met.arrive_by {
        parts.push(match has_times {
            true => format!("To arrive by {at}."),
            false => {
                let latest = clock_after(at, -i64::from(route.minutes));
                let latest = latest.map_or_else(String::new, |time| format!(", so by {time} at the latest"));
                format!(
                    "To arrive by {at}, leave at least {} min before{latest}, and allow for the wait.",
                    route.minutes
                )
            }
        });
    }
    if (met.leave_at.is_some() || met.arrive_by.is_some()) && !has_times {
        parts.push(system.words.no_timetable.to_owned());
    }
    if !met.avoided.is_empty() {
        let avoided: Vec<String> = met.avoided.iter().map(|line| system.line_name(line)).collect();
        parts.push(format!("Avoiding the {}.", avoided.join(", ")));
    }
    if !met.only.is_empty() {
        let only: Vec<String> = met.only.iter().map(|line| system.line_name(line)).collect();
        parts.push(format!("Only on the {}.", only.join(", ")));
    }
    if met.fewest_changes {
        parts.push("With the fewest changes.".to_owned());
    }
    if met.step_free {
        parts.push(system.words.step_free.to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Returns the clock time some minutes after a moment such as `Wed 6 May 08:00`.
fn clock_after(moment: &str, minutes: i64) -> Option<String> {
    let (_, clock) = moment.rsplit_once(' ')?;
    let time = jiff::civil::Time::strptime("%H:%M", clock).ok()?;
    let later = time.wrapping_add(jiff::SignedDuration::from_mins(minutes));
    Some(later.strftime("%H:%M").to_string())
}

/// Formats the ends of a route, its duration, and its numbered steps.
#[must_use]
pub fn steps(system: &System, route: &RouteAnswer) -> String {
    let about = if route.departs.is_some() { "" } else { "about " };
    let changes = super::counted(route.changes, "change", "changes");
    let clocks = clocks(route.departs.as_ref(), route.arrives.as_ref());
    let (from, to) = (place(system, &route.from), place(system, &route.to));
    let head = format!("{from} to {to}: {about}{} min, {changes}{clocks}.", route.minutes);
    let before = [None].into_iter().chain(route.legs.iter().map(Some));
    let legs = (1..).zip(route.legs.iter().zip(before));
    let legs = legs.map(|(number, (leg, before))| Some(format!("{number}. {}", step(leg, before))));
    super::join_lines([Some(head)].into_iter().chain(legs))
}

/// The beginnings of the line about other rides without a change.
pub const DIRECT: [&str; 2] = ["Without a change: ", "Also without a change: "];

/// Formats the other rides without a change.
#[must_use]
pub fn direct(route: &RouteAnswer) -> Option<String> {
    let one = |ride: &RideLeg| {
        let stops = super::counted(ride.stops, "stop", "stops");
        format!("the {}{}, {stops}, {}", ride.line, sign(ride), super::minutes(i64::from(ride.seconds)))
    };
    let rides: Vec<String> = route.direct.iter().map(one).collect();
    let opening = DIRECT[usize::from(route.changes == 0)];
    (!rides.is_empty()).then(|| format!("{opening}{}.", rides.join("; ")))
}

fn clocks(departs: Option<&String>, arrives: Option<&String>) -> String {
    departs.zip(arrives).map_or_else(String::new, |(departs, arrives)| format!(", {departs} to {arrives}"))
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
            let clocks = clocks(ride.departs.as_ref(), ride.arrives.as_ref());
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
#[must_use]
pub fn sign(ride: &RideLeg) -> String {
    if ride.towards == LAST_STOP { String::new() } else { format!(" ({})", ride.towards) }
}

/// Formats where the times of a route come from.
#[must_use]
pub fn source(route: &RouteAnswer) -> String {
    match &route.source {
        RouteSource::Timetable => "Times are from the timetable, not live.".to_owned(),
        RouteSource::LiveTrains => "Times are live, based on the trains running now.".to_owned(),
        RouteSource::OlderTimetable { date } => {
            format!("Times are from the timetable of {date}, not live: the loaded timetable does not cover today.")
        }
        RouteSource::TwoMinutesAStop => {
            let change = if route.changes > 0 { " and 7 min per change" } else { "" };
            format!(
                "Times are estimates, not live: 2 min per stop{change}. The wait for the first train is not included."
            )
        }
        RouteSource::Planner => "Times are those of the operator's journey planner when you asked.".to_owned(),
        RouteSource::RunningTimes { date, estimated, change_minutes } => {
            let estimated = match estimated.is_empty() {
                true => String::new(),
                false => format!(" Those of the {} are estimates by distance.", super::join_with_and(estimated)),
            };
            format!(
                "Running times are from the timetables of {date}, not live, plus {change_minutes} min per change. The wait for \
                 the first train is not included.{estimated}"
            )
        }
    }
}

/// Formats the assumptions about names.
#[must_use]
pub fn assumptions(system: &System, assumptions: &[Assumption]) -> Option<String> {
    let lines: Vec<String> = assumptions.iter().map(|assumption| super::assumption(system, assumption)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
