//! Flat tables for sequential access by the search.

use crate::timetable::StopTime;
use crate::walks::Footpaths;

/// Trips with the same platforms that do not overtake each other, in order of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    first_stop: u32,
    pub(crate) stop_count: u32,
    first_run: u32,
    pub(crate) run_count: u32,
    first_time: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) station: u32,
    pub(crate) platform: u32,
    pub(crate) may_board: bool,
    pub(crate) may_alight: bool,
}

/// One trip on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) source: RunSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunSource {
    /// A trip of the timetable, and the start of its service day.
    Scheduled { trip: u32, day: u32 },
    /// A run of the realtime changes.
    Live { index: u32 },
}

/// The data of a search.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) sequences: Vec<Sequence>,
    stops: Vec<Stop>,
    runs: Vec<Run>,
    times: Vec<StopTime>,
    /// The sequences through each station, and its position in them.
    calls: Vec<Vec<(u32, u32)>>,
    pub(crate) footpaths: Footpaths,
    pub(crate) live: Vec<crate::realtime::LiveRun>,
    /// The sum of a time and its mirrored time: the latest possible arrival, including a walk after the last train.
    horizon: u32,
    longest_walk: u32,
}

impl Layout {
    pub(crate) fn new(footpaths: Footpaths, live: Vec<crate::realtime::LiveRun>) -> Self {
        let calls = vec![Vec::new(); footpaths.change.len()];
        let (sequences, stops, runs, times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let walks = footpaths.paths.iter().flatten().map(|(_, seconds)| *seconds);
        let longest_walk = walks.chain(footpaths.change.iter().copied()).max().unwrap_or(0);
        Self { sequences, stops, runs, times, calls, footpaths, live, horizon: longest_walk, longest_walk }
    }

    /// Adds a sequence whose runs are in order and do not overtake each other.
    pub(crate) fn push(&mut self, stops: &[Stop], runs: impl IntoIterator<Item = (Run, impl AsRef<[StopTime]>)>) {
        let number = to_u32(self.sequences.len());
        let (first_stop, first_run) = (to_u32(self.stops.len()), to_u32(self.runs.len()));
        let first_time = to_u32(self.times.len());
        for (position, stop) in (0..).zip(stops) {
            self.calls[stop.station as usize].push((number, position));
        }
        self.stops.extend_from_slice(stops);
        for (run, times) in runs {
            self.runs.push(run);
            self.times.extend_from_slice(times.as_ref());
        }
        let (stop_count, run_count) = (to_u32(stops.len()), to_u32(self.runs.len()) - first_run);
        self.sequences.push(Sequence { first_stop, stop_count, first_run, run_count, first_time });
        let latest = self.times[first_time as usize..].iter().map(|time| time.departure).max();
        self.horizon = self.horizon.max(latest.unwrap_or(0) + self.longest_walk);
    }

    pub(crate) fn station_count(&self) -> usize {
        self.calls.len()
    }

    /// Returns the sequences through a station, each with the position of the call.
    pub(crate) fn calls_at(&self, station: u32) -> &[(u32, u32)] {
        &self.calls[station as usize]
    }

    pub(crate) fn stops_of(&self, sequence: u32) -> &[Stop] {
        let Sequence { first_stop, stop_count, .. } = self.sequences[sequence as usize];
        &self.stops[first_stop as usize..(first_stop + stop_count) as usize]
    }

    pub(crate) fn run(&self, sequence: u32, run: u32) -> Run {
        self.runs[(self.sequences[sequence as usize].first_run + run) as usize]
    }

    pub(crate) fn time(&self, sequence: u32, run: u32, position: u32) -> StopTime {
        let Sequence { first_time, stop_count, .. } = self.sequences[sequence as usize];
        self.times[(first_time + run * stop_count + position) as usize]
    }

    /// Returns the first run that departs from a position at or after a time.
    pub(crate) fn first_run_from(&self, sequence: u32, position: u32, at: u32) -> Option<u32> {
        let count = self.sequences[sequence as usize].run_count;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if self.time(sequence, middle, position).departure < at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < count).then_some(low)
    }

    /// Returns the layout with the time axis reversed. A search backward from an arrival is a search forward from a
    /// departure in the mirrored layout.
    pub(crate) fn mirrored(&self) -> Self {
        let mut mirror = Self::new(self.footpaths.reversed(), Vec::new());
        for number in 0..to_u32(self.sequences.len()) {
            let Sequence { stop_count, run_count, .. } = self.sequences[number as usize];
            let reversed = |stop: &Stop| Stop { may_board: stop.may_alight, may_alight: stop.may_board, ..*stop };
            let stops: Vec<Stop> = self.stops_of(number).iter().rev().map(reversed).collect();
            let runs = (0..run_count).rev().map(|run| {
                let times = (0..stop_count).rev().map(|position| {
                    let time = self.time(number, run, position);
                    StopTime { arrival: self.horizon - time.departure, departure: self.horizon - time.arrival }
                });
                (self.run(number, run), times.collect::<Vec<_>>())
            });
            mirror.push(&stops, runs);
        }
        mirror.horizon = self.horizon;
        mirror
    }

    /// Converts a time to a mirrored time, or back. Times after the horizon count as the horizon.
    pub(crate) fn mirror_time(&self, time: u32) -> u32 {
        self.horizon.saturating_sub(time)
    }
}

pub(crate) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("the rows of a feed are bounded far below 2^32")
}
