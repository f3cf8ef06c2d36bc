//! Paging through a thread of 10,000 messages, and deleting such threads.

use anyhow::{Result, ensure};
use std::time::Instant;

use super::report::Row;
use super::{Bench, Contenders};
use crate::floors::{self, Floor};
use crate::measure::{Sample, Series};

const MESSAGES: u64 = 10_000;
const PAGE: usize = 100;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let mut contenders = Contenders::open(&bench.folder("paging")?)?;
    let (raw, same) = contenders.seed("paged", &bench.pool, MESSAGES).await?;
    contenders.engine.settle().await?;
    let paging = Series::run(bench.trials, &bench.disk, async |trial| {
        bench.show_progress(format!("paging: trial {}", trial + 1));
        let (raw, raw_count) = floors::page_through(&mut contenders.raw, raw, PAGE)?;
        let (same, same_count) = floors::page_through(&mut contenders.same_sql, same, PAGE)?;
        let (engine, count, _) = contenders.engine.page("paged", PAGE).await?;
        ensure!([raw_count, same_count, count] == [MESSAGES; 3], "not all messages were returned: {count}");
        Ok(Sample { raw: Some(raw * 1e3), same_sql: Some(same * 1e3), engine: engine * 1e3 })
    })
    .await?;
    let deleting = Series::run(bench.trials, &bench.disk, async |trial| {
        bench.show_progress(format!("deleting: trial {}", trial + 1));
        let name = format!("deleted {trial}");
        let (raw_thread, same_thread) = contenders.seed(&name, &bench.pool, MESSAGES).await?;
        contenders.engine.settle().await?;
        let began = Instant::now();
        contenders.raw.delete(raw_thread)?;
        let raw = began.elapsed().as_secs_f64();
        let began = Instant::now();
        contenders.same_sql.delete(same_thread)?;
        let same = began.elapsed().as_secs_f64();
        let (engine, left) = contenders.engine.delete(&name).await?;
        ensure!(left == 0, "{left} messages can still be read");
        Ok(Sample { raw: Some(raw * 1e3), same_sql: Some(same * 1e3), engine: engine * 1e3 })
    })
    .await?;
    let began = Instant::now();
    let memory = &contenders.engine.memory;
    memory.backend().maintenance.sweep(memory.now()).await?;
    let swept = began.elapsed().as_secs_f64() / bench.trials as f64 * 1e3;
    bench.rows.push(Row::new("paging 10,000 by 100", "ms", &paging)?);
    let row = Row::new("deleting 10,000", "ms", &deleting)?;
    bench.rows.push(row.note(format!("plus up to {swept:.0} ms of deferred cleanup")));
    Ok(())
}
