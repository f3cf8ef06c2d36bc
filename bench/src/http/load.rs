//! Memory under load: resident at the beginning, in the middle and at the end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::report::Row;
use super::served::Served;
use super::{Bench, MESSAGES, THREADS, wrk};

/// What memory may grow by from the first tenth to the end.
const GROWTH_MB: f64 = 10.0;
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(500);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("load", THREADS, MESSAGES).await?;
    let served = Served::start(bench, &seeded, &[]).await?;
    let mut connection = served.connect().await?;
    // A token table is there from the beginning, as it comes once.
    let path = format!("/v1/threads/{}/context", seeded.threads[0]);
    connection.ask("POST", &path, r#"{"model":"gpt-4o"}"#).await?.json()?;
    let seconds = ((bench.args.minutes * 60.0) as u64).max(1);
    let threads: Vec<String> = seeded.threads.iter().map(ToString::to_string).collect();
    let script = script(&threads, &bench.pool, &served.key);
    let (address, folder) = (served.address, bench.folder.path().to_owned());
    let mut loading = tokio::task::spawn_blocking(move || wrk::run(&script, 2, address, seconds, &folder));
    let (began, mut seen) = (Instant::now(), Vec::new());
    let loaded = loop {
        tokio::select! {
            loaded = &mut loading => break loaded??,
            () = tokio::time::sleep(MOMENT) => {
                seen.push((began.elapsed().as_secs_f64() / seconds as f64, served.resident_mb()?));
            }
        }
    };
    // The server has closed the first connection meanwhile: it was silent for too long.
    let ready = served.connect().await?.ask("GET", "/ready", "").await?;
    ensure!(ready.status == 200, "the server is not ready any more");
    let at = |share: f64| {
        let found = seen.iter().find(|(moment, _)| *moment >= share).or(seen.last());
        found.map(|(_, resident)| *resident).context("memory was not looked at")
    };
    let (start, middle, end) = (at(0.1)?, at(0.5)?, at(1.0)?);
    let name = format!("growth of memory in {} min of load", bench.args.minutes);
    let row = Row::at_most(name, "MB", [end - start], GROWTH_MB)?;
    let row = row.note(format!("{start:.1} MB after a tenth, {middle:.1} MB in the middle, {end:.1} MB at the end"));
    bench.row(row.note(format!("{:.0} requests a second: turns, messages, contexts", loaded.per_second())));
    served.stop()
}

/// Of ten requests one is a turn, two are contexts and seven read messages.
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
