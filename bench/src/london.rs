//! `threadkeep-bench london`: checks running times on London's lines against known ranges, and measures how long it takes to find
//! routes.
//!
//! The last line is JSON: the number of pairs, the number within one minute of the range, and the median time to find a route. With
//! `--messages`, the line before it reports how long contexts and whole turns take in a store of that size, and the memory in use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep_agent::Agent;
use threadkeep_context::ContextPolicy;
use threadkeep_transit::PathConditions;
use threadkeep_underground::{
    CHANGE_SECONDS, LINES, Tfl, TflOptions, Underground, UndergroundAssistant, network, ride_time,
};

use crate::engine::{Engine, draft};
use crate::measure::resident_kib;
use crate::random::Random;
use crate::texts::Language;

/// The length of a stored message's text.
const TEXT_BYTES: usize = 200;
/// The number of messages of each stored thread.
const THREAD_MESSAGES: u64 = 1_000;
/// The number of messages of a context.
const CONTEXT_MESSAGES: usize = 10;
/// The number of contexts that are timed.
const CONTEXTS: usize = 1_000;
/// The number of turns that are timed.
const TURNS: usize = 300;
/// Questions that the built-in network answers. A question for TfL's service would mostly time the network.
const QUESTIONS: [&str; 3] = [
    "which stations are on the Victoria line?",
    "when is the last train from Brixton?",
    "how often do trains run at Oxford Circus?",
];

/// Arguments of `threadkeep-bench london`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with a JSON array of rides, each with the correct range of its minutes
    #[arg(long)]
    truth: PathBuf,
    /// Number of routes between random stations of the Tube
    #[arg(long, default_value_t = 4000)]
    searches: u32,
    /// Also time contexts of 10 messages and whole turns in a store of this many messages
    #[arg(long)]
    messages: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ReferenceRide {
    line: String,
    from_id: String,
    to_id: String,
    minutes_min: f64,
    minutes_max: f64,
}

/// Prints the results, and each ride that is out of range.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let rides: Vec<ReferenceRide> = serde_json::from_slice(&std::fs::read(&args.truth)?)?;
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
    if let Some(messages) = args.messages {
        println!("{}", turn_figures(messages).await?);
    }
    println!("{}", json!({ "pairs": rides.len(), "within": within, "p50_us": p50.as_micros() }));
    Ok(())
}

// S0.50, S0.51, S0.52
/// Times contexts and turns in a store of many messages, and returns the results.
async fn turn_figures(messages: u64) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    let engine = Engine::sqlite(&path)?;
    let pool = Language::new(1).pool(TEXT_BYTES);
    let threads = messages.div_ceil(THREAD_MESSAGES);
    for number in 0..threads {
        engine.seed(&format!("thread {number}"), (0..THREAD_MESSAGES).map(|index| draft(&pool, index))).await?;
    }
    engine.settle().await?;
    let mut random = Random::new(42);
    let policy = ContextPolicy { window: Some(CONTEXT_MESSAGES), ..ContextPolicy::default() };
    let mut contexts = Vec::new();
    for _ in 0..CONTEXTS {
        let thread = engine.thread(&format!("thread {}", random.below(threads))).await?;
        let start = Instant::now();
        engine.memory.context(&engine.scope, thread, None, &policy).await?;
        contexts.push(start.elapsed());
    }
    let underground = Arc::new(Underground::new(Tfl::new(TflOptions::default())));
    let agent = Agent::new(engine.memory.clone(), UndergroundAssistant::new(&engine.memory, underground, None));
    let mut turns = Vec::new();
    for number in 0..TURNS {
        let thread = engine.thread(&format!("turns {}", number / 10)).await?;
        let question = QUESTIONS[number % QUESTIONS.len()];
        let start = Instant::now();
        let turn = agent.chat(&engine.scope, thread, question).await?;
        turns.push(start.elapsed());
        ensure!(turn.error.is_none() && !turn.tool_calls.is_empty(), "{question}: {}", turn.reply);
    }
    Ok(json!({
        "messages": threads * THREAD_MESSAGES,
        "store_bytes": std::fs::metadata(&path)?.len(),
        "context_p50_us": median(&mut contexts).as_micros(),
        "turn_p50_us": median(&mut turns).as_micros(),
        "resident_kib": resident_kib(std::process::id())?.0,
    }))
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
