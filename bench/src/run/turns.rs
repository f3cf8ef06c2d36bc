//! Durable turns per second, with 1, 8 and 64 writers.

use anyhow::{Result, ensure};

use super::report::Row;
use super::{Bench, Contenders, syncs};
use crate::engine::check_thread;
use crate::floors::{self, Floor};
use crate::measure::{Sample, Series, cpu_seconds};

/// Numbers of writers, and the goals of their ratios to `raw` with one writer.
const WRITERS: [(usize, f64); 3] = [(1, 0.7), (8, 2.2), (64, 2.6)];
/// Goal of the ratio to `same`.
const TO_SAME: f64 = 0.8;
/// Number of messages written first, so that the write-ahead log has its full size before anything is timed.
pub(super) const WARM_UP_MESSAGES: u64 = 20_000;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    for (writers, ratio_to_raw) in WRITERS {
        bench.show_progress(format!("turns by {writers}: syncs"));
        let syncs = syncs::count(&bench.folder(&format!("syncs-{writers}"))?, &bench.pool, writers)?;
        let group = syncs.as_ref().map_or(writers, |syncs| syncs.group).min(writers);
        let mut contenders = Contenders::open(&bench.folder(&format!("turns-{writers}"))?)?;
        contenders.seed("grown", &bench.pool, WARM_UP_MESSAGES).await?;
        let raw_thread = contenders.raw.open_thread()?;
        let same_threads = (0..writers).map(|_| contenders.same_sql.open_thread()).collect::<Result<Vec<_>>>()?;
        let (mut cpu, mut same_cpu) = (Cpu::default(), Cpu::default());
        let series = Series::run(bench.trials, &bench.disk, async |trial| {
            bench.show_progress(format!("turns by {writers}: trial {}", trial + 1));
            contenders.engine.settle().await?;
            let raw = floors::append_during(&mut contenders.raw, &[raw_thread], &bench.pool, bench.seconds, 1)?;
            let before = cpu_seconds()?;
            let same =
                floors::append_during(&mut contenders.same_sql, &same_threads, &bench.pool, bench.seconds, group)?;
            same_cpu.add(cpu_seconds()? - before, same.count());
            let names: Vec<String> = (0..writers).map(|writer| format!("trial {trial} writer {writer}")).collect();
            let before = cpu_seconds()?;
            let engine = contenders.engine.append(&names, &bench.pool, 0, bench.seconds, None).await?;
            cpu.add(cpu_seconds()? - before, engine.count());
            ensure!(engine.errors == 0, "{} appends failed", engine.errors);
            for (name, turns) in names.iter().zip(&engine.per_writer) {
                check_thread(&contenders.engine, name, &bench.pool, 0, turns * 2).await?;
            }
            Ok(Sample { raw: Some(raw.per_second()), same_sql: Some(same.per_second()), engine: engine.per_second() })
        })
        .await?;
        let mut row = Row::new(format!("turns by {writers}"), "turns/s", &series)?
            .note(format!("{:.0} µs CPU per turn (same {:.0})", cpu.micros_per_turn(), same_cpu.micros_per_turn()))
            .note(match &syncs {
                Some(syncs) => format!("{:.2} syncs per turn, same in groups of {group}", syncs.per_turn),
                None => format!("syncs not counted (no strace), same in groups of {group}"),
            });
        row = row.at_least("ratio to same SQL", series.ratio_to_same_sql(), TO_SAME).at_least(
            "ratio to raw",
            series.ratio_to_raw(),
            ratio_to_raw,
        );
        bench.rows.push(row);
    }
    Ok(())
}

/// CPU time of many turns.
#[derive(Default)]
struct Cpu {
    seconds: f64,
    turns: u64,
}

impl Cpu {
    fn add(&mut self, seconds: f64, turns: u64) {
        self.seconds += seconds;
        self.turns += turns;
    }

    fn micros_per_turn(&self) -> f64 {
        self.seconds * 1e6 / self.turns.max(1) as f64
    }
}
