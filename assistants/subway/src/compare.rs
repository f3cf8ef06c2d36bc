//! `compare_local_vs_express` and `plan_trip_with_transfers`: whether to stay on the local or change to the express.

use jiff::Timestamp;
use serde::Serialize;
use threadkeep_transit::StationMatch;

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, status_of};
use crate::live::LiveSnapshot;
use crate::place::{Assumption, QueryError, StationView, find, name_of};
use crate::subway::{Subway, find_lines};
use crate::system::network;
use crate::travel::TimeSource;

/// The time needed to change trains at the transfer.
const BUFFER_SECONDS: i64 = 60;

/// The arguments of a comparison, in the user's words.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// The origin.
    pub from_station: &'a str,
    /// The destination.
    pub to_station: &'a str,
    /// Where to change; the origin if both the local and the express stop there.
    pub transfer_station: &'a str,
    /// The local line.
    pub local_line: &'a str,
    /// The express lines, separated by commas.
    pub express_lines: &'a str,
}

/// The recommended option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recommendation {
    /// Take the local all the way.
    Local,
    /// Change to the express, or take it from the start.
    Express,
}

/// What a comparison leaves out, and why. Part of the answer to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "remark", rename_all = "snake_case")]
pub enum ComparisonRemark {
    /// No feed responded: only the time on the trains is known, not the wait.
    LiveTimesUnavailable,
    /// No local train is announced at the origin.
    NoLocal,
    /// No announced express can be reached at the transfer.
    NoCatchableExpress,
    /// The express passes the destination without stopping; option 2 changes back to the local at the last common stop.
    ExpressSkips {
        /// The express lines.
        lines: Vec<String>,
        /// The destination.
        destination: String,
        /// Where to change from the express back to the local.
        leave_at: String,
    },
    /// The express makes no stop between the transfer and the destination.
    ExpressDoesNotGoThere {
        /// The express lines.
        lines: Vec<String>,
    },
}

/// One option for the trip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TripOption {
    /// The line to take.
    pub line: String,
    /// The time on trains in seconds, without waiting.
    pub riding_seconds: u32,
    /// The seconds from now to the arrival, including waiting; `None` without live times.
    pub total_seconds: Option<i64>,
    /// `total_seconds`, rounded to minutes.
    pub total_minutes: Option<i64>,
    /// The time of arrival in New York, such as `13:26`.
    pub arrives_at: Option<String>,
}

/// The answer of `compare_local_vs_express`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparisonAnswer {
    /// The origin.
    pub from: StationView,
    /// The destination.
    pub to: StationView,
    /// Where to change.
    pub transfer: StationView,
    /// The direction of travel, N or S, by the order of the local line's stations.
    pub direction: String,
    /// Minutes until the next local at the origin, rounded down.
    pub next_local_minutes: Option<i64>,
    /// Option 1: stay on the local.
    pub stay: TripOption,
    /// Option 2: change to the express; `None` if it does not run towards the destination.
    pub change: Option<TripOption>,
    /// Minutes at the transfer, from the local's arrival to the express's departure, rounded down. Includes at least one
    /// minute to change platforms.
    pub platform_wait_minutes: Option<i64>,
    /// The express to take.
    pub express: Option<TrainArrival>,
    /// The recommendation; `None` if neither option can be timed.
    pub recommendation: Option<Recommendation>,
    /// What the comparison leaves out, and why.
    pub remarks: Vec<ComparisonRemark>,
    /// The source of the travel times.
    pub times: TimeSource,
    /// For which lines live times are available.
    pub live: LiveStatus,
    /// The assumptions made about station names.
    pub assumptions: Vec<Assumption>,
}

/// The stations of a comparison by GTFS id, and the lines by their ids in the feed.
struct Corridor {
    from: String,
    to: String,
    transfer: String,
    local: &'static str,
    local_sign: String,
    express: Vec<&'static str>,
    express_signs: Vec<String>,
    way: String,
}

/// The ride on the express from the transfer.
struct ExpressRide {
    line: &'static str,
    /// The destination, or the last stop of the express before it.
    leave_at: String,
    seconds: u32,
    /// The time on the local from there to the destination.
    rest_seconds: u32,
    source: TimeSource,
}

impl Subway {
    /// `plan_trip_with_transfers()`: the comparison from South Ferry to Penn Station, changing at Chambers St.
    ///
    /// # Errors
    /// [`QueryError`]; does not occur with the built-in network.
    pub async fn plan_trip_with_transfers(&self, now: Timestamp) -> Result<ComparisonAnswer, QueryError> {
        let example = Comparison {
            from_station: "South Ferry",
            to_station: "Penn Station",
            transfer_station: "Chambers St",
            local_line: "1",
            express_lines: "2,3",
        };
        self.compare_local_vs_express(&example, now).await
    }

