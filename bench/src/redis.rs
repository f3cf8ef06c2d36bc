//! The workloads on Redis, compared with a baseline (floor) of handwritten commands that write and read the same data.
//!
//! Each trial runs the floor right before the engine, on the same server. Ratios are computed for each trial. All workloads use one node, except
//! `scaling`, which starts a node and a cluster of its own. The last line is JSON.

mod floor;
mod node;
mod scaling;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use comfy_table::{Table, presets};
use futures::future::try_join_all;
use serde_json::{Value, json};
use threadkeep_core::{Scope, ThreadId, ThreadOrder, ThreadQuery};
use threadkeep_memory::{AppendOptions, Draft, Memory};
use threadkeep_redis_server::Server;
use threadkeep_store_redis::RedisStore;
use uuid::Uuid;

use crate::measure::{Spread, median};
use crate::postgres::events;
use crate::random::Random;
use crate::texts::Language;
use floor::{Floor, Lists};
use node::Node;

/// Number of writers, each with 50 turns per second, while event latency is measured.
const EVENT_WRITERS: u32 = 20;
/// Number of threads across which turns are scattered.
const SCATTERED: usize = 10_000;

/// Arguments of `threadkeep-bench redis`.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Args {
    /// URL of an empty server, `redis://HOST:PORT`; without it, a server is started
    url: Option<String>,
    /// Number of trials of each workload
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Seconds of each trial
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Number of messages in the longest thread that is read
    #[arg(long, default_value_t = 1_000_000)]
    messages: usize,
    /// Number of threads of the scaling workload
    #[arg(long, default_value_t = 100_000)]
    threads: usize,
    /// Number of operations of the scaling workload
    #[arg(long, default_value_t = 100_000)]
    operations: usize,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let (url, _server) = match &args.url {
        Some(url) => (url.clone(), None),
        None => {
            let server = Server::start(&[]).context("Redis is skipped")?;
            (format!("redis://{}", server.address()), Some(server))
        }
    };
    let texts = Language::new(1).pool(200);
    let memory = Memory::new(RedisStore::open(&format!("{url}?background=off")).await?.backend());
    let mut workloads = Workloads { args, node: Node::connect(&url).await?, memory, texts, rows: Vec::new() };
    let floor = workloads.floor(&url).await?;
    for writers in [1, 64] {
        workloads.turns(&floor, writers, Lists::Written).await?;
        workloads.turns(&floor, writers, Lists::Omitted).await?;
    }
    workloads.scattered_turns(&floor).await?;
    let size = workloads.size().await?;
    for messages in [16, 1_000, 100_000, 1_000_000] {
        if messages <= args.messages {
            workloads.newest(&floor, messages).await?;
        }
    }
    let here = Memory::new(RedisStore::open(&url).await?.backend());
    let elsewhere = Memory::new(RedisStore::open(&url).await?.backend());
    let events = events::measure(&here, &elsewhere, args.seconds.max(5), EVENT_WRITERS).await?;
    println!("{}", workloads.table()?);
    println!("{events}");
    let rows = workloads.rows.iter().map(Row::to_json).collect::<Result<Vec<_>>>()?;
    drop((workloads, here, elsewhere));
    let scaling = scaling::run(args.threads, args.operations).await?;
    let events = json!({
        "turns_per_second": events.turns_per_second, "p50_ms": events.at(0.5), "p99_ms": events.at(0.99), "max_ms": events.at(1.0),
    });
    println!("{}", json!({"workloads": rows, "events": events, "size": size, "scaling": scaling}));
    Ok(())
}

/// A workload, with the results of floor and engine for each trial.
struct Row {
    name: String,
    trials: Vec<(f64, f64)>,
}

impl Row {
    fn spreads(&self) -> Result<[Spread; 3]> {
        let spread =
            |figure: fn(&(f64, f64)) -> f64| Spread::of(self.trials.iter().map(figure)).context("no trials were run");
        Ok([spread(|trial| trial.0)?, spread(|trial| trial.1)?, spread(|trial| trial.1 / trial.0)?])
    }

    fn to_json(&self) -> Result<Value> {
        let [floor, engine, ratio] = self.spreads()?;
        Ok(json!({"workload": self.name, "floor": floor, "engine": engine, "ratio": ratio}))
    }
}

