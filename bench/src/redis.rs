//! The workloads over one Redis server, compared with a floor: a function that writes the same, and a pipeline that reads the same,
//! without checks, lists and index.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use comfy_table::{Table, presets};
use redis::aio::MultiplexedConnection;
use threadkeep_core::{Scope, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, Memory};
use threadkeep_store_redis::RedisStore;
use uuid::Uuid;

use crate::measure::{Spread, median};
use crate::texts::Language;

/// Writes what a turn of two messages needs: the messages, their ids, the change and the positions.
const FLOOR: &str = "#!lua name=threadkeep_bench
redis.register_function('threadkeep_bench_turn', function(keys, args)
  local base = keys[1]
  local seq = redis.call('HINCRBY', base .. ':t', 'seq', 2)
  redis.call('HSET', base .. ':m', seq - 1, args[1], seq, args[2])
  redis.call('HSET', base .. ':i', args[3], seq - 1, args[4], seq)
  redis.call('HSET', base .. ':c', seq, args[5])
  redis.call('HSET', base .. ':k', args[5], seq)
  return seq
end)";

/// Arguments of `threadkeep-bench redis`.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Args {
    /// URL of an empty server, `redis://HOST:PORT`
    url: String,
    /// Number of trials of each workload
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Seconds of each trial
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Number of messages in the thread that is read
    #[arg(long, default_value_t = 100_000)]
    messages: usize,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let memory = Memory::new(RedisStore::open(&format!("{}?background=off", args.url)).await?.backend());
    let mut floor = redis::Client::open(args.url.as_str())?.get_multiplexed_async_connection().await?;
    redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(FLOOR).exec_async(&mut floor).await?;
    let texts = Language::new(1).pool(200);
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["workload, one node", "floor", "engine", "ratio (median, min, max)"]);
    for writers in [1, 64] {
        let mut figures = Vec::new();
        for _ in 0..args.trials {
            let by_floor = turns(args, writers, async |until| floor_turns(floor.clone(), until, &texts).await).await?;
            let by_engine = turns(args, writers, async |until| engine_turns(&memory, until, &texts).await).await?;
            figures.push((by_floor, by_engine));
        }
        add(&mut table, &format!("turns per second, {writers} writers"), &figures)?;
    }
    for messages in [16, args.messages] {
        let before = used_memory(&mut floor).await?;
        let (scope, thread) = seed(&memory, messages, &texts).await?;
        let bytes = used_memory(&mut floor).await?.saturating_sub(before) / messages.max(1) as u64;
        let mut figures = Vec::new();
        for _ in 0..args.trials {
            let by_floor = timed(args.seconds, async || floor_newest(floor.clone(), thread, messages).await).await?;
            let by_engine = timed(args.seconds, async || {
                ensure!(memory.newest(&scope, thread, 16).await?.len() == 16, "wrong answer");
                Ok(())
            });
            figures.push((by_floor, by_engine.await?));
        }
        add(&mut table, &format!("newest 16 of {messages}: p50, µs ({bytes} bytes a message)"), &figures)?;
    }
    println!("{table}");
    Ok(())
}

fn add(table: &mut Table, workload: &str, trials: &[(f64, f64)]) -> Result<()> {
    let spread = |figure: fn(&(f64, f64)) -> f64| Spread::of(trials.iter().map(figure)).context("no trials were run");
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

/// Returns the turns per second of concurrent writers, each with its own thread.
async fn turns(args: &Args, writers: usize, write: impl AsyncFn(Instant) -> Result<usize>) -> Result<f64> {
    let began = Instant::now();
    let until = began + Duration::from_secs(args.seconds);
    let done = futures::future::try_join_all((0..writers).map(|_| write(until))).await?;
    Ok(done.into_iter().sum::<usize>() as f64 / began.elapsed().as_secs_f64())
}

async fn engine_turns(memory: &Memory, until: Instant, texts: &[String]) -> Result<usize> {
    let scope = Scope::user("acme", Uuid::new_v4().to_string())?;
    let thread = memory.open(&scope).await?.thread.id;
    let mut done = 0;
    while Instant::now() < until {
        let turn = vec![Draft::user(&texts[done % texts.len()]), Draft::assistant(&texts[(done + 1) % texts.len()])];
        memory.append_all(&scope, thread, turn, &AppendOptions::default()).await?;
        done += 1;
    }
    Ok(done)
}

async fn floor_turns(mut floor: MultiplexedConnection, until: Instant, texts: &[String]) -> Result<usize> {
    let base = format!("bench:{{{}}}", Uuid::new_v4());
    let mut done = 0;
    while Instant::now() < until {
        let mut turn = redis::cmd("FCALL");
        turn.arg("threadkeep_bench_turn").arg(1).arg(&base);
        turn.arg(&texts[done % texts.len()]).arg(&texts[(done + 1) % texts.len()]);
        for _ in 0..3 {
            turn.arg(Uuid::new_v4().as_bytes().as_slice());
        }
        turn.exec_async(&mut floor).await?;
        done += 1;
    }
    Ok(done)
}

async fn seed(memory: &Memory, messages: usize, texts: &[String]) -> Result<(Scope, ThreadId)> {
    let scope = Scope::user("acme", Uuid::new_v4().to_string())?;
    let thread = memory.open(&scope).await?.thread.id;
    for first in (0..messages).step_by(1_000) {
        let drafts = (first..messages.min(first + 1_000)).map(|number| Draft::user(&texts[number % texts.len()]));
        memory.append_all(&scope, thread, drafts.collect(), &AppendOptions::default()).await?;
    }
    while !memory.backend().search.catch_up(10_000).await?.done {}
    Ok((scope, thread))
}

/// Reads the row and the newest messages of a thread, whose positions are known.
async fn floor_newest(mut floor: MultiplexedConnection, thread: ThreadId, messages: usize) -> Result<()> {
    let base = format!("threadkeep:{{{thread}/acme}}");
    let mut pipeline = redis::pipe();
    pipeline.cmd("HMGET").arg(format!("{base}:t")).arg("row").arg("seq");
    pipeline.cmd("HMGET").arg(format!("{base}:m"));
    for seq in messages.saturating_sub(15)..=messages {
        pipeline.arg(seq);
    }
    let (_, rows): (Vec<Vec<u8>>, Vec<Vec<u8>>) = pipeline.query_async(&mut floor).await?;
    ensure!(rows.len() == 16, "wrong answer");
    Ok(())
}

async fn used_memory(floor: &mut MultiplexedConnection) -> Result<u64> {
    let info: String = redis::cmd("INFO").arg("memory").query_async(floor).await?;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used.context("INFO has no used_memory")?.trim().parse()?)
}

/// Returns the median latency in microseconds.
async fn timed(seconds: u64, call: impl AsyncFn() -> Result<()>) -> Result<f64> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut latencies = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        call().await?;
        latencies.push(began.elapsed().as_secs_f64() * 1e6);
    }
    median(&latencies)
}
