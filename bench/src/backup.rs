//! `backup`: a JSON Lines backup of a store while writers append to it, compared with a plain dump of all rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use threadkeep_core::{Consistency, SnapshotTotals};
use threadkeep_memory::migrate::BackupLines;
use threadkeep_memory::{Draft, MemoryError};
use threadkeep_store_sqlite::{Durability, SqliteOptions};
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::measure::{Spread, cpu_seconds};
use crate::texts::Language;

const TEXT_BYTES: usize = 200;
/// Number of writers among which the writes per second are distributed.
const WRITERS: u64 = 8;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of messages in each store
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Numbers of threads; each creates a separate store
    #[arg(long, value_delimiter = ',', default_values_t = [16, 100_000])]
    threads: Vec<u64>,
    /// Messages that writers append per second during a backup, each with its own commit
    #[arg(long, default_value_t = 500)]
    writes: u64,
    /// Number of backups, each compared with its floor
    #[arg(long, default_value_t = 5)]
    trials: usize,
    /// Folder for the stores and backups; existing stores in it are reused
    #[arg(long, default_value_os_t = std::env::temp_dir().join("threadkeep-backup"))]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.folder)?;
    for threads in &args.threads {
        ensure!(
            (1..=args.messages).contains(threads),
            "invalid number of threads for {} messages: {threads}",
            args.messages
        );
        let path = args.folder.join(format!("{}-{threads}.db", args.messages));
        if !path.exists() {
            eprintln!("filling {}", path.display());
            fill(&path, *threads, args.messages).await?;
        }
        measure(args, &path, *threads).await?;
    }
    Ok(())
}

/// Fills a store under a temporary name, and renames it when it is complete.
async fn fill(path: &Path, threads: u64, messages: u64) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    for file in ["unfinished", "unfinished-wal", "unfinished-shm"] {
        drop(std::fs::remove_file(path.with_extension(file)));
    }
    let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
    let engine = Engine::sqlite_with(&unfinished, options)?;
    let pool = Language::new(1).pool(TEXT_BYTES);
    for thread in 0..threads {
        let (first, end) = (messages * thread / threads, messages * (thread + 1) / threads);
        let drafts = (first..end).map(|number| crate::engine::draft(&pool, number));
        engine.seed(&format!("thread {thread}"), drafts).await?;
    }
    drop(engine);
    Ok(std::fs::rename(unfinished, path)?)
}

async fn measure(args: &Args, path: &Path, threads: u64) -> Result<()> {
    // Background indexing would distort the measurement.
    let options = SqliteOptions { background: false, ..SqliteOptions::default() };
    let engine = Arc::new(Engine::sqlite_with(path, options)?);
    let (mut floors, mut rates, mut ratios, mut growths) = (vec![], vec![], vec![], vec![]);
    let (mut cpu_rates, mut write_rates) = (vec![], vec![]);
    for _ in 0..args.trials {
        let (floor, _) = with_writers(&engine, args.writes, floor(path, &args.folder)).await?;
        let cpu_before = cpu_seconds()?;
        let (backup, writes) = with_writers(&engine, args.writes, backup(&engine, &args.folder)).await?;
        ensure!(backup.messages >= args.messages, "the backup has {} of {} messages", backup.messages, args.messages);
        cpu_rates.push(backup.messages as f64 / (cpu_seconds()? - cpu_before));
        floors.push(floor);
        rates.push(backup.rate);
        ratios.push(backup.rate / floor);
        growths.push(backup.log_growth_bytes as f64);
        write_rates.push(writes);
    }
    let spread = |figures: Vec<f64>| Spread::of(figures).context("no trials were run");
    let line = json!({
        "messages": args.messages,
        "threads": threads,
        "asked_writes_per_second": args.writes,
        "writes_per_second": spread(write_rates)?,
        "floor_messages_per_second": spread(floors)?,
        "messages_per_second": spread(rates)?,
        "messages_per_cpu_second": spread(cpu_rates)?,
        "to_floor": spread(ratios)?,
        "log_growth_bytes": spread(growths)?,
    });
    println!("{line}");
    Ok(())
}

/// The result of a backup.
struct BackupResult {
    messages: u64,
    rate: f64,
    log_growth_bytes: u64,
}

/// Writes a backup as `threadkeep backup FILE.jsonl` does.
async fn backup(engine: &Engine, folder: &Path) -> Result<BackupResult> {
    let began = Instant::now();
    let mut file = BufWriter::new(File::create(folder.join("backup.jsonl"))?);
    let lines = BackupLines::begin(engine.memory.backend(), engine.memory.platform()).await?;
    let SnapshotTotals { threads, messages } = lines.totals();
    let backed_up = lines.write(|line, _| writeln!(file, "{line}").map_err(WriteError::Disk)).await?;
    file.into_inner()?.sync_all()?;
    let seconds = began.elapsed().as_secs_f64();
    let written = backed_up.written;
    ensure!(
        (written.threads, written.messages) == (threads, messages),
        "the backup has {written:?} of {threads} threads and {messages} messages"
    );
    ensure!(backed_up.as_of == Consistency::Store, "the backup is not a consistent snapshot");
    let log_growth_bytes = backed_up.log_growth_bytes.context("missing growth of the write-ahead log")?;
    Ok(BackupResult { messages, rate: messages as f64 / seconds, log_growth_bytes })
}

/// An error while writing a backup.
#[derive(Debug)]
enum WriteError {
    Memory(MemoryError),
    Disk(std::io::Error),
}

impl From<MemoryError> for WriteError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

/// Writes a minimal backup: reads all message rows with one statement in one transaction, and writes each as a line.
/// Returns messages per second.
async fn floor(path: &Path, folder: &Path) -> Result<f64> {
    let (path, target) = (path.to_owned(), folder.join("floor.jsonl"));
    let reading = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        let mut file = BufWriter::new(File::create(target)?);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT position, id, created_at, body FROM messages ORDER BY position";
        let mut statement = connection.prepare(sql)?;
        let (mut rows, mut count) = (statement.query([])?, 0_u64);
        while let Some(row) = rows.next()? {
            let (position, at): (i64, i64) = (row.get(0)?, row.get(2)?);
            let (id, body) = (row.get_ref(1)?.as_blob()?, row.get_ref(3)?.as_str_or_null()?);
            serde_json::to_writer(&mut file, &(position, id, at, body))?;
            file.write_all(b"\n")?;
            count += 1;
        }
        file.into_inner()?.sync_all()?;
        anyhow::Ok(count as f64 / began.elapsed().as_secs_f64())
    });
    reading.await?
}

/// Runs `work` while writers append. Also returns how many messages per second the writers appended.
async fn with_writers<T>(
    engine: &Arc<Engine>,
    writes_per_second: u64,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, f64)> {
    let (is_done, count, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Instant::now());
    let mut writers = JoinSet::new();
    for number in 0..WRITERS.min(writes_per_second) {
        let (engine, is_done, count) = (Arc::clone(engine), Arc::clone(&is_done), Arc::clone(&count));
        writers.spawn(async move {
            let thread = engine.thread(&format!("writer {number}")).await?;
            let period = Duration::from_secs_f64(WRITERS as f64 / writes_per_second as f64);
            let mut ticks = tokio::time::interval(period);
            while !is_done.load(Ordering::Relaxed) {
                ticks.tick().await;
                engine.memory.append(&engine.scope, thread, Draft::user("Meanwhile, something else.")).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    let done = work.await;
    let seconds = began.elapsed().as_secs_f64();
    is_done.store(true, Ordering::Relaxed);
    let written = count.load(Ordering::Relaxed) as f64 / seconds;
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok((done?, written))
}
