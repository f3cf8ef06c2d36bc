//! `get_transfer_timing`: whether the connection at the change is caught, and how long one waits for it.

use jiff::Timestamp;
use serde::Serialize;

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, status_of};
use crate::place::Trouble;
use crate::route::{RideLeg, RouteAnswer, RouteLeg, lines_making, rides};
use crate::subway::Subway;
use crate::system::network;

/// How long one needs at least from train to train.
const BUFFER_SECONDS: i64 = 60;

/// The answer of `get_transfer_timing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransferTiming {
    /// The route that is meant.
    pub route: RouteAnswer,
    /// Where the first change is; `None` where no change is needed.
    pub transfer_at: Option<String>,
    /// The train to take at the origin.
    pub first_train: Option<TrainArrival>,
    /// Minutes from now to the arrival at the change, rounded down.
    pub arrives_in_minutes: Option<i64>,
    /// The connection.
    pub connection: Option<TrainArrival>,
    /// Minutes from the arrival to the connection's departure, the walk included, rounded down.
    pub wait_minutes: Option<i64>,
    /// Whether live times could be had.
    pub live: LiveStatus,
}

impl Subway {
    /// `get_transfer_timing(from, to)`: when one arrives at the first change of the best route, which train goes on from
    /// there, and how long one waits.
    ///
    /// # Errors
    /// As [`Subway::get_route`].
    pub async fn get_transfer_timing(&self, from: &str, to: &str, now: Timestamp) -> Result<TransferTiming, Trouble> {
        let route = self.get_route(from, to, now)?;
        let (first, second) = (rides(&route).next().cloned(), rides(&route).nth(1).cloned());
        let first_line = first.iter().map(|leg| leg.line.as_str());
        let lines: Vec<&str> = first_line.chain(second.iter().flat_map(lines_making)).collect();
        let mut routes: Vec<&str> =
            lines.iter().flat_map(|line| network().lines_named(line)).map(|line| line.id.as_str()).collect();
        routes.sort_unstable();
        routes.dedup();
        let picture = self.live.picture(&routes, now).await;
        let live = status_of(&picture, &routes);
        let walk = walk_before_second_ride(&route);
        let mut timing = TransferTiming {
            transfer_at: second.as_ref().and(first.as_ref()).map(|leg| leg.to.clone()),
            route,
            first_train: None,
            arrives_in_minutes: None,
            connection: None,
            wait_minutes: None,
            live,
        };
        let (Some(first), Some(second)) = (first, second) else { return Ok(timing) };
        let next = |leg: &RideLeg, lines: &[&str], from: i64| {
            let trains = arrivals_in(&picture, &[&leg.from_stop], lines, now);
            trains.into_iter().find(|train| train.direction == leg.direction && train.at >= from)
        };
        timing.first_train = next(&first, &[&first.line], now.as_second());
        if let Some(train) = &timing.first_train {
            let there_at = train.at + i64::from(first.seconds);
            timing.arrives_in_minutes = Some((there_at - now.as_second()) / 60);
            timing.connection = next(&second, &lines_making(&second), there_at + walk.max(BUFFER_SECONDS));
            timing.wait_minutes = timing.connection.as_ref().map(|train| (train.at - there_at) / 60);
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
