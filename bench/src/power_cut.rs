//! `power-cut`: what stands on the disk when the power goes, at every sync of a run.
//!
//! A run is watched by strace: its writes, its syncs and what it acknowledged, in order ([`trace`]). From these, files
//! are rebuilt ([`disk`]) as they could stand between one sync and the next: everything that was synced, and of what was
//! written since then anything, nothing, or torn pieces. The library opens each of them, and nothing that had been
//! acknowledged by then may be missing.

mod disk;
mod trace;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::engine::Engine;
use crate::kill::child::Turn;
use crate::kill::ledger;
use crate::random::{Random, fresh_seed};
use disk::{Disk, Later};
use trace::Event;

/// System calls that change what is on the disk, and the one that acknowledges.
const CALLS: &str = "trace=openat,open,pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename,close,mkdir";
/// Images with a random part of the later writes, per sync.
const IMAGES: usize = 3;

/// Arguments of `threadkeep-bench power-cut`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many runs are watched
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// How many writers there are
    #[arg(long, default_value_t = 4)]
    writers: usize,
    /// How many turns each of them appends
    #[arg(long, default_value_t = 100)]
    turns: u64,
    /// Chooses which later writes stand; another one each time unless given
    #[arg(long)]
    seed: Option<u64>,
    /// Have the writers acknowledge before anything is synced: a run that must find losses
    #[arg(long)]
    without_sync: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where the files are rebuilt
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// What was seen.
#[derive(Debug, Default, Serialize)]
struct Report {
    seed: u64,
    runs: u64,
    syncs: u64,
    images: u64,
    acknowledged: u64,
    lost: u64,
    doubled: u64,
    findings: u64,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut report = Report { seed, ..Report::default() };
    let mut random = Random::new(seed);
    for _ in 0..args.runs {
        let folder = tempfile::Builder::new().prefix("threadkeep-power-").tempdir_in(&args.folder)?;
        let folder = folder.path().canonicalize()?;
        let events = record(&folder, args)?;
        cut(&folder, &events, &mut random, &mut report).await.with_context(|| format!("with seed {seed}"))?;
        report.runs += 1;
    }
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    let wrong = report.lost + report.doubled + report.findings;
    ensure!(wrong == 0, "a power cut would have cost something (seed {seed})");
    Ok(())
}

/// Watches writers from an empty folder until all have had their turns.
fn record(folder: &Path, args: &Args) -> Result<Vec<Event>> {
    let (stores, log) = (folder.join("store"), folder.join("trace"));
    std::fs::create_dir(&stores)?;
    let mut command = Command::new("strace");
    command.args(["-f", "-xx", "-s", "100000", "-e", CALLS, "-o"]).arg(&log);
    command.arg(std::env::current_exe()?).arg("kill-child").arg("--store").arg(stores.join("cut.db"));
    command.arg("--next").arg(vec!["0"; args.writers].join(",")).arg("--turns").arg(args.turns.to_string());
    command.args(args.without_sync.then_some("--without-sync"));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("strace does not start")?;
    ensure!(status.success(), "the writers failed");
    trace::parse(&std::fs::read_to_string(&log)?, &stores)
}

/// Goes through a run and cuts the power at every sync.
async fn cut(folder: &Path, events: &[Event], random: &mut Random, report: &mut Report) -> Result<()> {
    let mut disk = Disk::default();
    let ends = events.iter().enumerate().filter(|(_, event)| matches!(event, Event::SyncEnds { .. }));
    let ends: Vec<usize> = ends.map(|(index, _)| index).collect();
    let mut acknowledged = BTreeSet::new();
    let mut done = 0;
    for (number, end) in ends.iter().enumerate() {
        events[done..=*end].iter().for_each(|event| disk.apply(event));
        done = end + 1;
        // Until the next sync has ended, nothing more than this is sure, whatever was acknowledged meanwhile.
        let next = ends.get(number + 1).copied().unwrap_or(events.len());
        acknowledged.extend(events[..next].iter().skip(*end).filter_map(Event::acknowledged));
        acknowledged.extend(events[..*end].iter().filter_map(Event::acknowledged));
        let mut later = disk.clone();
        events[done..next].iter().for_each(|event| later.apply(event));
        report.syncs += 1;
        for picture in 0..=IMAGES {
            let later_writes = if picture == 0 { Later::None } else { Later::Some(random) };
            // Each in a folder of its own: a store that is being closed removes its log by name.
            let image = folder.join(format!("image-{}-{picture}", number + 1));
            later.write_image(&image, later_writes)?;
            check(&image.join("cut.db"), &acknowledged, report)
                .await
                .with_context(|| format!("sync {} of {}, image {picture}", number + 1, ends.len()))?;
            report.images += 1;
            std::fs::remove_dir_all(&image)?;
        }
    }
    report.acknowledged += acknowledged.len() as u64;
    Ok(())
}

/// Opens what the power cut left and looks for everything that had been acknowledged.
async fn check(store: &Path, acknowledged: &BTreeSet<Turn>, report: &mut Report) -> Result<()> {
    let engine = Engine::sqlite(store)?;
    let verified = engine.memory.backend().maintenance.verify().await?;
    if let Some(finding) = verified.findings.first() {
        report.findings += verified.findings.len() as u64;
        eprintln!("finding: {}", finding.detail);
    }
    let threads: BTreeSet<String> = acknowledged.iter().map(|turn| Turn::thread(turn.writer)).collect();
    let mut read = Vec::new();
    for thread in threads {
        read.extend(ledger::read(&engine, &thread).await?);
    }
    let distinct: BTreeSet<_> = read.iter().copied().collect();
    report.doubled += (read.len() - distinct.len()) as u64;
    let turns: BTreeSet<Turn> = read.into_iter().map(|(turn, _)| turn).collect();
    // Question and answer are one commit: a turn that stands stands whole.
    ensure!(distinct.len() == turns.len() * 2, "half a turn was stored");
    report.lost += acknowledged.difference(&turns).count() as u64;
    Ok(())
}
