//! Events at a steady rate. `threadkeep-bench slack` measures how soon they are acknowledged, and the memory with many channels.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::bench::{Bench, Settings};

/// The number of events, of which one in ten is a question.
const EVENTS: u64 = 40;

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

/// Events are sent whether or not earlier ones were acknowledged. All are acknowledged, and all questions are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_at_a_steady_rate_are_acknowledged_and_answered() {
    let bench = Bench::start(Settings::default()).await;
    bench.slack.keep_only_counts();
    let (slack, url) = (Arc::new(bench.slack), bench.app.events_url().to_owned());
    let (mut ticks, mut sent) = (interval(Duration::from_millis(20)), JoinSet::new());
    for number in 0..EVENTS {
        ticks.tick().await;
        let body = slack.envelope(&if number % 10 == 0 { event(number) } else { reaction(number) });
        let (slack, url) = (Arc::clone(&slack), url.clone());
        sent.spawn(async move { slack.post(&url, &body, "application/json", None).await.status });
    }
    assert!(sent.join_all().await.iter().all(|status| *status == Some(200)));
    slack.wait_for_posts(EVENTS.div_ceil(10)).await;
}
