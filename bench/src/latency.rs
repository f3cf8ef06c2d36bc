//! `latency`: a context of 4,000 tokens with recall from a thread of 10,000 messages in a store of 1,000,000.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use threadkeep_context::{ContextPolicy, RecallFrom, RecallPolicy};
use threadkeep_core::{ThreadId, TokenCount, TokenCounter};
use threadkeep_memory::{AppendOptions, AssembledContext, ContextOptions, Draft, RecallOptions, RecallOutcome};
use threadkeep_tokens::Cl100k;

use crate::engine::Engine;
use crate::measure::{cpu_seconds, percentile_ms, resident_kib};
use crate::random::Random;
use crate::texts::Language;

const TEXT_BYTES: usize = 200;
const TOKENS: u64 = 4_000;
const WORDS: usize = 7;
/// Number of messages in each of the other threads.
const OTHER_THREAD: u64 = 1_000;
/// Number of threads of each other user.
const THREADS_PER_USER: u64 = 10;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of messages in the store
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Number of messages in the long thread
    #[arg(long, default_value_t = 10_000)]
    thread: u64,
    /// Number of questions
    #[arg(long, default_value_t = 400)]
    questions: usize,
    /// Append a turn before each question, so that each context includes new messages
    #[arg(long)]
    talk: bool,
    /// Folder for the store; an existing store in it is reused
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
    Cl100k.count("the first count loads the token table");
    let exact = resident_kib(std::process::id())?.0;
    let (recalls, contexts, cpu) = time(&engine, thread, &language, args).await?;
    let line = json!({
        "messages": args.messages,
        "thread": args.thread,
        "recall_p50_ms": percentile_ms(&recalls, 50),
        "recall_p99_ms": percentile_ms(&recalls, 99),
        "context_p50_ms": percentile_ms(&contexts, 50),
        "context_p99_ms": percentile_ms(&contexts, 99),
        "context_cpu_ms": (cpu * 1e6).round() / 1e3,
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
    // Half of the other threads are written before the long thread, half after it.
    let others: Vec<u64> = (args.thread..args.messages).step_by(usize::try_from(OTHER_THREAD)?).collect();
    for (index, &first) in others.iter().enumerate() {
        if index == others.len() / 2 {
            engine.seed("long", (0..args.thread).map(draft)).await?;
        }
        let user = engine.for_user(&format!("user {}", index as u64 / THREADS_PER_USER))?;
        user.seed(&format!("{first}"), (first..(first + OTHER_THREAD).min(args.messages)).map(draft)).await?;
    }
    if others.is_empty() {
        engine.seed("long", (0..args.thread).map(draft)).await?;
    }
    Ok(())
}

/// Returns the seconds that recalls and contexts took, and the mean CPU seconds of a context.
async fn time(
    engine: &Engine,
    thread: ThreadId,
    language: &Language,
    args: &Args,
) -> Result<(Vec<f64>, Vec<f64>, f64)> {
    let (memory, scope) = (&engine.memory, &engine.scope);
    let recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let policy = ContextPolicy { budget: Some(TokenCount(TOKENS)), recall, ..ContextPolicy::default() };
    let options = ContextOptions { counter: Arc::new(Cl100k), ..ContextOptions::default() };
    // Several calls are needed until the summary covers the whole thread.
    for _ in 0..args.thread / 400 + 1 {
        memory.context_with(scope, thread, Some("?"), &policy, &options).await?;
    }
    let mut random = Random::new(1);
    let questions = (0..args.questions).map(|_| language.question(random.below(args.thread), TEXT_BYTES, WORDS));
    let questions: Vec<String> = questions.collect();
    let (mut recalls, mut contexts, mut cpu) = (Vec::new(), Vec::new(), 0.0);
    for question in &questions {
        let only = RecallOptions { thread: Some(thread), limit: 70, ..RecallOptions::default() };
        let began = Instant::now();
        memory.recall(scope, question, &only).await?;
        recalls.push(began.elapsed().as_secs_f64());
    }
    for question in &questions {
        if args.talk {
            let turn = vec![Draft::user(language.text(random.next(), TEXT_BYTES)), Draft::assistant("So it is.")];
            memory.append_all(scope, thread, turn, &AppendOptions::default()).await?;
        }
        let (began, cpu_before) = (Instant::now(), cpu_seconds()?);
        let assembled = memory.context_with(scope, thread, Some(question), &policy, &options).await?;
        contexts.push(began.elapsed().as_secs_f64());
        cpu += cpu_seconds()? - cpu_before;
        check(&assembled)?;
    }
    Ok((recalls, contexts, cpu / args.questions.max(1) as f64))
}

fn check(assembled: &AssembledContext) -> Result<()> {
    let total = assembled.context.report.tokens.total.0;
    let RecallOutcome::Searched { unsearched, .. } = &assembled.recall else {
        bail!("recall was not attempted: {:?}", assembled.recall);
    };
    let is_full = (TOKENS / 2..=TOKENS).contains(&total);
    ensure!(unsearched.is_empty() && is_full, "{total} tokens, unsearched {unsearched:?}");
    Ok(())
}
