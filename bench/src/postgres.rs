//! The workloads on PostgreSQL, compared with a baseline (floor) of handwritten SQL with the same pipelining and
//! row-level security.
//!
//! Each trial runs the floor right before the engine, on the same server. Ratios are computed for each trial.

pub(crate) mod events;
mod floor;
pub(crate) mod kill;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use comfy_table::{Table, presets};
use threadkeep_core::{MetadataFilter, Scope, SearchQuery, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, Memory};
use threadkeep_store_postgres::PostgresStore;

use crate::measure::{Spread, median};
use crate::texts::Language;
use floor::Floor;

/// Number of writers while events are timed.
const EVENT_WRITERS: u32 = 10;

/// Arguments of `threadkeep-bench postgres`.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Args {
    /// URL of an empty database; its role must be able to create schemas and roles
    url: String,
    /// Number of trials of each workload
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Seconds of each trial
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Number of messages in the thread that is read and searched
    #[arg(long, default_value_t = 100_000)]
    messages: usize,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let url = format!("{}?pool_size=64&background=off", args.url);
    let memory = Memory::new(PostgresStore::open(&url).await?.backend());
    let other_instance = Memory::new(PostgresStore::open(&url).await?.backend());
    let floor = Floor::open(&args.url).await?;
    let texts = Language::new(1).pool(490);
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["workload", "floor", "engine", "ratio (median, min, max)"]);
    for writers in [1, 64] {
        let trials = measure_trials(args, async || {
            let floor_rate =
                turns_per_second(args, writers, async |writer, until| floor.turns(writer, until, &texts).await).await?;
            let engine_rate =
                turns_per_second(args, writers, async |_, until| engine_turns(&memory, until, &texts).await).await?;
            Ok((floor_rate, engine_rate))
        });
        add_row(&mut table, &format!("turns per second, {writers} writers"), &trials.await?)?;
    }
    for (instance, subscriber) in [("the same instance", &memory), ("another instance", &other_instance)] {
        let trials = measure_trials(args, async || {
            let floor_rate =
                turns_per_second(args, 64, async |writer, until| floor.turns(writer, until, &texts).await).await?;
            let write = async |_, until| events::turns_with_subscriber(&memory, subscriber, until, &texts).await;
            Ok((floor_rate, turns_per_second(args, 64, write).await?))
        });
        add_row(&mut table, &format!("turns per second, 64 writers, subscribers on {instance}"), &trials.await?)?;
    }
    let short = SeededThread::seed(&memory, &floor, "short", 16, &texts).await?;
    let thread_of_1000 = SeededThread::seed(&memory, &floor, "few", 1_000.min(args.messages), &texts).await?;
    let long = SeededThread::seed(&memory, &floor, "long", args.messages, &texts).await?;
    floor.analyse().await?;
    for (thread, messages) in [(&short, 16), (&long, args.messages)] {
        let owner = &thread.owner;
        let reads = measure_trials(args, async || {
            Ok((floor.newest(owner, args.seconds).await?, thread.newest(args.seconds).await?))
        });
        add_row(&mut table, &format!("newest 16 of {messages}: p50, µs"), &reads.await?)?;
    }
    for (thread, user) in [(&thread_of_1000, "a user who owns 1,000"), (&long, "a user who owns all")] {
        let owner = &thread.owner;
        let searches = measure_trials(args, async || {
            Ok((floor.search(owner, args.seconds).await?, thread.search(args.seconds).await?))
        });
        add_row(&mut table, &format!("search by {user} of {} messages: p50, µs", args.messages), &searches.await?)?;
    }
    println!("{table}");
    let events = events::measure(&memory, &other_instance, args.seconds.max(5), EVENT_WRITERS).await?;
    println!("{events}");
    Ok(())
}

async fn measure_trials(args: &Args, trial: impl AsyncFn() -> Result<(f64, f64)>) -> Result<Vec<(f64, f64)>> {
    let mut figures = Vec::with_capacity(args.trials);
    for _ in 0..args.trials {
        figures.push(trial().await?);
    }
    Ok(figures)
}

