//! `latency`: a context of 4,000 tokens with recall from a thread of 10,000 messages in a store of 1,000,000.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use threadkeep_context::{ContextPolicy, RecallFrom, RecallPolicy};
use threadkeep_core::{ThreadId, TokenCount, TokenCounter};
use threadkeep_memory::{ContextOptions, Draft, RecallOptions, RecallOutcome};
use threadkeep_tokens::Cl100k;

use crate::engine::Engine;
use crate::measure::resident_kib;
use crate::random::Random;
use crate::texts::Language;

const TEXT_BYTES: usize = 200;
const TOKENS: u64 = 4_000;
const WORDS: usize = 7;
/// Threads of the other users.
const OTHER_THREAD: u64 = 1_000;
const THREADS_OF_A_USER: u64 = 10;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Messages of the store
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Messages of the thread, of them
    #[arg(long, default_value_t = 10_000)]
    thread: u64,
    /// Questions that are timed
    #[arg(long, default_value_t = 400)]
    questions: usize,
    /// Append a turn before each question, so that each context has something to take in
    #[arg(long)]
    talk: bool,
    /// Where the store is made, or found again
    #[arg(long, default_value_os_t = std::env::temp_dir().join("threadkeep-latency"))]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    ensure!(args.thread <= args.messages, "the thread is larger than the store");
    std::fs::create_dir_all(&args.folder)?;
    let path = args.folder.join(format!("{}-{}.db", args.messages, args.thread));
    let is_filled = path.exists();
    let engine = Engine::sqlite(&path)?;
    let language = Language::new(1);
    if !is_filled {
        eprintln!("filling {}", path.display());
        fill(&engine, &language, args).await?;
    }
    engine.settle().await?;
    let thread = engine.thread("long").await?;
    let approximate = resident_kib(std::process::id())?.0;
    Cl100k.count("the table is read with the first text");
    let exact = resident_kib(std::process::id())?.0;
    let (recalls, contexts) = time(&engine, thread, &language, args).await?;
    let line = json!({
        "messages": args.messages,
        "thread": args.thread,
        "recall_p50_ms": percentile(&recalls, 50),
        "recall_p99_ms": percentile(&recalls, 99),
        "context_p50_ms": percentile(&contexts, 50),
        "context_p99_ms": percentile(&contexts, 99),
        "resident_kib": approximate,
        "resident_kib_with_cl100k": exact,
    });
    println!("{line}");
    Ok(())
}

async fn fill(engine: &Engine, language: &Language, args: &Args) -> Result<()> {
    let draft = |number: u64| match number % 2 {
        0 => Draft::user(language.text(number, TEXT_BYTES)),
        _ => Draft::assistant(language.text(number, TEXT_BYTES)),
    };
    // Half of the others come before, half after: the thread lies in the middle.
    let others: Vec<u64> = (args.thread..args.messages).step_by(usize::try_from(OTHER_THREAD)?).collect();
    for (place, &first) in others.iter().enumerate() {
        if place == others.len() / 2 {
            engine.seed("long", (0..args.thread).map(draft)).await?;
        }
        let user = engine.of_user(&format!("user {}", place as u64 / THREADS_OF_A_USER))?;
        user.seed(&format!("{first}"), (first..(first + OTHER_THREAD).min(args.messages)).map(draft)).await?;
    }
    if others.is_empty() {
        engine.seed("long", (0..args.thread).map(draft)).await?;
    }
    Ok(())
}

async fn time(engine: &Engine, thread: ThreadId, language: &Language, args: &Args) -> Result<(Vec<f64>, Vec<f64>)> {
    let recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let policy = ContextPolicy { budget: Some(TokenCount(TOKENS)), recall, ..ContextPolicy::default() };
    let options = ContextOptions { counter: Arc::new(Cl100k), ..ContextOptions::default() };
    // The summary catches up over several calls.
    for _ in 0..args.thread / 400 + 1 {
        engine.memory.context_with(&engine.scope, thread, Some("?"), &policy, &options).await?;
    }
    let mut random = Random::new(1);
    let (mut recalls, mut contexts) = (Vec::new(), Vec::new());
    for _ in 0..args.questions {
        let question = language.question(random.below(args.thread), TEXT_BYTES, WORDS);
        if args.talk {
            let turn = vec![Draft::user(language.text(random.next(), TEXT_BYTES)), Draft::assistant("So it is.")];
            engine.memory.append_all(&engine.scope, thread, turn, &threadkeep_memory::AppendOptions::default()).await?;
        }
        let began = Instant::now();
        let assembled = engine.memory.context_with(&engine.scope, thread, Some(&question), &policy, &options).await?;
        contexts.push(began.elapsed().as_secs_f64());
        let is_searched =
            matches!(&assembled.recall, RecallOutcome::Searched { unsearched, .. } if unsearched.is_empty());
        let total = assembled.context.report.tokens.total.0;
        ensure!(is_searched && total <= TOKENS && total > TOKENS / 2, "{:?}, {total} tokens", assembled.recall);
        let only = RecallOptions { thread: Some(thread), limit: 70, ..RecallOptions::default() };
        let began = Instant::now();
        engine.memory.recall(&engine.scope, &question, &only).await?;
        recalls.push(began.elapsed().as_secs_f64());
    }
    Ok((recalls, contexts))
}

/// In milliseconds, to the microsecond.
fn percentile(seconds: &[f64], percent: usize) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |seconds| (seconds * 1e6).round() / 1e3)
}
