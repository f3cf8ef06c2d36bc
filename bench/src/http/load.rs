//! Memory under load: resident at the start, in the middle and at the end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::report::Row;
use super::server_process::ServerProcess;
use super::{Bench, MESSAGES, THREADS, wrk};

/// Maximum growth of memory from the first tenth of the load to its end.
const GROWTH_MB: f64 = 10.0;
/// Interval between samples of memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("load", THREADS, MESSAGES).await?;
    let server = ServerProcess::start(&bench.binary, &seeded, &[]).await?;
    let mut connection = server.connect().await?;
    // Loads the token table first, since that is a one-time cost.
    let path = format!("/v1/threads/{}/context", seeded.threads[0]);
    connection.request("POST", &path, r#"{"model":"gpt-4o"}"#).await?.json()?;
    let seconds = ((bench.args.minutes * 60.0) as u64).max(1);
    let threads: Vec<String> = seeded.threads.iter().map(ToString::to_string).collect();
    let script = script(&threads, &bench.pool, &server.key);
    let (address, folder) = (server.address, bench.folder.path().to_owned());
    let mut loading = tokio::task::spawn_blocking(move || wrk::run(&script, 2, address, seconds, &folder));
    let (began, mut samples) = (Instant::now(), Vec::new());
    let loaded = loop {
        tokio::select! {
            loaded = &mut loading => break loaded??,
            () = tokio::time::sleep(SAMPLE_INTERVAL) => {
                samples.push((began.elapsed().as_secs_f64() / seconds as f64, server.resident_mb()?));
            }
        }
    };
    // The server has closed the first connection, which was idle.
    let ready = server.connect().await?.request("GET", "/ready", "").await?;
    ensure!(ready.status == 200, "the server is no longer ready");
    let at = |share: f64| {
        let sample = samples.iter().find(|(elapsed_share, _)| *elapsed_share >= share).or(samples.last());
        sample.map(|(_, resident)| *resident).context("no samples of memory")
    };
    let (start, middle, end) = (at(0.1)?, at(0.5)?, at(1.0)?);
    let name = format!("memory growth in {} min of load", bench.args.minutes);
    let row = Row::at_most(name, "MB", [end - start], GROWTH_MB)?;
    let row = row.note(format!("{start:.1} MB after a tenth, {middle:.1} MB halfway, {end:.1} MB at the end"));
    bench.row(row.note(format!("{:.0} requests per second: turns, messages, contexts", loaded.per_second())));
    server.stop()
}

/// Returns the wrk script: of ten requests one appends a turn, two get contexts and seven read messages.
fn script(threads: &[String], pool: &[String], key: &str) -> String {
    let threads: String = threads.iter().map(|thread| format!("  {thread:?},\n")).collect();
    let turn = format!(
        r#"{{"messages":[{{"role":"user","text":"{}"}},{{"role":"assistant","text":"{}"}}]}}"#,
        pool[0], pool[1]
    );
    format!(
        r#"local threads = {{
{threads}}}
local headers = {{ ["Authorization"] = "Bearer {key}", ["Content-Type"] = "application/json" }}
local turns, contexts, reads, at = {{}}, {{}}, {{}}, 0
function init()
  for number, thread in ipairs(threads) do
    turns[number] = wrk.format("POST", "/v1/threads/" .. thread .. "/messages", headers, {turn:?})
    contexts[number] = wrk.format("POST", "/v1/threads/" .. thread .. "/context", headers, '{{"model":"gpt-4o"}}')
    reads[number] = wrk.format("GET", "/v1/threads/" .. thread .. "/messages?limit=16", headers)
  end
end
function request()
  at = at + 1
  local number = at % #threads + 1
  if at % 10 == 0 then return turns[number] end
  if at % 10 < 3 then return contexts[number] end
  return reads[number]
end
"#
    )
}
