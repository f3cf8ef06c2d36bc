//! The overhead and storage of a turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use threadkeep_agent::{Agent, Definition, FnTool, TurnStatus};
use threadkeep_core::{
    Backend, JsonText, Map, Namespace, RecordOwner, RecordQuery, Scope, ThreadId, ToolContext, ToolOutput,
};
use threadkeep_memory::Memory;
use threadkeep_models::{Reply, ScriptedModel, Turn};
use threadkeep_store_memory::MemoryStore;

use super::crash::backend;
use crate::measure::cpu_seconds;

/// Number of turns that are timed at each length of the thread.
const TIMED_TURNS: usize = 40;

/// Arguments of `threadkeep-bench agent figures`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of turns in the longest thread
    #[arg(long, default_value_t = 10_000)]
    turns: usize,
    /// Folder for the stores
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// Arguments of the process whose syncs are counted.
#[derive(Debug, clap::Args)]
pub(crate) struct TurnsArgs {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    turns: usize,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-agent-").tempdir_in(&args.folder)?;
    overhead().await?;
    syncs(folder.path())?;
    growth(&folder.path().join("growth.db"), args.turns).await
}

/// Measures a turn without tools, whose model answers immediately.
async fn overhead() -> Result<()> {
    let (agent, scope) = (agent(MemoryStore::open(), false)?, scope()?);
    let (mut micros, cpu) = (Vec::new(), cpu_seconds()?);
    for _ in 0..40 {
        let thread = agent.memory().open(&scope).await?.thread.id;
        for _ in 0..50 {
            micros.push(timed(&agent, &scope, thread).await?);
        }
    }
    micros.sort_unstable();
    let at = |percent: usize| micros[(micros.len() - 1) * percent / 100];
    let cpu = (cpu_seconds()? - cpu) * 1e6 / micros.len() as f64;
    println!(
        "overhead of a turn, not counting the model and tools, memory store: p50 {} µs, p95 {} µs, p99 {} µs; {cpu:.0} µs of CPU",
        at(50),
        at(95),
        at(99)
    );
    Ok(())
}

/// Measures the time of a turn and the stored bytes in threads of different lengths, in a SQLite file.
async fn growth(file: &Path, turns: usize) -> Result<()> {
    let (agent, scope) = (agent(backend(file)?, true)?, scope()?);
    let thread = agent.memory().open(&scope).await?.thread.id;
    let mut done = 0;
    println!(
        "SQLite: a turn with one tool, by the number of turns before it (median of {TIMED_TURNS}; bytes per turn; for the \
         run record and journal, the total that remains)"
    );
    println!(
        "{:>8} {:>10} {:>10} {:>8} {:>8} {:>10} {:>10}",
        "turns", "µs", "µs of CPU", "record", "report", "journal", "file"
    );
    let mut bytes_before = file_bytes(file);
    for length in [10, 100, 1_000, 10_000].into_iter().filter(|length| *length <= turns) {
        let from = done;
        while done < length {
            timed(&agent, &scope, thread).await?;
            done += 1;
        }
        let records = bytes(&agent, &scope, thread, "turn").await? / length;
        let reports = bytes(&agent, &scope, thread, "context").await? / length;
        let journal = bytes(&agent, &scope, thread, "run").await? + bytes(&agent, &scope, thread, "journal").await?;
        let bytes_now = file_bytes(file);
        let in_file = bytes_now.saturating_sub(bytes_before) / (done - from) as u64;
        bytes_before = bytes_now;
        let (mut micros, cpu) = (Vec::new(), cpu_seconds()?);
        for _ in 0..TIMED_TURNS {
            micros.push(timed(&agent, &scope, thread).await?);
        }
        let cpu = (cpu_seconds()? - cpu) * 1e6 / TIMED_TURNS as f64;
        done += TIMED_TURNS;
        micros.sort_unstable();
        let median = micros[micros.len() / 2];
        println!("{length:>8} {median:>10} {cpu:>10.0} {records:>8} {reports:>8} {journal:>10} {in_file:>10}");
    }
    compare_with_short(&agent, &scope, thread, done).await
}

