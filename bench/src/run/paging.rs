//! Paging through a thread of 10,000 messages, and deleting it.

use anyhow::{Result, ensure};
use std::time::Instant;

use super::report::Row;
use super::{Bench, Three};
use crate::floors::{self, Floor};
use crate::measure::{Sample, Series};

const MESSAGES: u64 = 10_000;
const PAGE: usize = 100;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let mut three = Three::open(&bench.folder("paging")?)?;
    let (raw, same) = three.seed("paged", &bench.pool, MESSAGES).await?;
    three.engine.settle().await?;
    let paging = Series::run(bench.trials, &bench.disk, async |trial| {
        bench.say(format!("paging: trial {}", trial + 1));
        let (raw, raw_count) = floors::page_through(&mut three.raw, raw, PAGE)?;
        let (same, same_count) = floors::page_through(&mut three.same, same, PAGE)?;
        let (engine, count, _) = three.engine.page("paged", PAGE).await?;
        ensure!([raw_count, same_count, count] == [MESSAGES; 3], "not every message came: {count}");
        Ok(Sample { raw: Some(raw * 1e3), same: Some(same * 1e3), engine: engine * 1e3 })
    })
    .await?;
    let deleting = Series::run(bench.trials, &bench.disk, async |trial| {
        bench.say(format!("deleting: trial {}", trial + 1));
        let name = format!("deleted {trial}");
        let (raw_thread, same_thread) = three.seed(&name, &bench.pool, MESSAGES).await?;
        three.engine.settle().await?;
        let began = Instant::now();
        three.raw.delete(raw_thread)?;
        let raw = began.elapsed().as_secs_f64();
        let began = Instant::now();
        three.same.delete(same_thread)?;
        let same = began.elapsed().as_secs_f64();
        let (engine, left) = three.engine.delete(&name).await?;
        ensure!(left == 0, "{left} messages can still be read");
        Ok(Sample { raw: Some(raw * 1e3), same: Some(same * 1e3), engine: engine * 1e3 })
    })
    .await?;
    let began = Instant::now();
    let memory = &three.engine.memory;
    memory.backend().maintenance.sweep(memory.now()).await?;
    let swept = began.elapsed().as_secs_f64() / bench.trials as f64 * 1e3;
    bench.rows.push(Row::new("paging 10,000 by 100", "ms", &paging)?);
    let row = Row::new("deleting 10,000", "ms", &deleting)?;
    bench.rows.push(row.note(format!("and at most {swept:.0} ms of sweeping, later")));
    Ok(())
}
