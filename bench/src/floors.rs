//! Baselines, called floors: they do the engine's work by direct use of the same SQLite, in the same run.
//!
//! [`raw`] is a minimal implementation. [`same`] runs the engine's SQL statements without the engine.

pub(crate) mod raw;
pub(crate) mod same;
pub(crate) mod search;

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::Connection;

use crate::engine::{Repeat, TurnTimings};

/// Operations on a SQLite file without the engine.
pub(crate) trait Floor {
    /// Creates a thread.
    fn open_thread(&mut self) -> Result<i64>;
    /// Appends the messages `start..start + count` of the pool of sample texts, in one transaction.
    fn append(&mut self, thread: i64, pool: &[String], start: u64, count: u64) -> Result<()>;
    /// Appends one turn to each thread, all in one transaction.
    fn append_turns(&mut self, threads: &[i64], pool: &[String], start: u64) -> Result<()>;
    /// Reads the newest messages, oldest first.
    fn load(&mut self, thread: i64, count: usize) -> Result<Vec<String>>;
    /// Reads up to `size` messages before a position. Returns how many it read and the position of the oldest one.
    fn page(&mut self, thread: i64, before: i64, size: usize) -> Result<(usize, i64)>;
    /// Deletes a thread.
    fn delete(&mut self, thread: i64) -> Result<()>;
}

/// Number of messages in one transaction while seeding.
const SEED_BATCH: u64 = 1_000;

pub(crate) fn open(path: &Path, schema: &str) -> Result<Connection> {
    let connection = Connection::open(path)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    anyhow::ensure!(mode == "wal", "unexpected journal mode {mode}");
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.execute_batch(schema)?;
    Ok(connection)
}

pub(crate) fn seed(floor: &mut dyn Floor, pool: &[String], count: u64) -> Result<i64> {
    let thread = floor.open_thread()?;
    for start in (0..count).step_by(SEED_BATCH as usize) {
        floor.append(thread, pool, start, SEED_BATCH.min(count - start))?;
    }
    Ok(thread)
}

/// Appends turns sequentially. Each transaction appends `group` turns, each to a different thread.
pub(crate) fn append_during(
    floor: &mut dyn Floor,
    threads: &[i64],
    pool: &[String],
    seconds: f64,
    group: usize,
) -> Result<TurnTimings> {
    let began = Instant::now();
    let (mut turns, mut round, mut next) = (TurnTimings { per_writer: vec![0], ..TurnTimings::default() }, 0, 0);
    let mut members = Vec::with_capacity(group);
    while began.elapsed().as_secs_f64() < seconds {
        members.clear();
        while members.len() < group.min(threads.len()) {
            members.push(threads[next]);
            next = (next + 1) % threads.len();
        }
        let call_began = Instant::now();
        floor.append_turns(&members, pool, round * 2)?;
        turns.latencies.push(call_began.elapsed().as_secs_f64());
        turns.per_writer[0] += members.len() as u64;
        round += 1;
    }
    turns.elapsed = began.elapsed().as_secs_f64();
    Ok(turns)
}

pub(crate) fn load_repeatedly(
    floor: &mut dyn Floor,
    thread: i64,
    count: usize,
    repeat: Repeat,
) -> Result<(Vec<String>, Vec<f64>)> {
    let (mut texts, mut latencies) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while repeat.should_continue(latencies.len(), began) {
        let call_began = Instant::now();
        let read = floor.load(thread, count)?;
        latencies.push(call_began.elapsed().as_secs_f64());
        texts = read;
    }
    Ok((texts, latencies))
}

/// Pages through a thread from its end. Returns the elapsed seconds and the number of messages.
pub(crate) fn page_through(floor: &mut dyn Floor, thread: i64, size: usize) -> Result<(f64, u64)> {
    let began = Instant::now();
    let (mut count, mut before) = (0, i64::from(u32::MAX));
    loop {
        let (read, first) = floor.page(thread, before, size)?;
        count += read as u64;
        if read < size || first <= 1 {
            return Ok((began.elapsed().as_secs_f64(), count));
        }
        before = first;
    }
}

/// Returns the SQL of each floor.
pub(crate) fn sql() -> String {
    let mut text = format!("All baselines: journal_mode=WAL, synchronous=FULL, SQLite {}\n", rusqlite::version());
    for (name, schema, statements) in [
        ("raw", raw::SCHEMA, &raw::STATEMENTS[..]),
        ("same", same::SCHEMA, &same::STATEMENTS[..]),
        ("search", search::SCHEMA, &search::STATEMENTS[..]),
    ] {
        text.push_str(&format!("\n-- {name}\n{schema}\n"));
        for statement in statements {
            text.push_str(&format!("{statement};\n"));
        }
    }
    text
}
