//! Reads `stop_times.txt`: checks each trip, and deduplicates trips into patterns and profiles.

use std::collections::HashMap;
use std::hash::Hash;

use super::error::{FeedError, FieldProblem, truncated};
use super::files::Files;
use super::reading::{Index, index};
use super::table::{Column, Row, Table};
use crate::timetable::{Pattern, PatternStop, Profile, StopTime, TripRow};

type DeduplicatedTrips = (Vec<Pattern>, Vec<Profile>, Vec<TripRow>);

/// One call of a trip. A missing time is interpolated between its neighbours.
struct Call {
    trip: u32,
    sequence: u32,
    line: u64,
    stop: PatternStop,
    time: Option<StopTime>,
}

struct Columns {
    trip: Column,
    platform: Column,
    sequence: Column,
    arrival: Column,
    departure: Column,
    pickup: Option<Column>,
    drop_off: Option<Column>,
}

pub(super) fn read(files: &mut Files, trips: Vec<TripRow>, platforms: &Index) -> Result<DeduplicatedTrips, FeedError> {
    let table = Table::open(files, FILE)?;
    let columns = Columns {
        trip: table.column("trip_id")?,
        platform: table.column("stop_id")?,
        sequence: table.column("stop_sequence")?,
        arrival: table.column("arrival_time")?,
        departure: table.column("departure_time")?,
        pickup: table.find_column("pickup_type"),
        drop_off: table.find_column("drop_off_type"),
    };
    let trip_index = index(&trips, |row| &row.id);
    let mut calls = Vec::new();
    table.for_each(|row| {
        calls.push(call_of(row, &columns, &trip_index, platforms)?);
        Ok(())
    })?;
    calls.sort_by_key(|call| (call.trip, call.sequence));
    deduplicate(&calls, trips, &columns)
}

const FILE: &str = "stop_times.txt";

fn call_of(row: &Row, columns: &Columns, trips: &Index, platforms: &Index) -> Result<Call, FeedError> {
    let trip = *trips.get(row.text(columns.trip)).ok_or_else(|| row.unknown(columns.trip))?;
    let platform = *platforms.get(row.text(columns.platform)).ok_or_else(|| row.unknown(columns.platform))?;
    let (arrival, departure) = (row.time(columns.arrival)?, row.time(columns.departure)?);
    let time = match (arrival.or(departure), departure.or(arrival)) {
        (Some(arrival), Some(departure)) if arrival > departure => {
            return Err(row.problem(columns.departure, FieldProblem::BackInTime));
        }
        (Some(arrival), Some(departure)) => Some(StopTime { arrival, departure }),
        _ => None,
    };
    Ok(Call {
        trip,
        sequence: row.required_number(columns.sequence)?,
        line: row.line(),
        stop: PatternStop {
            platform,
            may_board: row.number(columns.pickup)? != Some(1),
            may_alight: row.number(columns.drop_off)? != Some(1),
        },
        time,
    })
}

/// Deduplicates trips into patterns and profiles. Trips without calls are omitted.
fn deduplicate(calls: &[Call], trips: Vec<TripRow>, columns: &Columns) -> Result<DeduplicatedTrips, FeedError> {
    let mut patterns = Interner::default();
    let mut profiles = Interner::default();
    let mut running = Vec::with_capacity(trips.len());
    let mut trips = (0..).zip(trips);
    for calls in calls.chunk_by(|one, next| one.trip == next.trip) {
        let Some((_, mut trip)) = trips.find(|(index, _)| *index == calls[0].trip) else { continue };
        let times = times_of(calls, &trip.id, columns)?;
        let start = times[0].arrival;
        let since_start =
            |time: &StopTime| StopTime { arrival: time.arrival - start, departure: time.departure - start };
        let pattern = patterns.index_of(Pattern { stops: calls.iter().map(|call| call.stop).collect() });
        trip.start = start;
        trip.profile = profiles.index_of(Profile { pattern, times: times.iter().map(since_start).collect() });
        running.push(trip);
    }
    Ok((patterns.distinct, profiles.distinct, running))
}

/// Returns the times of a trip, interpolating missing ones.
fn times_of(calls: &[Call], trip: &str, columns: &Columns) -> Result<Vec<StopTime>, FeedError> {
    let problem_in =
        |column: Column, line, problem| FeedError::Field { file: FILE, line, column: column.name(), problem };
    let problem = |line, problem| problem_in(columns.arrival, line, problem);
    let incomplete = |call: &Call| problem(call.line, FieldProblem::Incomplete { id: truncated(trip) });
    let (first, last) = (&calls[0], &calls[calls.len() - 1]);
    if calls.len() < 2 || first.time.is_none() {
        return Err(incomplete(first));
    }
    let next_times = next_times(calls);
    let mut times: Vec<StopTime> = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        if index > 0 && calls[index - 1].sequence == call.sequence {
            let repeated = FieldProblem::RepeatedSequence { sequence: call.sequence };
            return Err(problem_in(columns.sequence, call.line, repeated));
        }
        let before = times.last().map_or(0, |time| time.departure);
        let time = match call.time {
            Some(time) => time,
            None => {
                let (ahead, next) = next_times[index].ok_or_else(|| incomplete(last))?;
                let interpolated = before + next.arrival.saturating_sub(before) / (ahead + 1);
                StopTime { arrival: interpolated, departure: interpolated }
            }
        };
        if time.arrival < before {
            return Err(problem(call.line, FieldProblem::BackInTime));
        }
        times.push(time);
    }
    Ok(times)
}

/// Returns, for each call, the distance to the next call with a time, and that time. One pass, because most calls may
/// have no time.
fn next_times(calls: &[Call]) -> Vec<Option<(u32, StopTime)>> {
    let mut next = None;
    let mut times: Vec<_> = calls
        .iter()
        .rev()
        .map(|call| {
            let ahead = next;
            next = call.time.map(|time| (1, time)).or(next.map(|(ahead, time)| (ahead + 1, time)));
            ahead
        })
        .collect();
    times.reverse();
    times
}

/// Assigns the same number to equal values.
struct Interner<T> {
    distinct: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { distinct: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn index_of(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.distinct.len()).expect("rows are bounded far below 2^32");
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.distinct.push(value.clone());
            next
        })
    }
}
