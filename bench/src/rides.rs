//! `threadkeep-bench rides`: checks rides without a transfer against known arrival times, and measures how long searches
//! take.
//!
//! The last line is JSON: the number of rides, the number whose arrival time is correct to the second (`equal`), and how
//! long the searches for them took. The lines before it report how long it takes to read a timetable, to read its cache,
//! and to search for journeys with transfers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;
use threadkeep_transit::{Query, Schedule, Time, Timetable, Walks};

use crate::random::Random;

/// Arguments of `threadkeep-bench rides`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GTFS feed, as a zip file
    #[arg(long)]
    gtfs: PathBuf,
    /// File with a JSON array of rides and their correct arrival times
    #[arg(long)]
    truth: PathBuf,
    /// Number of searches with transfers, between random stations at random times
    #[arg(long, default_value_t = 4000)]
    searches: u32,
}

#[derive(Debug, Deserialize)]
struct ReferenceRide {
    service_id: String,
    from_stop: String,
    to_stop: String,
    not_before: String,
    earliest_arrival: Option<ReferenceArrival>,
}

#[derive(Debug, Deserialize)]
struct ReferenceArrival {
    arrives: String,
}

/// Prints the results, and each ride whose arrival time is wrong.
pub(crate) fn run(args: &Args) -> Result<()> {
    let timetable = Arc::new(read_timetable(args)?);
    time_searches(args, &timetable)?;
    let rides: Vec<ReferenceRide> = serde_json::from_slice(&std::fs::read(&args.truth)?)?;
    let mut schedules: HashMap<String, Schedule> = HashMap::new();
    let (mut correct, mut durations) = (0, Vec::new());
    for ride in &rides {
        if !schedules.contains_key(&ride.service_id) {
            let schedule = Schedule::of_service(&timetable, &ride.service_id, &Walks::default());
            let schedule = schedule.with_context(|| format!("the feed has no service {}", ride.service_id))?;
            // The first backward search builds the reversed schedule. Do it here, so that it is not timed.
            schedule.latest_departure(&Query::one_seat(&ride.from_stop, &ride.to_stop), Time(0));
            schedules.insert(ride.service_id.clone(), schedule);
        }
        let schedule = &schedules[&ride.service_id];
        let query = Query::one_seat(&ride.from_stop, &ride.to_stop);
        let not_before = Time(seconds(&ride.not_before)?);
        let start = Instant::now();
        let journey = schedule.earliest_arrival(&query, not_before);
        durations.push(start.elapsed());
        let expected = ride.earliest_arrival.as_ref().map(|arrival| seconds(&arrival.arrives)).transpose()?;
        let found = journey.map(|journey| journey.arrives().0);
        correct += usize::from(found == expected);
        if found != expected {
            println!("{ride:?}: found {found:?}");
        }
    }
    let (p50, p99) = percentiles(&mut durations);
    println!("{}", json!({ "rides": rides.len(), "equal": correct, "p50_us": p50, "p99_us": p99 }));
    Ok(())
}

fn read_timetable(args: &Args) -> Result<Timetable> {
    let bytes = std::fs::read(&args.gtfs).with_context(|| format!("failed to read {}", args.gtfs.display()))?;
    let start = Instant::now();
    let timetable = Timetable::from_zip(bytes)?;
    let cache = timetable.to_cache();
    println!("zip to cache     {:>9.1} ms, {} KB", milliseconds(start), cache.len() / 1024);
    let start = Instant::now();
    let timetable = Timetable::from_cache(&cache)?;
    println!("cache to memory  {:>9.1} ms", milliseconds(start));
    Ok(timetable)
}

/// Times searches as an assistant makes them: on a Wednesday midway through the feed's period, in a schedule that includes
/// the days before and after.
fn time_searches(args: &Args, timetable: &Arc<Timetable>) -> Result<()> {
    let (first, last) = timetable.valid_dates().context("the feed has no dates")?;
    let days = last.since(first)?.get_days();
    let mut date = first.saturating_add(jiff::Span::new().days(days / 2));
    while date.weekday() != jiff::civil::Weekday::Wednesday {
        date = date.saturating_add(jiff::Span::new().days(1));
    }
    let start = Instant::now();
    let schedule = Schedule::around(timetable, date, &TimeZone::UTC, &Walks::default());
    println!("build schedule   {:>9.1} ms ({date})", milliseconds(start));
    let stations: Vec<&str> = timetable.stations().iter().map(|station| station.id.as_str()).collect();
    schedule.latest_departure(&Query::new(stations[0], stations[1]), Time(0));
    let mut random = Random::new(42);
    let (mut times, mut found) = (Vec::new(), 0);
    for _ in 0..args.searches {
        let mut station = || stations[random.below(stations.len() as u64) as usize];
        let (from, to) = (station(), station());
        let at = Time(86_400 + random.below(86_400) as u32);
        let start = Instant::now();
        let journey = schedule.earliest_arrival(&Query::new(from, to), at);
        times.push(start.elapsed());
        found += usize::from(journey.is_some());
    }
    let (p50, p99) = percentiles(&mut times);
    println!("with transfers   p50 {p50} us, p99 {p99} us ({} searches, {found} journeys)", args.searches);
    println!("memory           {}", peak_memory());
    Ok(())
}

fn seconds(clock: &str) -> Result<u32> {
    let parts = clock.split(':').map(str::parse::<u32>).collect::<Result<Vec<_>, _>>()?;
    let [hours, minutes, seconds] = parts[..] else { anyhow::bail!("invalid time: {clock:?}") };
    Ok(hours * 3600 + minutes * 60 + seconds)
}

fn percentiles(times: &mut [Duration]) -> (u128, u128) {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    let micros = |percent| at(percent).map_or(0, Duration::as_micros);
    (micros(50), micros(99))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Returns the peak resident memory of the process, as the kernel reports it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".to_owned(), |peak| format!("{} peak", peak.trim()))
}
