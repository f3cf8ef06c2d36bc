//! `get_transfer_timing`: the connecting train at a change, and the wait for it.

use jiff::Timestamp;
use serde::Serialize;

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, status_of};
use crate::place::QueryError;
use crate::route::{RideLeg, RouteAnswer, RouteLeg, lines_making, rides};
use crate::subway::Subway;
use crate::system::network;

/// The minimum time to change trains.
const BUFFER_SECONDS: i64 = 60;

/// The answer of `get_transfer_timing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransferTiming {
    /// The route.
    pub route: RouteAnswer,
    /// The station of the first change; `None` if no change is needed.
    pub transfer_at: Option<String>,
    /// The train to take at the origin.
    pub first_train: Option<TrainArrival>,
    /// Minutes from now to the arrival at the change, rounded down.
    pub arrives_in_minutes: Option<i64>,
    /// The connecting train.
    pub connection: Option<TrainArrival>,
    /// Minutes from the arrival to the departure of the connecting train, including the walk, rounded down.
    pub wait_minutes: Option<i64>,
    /// The time of arrival in New York, such as `13:18`, if the connecting train is known and is the last train of the trip.
    pub arrives_at: Option<String>,
    /// For which lines live times are available.
    pub live: LiveStatus,
}

impl Subway {
    /// `get_transfer_timing(from, to)`: the arrival at the first change of the best route, the connecting train, and the wait
    /// for it.
    ///
    /// # Errors
    /// Those of [`Subway::get_route`].
    pub async fn get_transfer_timing(
        &self,
        from: &str,
        to: &str,
        now: Timestamp,
    ) -> Result<TransferTiming, QueryError> {
        let route = self.get_route(from, to, now)?;
        let (first, second) = (rides(&route).next().cloned(), rides(&route).nth(1).cloned());
        let first_line = first.iter().map(|leg| leg.line.as_str());
        let lines: Vec<&str> = first_line.chain(second.iter().flat_map(lines_making)).collect();
        let mut routes: Vec<&str> =
            lines.iter().flat_map(|line| network().lines_named(line)).map(|line| line.id.as_str()).collect();
        routes.sort_unstable();
        routes.dedup();
        let snapshot = self.live.snapshot(&routes, now).await;
        let live = status_of(&snapshot, &routes);
        let walk = walk_before_second_ride(&route);
        let mut timing = TransferTiming {
            transfer_at: second.as_ref().and(first.as_ref()).map(|leg| leg.to.clone()),
            route,
            first_train: None,
            arrives_in_minutes: None,
            connection: None,
            wait_minutes: None,
            arrives_at: None,
            live,
        };
        let (Some(first), Some(second)) = (first, second) else { return Ok(timing) };
        let next = |leg: &RideLeg, lines: &[&str], earliest: i64| {
            let trains = arrivals_in(&snapshot, &[&leg.from_stop], lines, now);
            trains.into_iter().find(|train| train.direction == leg.direction && train.at >= earliest)
        };
        timing.first_train = next(&first, &[&first.line], now.as_second());
        if let Some(train) = &timing.first_train {
            let arrives_at = train.at + i64::from(first.seconds);
            timing.arrives_in_minutes = Some((arrives_at - now.as_second()) / 60);
            timing.connection = next(&second, &lines_making(&second), arrives_at + walk.max(BUFFER_SECONDS));
            let is_last = rides(&timing.route).count() == 2;
            let last = timing.connection.as_ref().filter(|_| is_last).map(|train| train.at + i64::from(second.seconds));
            timing.arrives_at = last.and_then(|at| Timestamp::from_second(at).ok()).map(crate::arrivals::clock);
            timing.wait_minutes = timing.connection.as_ref().map(|train| (train.at - arrives_at) / 60);
        }
        Ok(timing)
    }
}

fn walk_before_second_ride(route: &RouteAnswer) -> i64 {
    let is_ride = |leg: &&RouteLeg| matches!(leg, RouteLeg::Ride(_));
    let after_first = route.legs.iter().skip_while(|leg| !is_ride(leg)).skip(1);
    let walks = after_first.take_while(|leg| !is_ride(leg)).map(|leg| match leg {
        RouteLeg::Walk { seconds, .. } => i64::from(*seconds),
        RouteLeg::Ride(_) => 0,
    });
    walks.sum()
}
