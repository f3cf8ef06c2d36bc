//! The door behaves the same on every store.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::CHANNEL;
use crate::bench::{Bench, Settings};

/// Holds a conversation that uses the store in every way that the door does. Returns what users, the cluster and the store have seen.
async fn converse(mut bench: Bench) -> Vec<String> {
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> describe deployment api in shop", None).await;
    let request = bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale it to 4", None).await;
    bench.restart().await;
    bench.decide(CHANNEL, &request, "U02BOB", "white_check_mark").await;
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> did it work?", None).await;

    // A thread has its own memory.
    let root = bench.slack.write(CHANNEL, "U01ALICE", "deploys", None);
    bench.ask(CHANNEL, "U02BOB", "<@U0BOT> describe deployment nginx in default", Some(&root.ts)).await;
    let denied = bench.ask(CHANNEL, "U02BOB", "scale it to 3", Some(&root.ts)).await;
    bench.decide(CHANNEL, &denied, "U01ALICE", "x").await;
    bench.slack.react(&bench.app, CHANNEL, &denied.ts, "U01ALICE", "white_check_mark").await;

    // The memory reflects an edited message and a deleted one.
    let before = bench.slack.messages().len();
    let said = bench.slack.say(&bench.app, CHANNEL, "U01ALICE", "<@U0BOT> list deployments in shop", None).await;
    bench.slack.wait_for(|messages| (messages.len() == before + 2).then_some(())).await;
    bench.slack.edit(&bench.app, CHANNEL, &said.ts, "<@U0BOT> list services in shop").await;
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> hi", None).await;
    let mut seen = bench.texts(CHANNEL).await;
    bench.slack.erase(&bench.app, CHANNEL, &said.ts).await;
    bench.restart().await;
    bench.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale it to 6", None).await;

    seen.extend(bench.texts(CHANNEL).await);
    seen.extend(bench.texts(&format!("{CHANNEL}:{}", root.ts)).await);
    seen.extend(bench.roles(CHANNEL).await);
    let mut keys = bench.keys().await;
    keys.sort();
    seen.extend(keys);
    seen.extend(bench.audit().await.iter().map(|record| format!("{record:?}")));
    seen.extend(bench.cluster.changes().iter().map(|change| format!("{change:?}")));
    seen.extend(
        bench
            .slack
            .messages()
            .iter()
            .map(|message| format!("{} {:?} {}", message.user, message.thread_ts, message.text)),
    );
    seen
}

/// Returns the first difference between two lists.
fn difference(one: &[String], other: &[String]) -> Option<(Option<String>, Option<String>)> {
    let length = one.len().max(other.len());
    let at = (0..length).find(|at| one.get(*at) != other.get(*at))?;
    Some((one.get(at).cloned(), other.get(at).cloned()))
}

async fn in_memory() -> Vec<String> {
    converse(Bench::start_on("memory:".to_owned(), Settings::default()).await).await
}

// S4.02, S4.04, S4.05, S4.38: on the in-memory store, with which the other stores are compared.
#[tokio::test]
async fn on_the_in_memory_store() {
    let seen = in_memory().await;
    let changes: Vec<&String> = seen.iter().filter(|line| line.starts_with("Request ")).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(seen.iter().any(|line| line == "list services in shop"), "{seen:?}");
    assert!(!seen.iter().any(|line| line == "list deployments in shop"), "{seen:?}");
    assert!(seen.iter().any(|line| line.starts_with("(\"slack U01ALICE\", \"deny in Slack\"")), "{seen:?}");
}

// S4.30, S4.31, S4.44: a store in memory ends with its process, and no other process sees it.
#[tokio::test]
async fn a_store_in_memory_is_not_shared() {
    let first = Bench::start_on("memory:".to_owned(), Settings::default()).await;
    first.ask(CHANNEL, "U01ALICE", "<@U0BOT> describe deployment api in shop", None).await;
    assert_eq!(first.texts(CHANNEL).await.len(), 2);
    drop(first);
    let second = Bench::start_on("memory:".to_owned(), Settings::default()).await;
    let asked = second.ask(CHANNEL, "U01ALICE", "<@U0BOT> scale it to 4", None).await;
    assert!(asked.text.ends_with('?'), "{}", asked.text);
    assert_eq!(second.texts(CHANNEL).await.len(), 2);
}

// S4.34
#[tokio::test]
async fn on_sqlite() {
    let seen = converse(Bench::start(Settings::default()).await).await;
    assert_eq!(difference(&seen, &in_memory().await), None);
}

// S4.38
#[tokio::test]
async fn on_postgres() {
    let Some(server) = threadkeep_postgres_server::Server::shared() else { return };
    let database = server.create_database().await;
    let seen = converse(Bench::start_on(database.url(), Settings::default()).await).await;
    assert_eq!(difference(&seen, &in_memory().await), None);
}

// S4.33
#[tokio::test]
async fn on_redis() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(server) = tokio::task::spawn_blocking(threadkeep_redis_server::Server::shared).await.unwrap() else {
        return;
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let store = format!("redis://{}?prefix=slack-{number}&connect_timeout=30", server.address());
    let seen = converse(Bench::start_on(store, Settings::default()).await).await;
    assert_eq!(difference(&seen, &in_memory().await), None);
}
