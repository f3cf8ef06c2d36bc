//! The server as `threadkeep serve` starts it, with a key and its log, beside a route that returns the same bytes and
//! beside the library's own writers.
//!
//! Requests are made by wrk, which shares the machine with whatever it asks: with the floor as with the server.

mod events;
pub(crate) mod floor;
mod load;
mod reads;
mod report;
mod served;
mod sockets;
mod start;
mod turns;
mod wire;
mod wrk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use threadkeep_core::ThreadId;

use crate::engine::{Engine, draft};
use crate::measure::{BusyDisk, Disk};
use crate::texts::Language;
use report::Row;

/// Arguments of `threadkeep-bench http`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program that serves [default: `threadkeep` beside this one]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Run only these workloads
    #[arg(long, value_enum)]
    only: Vec<Workload>,
    /// Trials of each workload with a floor
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Seconds of each trial
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Idle WebSockets
    #[arg(long, default_value_t = 2_000)]
    sockets: usize,
    /// Who hears of each event
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Events that they hear of
    #[arg(long, default_value_t = 40)]
    events: usize,
    /// How long memory is watched under load
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Count trials on a slow or busy disk as well, whose syncs take over 0.5 ms
    #[arg(long)]
    busy_disk: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Where the stores are made; it should be on the disk that is to be measured
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Workload {
    Start,
    Reads,
    Turns,
    Sockets,
    Events,
    Load,
}

const ALL: [Workload; 6] =
    [Workload::Start, Workload::Reads, Workload::Turns, Workload::Sockets, Workload::Events, Workload::Load];

/// Connections of a load.
const CONNECTIONS: usize = 32;
/// What a text is long.
const TEXT_BYTES: usize = 200;
/// Threads that are there before anything is measured, and the messages of each.
const THREADS: usize = 64;
const MESSAGES: u64 = 100;

/// What all workloads share.
struct Bench<'a> {
    args: &'a Args,
    binary: PathBuf,
    folder: tempfile::TempDir,
    disk: Disk,
    pool: Arc<Vec<String>>,
    rows: Vec<Row>,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-http-").tempdir_in(&args.folder)?;
    let pool = Arc::new(Language::new(1).pool(TEXT_BYTES));
    let (binary, disk) = (binary(args)?, Disk::of(folder.path(), args.busy_disk)?);
    let mut bench = Bench { args, binary, folder, disk, pool, rows: Vec::new() };
    let mut given_up = Vec::new();
    for workload in ALL.into_iter().filter(|workload| args.only.is_empty() || args.only.contains(workload)) {
        let ran = match workload {
            Workload::Start => start::run(&mut bench).await,
            Workload::Reads => reads::run(&mut bench).await,
            Workload::Turns => turns::run(&mut bench).await,
            Workload::Sockets => sockets::run(&mut bench).await,
            Workload::Events => events::run(&mut bench).await,
            Workload::Load => load::run(&mut bench).await,
        };
        match ran {
            // What was measured stands, and the other workloads need no disk.
            Err(error) if error.is::<BusyDisk>() => given_up.push(format!("{workload:?}: {error}")),
            ran => ran.with_context(|| format!("{workload:?}"))?,
        }
    }
    report::print(&bench.rows, args.json)?;
    ensure!(given_up.is_empty(), "{}", given_up.join("; "));
    Ok(())
}

fn binary(args: &Args) -> Result<PathBuf> {
    let beside = || Ok::<_, anyhow::Error>(std::env::current_exe()?.with_file_name("threadkeep"));
    let binary = args.binary.clone().map_or_else(beside, Ok)?;
    ensure!(
        binary.is_file(),
        "there is no {}: `cargo build --release -p threadkeep-cli` makes it, and --binary names another",
        binary.display()
    );
    Ok(binary)
}

/// Threads of one user, in a store that no process has open.
struct Seeded {
    store: PathBuf,
    threads: Vec<ThreadId>,
}

impl Bench<'_> {
    /// Makes a store with some threads in a folder of its own.
    async fn seed(&self, name: &str, threads: usize, messages: u64) -> Result<Seeded> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder)?;
        let store = folder.join("engine.db");
        let engine = Engine::sqlite(&store)?;
        let mut ids = Vec::with_capacity(threads);
        for thread in 0..threads {
            let name = format!("thread {thread}");
            ids.push(engine.thread(&name).await?);
            engine.seed(&name, (0..messages).map(|index| draft(&self.pool, index))).await?;
        }
        engine.settle().await?;
        Ok(Seeded { store, threads: ids })
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row);
    }
}

impl Seeded {
    fn folder(&self) -> Result<&Path> {
        self.store.parent().context("the store is in no folder")
    }
}
