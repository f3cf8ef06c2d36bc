//! Memory use of a process that opens a store with long threads, reads and searches.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::report::Row;
use super::{Bench, load};
use crate::engine::{Engine, draft};
use crate::measure::{Sample, Series, resident_kib};
use crate::session::Session;

const LENGTH: u64 = 1_000_000;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let path = match bench.long_threads.clone() {
        Some(path) => path,
        None => {
            bench.show_progress("memory: filling a thread of 1,000,000");
            let path = bench.folder("memory")?.join("engine.db");
            let engine = Engine::sqlite(&path)?;
            engine.seed(&load::name(LENGTH), (0..LENGTH).map(|index| draft(&bench.pool, index))).await?;
            engine.settle().await?;
            path
        }
    };
    bench.show_progress("memory in use");
    let folder = path.parent().context("the store has no parent folder")?;
    let mut session = Session::start(Command::new(std::env::current_exe()?), folder, &bench.pool)?;
    let thread = load::name(LENGTH);
    add_row(bench, &session, "memory after opening 1,000,000 messages")?;
    let answer = session.request(
        &json!({ "op": "load", "thread": thread, "n": 16, "seconds": 1.0, "at_least": 400, "at_most": 400 }),
    )?;
    ensure!(answer["texts"] == json!(load::expected(bench, LENGTH)), "the newest messages were not returned");
    add_row(bench, &session, "memory after 400 loads of 16")?;
    let answer = session.request(&json!({ "op": "page", "thread": thread, "size": 100 }))?;
    ensure!(answer["count"] == json!(LENGTH), "not all messages were returned: {answer}");
    add_row(bench, &session, "memory after paging through 1,000,000")?;
    let word = bench.pool[0].split(' ').nth(1).context("the text has only one word")?;
    session.request(&json!({ "op": "search", "term": word, "limit": 10, "seconds": 1.0 }))?;
    add_row(bench, &session, "memory after searching")?;
    session.close()
}

fn add_row(bench: &mut Bench, session: &Session, workload: &str) -> Result<()> {
    let (resident, peak) = resident_kib(session.process())?;
    let sample = Sample { raw: None, same_sql: None, engine: resident as f64 / 1024.0 };
    let series = Series { samples: vec![sample], discarded: 0 };
    let row = Row::new(workload, "MiB", &series)?;
    bench.rows.push(row.note(format!("peak {:.1} MiB", peak as f64 / 1024.0)));
    Ok(())
}
