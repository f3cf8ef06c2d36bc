//! The search over a [`Layout`], forward in time. A backward search is a search of the mirrored layout.

use crate::schedule::Layout;

/// The maximum number of rides in a journey, which bounds the search time.
pub(super) const MAX_RIDES: u32 = 8;
pub(super) const NEVER: u32 = u32::MAX;
const ORIGIN: u32 = u32::MAX;

pub(super) struct Request<'a> {
    pub(super) from: Vec<u32>,
    pub(super) to: Vec<u32>,
    pub(super) max_rides: u32,
    pub(super) may_walk: bool,
    /// Only journeys that arrive before this time are searched.
    pub(super) before: u32,
    /// The usable platforms; `None` for all.
    pub(super) platforms: Option<&'a Vec<bool>>,
    /// Whether each sequence is excluded; empty for none.
    pub(super) blocked: Vec<bool>,
}

/// A journey found by the search, as positions in the layout.
#[derive(Debug)]
pub(super) struct FoundJourney {
    pub(super) steps: Vec<Step>,
    arrival: u32,
    rides: u32,
}

impl FoundJourney {
    pub(super) fn arrival(&self) -> u32 {
        self.arrival
    }

    pub(super) fn changes(&self) -> u32 {
        self.rides - 1
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Ride { sequence: u32, run: u32, board: u32, alight: u32 },
    Walk { from: u32, to: u32, seconds: u32 },
}

/// A step and the index of the previous one, for reconstructing a journey.
struct Trace {
    step: Step,
    previous: u32,
}

/// The earliest time at which a train can be boarded at a station, and the trace that leads there.
#[derive(Clone, Copy)]
struct Ready {
    at: u32,
    trace: u32,
}

/// The state of a search.
struct Search<'a> {
    layout: &'a Layout,
    request: &'a Request<'a>,
    is_target: Vec<bool>,
    /// The result of the previous rounds, which determines where trains can be boarded in this round.
    ready_before: Vec<Ready>,
    ready: Vec<Ready>,
    /// The earliest arrival by train at each station.
    alighted: Vec<u32>,
    traces: Vec<Trace>,
    /// Stations whose `ready` improved in this round.
    improved: Vec<u32>,
    /// Stations reached by train in this round, each with its trace.
    reached: Vec<(u32, u32)>,
    best: u32,
    best_trace: u32,
}

/// Returns a journey for each number of rides that improves the arrival, fewest rides first.
pub(super) fn run(layout: &Layout, request: &Request<'_>, at: u32) -> Vec<FoundJourney> {
    let mut search = Search::new(layout, request);
    let mut found = Vec::new();
    if request.from.iter().any(|station| request.to.contains(station)) {
        return found;
    }
    search.start(at);
    let mut scan_from = vec![NEVER; layout.sequences.len()];
    for rides in 1..=request.max_rides {
        let best_before = search.best;
        search.scan_round(&mut scan_from);
        search.walk_after_rides();
        if search.best < best_before {
            found.push(FoundJourney { steps: search.steps_to(search.best_trace), arrival: search.best, rides });
        }
        if search.improved.is_empty() {
            break;
        }
    }
    found
}

impl<'a> Search<'a> {
    fn new(layout: &'a Layout, request: &'a Request<'a>) -> Self {
        let count = layout.station_count();
        let mut is_target = vec![false; count];
        for station in &request.to {
            is_target[*station as usize] = true;
        }
        let unreached = vec![Ready { at: NEVER, trace: ORIGIN }; count];
        Self {
            layout,
            request,
            is_target,
            ready_before: unreached.clone(),
            ready: unreached,
            alighted: vec![NEVER; count],
            traces: Vec::new(),
            improved: Vec::new(),
            reached: Vec::new(),
            best: request.before,
            best_trace: ORIGIN,
        }
    }

    fn start(&mut self, at: u32) {
        for station in &self.request.from {
            self.ready[*station as usize] = Ready { at, trace: ORIGIN };
            self.improved.push(*station);
        }
        if self.request.may_walk {
            for station in &self.request.from {
                self.walk_from(*station, at, ORIGIN, false);
            }
        }
    }

