//! `power-cut`: simulates a power cut at every sync of a run, and checks that no acknowledged turn is lost.
//!
//! strace records a run: its writes, syncs and acknowledgements, in order ([`trace`]). From these, files are rebuilt
//! ([`disk`]) as they could be on the disk between one sync and the next. They contain all synced data, and each later
//! write either completely, not at all, or torn. The library opens each of these images. It must contain every turn
//! that was acknowledged before.

mod disk;
mod trace;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::engine::Engine;
use crate::kill::ack_log;
use crate::kill::child::Turn;
use crate::random::{Random, fresh_seed};
use disk::{Disk, UnsyncedWrites};
use trace::Event;

/// System calls that change files, and `write`, which also prints acknowledgements.
const CALLS: &str = "trace=openat,open,pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename,close,mkdir";
/// Number of images with random unsynced writes, per sync.
const IMAGES: usize = 3;

/// Arguments of `threadkeep-bench power-cut`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of runs
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// Number of writers
    #[arg(long, default_value_t = 4)]
    writers: usize,
    /// Number of turns that each writer appends
    #[arg(long, default_value_t = 100)]
    turns: u64,
    /// Seed for the choice of unsynced writes [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Acknowledge turns before they are synced, to check that the test detects losses
    #[arg(long)]
    without_sync: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder for the rebuilt files
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// The results.
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
    ensure!(wrong == 0, "a power cut would have lost or damaged data (seed {seed})");
    Ok(())
}

/// Records a run of writers with strace, from an empty folder until all turns are appended.
fn record(folder: &Path, args: &Args) -> Result<Vec<Event>> {
    let (stores, log) = (folder.join("store"), folder.join("trace"));
    std::fs::create_dir(&stores)?;
    let mut command = Command::new("strace");
    command.args(["-f", "-xx", "-s", "100000", "-e", CALLS, "-o"]).arg(&log);
    command.arg(std::env::current_exe()?).arg("kill-child").arg("--store").arg(stores.join("cut.db"));
    command.arg("--next").arg(vec!["0"; args.writers].join(",")).arg("--turns").arg(args.turns.to_string());
    command.args(args.without_sync.then_some("--without-sync"));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("failed to start strace")?;
    ensure!(status.success(), "the writers failed");
    trace::parse(&std::fs::read_to_string(&log)?, &stores)
}

/// Replays a run and checks images of the disk after every sync.
async fn cut(folder: &Path, events: &[Event], random: &mut Random, report: &mut Report) -> Result<()> {
    let mut disk = Disk::default();
    let sync_ends = events.iter().enumerate().filter(|(_, event)| matches!(event, Event::SyncEnds { .. }));
    let sync_ends: Vec<usize> = sync_ends.map(|(index, _)| index).collect();
    let mut acknowledged = BTreeSet::new();
    let mut done = 0;
    for (number, end) in sync_ends.iter().enumerate() {
        events[done..=*end].iter().for_each(|event| disk.apply(event));
        done = end + 1;
        // Until the next sync ends, only this data is durable, regardless of later acknowledgements.
        let next = sync_ends.get(number + 1).copied().unwrap_or(events.len());
        acknowledged.extend(events[..next].iter().skip(*end).filter_map(Event::acknowledged));
        acknowledged.extend(events[..*end].iter().filter_map(Event::acknowledged));
        let mut with_unsynced = disk.clone();
        events[done..next].iter().for_each(|event| with_unsynced.apply(event));
        report.syncs += 1;
        for image_number in 0..=IMAGES {
            let unsynced = if image_number == 0 { UnsyncedWrites::Dropped } else { UnsyncedWrites::Random(random) };
            // Each image needs a separate folder, because a store removes its log by name when it is closed.
            let image = folder.join(format!("image-{}-{image_number}", number + 1));
            with_unsynced.write_image(&image, unsynced)?;
            check(&image.join("cut.db"), &acknowledged, report)
                .await
                .with_context(|| format!("sync {} of {}, image {image_number}", number + 1, sync_ends.len()))?;
            report.images += 1;
            std::fs::remove_dir_all(&image)?;
        }
    }
    report.acknowledged += acknowledged.len() as u64;
    Ok(())
}

/// Opens an image and checks that it contains every acknowledged turn.
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
        read.extend(ack_log::read(&engine, &thread).await?);
    }
    let distinct: BTreeSet<_> = read.iter().copied().collect();
    report.doubled += (read.len() - distinct.len()) as u64;
    let turns: BTreeSet<Turn> = read.into_iter().map(|(turn, _)| turn).collect();
    // One commit stores question and answer, so a stored turn is complete.
    ensure!(distinct.len() == turns.len() * 2, "a turn was stored only in part");
    report.lost += acknowledged.difference(&turns).count() as u64;
    Ok(())
}
