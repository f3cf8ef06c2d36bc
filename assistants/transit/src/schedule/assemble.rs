//! Groups runs into sequences for the search.

use std::collections::BTreeMap;

use super::layout::{Layout, Run, RunSource, Stop, to_u32};
use crate::realtime::LiveRun;
use crate::timetable::{PatternStop, StopTime, Timetable};
use crate::walks::Footpaths;

/// The runs of a schedule under construction.
pub(super) struct Assembly<'a> {
    timetable: &'a Timetable,
    /// The scheduled runs of each pattern of the timetable.
    scheduled: Vec<Vec<ScheduledRun>>,
    live: BTreeMap<Vec<PatternStop>, Vec<TimedRun>>,
    live_runs: Vec<LiveRun>,
}

type TimedRun = (Run, Vec<StopTime>);

struct ScheduledRun {
    trip: u32,
    day: u32,
    start: u32,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(timetable: &'a Timetable) -> Self {
        let scheduled = timetable.patterns.iter().map(|_| Vec::new()).collect();
        Self { timetable, scheduled, live: BTreeMap::new(), live_runs: Vec::new() }
    }

    /// Adds a trip of the timetable that starts at `start`, on the service day that starts at `day`.
    pub(super) fn add_scheduled(&mut self, trip: u32, day: u32, start: u32) {
        let pattern = self.timetable.profile_of(&self.timetable.trips[trip as usize]).pattern;
        self.scheduled[pattern as usize].push(ScheduledRun { trip, day, start });
    }

    pub(super) fn add_live(&mut self, run: LiveRun, stops: Vec<PatternStop>, times: Vec<StopTime>) {
        let run_number = Run { source: RunSource::Live { index: to_u32(self.live_runs.len()) } };
        self.live.entry(stops).or_default().push((run_number, times));
        self.live_runs.push(run);
    }

    pub(super) fn into_layout(self, footpaths: Footpaths) -> Layout {
        let mut layout = Layout::new(footpaths, self.live_runs);
        let station_of = |platform: u32| self.timetable.platforms[platform as usize].station;
        for (pattern, scheduled) in self.timetable.patterns.iter().zip(self.scheduled) {
            let stops: Vec<Stop> = pattern.stops.iter().map(|stop| stop_at(*stop, station_of)).collect();
            let runs = scheduled.iter().map(|run| times_of(self.timetable, run)).collect();
            let route = |run: &Run| match run.source {
                RunSource::Scheduled { trip, .. } => self.timetable.trips[trip as usize].route,
                RunSource::Live { .. } => u32::MAX,
            };
            push_sequences(&mut layout, &stops, runs, route);
        }
        for (stops, runs) in self.live {
            let stops: Vec<Stop> = stops.into_iter().map(|stop| stop_at(stop, station_of)).collect();
            let routes: Vec<String> = layout.live.iter().map(|run| run.route.clone()).collect();
            let route = |run: &Run| match run.source {
                RunSource::Scheduled { .. } => None,
                RunSource::Live { index } => routes.get(index as usize),
            };
            push_sequences(&mut layout, &stops, runs, route);
        }
        layout
    }
}

fn stop_at(stop: PatternStop, station_of: impl Fn(u32) -> u32) -> Stop {
    let PatternStop { platform, may_board, may_alight } = stop;
    Stop { station: station_of(platform), platform, may_board, may_alight }
}

fn times_of(timetable: &Timetable, run: &ScheduledRun) -> TimedRun {
    let trip = &timetable.trips[run.trip as usize];
    let times = timetable
        .profile_of(trip)
        .times
        .iter()
        .map(|time| StopTime { arrival: run.start + time.arrival, departure: run.start + time.departure });
    (Run { source: RunSource::Scheduled { trip: run.trip, day: run.day } }, times.collect())
}

/// Splits runs with the same stops into sequences of one route without overtaking.
fn push_sequences<R: PartialEq>(
    layout: &mut Layout,
    stops: &[Stop],
    mut runs: Vec<TimedRun>,
    route: impl Fn(&Run) -> R,
) {
    runs.sort_by_key(|(_, times)| times.first().map(|time| (time.departure, time.arrival)));
    let mut sequences: Vec<Vec<TimedRun>> = Vec::new();
    for run in runs {
        let follows = |sequence: &&mut Vec<TimedRun>| {
            let behind = |(last, ahead): &TimedRun| route(last) == route(&run.0) && stays_behind(ahead, &run.1);
            sequence.last().is_none_or(behind)
        };
        match sequences.iter_mut().find(follows) {
            Some(sequence) => sequence.push(run),
            None => sequences.push(vec![run]),
        }
    }
    for sequence in sequences {
        layout.push(stops, sequence);
    }
}

fn stays_behind(ahead: &[StopTime], times: &[StopTime]) -> bool {
    let mut pairs = ahead.iter().zip(times);
    pairs.all(|(ahead, time)| ahead.arrival <= time.arrival && ahead.departure <= time.departure)
}
