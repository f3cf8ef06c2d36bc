//! Many events and many channels. The counts are small by default. To measure, set larger ones in the environment and print the
//! results:
//! `THREADKEEP_SLACK_RATE=200 THREADKEEP_SLACK_SECONDS=30 cargo test -p threadkeep-slack --test slack acknowledged -- --nocapture`
//! `THREADKEEP_SLACK_CHANNELS=100000 cargo test -p threadkeep-slack --test slack many_channels -- --nocapture`

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use threadkeep_simulator::slack::{SIGNING_SECRET, sign};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::bench::{Bench, Settings, client};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Returns a message to the bot in one of many channels.
fn event(number: u64) -> Value {
    json!({
        "type": "app_mention", "channel": format!("C{number:07}"), "user": format!("U{:04}", number % 1_000),
        "text": "<@U0BOT> thanks", "ts": format!("{}.000100", 1_760_000_000 + number),
    })
}

/// Returns a reaction to a message that requests nothing.
fn reaction(number: u64) -> Value {
    json!({
        "type": "reaction_added", "user": format!("U{:04}", number % 1_000), "reaction": "white_check_mark",
        "item": { "type": "message", "channel": format!("C{number:07}"), "ts": "1750000000.000100" },
    })
}

/// Sends events to the server over persistent connections, as Slack does.
#[derive(Clone)]
struct Sender {
    client: reqwest::Client,
    url: String,
}

impl Sender {
    fn of(bench: &Bench) -> Self {
        Self { client: client(), url: bench.app.events_url().to_owned() }
    }

    /// Sends an event, and returns the time to its acknowledgement.
    async fn send(&self, body: String) -> Duration {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs().to_string();
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let request = request.header("x-slack-signature", sign(SIGNING_SECRET, &now, &body));
        let started = Instant::now();
        let response = request.header("x-slack-request-timestamp", now).body(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        started.elapsed()
    }
}

/// Sends events at a steady rate, whether or not earlier ones were acknowledged. One in ten is a question; all are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_acknowledged_before_they_are_answered() {
    let rate = number("THREADKEEP_SLACK_RATE").unwrap_or(20);
    let count = rate * number("THREADKEEP_SLACK_SECONDS").unwrap_or(1);
    let bench = Bench::start(Settings::default()).await;
    bench.slack.keep_only_counts();
    let (sender, mut ticks, mut sent) =
        (Sender::of(&bench), interval(Duration::from_secs(1) / u32::try_from(rate).unwrap()), JoinSet::new());
    for number in 0..count {
        ticks.tick().await;
        let (sender, body) =
            (sender.clone(), bench.slack.envelope(&if number % 10 == 0 { event(number) } else { reaction(number) }));
        sent.spawn(async move { sender.send(body).await });
    }
    let mut times = sent.join_all().await;
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    println!("{count} events at {rate}/s: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
    let started = Instant::now();
    bench.slack.wait_for_posts(count.div_ceil(10)).await;
    println!("all questions answered {:?} after the last acknowledgement", started.elapsed());
}

/// Returns the resident memory of this process, in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

/// Sends a message in each of many channels. The store contains all conversations; the process keeps few of them in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_with_many_channels() {
    let count = number("THREADKEEP_SLACK_CHANNELS").unwrap_or(200);
    let bench = Bench::start(Settings::default()).await;
    bench.slack.keep_only_counts();
    let (sender, concurrent, mut sizes) = (Sender::of(&bench), Arc::new(Semaphore::new(32)), vec![resident_mib()]);
    for tenth in 0..10 {
        let (from, to) = (count * tenth / 10, count * (tenth + 1) / 10);
        let mut sent = JoinSet::new();
        for number in from..to {
            let permit = Arc::clone(&concurrent).acquire_owned().await.unwrap();
            let (sender, body) = (sender.clone(), bench.slack.envelope(&event(number)));
            sent.spawn(async move {
                sender.send(body).await;
                drop(permit);
            });
        }
        sent.join_all().await;
        bench.slack.wait_for_posts(to).await;
        sizes.push(resident_mib());
        println!("{to} channels: {} MiB", resident_mib());
    }
    // The second half of the channels adds less than 1 KiB per channel, plus a tolerance for noise.
    let growth = sizes[10].saturating_sub(sizes[5]);
    assert!(growth <= 32 + count / 2_048, "{sizes:?}");
}
