//! `threadkeep-bench london`: running times of London's lines compared with their true range, and the time of routes.
//!
//! The last line is JSON: the number of pairs, the number within one minute of the range, and the median time of a route.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;
use threadkeep_transit::PathConditions;
use threadkeep_underground::{CHANGE_SECONDS, LINES, network, ride_time};

use crate::random::Random;

/// Arguments of `threadkeep-bench london`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with a JSON array of rides and the range of their minutes
    #[arg(long)]
    truth: PathBuf,
    /// Number of routes between random stations of the Tube
    #[arg(long, default_value_t = 4000)]
    searches: u32,
}

#[derive(Debug, Deserialize)]
struct TrueRide {
    line: String,
    from_id: String,
    to_id: String,
    minutes_min: f64,
    minutes_max: f64,
}

/// Prints the figures, and each ride that is out of range.
pub(crate) fn run(args: &Args) -> Result<()> {
    let rides: Vec<TrueRide> = serde_json::from_slice(&std::fs::read(&args.truth)?)?;
    let mut within = 0;
    for ride in &rides {
        let minutes = ride_time(&ride.line, &ride.from_id, &ride.to_id).map(|time| f64::from(time.seconds) / 60.0);
        let is_within =
            minutes.is_some_and(|minutes| (ride.minutes_min - 1.0..=ride.minutes_max + 1.0).contains(&minutes));
        within += usize::from(is_within);
        if !is_within {
            println!("{ride:?}: {minutes:?} min");
        }
    }
    let p50 = median(&mut route_times(args.searches));
    println!("{}", json!({ "pairs": rides.len(), "within": within, "p50_us": p50.as_micros() }));
    Ok(())
}

fn route_times(searches: u32) -> Vec<Duration> {
    let is_tube = |line: &String| LINES.iter().any(|known| known.id == line && known.has_timetable);
    let stations = network().stations().iter().filter(|station| station.lines.iter().any(is_tube));
    let ids: Vec<&str> = stations.map(|station| station.id.as_str()).collect();
    let mut random = Random::new(42);
    let mut times = Vec::new();
    for _ in 0..searches {
        let mut station = || ids[random.below(ids.len() as u64) as usize];
        let (from, to) = (station(), station());
        let start = Instant::now();
        let path = network().find_path(&[from], &[to], CHANGE_SECONDS, &PathConditions::default());
        times.push(start.elapsed());
        if path.is_none() {
            println!("no route from {from} to {to}");
        }
    }
    times
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
