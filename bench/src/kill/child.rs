//! The process with the writers.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use threadkeep_memory::{AppendOptions, Appended, Draft};
use threadkeep_store_sqlite::{Durability, SqliteOptions};

use crate::engine::Engine;

/// Arguments of the process with the writers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store's file
    #[arg(long)]
    store: PathBuf,
    /// The number of each writer's next turn, separated by commas
    #[arg(long, value_delimiter = ',')]
    next: Vec<u64>,
    /// Number of turns after which each writer ends
    #[arg(long, default_value_t = u64::MAX)]
    turns: u64,
    /// Acknowledge turns before they are synced
    #[arg(long)]
    without_sync: bool,
}

/// A turn, by its writer and its number among the writer's turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Turn {
    pub(crate) writer: usize,
    pub(crate) number: u64,
}

impl Turn {
    /// Returns the name of a writer's thread. Two writers share a thread, so that their commits conflict.
    pub(crate) fn thread(writer: usize) -> String {
        format!("thread {}", writer / 2)
    }

    pub(crate) fn key(self) -> String {
        format!("{}.{}", self.writer, self.number)
    }

    /// Parses a key, or the text of a message, which starts with a key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (writer, number) = text.split(' ').next()?.split_once('.')?;
        Some(Self { writer: writer.parse().ok()?, number: number.parse().ok()? })
    }
}

/// Appends a turn with its idempotency key. The same call repeats it safely.
pub(crate) async fn append(engine: &Engine, turn: Turn) -> Result<Appended> {
    let thread = engine.thread(&Turn::thread(turn.writer)).await?;
    let key = turn.key();
    let drafts = vec![
        Draft::user(format!("{key} asks, and says a little more than that")),
        Draft::assistant(format!("{key} answers, {}", "at some length ".repeat(1 + turn.number as usize % 20))),
    ];
    let options = AppendOptions { idempotency_key: Some(key), ..AppendOptions::default() };
    Ok(engine.memory.append_all(&engine.scope, thread, drafts, &options).await?)
}

/// Writes until it is killed or every writer has appended its turns.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let durability = if args.without_sync { Durability::Process } else { Durability::Full };
    let engine = Engine::sqlite_with(&args.store, SqliteOptions { durability, ..SqliteOptions::default() })?;
    for writer in 0..args.next.len() {
        engine.thread(&Turn::thread(writer)).await?;
    }
    print_line("ready")?;
    let writers = args.next.iter().enumerate().map(|(writer, next)| {
        let (engine, numbers) = (engine.clone(), *next..next.saturating_add(args.turns));
        tokio::spawn(async move {
            for number in numbers {
                let turn = Turn { writer, number };
                print_line(&format!("try {}", turn.key()))?;
                append(&engine, turn).await?;
                print_line(&format!("ok {}", turn.key()))?;
            }
            Ok::<(), anyhow::Error>(())
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    Ok(())
}

/// Writes a line with a single call, so that a kill never leaves a partial line in the pipe.
fn print_line(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes())?;
    output.flush()?;
    Ok(())
}