    /// `compare_local_vs_express(…)`: whether to stay on the local or change to the express, based on the trains that are
    /// running now. If the totals are equal, recommends staying on the local.
    ///
    /// # Errors
    /// [`QueryError`] if a station or line is unknown or ambiguous, or the local does not make the trip.
    pub async fn compare_local_vs_express(
        &self,
        comparison: &Comparison<'_>,
        now: Timestamp,
    ) -> Result<ComparisonAnswer, QueryError> {
        let (corridor, found) = corridor_of(comparison)?;
        let mut routes = corridor.express.clone();
        routes.push(corridor.local);
        let snapshot = self.live.snapshot(&routes, now).await;
        let live = status_of(&snapshot, &routes);
        let [from, to, transfer] = &found;
        let no_ride = || QueryError::NoRoute {
            conditions: String::new(),
            from: name_of(&corridor.from),
            to: name_of(&corridor.to),
        };
        let local = self.travel_time(&corridor.from, &corridor.to, corridor.local, now).ok_or_else(no_ride)?;
        let mut answer = ComparisonAnswer {
            from: from.view(),
            to: to.view(),
            transfer: transfer.view(),
            direction: corridor.way.clone(),
            next_local_minutes: None,
            stay: TripOption {
                line: corridor.local_sign.clone(),
                riding_seconds: local.seconds,
                total_seconds: None,
                total_minutes: None,
                arrives_at: None,
            },
            change: None,
            platform_wait_minutes: None,
            express: None,
            recommendation: None,
            remarks: Vec::new(),
            times: local.source,
            live,
            assumptions: found.iter().filter_map(|found| found.assumption.clone()).collect(),
        };
        self.add_express(&corridor, &snapshot, now, &mut answer);
        Ok(answer)
    }

    /// Adds option 2 and, if the feeds responded, the live totals.
    fn add_express(&self, corridor: &Corridor, snapshot: &LiveSnapshot, now: Timestamp, answer: &mut ComparisonAnswer) {
        let to_transfer = self.seconds_to_transfer(corridor, now);
        let rides: Vec<ExpressRide> =
            corridor.express.iter().filter_map(|line| self.express_ride(corridor, line, now)).collect();
        match rides.first() {
            None => {
                answer.remarks.push(ComparisonRemark::ExpressDoesNotGoThere { lines: corridor.express_signs.clone() })
            }
            Some(ride) => {
                if ride.leave_at != corridor.to {
                    answer.remarks.push(ComparisonRemark::ExpressSkips {
                        lines: corridor.express_signs.clone(),
                        destination: name_of(&corridor.to),
                        leave_at: name_of(&ride.leave_at),
                    });
                }
                let riding_seconds = to_transfer + ride.seconds + ride.rest_seconds;
                let line = crate::subway::line_name_of(ride.line);
                answer.change = Some(TripOption {
                    line,
                    riding_seconds,
                    total_seconds: None,
                    total_minutes: None,
                    arrives_at: None,
                });
                answer.times = ride.source;
            }
        }
        if answer.live == LiveStatus::Unavailable {
            answer.remarks.push(ComparisonRemark::LiveTimesUnavailable);
            return;
        }
        self.add_live_totals(corridor, snapshot, &rides, to_transfer, now, answer);
    }

    fn add_live_totals(
        &self,
        corridor: &Corridor,
        snapshot: &LiveSnapshot,
        rides: &[ExpressRide],
        to_transfer: u32,
        now: Timestamp,
        answer: &mut ComparisonAnswer,
    ) {
        let trains = |station: &str, lines: &[&str]| {
            let mut trains = arrivals_in(snapshot, &[station], lines, now);
            trains.retain(|train| train.direction == corridor.way);
            trains
        };
        let local = trains(&corridor.from, &[&corridor.local_sign]).into_iter().next();
        answer.next_local_minutes = local.as_ref().map(|train| train.minutes_until);
        match &local {
            Some(train) => answer.stay.set_total(train.at + i64::from(answer.stay.riding_seconds), now),
            None => answer.remarks.push(ComparisonRemark::NoLocal),
        }
        // A transfer at the origin needs no buffer: the user is already on the platform.
        let is_same = corridor.transfer == corridor.from;
        let there_at =
            if is_same { Some(now.as_second()) } else { local.map(|train| train.at + i64::from(to_transfer)) };
        let buffer = if is_same { 0 } else { BUFFER_SECONDS };
        let signs: Vec<&str> = corridor.express_signs.iter().map(String::as_str).collect();
        let express = there_at.and_then(|there_at| {
            let options = trains(&corridor.transfer, &signs).into_iter().filter(|train| train.at >= there_at + buffer);
            let timed = options.filter_map(|train| {
                let ride = rides.iter().find(|ride| ride.line == train.route_id).or(rides.first())?;
                let at = self.arrival_by(corridor, ride, &train, &trains);
                Some((at, train))
            });
            // The first to leave or, if several leave at the same time, the first of them to arrive.
            timed.min_by_key(|(at, train)| (train.at, *at))
        });
        match express {
            Some((at, train)) => {
                answer.platform_wait_minutes = there_at.map(|there_at| (train.at - there_at) / 60);
                if let Some(change) = &mut answer.change {
                    change.line.clone_from(&train.line);
                    change.set_total(at, now);
                }
                answer.express = Some(train);
            }
            None if !rides.is_empty() => answer.remarks.push(ComparisonRemark::NoCatchableExpress),
            None => {}
        }
        let totals = (answer.stay.total_seconds, answer.change.as_ref().and_then(|change| change.total_seconds));
        answer.recommendation = match totals {
            (Some(stay), Some(change)) if change < stay => Some(Recommendation::Express),
            (None, Some(_)) => Some(Recommendation::Express),
            (Some(_), _) => Some(Recommendation::Local),
            (None, None) => None,
        };
    }

