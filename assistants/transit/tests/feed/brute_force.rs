//! Compares the search with a brute-force search.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use threadkeep_transit::{Query, Schedule, Time, Timetable, Walks};

use crate::feeds::Files;

const STATIONS: usize = 6;
const CHANGE_SECONDS: u32 = 60;

/// A trip: its stations with the minutes since the previous one, and the start minute.
type RandomTrip = (Vec<(usize, u32)>, u32);

#[derive(Debug, Clone)]
struct RandomNetwork {
    trips: Vec<RandomTrip>,
    /// From, to, minutes.
    walks: Vec<(usize, usize, u32)>,
}

fn networks() -> impl Strategy<Value = RandomNetwork> {
    let call = (0..STATIONS, 0_u32..15);
    let trip = (prop::collection::vec(call, 2..6), 0_u32..120);
    let walk = (0..STATIONS, 0..STATIONS, 1_u32..8);
    (prop::collection::vec(trip, 1..14), prop::collection::vec(walk, 0..4))
        .prop_map(|(trips, walks)| RandomNetwork { trips, walks })
}

fn timetable(network: &RandomNetwork) -> Arc<Timetable> {
    let mut stops = "stop_id,stop_name\n".to_owned();
    for station in 0..STATIONS {
        stops += &format!("S{station},S\n");
    }
    let mut trips = "route_id,service_id,trip_id\n".to_owned();
    let mut times = "trip_id,stop_id,stop_sequence,arrival_time,departure_time\n".to_owned();
    for (number, (calls, start)) in network.trips.iter().enumerate() {
        trips += &format!("1,W,{number}\n");
        let mut at = *start;
        for (sequence, (station, minutes)) in calls.iter().enumerate() {
            at += minutes;
            times += &format!("{number},S{station},{sequence},{0}:{1:02}:00,{0}:{1:02}:00\n", at / 60, at % 60);
        }
    }
    let mut transfers = "from_stop_id,to_stop_id,transfer_type,min_transfer_time\n".to_owned();
    for (from, to, minutes) in network.walks.iter().filter(|(from, to, _)| from != to) {
        transfers += &format!("S{from},S{to},2,{}\n", minutes * 60);
    }
    let feed = Files::crossing().with("stops.txt", &stops).with("trips.txt", &trips);
    let feed = feed.with("stop_times.txt", &times).with("transfers.txt", &transfers);
    Arc::new(feed.read().unwrap())
}

/// Returns the earliest arrival at a station after at most `rides` rides, either on a train or on foot from the last one's stop.
fn brute_force_arrival(network: &RandomNetwork, from: usize, to: usize, at: u32, rides: u32) -> Option<u32> {
    let mut walks: HashMap<(usize, usize), u32> = HashMap::new();
    for (from, to, minutes) in &network.walks {
        let known = walks.entry((*from, *to)).or_insert(u32::MAX);
        *known = (minutes * 60).min(*known);
    }
    for middle in 0..STATIONS {
        for from in 0..STATIONS {
            for to in 0..STATIONS {
                if let (Some(one), Some(other)) = (walks.get(&(from, middle)), walks.get(&(middle, to))) {
                    let both = one + other;
                    let known = walks.entry((from, to)).or_insert(u32::MAX);
                    *known = both.min(*known);
                }
            }
        }
    }
    let paths: Vec<(usize, usize, u32)> = walks
        .into_iter()
        .filter(|((from, to), _)| from != to)
        .map(|((from, to), seconds)| (from, to, seconds))
        .collect();
    let mut ready = [u32::MAX; STATIONS];
    ready[from] = at;
    for (_, to, seconds) in paths.iter().filter(|(start, ..)| *start == from) {
        ready[*to] = ready[*to].min(at + seconds);
    }
    let mut best = u32::MAX;
    for _ in 0..rides {
        let mut alighted = [u32::MAX; STATIONS];
        for (calls, start) in &network.trips {
            let mut time = *start;
            let mut is_on_board = false;
            for (station, minutes) in calls {
                time += minutes;
                if is_on_board {
                    alighted[*station] = alighted[*station].min(time * 60);
                }
                is_on_board |= ready[*station] <= time * 60;
            }
        }
        for station in 0..STATIONS {
            if alighted[station] == u32::MAX {
                continue;
            }
            best = if station == to { best.min(alighted[station]) } else { best };
            ready[station] = ready[station].min(alighted[station] + CHANGE_SECONDS);
            for (_, next, seconds) in paths.iter().filter(|(start, ..)| *start == station) {
                best = if *next == to { best.min(alighted[station] + seconds) } else { best };
                ready[*next] = ready[*next].min(alighted[station] + seconds);
            }
        }
    }
    (best < u32::MAX).then_some(best)
}

proptest! {
    #[test]
    fn searches_agree_with_brute_force(network in networks(), from in 0..STATIONS, step in 1..STATIONS, at in 0_u32..100, changes in 0_u32..4) {
        let to = (from + step) % STATIONS;
        let walks = Walks { change_seconds: CHANGE_SECONDS, ..Walks::default() };
        let schedule = Schedule::of_service(&timetable(&network), "W", &walks).unwrap();
        let (from_id, to_id) = (format!("S{from}"), format!("S{to}"));
        let query = Query { max_changes: changes, ..Query::new(&from_id, &to_id) };
        let journey = schedule.earliest_arrival(&query, Time(at * 60));
        let expected = brute_force_arrival(&network, from, to, at * 60, changes + 1);
        prop_assert_eq!(journey.as_ref().map(|journey| journey.arrives().0), expected);
        if let Some(journey) = journey {
            prop_assert!(journey.departs().0 >= at * 60);
            // Departing one second after the latest departure results in a later arrival.
            let latest = schedule.latest_departure(&query, journey.arrives()).unwrap();
            prop_assert!(latest.departs() >= journey.departs() && latest.arrives() <= journey.arrives());
            let later = brute_force_arrival(&network, from, to, latest.departs().0 + 1, changes + 1);
            prop_assert!(later.is_none_or(|later| later > journey.arrives().0));
        }
    }
}
