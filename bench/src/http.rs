//! `http`: the server as started by `threadkeep serve`, with an API key and a log file, compared with a route that returns
//! fixed bytes, and with the library.
//!
//! wrk makes the requests. It runs on the same machine as the floor and the server.

mod client;
mod events;
pub(crate) mod floor;
mod load;
mod reads;
mod report;
pub(crate) mod server_process;
mod sockets;
mod start;
mod turns;
mod wrk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use threadkeep_core::ThreadId;

use crate::engine::{Engine, draft};
use crate::measure::{BusyDisk, Disk, program};
use crate::texts::Language;
use report::Row;

/// Arguments of `threadkeep-bench http`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server program [default: `threadkeep` in the folder of this program]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Run only these workloads
    #[arg(long, value_enum)]
    only: Vec<Workload>,
    /// Number of trials of each workload with a floor
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Seconds of each trial
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Number of idle WebSockets
    #[arg(long, default_value_t = 2_000)]
    sockets: usize,
    /// Number of subscribers to events
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Number of events
    #[arg(long, default_value_t = 40)]
    events: usize,
    /// Minutes of load for the memory measurement
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
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
    Start,
    Reads,
    Turns,
    Sockets,
    Events,
    Load,
}

const ALL: [Workload; 6] =
    [Workload::Start, Workload::Reads, Workload::Turns, Workload::Sockets, Workload::Events, Workload::Load];

/// Number of concurrent connections.
const CONNECTIONS: usize = 32;
/// Length of a message's text.
const TEXT_BYTES: usize = 200;
/// Number of threads that exist before a measurement.
const THREADS: usize = 64;
/// Number of messages in each of these threads.
const MESSAGES: u64 = 100;

/// The state that all workloads share.
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
    let (binary, disk) = (program(args.binary.as_deref())?, Disk::of(folder.path(), args.busy_disk)?);
    let mut bench = Bench { args, binary, folder, disk, pool, rows: Vec::new() };
    let mut aborted = Vec::new();
    for workload in ALL.into_iter().filter(|workload| args.only.is_empty() || args.only.contains(workload)) {
        let result = match workload {
            Workload::Start => start::run(&mut bench).await,
            Workload::Reads => reads::run(&mut bench).await,
            Workload::Turns => turns::run(&mut bench).await,
            Workload::Sockets => sockets::run(&mut bench).await,
            Workload::Events => events::run(&mut bench).await,
            Workload::Load => load::run(&mut bench).await,
        };
        match result {
            // The results so far are printed, and the other workloads still run.
            Err(error) if error.is::<BusyDisk>() => aborted.push(format!("{workload:?}: {error}")),
            result => result.with_context(|| format!("{workload:?}"))?,
        }
    }
    report::print(&bench.rows, args.json)?;
    ensure!(aborted.is_empty(), "{}", aborted.join("; "));
    Ok(())
}

/// Threads of one user, in a store that is closed.
pub(crate) struct Seeded {
    pub(crate) store: PathBuf,
    pub(crate) threads: Vec<ThreadId>,
}

impl Bench<'_> {
    /// Creates a store with threads, in a separate folder.
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
        self.store.parent().context("the store has no parent folder")
    }
}
