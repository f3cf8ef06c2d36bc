//! The text of answers about New York.

mod arrivals;
mod comparison;
mod route;
mod station;

pub(crate) use arrivals::arrivals;
pub(crate) use comparison::comparison;
pub(crate) use route::{route, route_with_arrivals, transfer_timing};
pub(crate) use station::{line_stations, place, station_info, whole_place};
pub(crate) use threadkeep_transit::wording::{capitalised, join_lines, join_with_and, minutes, time_until};

use crate::arrivals::LiveStatus;
use crate::place::Assumption;
use crate::system::SUBWAY;

/// Returns a sentence about missing live times; `None` if all are available.
fn live(status: &LiveStatus) -> Option<String> {
    match status {
        LiveStatus::Available => None,
        LiveStatus::Partial { unavailable } => {
            Some(format!("Live times unavailable for {}.", join_with_and(unavailable)))
        }
        LiveStatus::Unavailable => Some("Live times unavailable: the MTA's feeds have no current data.".to_owned()),
    }
}

fn assumption(assumption: &Assumption) -> String {
    threadkeep_transit::wording::assumption(&SUBWAY, assumption)
}