struct Workloads<'a> {
    args: &'a Args,
    node: Node,
    memory: Memory,
    texts: Vec<String>,
    rows: Vec<Row>,
}

impl Workloads<'_> {
    /// Opens the floor, which writes the same bytes as a turn of the engine.
    async fn floor(&mut self, url: &str) -> Result<Floor> {
        let scope = Scope::user("acme", "ana")?;
        let thread = self.memory.open(&scope).await?.thread.id;
        self.append(&scope, thread, 0).await?;
        // Brings the lists up to date.
        self.memory.list_threads(&scope, &ThreadQuery::new(ThreadOrder::Recent, 1)).await?;
        Floor::open(url, &format!("threadkeep:{{{thread}/acme}}"), ("threadkeep:{tenant/acme}", thread)).await
    }

    async fn append(&self, scope: &Scope, thread: ThreadId, number: usize) -> Result<()> {
        append_turn(&self.memory, scope, thread, &self.texts, number).await
    }

    async fn trials(&mut self, name: String, trial: impl AsyncFn(&Self) -> Result<(f64, f64)>) -> Result<()> {
        let mut trials = Vec::with_capacity(self.args.trials);
        for _ in 0..self.args.trials {
            trials.push(trial(self).await?);
        }
        eprintln!("{name}: {trials:.0?}");
        self.rows.push(Row { name, trials });
        Ok(())
    }

    /// Measures turns of concurrent writers, each with its own thread.
    async fn turns(&mut self, floor: &Floor, writers: usize, lists: Lists) -> Result<()> {
        let of_floor = if lists == Lists::Written { "" } else { "; floor without lists" };
        self.trials(format!("turns per second, {writers} writers{of_floor}"), async |this| {
            let by_floor = this.per_second(writers, async |until| floor.turns(until, lists).await).await?;
            let by_engine = this.per_second(writers, async |until| this.engine_turns(until).await).await?;
            Ok((by_floor, by_engine))
        })
        .await
    }

    /// Measures turns of concurrent writers on random threads.
    async fn scattered_turns(&mut self, floor: &Floor) -> Result<()> {
        let scope = Scope::user("acme", "bea")?;
        let count = SCATTERED.min(self.args.threads);
        let threads = open_threads(&self.memory, &vec![scope.clone(); count]).await?;
        self.trials(format!("turns per second, 64 writers on {count} threads"), async |this| {
            let by_floor = this.per_second(64, async |until| floor.scattered_turns(until, count).await).await?;
            let by_engine = this.per_second(64, async |until| {
                let (mut random, mut done) = (Random::new(crate::random::fresh_seed()), 0);
                while Instant::now() < until {
                    this.append(&scope, threads[random.index(threads.len())], done).await?;
                    done += 1;
                }
                Ok(done)
            });
            Ok((by_floor, by_engine.await?))
        })
        .await
    }

    /// Returns the number of turns per second that concurrent writers complete.
    async fn per_second(&self, writers: usize, write: impl AsyncFn(Instant) -> Result<usize>) -> Result<f64> {
        let began = Instant::now();
        let until = began + Duration::from_secs(self.args.seconds);
        let done = try_join_all((0..writers).map(|_| write(until))).await?;
        Ok(done.into_iter().sum::<usize>() as f64 / began.elapsed().as_secs_f64())
    }

    async fn engine_turns(&self, until: Instant) -> Result<usize> {
        let scope = Scope::user("acme", Uuid::new_v4().to_string())?;
        let thread = self.memory.open(&scope).await?.thread.id;
        let mut done = 0;
        while Instant::now() < until {
            self.append(&scope, thread, done).await?;
            done += 1;
        }
        Ok(done)
    }

    /// Measures memory and network per message of 200 characters, in threads of ten turns, including the index.
    async fn size(&mut self) -> Result<Value> {
        let threads = (self.args.threads / 10).max(1);
        self.settle().await?;
        let before = self.node.usage().await?;
        let scopes = (0..threads).map(|number| Ok(Scope::user("acme", format!("user-{}", number / 10))?));
        let scopes = scopes.collect::<Result<Vec<_>>>()?;
        let ids = open_threads(&self.memory, &scopes).await?;
        let opened = self.node.usage().await?;
        for turn in 0..10 {
            let pairs: Vec<_> = scopes.iter().zip(&ids).enumerate().collect();
            for pairs in pairs.chunks(64) {
                let turns = pairs.iter().map(|(number, (scope, id))| self.append(scope, **id, number * 10 + turn));
                try_join_all(turns).await?;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let with_turns = self.node.usage().await?;
        self.settle().await?;
        let after = self.node.usage().await?;
        let (messages, turns) = ((threads * 20) as f64, (threads * 10) as f64);
        let bytes = |later: u64, earlier: u64, count: f64| (later.saturating_sub(earlier) as f64 / count).round();
        let size = json!({
            "threads": threads,
            "messages": threads * 20,
            "memory_bytes_per_message": bytes(after.memory, before.memory, messages),
            "of_it_index": bytes(after.memory, with_turns.memory, messages),
            "of_it_threads_and_lists": bytes(opened.memory, before.memory, messages),
            "append_only_file_bytes_per_turn": bytes(with_turns.log, opened.log, turns),
            "network_bytes_in_per_turn": bytes(with_turns.input, opened.input, turns),
            "network_bytes_out_per_turn": bytes(with_turns.output, opened.output, turns),
            "calls_per_turn": (with_turns.calls.saturating_sub(opened.calls)) as f64 / turns,
            "node_cpu_us_per_turn": (with_turns.cpu - opened.cpu) / turns * 1e6,
            "node_cpu_us_per_indexed_message": (after.cpu - with_turns.cpu) / messages * 1e6,
        });
        eprintln!("size: {size}");
        Ok(size)
    }

    async fn settle(&self) -> Result<()> {
        while !self.memory.backend().search.catch_up(100_000).await?.done {}
        Ok(())
    }

    /// Measures reading the newest 16 messages of a thread.
    async fn newest(&mut self, floor: &Floor, messages: usize) -> Result<()> {
        let scope = Scope::user("acme", Uuid::new_v4().to_string())?;
        let thread = self.memory.open(&scope).await?.thread.id;
        for first in (0..messages).step_by(1_000) {
            let drafts =
                (first..messages.min(first + 1_000)).map(|number| Draft::user(&self.texts[number % self.texts.len()]));
            self.memory.append_all(&scope, thread, drafts.collect(), &AppendOptions::default()).await?;
        }
        let base = format!("threadkeep:{{{thread}/acme}}");
        self.trials(format!("newest 16 of {messages}: p50, µs"), async |this| {
            let by_floor = this.timed(async || floor.newest(&base, messages).await).await?;
            let by_engine = this.timed(async || {
                ensure!(
                    this.memory.newest(&scope, thread, 16).await?.len() == 16,
                    "the read did not return 16 messages"
                );
                Ok(())
            });
            Ok((by_floor, by_engine.await?))
        })
        .await
    }

    /// Returns the median latency in microseconds.
    async fn timed(&self, call: impl AsyncFn() -> Result<()>) -> Result<f64> {
        let until = Instant::now() + Duration::from_secs(self.args.seconds);
        let mut latencies = Vec::new();
        while Instant::now() < until {
            let began = Instant::now();
            call().await?;
            latencies.push(began.elapsed().as_secs_f64() * 1e6);
        }
        median(&latencies)
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["workload, one node", "floor", "engine", "ratio (median, min, max)"]);
        for row in &self.rows {
            let [floor, engine, ratio] = row.spreads()?;
            table.add_row([
                row.name.clone(),
                format!("{:.0}", floor.median),
                format!("{:.0}", engine.median),
                format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max),
            ]);
        }
        Ok(table)
    }
}

/// Appends a message from the user and one from the assistant.
async fn append_turn(memory: &Memory, scope: &Scope, thread: ThreadId, texts: &[String], number: usize) -> Result<()> {
    let text = |number: usize| texts[number % texts.len()].as_str();
    let turn = vec![Draft::user(text(2 * number)), Draft::assistant(text(2 * number + 1))];
    memory.append_all(scope, thread, turn, &AppendOptions::default()).await?;
    Ok(())
}

/// Opens a thread for each scope, 64 at a time.
async fn open_threads(memory: &Memory, scopes: &[Scope]) -> Result<Vec<ThreadId>> {
    let mut ids = Vec::with_capacity(scopes.len());
    for scopes in scopes.chunks(64) {
        let opened = try_join_all(scopes.iter().map(|scope| memory.open(scope))).await?;
        ids.extend(opened.into_iter().map(|opened| opened.thread.id));
    }
    Ok(ids)
}
