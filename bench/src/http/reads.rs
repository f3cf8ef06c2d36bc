//! Reading the newest 16 messages, as messages and as a context, by 32 connections.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::floor::Floor;
use super::report::Row;
use super::served::Served;
use super::wrk::Requests;
use super::{Bench, MESSAGES, Seeded, THREADS};

/// Messages that are read.
const WINDOW: usize = 16;
/// What the ratio to the floor should be, without and with the ends of threads in memory.
const UNCACHED: f64 = 0.3;
const CACHED: f64 = 0.5;

/// A way to ask for the newest messages.
struct Question {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: &'static str,
    /// Whether the newest message comes first.
    is_reversed: bool,
}

const QUESTIONS: [Question; 2] = [
    Question { name: "16 messages", method: "GET", path: "messages?limit=16", body: "", is_reversed: true },
    Question {
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
    let without = Served::start(bench, &uncached, &[("THREADKEEP_TAIL_BYTES", "0")]).await?;
    let with = Served::start(bench, &cached, &[]).await?;
    for question in &QUESTIONS {
        let (without, with) = (Asked { seeded: &uncached, served: &without }, Asked { seeded: &cached, served: &with });
        measure(bench, question, &without, &with).await?;
    }
    for (served, seeded) in [(&without, &uncached), (&with, &cached)] {
        // However often it was good.
        served.revoke_key(&bench.binary, seeded)?;
        let status = served.connect().await?.ask("GET", "/v1/threads", "").await?.status;
        ensure!(status == 401, "a key that another process revoked is answered with {status}");
    }
    without.stop()?;
    with.stop()
}

/// A server and what it serves.
struct Asked<'a> {
    seeded: &'a Seeded,
    served: &'a Served,
}

async fn measure(bench: &mut Bench<'_>, question: &Question, without: &Asked<'_>, with: &Asked<'_>) -> Result<()> {
    // What a first reading leaves behind, such as a summary, is there before anything is timed.
    let body = without.check(bench, question).await?;
    let again = without.check(bench, question).await?;
    ensure!(body.len() == again.len(), "the answer changed");
    with.check(bench, question).await?;
    let floor = Floor::start(&again, &bench.folder.path().join("floor"))?;
    let (mut uncached, mut cached) = (Vec::new(), Vec::new());
    let mut notes = [(0.0, 0.0); 2];
    for _ in 0..bench.args.trials {
        for (number, (asked, trials)) in [(without, &mut uncached), (with, &mut cached)].into_iter().enumerate() {
            let requests = asked.requests(question);
            let requests =
                Requests { method: question.method, paths: &requests, body: question.body, key: &asked.served.key };
            let (seconds, folder) = (bench.args.seconds, bench.folder.path());
            let by_floor = requests.run(floor.address, seconds, folder)?;
            by_floor.check_bytes(again.len())?;
            let by_server = requests.run(asked.served.address, seconds, folder)?;
            by_server.check_bytes(again.len())?;
            notes[number] = (by_server.p50, by_server.p99);
            trials.push((by_floor.per_second(), by_server.per_second()));
            asked.check(bench, question).await?;
        }
    }
    let bytes = again.len();
    for (name, trials, least, (p50, p99)) in
        [("uncached", &uncached, UNCACHED, notes[0]), ("cached", &cached, CACHED, notes[1])]
    {
        let row = Row::beside(format!("{}, {name}", question.name), trials, least)?;
        bench.row(row.note(format!("{bytes} bytes, p50 {:.2} ms, p99 {:.2} ms", p50 / 1e3, p99 / 1e3)));
    }
    Ok(())
}

impl Asked<'_> {
    fn requests(&self, question: &Question) -> Vec<String> {
        self.seeded.threads.iter().map(|thread| format!("/v1/threads/{thread}/{}", question.path)).collect()
    }

    /// Asks once for every thread; gives the last answer. All have to be right, and of one length.
    async fn check(&self, bench: &Bench<'_>, question: &Question) -> Result<Vec<u8>> {
        let mut connection = self.served.connect().await?;
        let mut last: Option<Vec<u8>> = None;
        for path in self.requests(question) {
            let answer = connection.ask(question.method, &path, question.body).await?;
            let mut texts = texts(&answer.json()?)?;
            if question.is_reversed {
                texts.reverse();
            }
            let newest = MESSAGES - WINDOW as u64..MESSAGES;
            let expected = newest.map(|index| &bench.pool[(index % bench.pool.len() as u64) as usize]);
            ensure!(texts.iter().rev().take(WINDOW).rev().eq(expected), "other messages than the newest were read");
            last = Some(answer.body);
        }
        last.context("nothing was asked")
    }
}

/// The words of the messages of an answer.
fn texts(answer: &Value) -> Result<Vec<String>> {
    let messages = answer.get("data").or_else(|| answer.get("messages")).and_then(Value::as_array);
    let text = |message: &Value| Some(message["parts"].as_array()?.first()?["text"].as_str()?.to_owned());
    messages.context("no messages")?.iter().map(|message| text(message).context("no text")).collect()
}