    /// Returns the arrival time at the destination with an express, including the local after it if the express does not
    /// stop there.
    fn arrival_by(
        &self,
        corridor: &Corridor,
        ride: &ExpressRide,
        train: &TrainArrival,
        trains: &impl Fn(&str, &[&str]) -> Vec<TrainArrival>,
    ) -> i64 {
        let off_at = train.at + i64::from(ride.seconds);
        if ride.leave_at == corridor.to {
            return off_at;
        }
        let locals = trains(&ride.leave_at, &[&corridor.local_sign]);
        let next = locals.iter().map(|local| local.at).find(|at| *at >= off_at + BUFFER_SECONDS);
        next.unwrap_or(off_at + BUFFER_SECONDS) + i64::from(ride.rest_seconds)
    }

    fn seconds_to_transfer(&self, corridor: &Corridor, now: Timestamp) -> u32 {
        let ride = self.travel_time(&corridor.from, &corridor.transfer, corridor.local, now);
        ride.map_or(0, |ride| ride.seconds)
    }

    /// Returns the ride of an express line from the transfer to the destination, or to the last common stop before it.
    fn express_ride(&self, corridor: &Corridor, line: &'static str, now: Timestamp) -> Option<ExpressRide> {
        let local = network().ride(corridor.local, &corridor.from, &corridor.to)?;
        let transfer = local.stations.iter().position(|station| station.id == corridor.transfer)?;
        let reachable = local.stations[transfer + 1..].iter().rev().find_map(|station| {
            let ride = self.travel_time(&corridor.transfer, &station.id, line, now)?;
            (ride.way == corridor.way).then(|| (station.id.clone(), ride))
        });
        let (leave_at, ride) = reachable?;
        let rest = self.travel_time(&leave_at, &corridor.to, corridor.local, now);
        let rest_seconds = rest.map_or(0, |rest| rest.seconds);
        Some(ExpressRide { line, leave_at, seconds: ride.seconds, rest_seconds, source: ride.source })
    }
}

impl TripOption {
    fn set_total(&mut self, arrives_at: i64, now: Timestamp) {
        let seconds = arrives_at - now.as_second();
        self.total_seconds = Some(seconds);
        let minutes = (seconds + 30).div_euclid(60);
        self.total_minutes = Some(minutes);
        self.arrives_at = Timestamp::from_second(now.as_second() + minutes * 60).ok().map(crate::arrivals::clock);
    }
}

/// Resolves stations and lines. The local line disambiguates stations with the same name.
fn corridor_of(comparison: &Comparison<'_>) -> Result<(Corridor, [StationMatch; 3]), QueryError> {
    let locals = find_lines(comparison.local_line)?;
    let local_sign = locals[0].name.clone();
    let mut express: Vec<&'static str> = Vec::new();
    let mut express_signs = Vec::new();
    for name in comparison.express_lines.split([',', '/']).map(str::trim).filter(|name| !name.is_empty()) {
        let lines = find_lines(name)?;
        express_signs.push(lines[0].name.clone());
        express.extend(lines.iter().map(|line| line.id.as_str()));
    }
    if express.is_empty() {
        return Err(QueryError::UnknownLine { line: comparison.express_lines.trim().to_owned() });
    }
    let names = [comparison.from_station, comparison.to_station, comparison.transfer_station];
    let [from, to, transfer] = names.map(|name| find(name, &[&local_sign]));
    let found = [from?, to?, transfer?];
    let on_local = |found: &StationMatch| {
        let stop = locals.iter().find_map(|line| found.station_on(&line.id, network())).map(str::to_owned);
        stop.ok_or_else(|| QueryError::NotOnLine {
            lines: vec![local_sign.clone()],
            name: found.view().name,
            choices: vec![found.view()],
        })
    };
    let (from, to, transfer) = (on_local(&found[0])?, on_local(&found[1])?, on_local(&found[2])?);
    if from == to {
        return Err(QueryError::SameStation { station: Box::new(found[0].view()) });
    }
    let ride = locals.iter().find_map(|line| network().ride(&line.id, &from, &to).map(|ride| (line.id.as_str(), ride)));
    let no_route = || QueryError::NoRoute { conditions: String::new(), from: name_of(&from), to: name_of(&to) };
    let (local, ride) = ride.ok_or_else(no_route)?;
    let way = ride.way.to_owned();
    if !ride.stations.iter().any(|station| station.id == transfer) {
        return Err(QueryError::NotOnTheWay { transfer: name_of(&transfer), from: name_of(&from), to: name_of(&to) });
    }
    Ok((Corridor { from, to, transfer, local, local_sign, express, express_signs, way }, found))
}