/// Compares turns of the long thread with turns of a thread of ten turns. They alternate, so that temporary slowness of the
/// machine affects both.
async fn compare_with_short(agent: &Agent, scope: &Scope, long: ThreadId, turns: usize) -> Result<()> {
    let short = agent.memory().open(scope).await?.thread.id;
    for _ in 0..10 {
        timed(agent, scope, short).await?;
    }
    let mut ratios = Vec::new();
    for _ in 0..5 * TIMED_TURNS {
        let short_micros = timed(agent, scope, short).await? as f64;
        ratios.push(timed(agent, scope, long).await? as f64 / short_micros);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |percent: usize| ratios[(ratios.len() - 1) * percent / 100];
    println!(
        "time of a turn after {turns} turns, relative to one after ten, measured alternately: {:.2} (quartiles {:.2} and {:.2})",
        at(50),
        at(25),
        at(75)
    );
    Ok(())
}

async fn bytes(agent: &Agent, scope: &Scope, thread: ThreadId, namespace: &str) -> Result<usize> {
    let namespace = Some(Namespace::system(namespace)?);
    let query = RecordQuery { namespace, ..RecordQuery::of(RecordOwner::Thread(thread)) };
    let records = agent.memory().list_records(scope, query).await?;
    Ok(records.iter().map(|record| record.value.as_str().len()).sum())
}

fn file_bytes(file: &Path) -> u64 {
    let length = |path: &Path| path.metadata().map_or(0, |data| data.len());
    length(file) + length(&file.with_extension("db-wal"))
}

/// Counts the syncs of a turn with one tool, as the difference between a run of 51 turns and a run of one turn.
fn syncs(folder: &Path) -> Result<()> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("syncs: not counted (no strace)");
        return Ok(());
    }
    let count = |turns: usize| -> Result<usize> {
        let trace = folder.join(format!("trace-{turns}"));
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=fdatasync,fsync", "-o"]).arg(&trace).arg(std::env::current_exe()?);
        command.args(["agent", "turns", "--store"]).arg(folder.join(format!("syncs-{turns}.db")));
        ensure!(command.arg("--turns").arg(turns.to_string()).status()?.success(), "the turns failed");
        let trace = std::fs::read_to_string(trace)?;
        Ok(trace.lines().filter(|line| line.contains("sync(")).count())
    };
    let per_turn = count(51)?.saturating_sub(count(1)?) as f64 / 50.0;
    println!("syncs of a turn with one tool, SQLite: {per_turn:.2}");
    Ok(())
}

pub(crate) async fn turns(args: &TurnsArgs) -> Result<()> {
    let (agent, scope) = (agent(backend(&args.store)?, true)?, scope()?);
    let thread = agent.memory().open(&scope).await?.thread.id;
    for _ in 0..args.turns {
        timed(&agent, &scope, thread).await?;
    }
    Ok(())
}

async fn timed(agent: &Agent, scope: &Scope, thread: ThreadId) -> Result<u128> {
    let began = Instant::now();
    let turn = agent.chat(scope, thread, "When does the next train leave from Bank, and is there a delay?").await?;
    let micros = began.elapsed().as_micros();
    ensure!(turn.status == TurnStatus::Completed, "{:?}", turn.error);
    Ok(micros)
}

fn scope() -> Result<Scope> {
    Ok(Scope::user("acme", "ana")?)
}

fn agent(backend: Backend, with_tool: bool) -> Result<Agent> {
    let model = ScriptedModel::always(move |request| match Turn::of(request).exchanges().len() {
        0 if with_tool => Ok(Reply::call("look", json!({"station": "Bank"}))),
        _ => Ok(Reply::text("It leaves in 3 minutes, and there is no delay.")),
    });
    let parameters = JsonText::new(r#"{"type":"object"}"#).context("invalid schema")?;
    let look = FnTool::with_schema("look", "Looks", parameters, |_: ToolContext, _: Map| async {
        Ok(ToolOutput::text("northbound 3 min, southbound 5 min, good service"))
    });
    let definition = Definition::new("figures", Arc::new(model)).with_instructions("Be brief.");
    Ok(Agent::new(Memory::new(backend), if with_tool { definition.with_tool(look) } else { definition }))
}
