//! Turns (a user's and an assistant's message in one request) over 32 connections, compared with 32 writers of the
//! library.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::client::Connection;
use super::report::Row;
use super::server_process::ServerProcess;
use super::{Bench, CONNECTIONS, wrk};
use crate::engine::{Engine, check_thread};
use crate::measure::{BusyDisk, until_idle};

/// Goal of the ratio to the library.
const TO_LIBRARY: f64 = 0.7;
/// Seconds of writing that let the write-ahead logs grow to full size before anything is timed.
const GROW_SECONDS: u64 = 4;
/// Delay after a discarded trial.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("turns", 1, 1).await?;
    let library = Engine::sqlite(&bench.folder.path().join("library.db"))?;
    let server = ServerProcess::start(&bench.binary, &seeded, &[]).await?;
    let grow = GROW_SECONDS.min(bench.args.seconds * 2);
    by_library(bench, &library, "grown", grow).await?;
    by_server(bench, &server, "grown", grow).await?;
    settle(&library, &server).await?;
    let (mut trials, mut discarded) = (Vec::new(), 0);
    while trials.len() < bench.args.trials {
        if bench.disk.is_busy()? {
            discarded += 1;
            ensure!(discarded < bench.args.trials * 10, BusyDisk);
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let name = format!("trial {} {discarded}", trials.len());
        let floor = by_library(bench, &library, &name, bench.args.seconds).await?;
        settle(&library, &server).await?;
        trials.push((floor, by_server(bench, &server, &name, bench.args.seconds).await?));
        settle(&library, &server).await?;
    }
    server.stop()?;
    let row =
        Row::with_floor("turns over 32 connections", &trials, TO_LIBRARY)?.note("floor: 32 writers of the library");
    let row = if discarded > 0 { row.note(format!("{discarded} trials discarded")) } else { row };
    bench.row(row);
    Ok(())
}

/// Waits until library and server have finished background work, so that neither affects the measurement of the other.
async fn settle(library: &Engine, server: &ServerProcess) -> Result<()> {
    library.settle().await?;
    until_idle(std::process::id()).await?;
    server.settle().await
}

async fn by_library(bench: &Bench<'_>, library: &Engine, name: &str, seconds: u64) -> Result<f64> {
    let names: Vec<String> = (0..CONNECTIONS).map(|writer| format!("{name} writer {writer}")).collect();
    let turns = library.append(&names, &bench.pool, 0, seconds as f64, None).await?;
    ensure!(turns.errors == 0, "{} appends failed", turns.errors);
    for (name, turns) in names.iter().zip(&turns.per_writer) {
        check_thread(library, name, &bench.pool, 0, turns * 2).await?;
    }
    Ok(turns.per_second())
}

async fn by_server(bench: &Bench<'_>, server: &ServerProcess, name: &str, seconds: u64) -> Result<f64> {
    let mut connection = server.connect().await?;
    let mut threads = Vec::with_capacity(CONNECTIONS);
    for writer in 0..CONNECTIONS {
        let body = json!({ "key": format!("{name} writer {writer}") }).to_string();
        let opened = connection.request("POST", "/v1/threads", &body).await?.json()?;
        threads.push(opened["id"].as_str().context("missing id of the thread")?.to_owned());
    }
    let script = script(&threads, &bench.pool, &server.key);
    // One wrk thread for each connection, so that each appends sequentially to its own conversation.
    let report = wrk::run(&script, CONNECTIONS, server.address, seconds, bench.folder.path())?;
    let mut stored = 0;
    for thread in &threads {
        stored += check(&mut connection, thread, &bench.pool).await?;
    }
    // Requests in flight at the end of wrk may have been stored.
    let max = report.requests + CONNECTIONS as u64;
    ensure!((report.requests..=max).contains(&stored), "{stored} turns stored, {} acknowledged", report.requests);
    Ok(report.per_second())
}

/// Returns the wrk script: each wrk thread appends turns to its own conversation. Every text starts with the turn's number.
fn script(threads: &[String], pool: &[String], key: &str) -> String {
    let paths: String = threads.iter().map(|thread| format!("  \"/v1/threads/{thread}/messages\",\n")).collect();
    let texts: String = pool.iter().take(256).map(|text| format!("  {text:?},\n")).collect();
    format!(
        r#"local paths = {{
{paths}}}
local texts = {{
{texts}}}
local headers = {{ ["Authorization"] = "Bearer {key}", ["Content-Type"] = "application/json" }}
local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end
local turn = 0
function request()
  turn = turn + 1
  local user, assistant = texts[(2 * turn - 2) % 256 + 1], texts[(2 * turn - 1) % 256 + 1]
  local body = string.format('{{"messages":[{{"role":"user","text":"%d %s"}},{{"role":"assistant","text":"%d %s"}}]}}',
    turn, user, turn, assistant)
  return wrk.format("POST", paths[number], headers, body)
end
"#
    )
}

/// Reads a whole conversation and checks that its turns are complete, in order and not duplicated. Returns their number.
async fn check(connection: &mut Connection, thread: &str, pool: &[String]) -> Result<u64> {
    let (mut after, mut turns, mut last) = (0, 0, 0_u64);
    loop {
        let path = format!("/v1/threads/{thread}/messages?order=asc&limit=1000&after={after}");
        let page = connection.request("GET", &path, "").await?.json()?;
        let messages = page["data"].as_array().context("missing messages")?;
        for (at, message) in messages.iter().enumerate() {
            let is_user = at % 2 == 0;
            ensure!(message["role"] == if is_user { "user" } else { "assistant" }, "a turn is incomplete");
            let (number, text) =
                message["text"].as_str().and_then(|text| text.split_once(' ')).context("missing text")?;
            let number: u64 = number.parse()?;
            ensure!(if is_user { number > last } else { number == last }, "turn {number} follows turn {last}");
            let index = 2 * (number - 1) + u64::from(!is_user);
            ensure!(text == pool[(index % 256) as usize], "turn {number} has a different text");
            (last, turns) = (number, turns + u64::from(is_user));
        }
        match page["next"].as_u64() {
            Some(next) => after = next,
            None if page["has_more"] == Value::Bool(false) => return Ok(turns),
            None => anyhow::bail!("missing cursor of the next page"),
        }
    }
}
