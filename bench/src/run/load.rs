//! The newest 16 messages of threads of all lengths.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::report::Row;
use super::{Bench, Contenders};
use crate::engine::Repeat;
use crate::floors;
use crate::measure::{Sample, Series, median};

const LENGTHS: [u64; 5] = [16, 1_000, 10_000, 100_000, 1_000_000];
const COUNT: usize = 16;
const TO_SAME: f64 = 1.3;
const TO_RAW: f64 = 2.5;
/// Maximum growth of the engine's latency with the length of the thread, relative to the growth of `raw`.
const MAX_GROWTH: f64 = 1.15;
const REPEAT: Repeat = Repeat { seconds: 0.5, at_least: 200, at_most: 10_000 };

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let mut contenders = Contenders::open(&bench.folder("load")?)?;
    let mut threads = Vec::new();
    for length in LENGTHS {
        bench.show_progress(format!("newest {COUNT}: filling a thread of {length}"));
        threads.push(contenders.seed(&name(length), &bench.pool, length).await?);
    }
    bench.show_progress(format!("newest {COUNT}: indexing"));
    contenders.engine.settle().await?;
    let mut rows: Vec<Row> = Vec::new();
    for (length, (raw_thread, same_thread)) in LENGTHS.into_iter().zip(threads) {
        bench.show_progress(format!("newest {COUNT} of {length}"));
        let expected = expected(bench, length);
        let series = Series::run(bench.trials, &bench.disk, async |_| {
            let (raw_texts, raw) = floors::load_repeatedly(&mut contenders.raw, raw_thread, COUNT, REPEAT)?;
            let (same_texts, same) = floors::load_repeatedly(&mut contenders.same_sql, same_thread, COUNT, REPEAT)?;
            let (texts, engine) = contenders.engine.load(&name(length), COUNT, REPEAT).await?;
            for (reader, texts) in [("raw", raw_texts), ("same", same_texts), ("the engine", texts)] {
                ensure!(texts == expected, "{reader} did not return the newest messages of {length}");
            }
            let p50 = |latencies: &[f64]| median(latencies).map(|seconds| seconds * 1e6);
            Ok(Sample { raw: Some(p50(&raw)?), same_sql: Some(p50(&same)?), engine: p50(&engine)? })
        })
        .await?;
        let row = Row::new(format!("newest {COUNT} of {}", super::report::figure(length as f64)), "µs p50", &series)?;
        rows.push(row.at_most("ratio to same SQL", series.ratio_to_same_sql(), TO_SAME).at_most(
            "ratio to raw",
            series.ratio_to_raw(),
            TO_RAW,
        ));
    }
    add_growth(&mut rows);
    bench.rows.extend(rows);
    bench.long_threads = Some(close(contenders));
    Ok(())
}

pub(super) fn name(length: u64) -> String {
    format!("thread of {length}")
}

pub(super) fn expected(bench: &Bench, length: u64) -> Vec<String> {
    (length - COUNT as u64..length)
        .map(|index| bench.pool[(index % bench.pool.len() as u64) as usize].clone())
        .collect()
}

fn add_growth(rows: &mut [Row]) {
    let growth = |latency: &dyn Fn(&Row) -> Option<f64>| Some(latency(rows.last()?)? / latency(rows.first()?)?);
    let engine = growth(&|row| Some(row.engine.median));
    let raw = growth(&|row| row.raw.map(|raw| raw.median));
    if let (Some(engine), Some(raw), Some(last)) = (engine, raw, rows.last_mut()) {
        let goal = format!("growth {engine:.2} ≤ {raw:.2} x {MAX_GROWTH}");
        *last = last.clone().goal(goal, engine <= raw * MAX_GROWTH);
    }
}

fn close(contenders: Contenders) -> PathBuf {
    contenders.engine.path.clone().unwrap_or_default()
}