fn add_row(table: &mut Table, workload: &str, trials: &[(f64, f64)]) -> Result<()> {
    let spread = |figure: fn(&(f64, f64)) -> f64| {
        Spread::of(trials.iter().map(figure)).context("no trials were run: --trials must be at least 1")
    };
    let (floor, engine) = (spread(|trial| trial.0)?, spread(|trial| trial.1)?);
    let ratio = spread(|trial| trial.1 / trial.0)?;
    table.add_row([
        workload.to_owned(),
        format!("{:.0}", floor.median),
        format!("{:.0}", engine.median),
        format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max),
    ]);
    Ok(())
}

/// Returns the turns per second of concurrent writers, each of which writes to its own conversation thread.
async fn turns_per_second(
    args: &Args,
    writers: usize,
    write: impl AsyncFn(usize, Instant) -> Result<usize>,
) -> Result<f64> {
    let began = Instant::now();
    let until = began + Duration::from_secs(args.seconds);
    let done = futures::future::try_join_all((0..writers).map(|writer| write(writer, until))).await?;
    Ok(done.into_iter().sum::<usize>() as f64 / began.elapsed().as_secs_f64())
}

async fn engine_turns(memory: &Memory, until: Instant, texts: &[String]) -> Result<usize> {
    let scope = Scope::user("acme", "ana")?;
    let thread = memory.open(&scope).await?.thread.id;
    let mut done = 0;
    while Instant::now() < until {
        let turn = vec![Draft::user(&texts[done % texts.len()]), Draft::assistant(&texts[(done + 1) % texts.len()])];
        memory.append_all(&scope, thread, turn, &AppendOptions::default()).await?;
        done += 1;
    }
    Ok(done)
}

/// A thread of seeded messages; one in a thousand contains a rare word.
struct SeededThread<'a> {
    memory: &'a Memory,
    owner: String,
    scope: Scope,
    thread: ThreadId,
}

impl<'a> SeededThread<'a> {
    async fn seed(memory: &'a Memory, floor: &Floor, owner: &str, messages: usize, texts: &[String]) -> Result<Self> {
        let scope = Scope::user("acme", owner)?;
        let thread = memory.open(&scope).await?.thread.id;
        for first in (0..messages).step_by(1_000) {
            let texts = (first..messages.min(first + 1_000)).map(|number| {
                let rare = if number % 1_000 == 7 { " walrus" } else { "" };
                format!("{}{rare}", texts[number % texts.len()])
            });
            let texts: Vec<String> = texts.collect();
            floor.seed(owner, &texts).await?;
            let drafts = texts.iter().map(Draft::user).collect();
            memory.append_all(&scope, thread, drafts, &AppendOptions::default()).await?;
        }
        while !memory.backend().search.catch_up(10_000).await?.done {}
        Ok(Self { memory, owner: owner.to_owned(), scope, thread })
    }

    async fn newest(&self, seconds: u64) -> Result<f64> {
        median_latency(seconds, async || {
            let count = self.memory.newest(&self.scope, self.thread, 16).await?.len();
            anyhow::ensure!(count == 16, "expected 16 messages, got {count}");
            Ok(())
        })
        .await
    }

    async fn search(&self, seconds: u64) -> Result<f64> {
        let query = SearchQuery {
            collection: threadkeep_core::Collection::Messages,
            terms: vec!["walrus".to_owned()],
            alternatives: Vec::new(),
            vector: None,
            filters: Vec::new(),
            metadata: MetadataFilter::default(),
            thread: None,
            limit: 100,
            reads_messages: false,
        };
        let now = threadkeep_core::Timestamp::MAX;
        median_latency(seconds, async || {
            let answer = self.memory.backend().search.search(&self.scope, &query, now).await?;
            anyhow::ensure!(!answer.hits.is_empty(), "the search for a rare word found nothing");
            Ok(())
        })
        .await
    }
}

/// Returns the median latency in microseconds.
async fn median_latency(seconds: u64, call: impl AsyncFn() -> Result<()>) -> Result<f64> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut latencies = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        call().await?;
        latencies.push(began.elapsed().as_secs_f64() * 1e6);
    }
    median(&latencies)
}