    /// Adds one ride: scans every sequence through a station where boarding became possible earlier in the last round.
    fn scan_round(&mut self, scan_from: &mut [u32]) {
        let mut sequences = Vec::new();
        for station in std::mem::take(&mut self.improved) {
            self.ready_before[station as usize] = self.ready[station as usize];
            for (sequence, position) in self.layout.calls_at(station) {
                if self.request.blocked.get(*sequence as usize) == Some(&true) {
                    continue;
                }
                let from = &mut scan_from[*sequence as usize];
                if *from == NEVER {
                    sequences.push(*sequence);
                }
                *from = (*from).min(*position);
            }
        }
        for sequence in sequences {
            let from = std::mem::replace(&mut scan_from[sequence as usize], NEVER);
            self.scan(sequence, from);
        }
    }

    fn scan(&mut self, sequence: u32, from: u32) {
        let layout = self.layout;
        let mut riding: Option<(u32, u32)> = None;
        for (position, stop) in (from..).zip(&layout.stops_of(sequence)[from as usize..]) {
            let is_usable = self.request.platforms.is_none_or(|usable| usable[stop.platform as usize]);
            if let Some((run, board)) = riding
                && stop.may_alight
                && is_usable
            {
                let arrival = layout.time(sequence, run, position).arrival;
                self.alight(stop.station, arrival, Step::Ride { sequence, run, board, alight: position });
            }
            let ready = self.ready_before[stop.station as usize].at;
            if ready == NEVER || !stop.may_board || !is_usable {
                continue;
            }
            let could_be_earlier =
                riding.is_none_or(|(run, _)| run > 0 && ready <= layout.time(sequence, run - 1, position).departure);
            if could_be_earlier && let Some(run) = layout.first_run_from(sequence, position, ready) {
                riding = Some((run, position));
            }
        }
    }

    fn alight(&mut self, station: u32, arrival: u32, step: Step) {
        let Step::Ride { sequence, board, .. } = step else { return };
        if arrival >= self.alighted[station as usize] || arrival >= self.best {
            return;
        }
        self.alighted[station as usize] = arrival;
        let boarded_at = self.layout.stops_of(sequence)[board as usize].station;
        let trace = self.trace(step, self.ready_before[boarded_at as usize].trace);
        self.arrive(station, arrival, trace);
        self.reached.push((station, trace));
        let change = self.layout.footpaths.change[station as usize];
        self.improve_ready(station, arrival + change, trace);
    }

    /// Walks from every station reached by train in this round.
    fn walk_after_rides(&mut self) {
        let reached = std::mem::take(&mut self.reached);
        if !self.request.may_walk {
            return;
        }
        for (station, trace) in reached {
            let Step::Ride { sequence, run, alight, .. } = self.traces[trace as usize].step else { continue };
            let arrival = self.layout.time(sequence, run, alight).arrival;
            if arrival == self.alighted[station as usize] {
                self.walk_from(station, arrival, trace, true);
            }
        }
    }

    fn walk_from(&mut self, from: u32, at: u32, previous: u32, may_end: bool) {
        let layout = self.layout;
        for (to, seconds) in &layout.footpaths.paths[from as usize] {
            let arrival = at + seconds;
            let ends_here = may_end && self.is_target[*to as usize] && arrival < self.best;
            if arrival < self.ready[*to as usize].at && arrival < self.best || ends_here {
                let trace = self.trace(Step::Walk { from, to: *to, seconds: *seconds }, previous);
                self.improve_ready(*to, arrival, trace);
                if may_end {
                    self.arrive(*to, arrival, trace);
                }
            }
        }
    }

    fn arrive(&mut self, station: u32, arrival: u32, trace: u32) {
        if self.is_target[station as usize] && arrival < self.best {
            (self.best, self.best_trace) = (arrival, trace);
        }
    }

    fn improve_ready(&mut self, station: u32, at: u32, trace: u32) {
        let ready = &mut self.ready[station as usize];
        if at < ready.at {
            *ready = Ready { at, trace };
            self.improved.push(station);
        }
    }

    fn trace(&mut self, step: Step, previous: u32) -> u32 {
        self.traces.push(Trace { step, previous });
        u32::try_from(self.traces.len() - 1).expect("a search makes far fewer traces than 2^32")
    }

    fn steps_to(&self, trace: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = trace;
        while let Some(trace) = self.traces.get(at as usize) {
            steps.push(trace.step);
            at = trace.previous;
        }
        steps.reverse();
        steps
    }
}
