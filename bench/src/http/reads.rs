//! Reading the newest 16 messages, as messages and as a context, over 32 connections.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::floor::Floor;
use super::report::Row;
use super::server_process::ServerProcess;
use super::wrk::Requests;
use super::{Bench, MESSAGES, Seeded, THREADS};

/// Number of messages that are read.
const WINDOW: usize = 16;
/// Goal of the ratio to the floor without the thread cache.
const UNCACHED: f64 = 0.3;
/// Goal of the ratio to the floor with the thread cache.
const CACHED: f64 = 0.5;

/// A request for the newest messages.
struct ReadRequest {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: &'static str,
    /// Whether the newest message comes first.
    is_reversed: bool,
}

const READ_REQUESTS: [ReadRequest; 2] = [
    ReadRequest { name: "16 messages", method: "GET", path: "messages?limit=16", body: "", is_reversed: true },
    ReadRequest {
        name: "a context of 16 messages",
        method: "POST",
        path: "context",
        body: r#"{"policy":{"window":16}}"#,
        is_reversed: false,
    },
];

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let uncached = bench.seed("uncached", THREADS, MESSAGES).await?;
    let cached = bench.seed("cached", THREADS, MESSAGES).await?;
    let uncached_server = ServerProcess::start(&bench.binary, &uncached, &[("THREADKEEP_TAIL_BYTES", "0")]).await?;
    let cached_server = ServerProcess::start(&bench.binary, &cached, &[]).await?;
    for request in &READ_REQUESTS {
        let (uncached_target, cached_target) = (
            Target { seeded: &uncached, server: &uncached_server },
            Target { seeded: &cached, server: &cached_server },
        );
        measure(bench, request, &uncached_target, &cached_target).await?;
    }
    for (server, seeded) in [(&uncached_server, &uncached), (&cached_server, &cached)] {
        // A cached key must not outlive its revocation.
        server.revoke_key(&bench.binary, seeded)?;
        let status = server.connect().await?.request("GET", "/v1/threads", "").await?.status;
        ensure!(status == 401, "a request with a revoked key returned {status}");
    }
    uncached_server.stop()?;
    cached_server.stop()
}

/// A server and its threads.
struct Target<'a> {
    seeded: &'a Seeded,
    server: &'a ServerProcess,
}

async fn measure(
    bench: &mut Bench<'_>,
    request: &ReadRequest,
    uncached_target: &Target<'_>,
    cached_target: &Target<'_>,
) -> Result<()> {
    // The first reads create state such as summaries, so they are not timed.
    let first = uncached_target.check(bench, request).await?;
    let again = uncached_target.check(bench, request).await?;
    ensure!(first.len() == again.len(), "the length of the response changed");
    cached_target.check(bench, request).await?;
    let floor = Floor::start(&again, &bench.folder.path().join("floor"))?;
    let (mut uncached, mut cached) = (Vec::new(), Vec::new());
    let mut percentiles = [(0.0, 0.0); 2];
    for _ in 0..bench.args.trials {
        for (number, (target, trials)) in
            [(uncached_target, &mut uncached), (cached_target, &mut cached)].into_iter().enumerate()
        {
            let paths = target.paths(request);
            let requests =
                Requests { method: request.method, paths: &paths, body: request.body, key: &target.server.key };
            let (seconds, folder) = (bench.args.seconds, bench.folder.path());
            let by_floor = requests.run(floor.address, seconds, folder)?;
            by_floor.check_mean_length(again.len())?;
            let by_server = requests.run(target.server.address, seconds, folder)?;
            by_server.check_mean_length(again.len())?;
            percentiles[number] = (by_server.p50, by_server.p99);
            trials.push((by_floor.per_second(), by_server.per_second()));
            target.check(bench, request).await?;
        }
    }
    let bytes = again.len();
    for (name, trials, min_ratio, (p50, p99)) in
        [("uncached", &uncached, UNCACHED, percentiles[0]), ("cached", &cached, CACHED, percentiles[1])]
    {
        let row = Row::with_floor(format!("{}, {name}", request.name), trials, min_ratio)?;
        bench.row(row.note(format!("{bytes} bytes, p50 {:.2} ms, p99 {:.2} ms", p50 / 1e3, p99 / 1e3)));
    }
    Ok(())
}

impl Target<'_> {
    fn paths(&self, request: &ReadRequest) -> Vec<String> {
        self.seeded.threads.iter().map(|thread| format!("/v1/threads/{thread}/{}", request.path)).collect()
    }

    /// Reads every thread once and checks the responses. Returns the body of the last one.
    async fn check(&self, bench: &Bench<'_>, request: &ReadRequest) -> Result<Vec<u8>> {
        let mut connection = self.server.connect().await?;
        let mut last: Option<Vec<u8>> = None;
        for path in self.paths(request) {
            let response = connection.request(request.method, &path, request.body).await?;
            let mut texts = texts(&response.json()?)?;
            if request.is_reversed {
                texts.reverse();
            }
            let newest = MESSAGES - WINDOW as u64..MESSAGES;
            let expected = newest.map(|index| &bench.pool[(index % bench.pool.len() as u64) as usize]);
            ensure!(texts.iter().rev().take(WINDOW).rev().eq(expected), "the newest messages were not returned");
            last = Some(response.body);
        }
        last.context("no threads")
    }
}

/// Returns the texts of the messages in a response.
fn texts(response: &Value) -> Result<Vec<String>> {
    let messages = response.get("data").or_else(|| response.get("messages")).and_then(Value::as_array);
    let text = |message: &Value| Some(message["parts"].as_array()?.first()?["text"].as_str()?.to_owned());
    messages.context("missing messages")?.iter().map(|message| text(message).context("missing text")).collect()
}
