//! File size per message of 200 characters, with a complete index and after a checkpoint of the log.

use std::path::Path;

use anyhow::{Result, ensure};

use super::report::Row;
use super::{Bench, TEXT_BYTES};
use crate::engine::{Engine, draft};
use crate::measure::{Sample, Series};

const MESSAGES: u64 = 100_000;
const THREADS: u64 = 64;
const BYTES: f64 = 450.0;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    bench.show_progress("bytes per message: appended in turns");
    let path = bench.folder("size")?.join("turns.db");
    let by_turns = by_turns(bench, &path).await?;
    bench.show_progress("bytes per message: appended in batches");
    let path = bench.folder("size")?.join("batches.db");
    let by_batches = by_batches(bench, &path).await?;
    for (method, bytes) in [("appended in turns", by_turns), ("appended in batches of 1,000", by_batches)] {
        let series = Series { samples: vec![Sample { raw: None, same_sql: None, engine: bytes }], discarded: 0 };
        let row = Row::new(format!("size, {method}"), "bytes/message", &series)?;
        bench.rows.push(row.at_most("bytes", Some(series.engine()?), BYTES));
    }
    Ok(())
}

/// Appends as conversations do: a commit for each turn, with its log entry. All texts differ.
async fn by_turns(bench: &Bench, path: &Path) -> Result<f64> {
    let engine = Engine::sqlite(path)?;
    let turns = MESSAGES / THREADS / 2;
    let writers = (0..THREADS).map(|thread| {
        let texts: Vec<String> =
            (0..turns * 2).map(|index| bench.language.text(thread * turns * 2 + index, TEXT_BYTES)).collect();
        let engine = engine.clone();
        tokio::spawn(async move {
            let name = [format!("thread {thread}")];
            engine.append(&name, &std::sync::Arc::new(texts), 0, f64::from(u16::MAX), Some(turns)).await
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        ensure!(writer.await??.errors == 0, "an append failed");
    }
    let count = THREADS * turns * 2;
    ensure!(engine.count("thread 0").await? == turns * 2, "not all messages are stored");
    Ok(closed_bytes(engine, path).await? as f64 / count as f64)
}

async fn by_batches(bench: &Bench, path: &Path) -> Result<f64> {
    let engine = Engine::sqlite(path)?;
    let texts: Vec<String> = (0..MESSAGES).map(|number| bench.language.text(number, TEXT_BYTES)).collect();
    for thread in 0..100 {
        let each = MESSAGES / 100;
        engine
            .seed(&format!("thread {thread}"), (thread * each..(thread + 1) * each).map(|i| draft(&texts, i)))
            .await?;
    }
    Ok(closed_bytes(engine, path).await? as f64 / MESSAGES as f64)
}

/// Completes the index, closes the store and returns the size of its files.
pub(super) async fn closed_bytes(engine: Engine, path: &Path) -> Result<u64> {
    engine.settle().await?;
    drop(engine);
    let connection = rusqlite::Connection::open(path)?;
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    ensure!(busy == 0, "the write-ahead log could not be checkpointed");
    drop(connection);
    let mut bytes = 0;
    for suffix in ["", "-wal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        bytes += std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}
