//! `run`: the workloads on SQLite, one file each, and the table of their results.

mod import;
mod load;
mod memory;
mod paging;
pub(crate) mod report;
mod search;
mod size;
mod syncs;
mod turns;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::engine::Engine;
use crate::floors::raw::Raw;
use crate::floors::same::Same;
use crate::measure::{BusyDisk, Disk};
use crate::texts::Language;

/// Arguments of `threadkeep-bench run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run 3 short trials instead of 5 long ones
    #[arg(long)]
    quick: bool,
    /// Run only these workloads
    #[arg(long, value_enum)]
    only: Vec<Workload>,
    /// Also count trials while the disk is slow or busy (syncs take over 0.5 ms)
    #[arg(long)]
    busy_disk: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Folder for the stores; it should be on the disk to be measured
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Workload {
    Turns,
    Load,
    Paging,
    Size,
    Import,
    Search,
    Memory,
}

const ALL: [Workload; 7] = [
    Workload::Turns,
    Workload::Load,
    Workload::Paging,
    Workload::Size,
    Workload::Import,
    Workload::Search,
    Workload::Memory,
];

/// Length of a message's text.
const TEXT_BYTES: usize = 200;

/// The state that all workloads share.
struct Bench {
    trials: usize,
    /// Duration of a write trial.
    seconds: f64,
    folder: tempfile::TempDir,
    disk: Disk,
    language: Language,
    pool: Arc<Vec<String>>,
    progress: ProgressBar,
    rows: Vec<report::Row>,
    /// A store with threads of all lengths, once a workload has created it.
    long_threads: Option<PathBuf>,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-bench-").tempdir_in(&args.folder)?;
    let language = Language::new(1);
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(std::time::Duration::from_millis(250));
    let mut bench = Bench {
        trials: if args.quick { 3 } else { 5 },
        seconds: if args.quick { 1.0 } else { 3.0 },
        disk: Disk::of(folder.path(), args.busy_disk)?,
        folder,
        pool: Arc::new(language.pool(TEXT_BYTES)),
        language,
        progress,
        rows: Vec::new(),
        long_threads: None,
    };
    let mut aborted = Vec::new();
    for workload in ALL.into_iter().filter(|workload| args.only.is_empty() || args.only.contains(workload)) {
        match bench.run(workload).await {
            // The results so far are printed, and the other workloads still run.
            Err(error) if error.is::<BusyDisk>() => aborted.push(format!("{workload:?}: {error}")),
            result => result?,
        }
    }
    bench.progress.finish_and_clear();
    report::print(&bench.rows, args.json)?;
    anyhow::ensure!(aborted.is_empty(), "{}", aborted.join("; "));
    Ok(())
}

impl Bench {
    async fn run(&mut self, workload: Workload) -> Result<()> {
        match workload {
            Workload::Turns => turns::run(self).await,
            Workload::Load => load::run(self).await,
            Workload::Paging => paging::run(self).await,
            Workload::Size => size::run(self).await,
            Workload::Import => import::run(self).await,
            Workload::Search => search::run(self).await,
            Workload::Memory => memory::run(self).await,
        }
    }

    fn show_progress(&self, message: impl Into<String>) {
        self.progress.set_message(message.into());
    }

    /// Creates a folder for a workload.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// The engine and both floors, each with its own file.
struct Contenders {
    engine: Engine,
    raw: Raw,
    same_sql: Same,
}

impl Contenders {
    fn open(folder: &Path) -> Result<Self> {
        Ok(Self {
            engine: Engine::sqlite(&folder.join("engine.db"))?,
            raw: Raw::open(&folder.join("raw.db"))?,
            same_sql: Same::open(&folder.join("same.db"))?,
        })
    }

    /// Adds the same messages to all contenders. This also grows their write-ahead logs to full size, since syncing a growing
    /// file takes several times as long.
    async fn seed(&mut self, name: &str, pool: &[String], count: u64) -> Result<(i64, i64)> {
        let raw = crate::floors::seed(&mut self.raw, pool, count)?;
        let same = crate::floors::seed(&mut self.same_sql, pool, count)?;
        self.engine.seed(name, (0..count).map(|index| crate::engine::draft(pool, index))).await?;
        Ok((raw, same))
    }
}
