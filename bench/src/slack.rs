//! `slack`: the server with a Slack app: how soon it acknowledges events, and how its memory grows with the number of channels.
//!
//! The simulated Slack and the simulated cluster run in this process, the server in its own. The baseline receives the same
//! events and returns fixed bytes; it stores nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use threadkeep_simulator::cluster::{Cluster, World};
use threadkeep_simulator::slack::{BOT_TOKEN, BOT_USER, SIGNING_SECRET, Slack, sign};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::http::Seeded;
use crate::http::floor::Floor;
use crate::http::server_process::ServerProcess;
use crate::measure::{percentile_ms, program};

/// Of this many events, one is a question. The others are reactions, which are stored but need no answer.
const QUESTION_SHARE: u64 = 10;
/// Number of questions that are sent at the same time while the memory is measured.
const CONCURRENT: usize = 32;
/// The memory is measured after each of this many parts of the channels.
const PARTS: u64 = 10;

/// Arguments of `threadkeep-bench slack`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Events per second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Seconds of events
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Number of channels in which a question is asked
    #[arg(long, default_value_t = 100_000)]
    channels: u64,
    /// The program to start; default: `threadkeep` beside this program
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Folder for the store
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-slack-").tempdir_in(&args.folder)?;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let cluster = Cluster::start(World { objects: vec![namespace], ..World::default() }).await?;
    let slack = Slack::start().await?;
    slack.keep_only_counts();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig())?;
    let server = start(&program(args.binary.as_deref())?, folder.path(), &slack, &kubeconfig).await?;
    let sender = EventSender::new(format!("http://{}/slack/events", server.address))?;

    let floor = Floor::start(br#"{"ok":true}"#, &folder.path().join("floor"))?;
    let floor_sender = EventSender::new(floor_url(floor.address))?;
    let floor_times = send_steadily(args, &slack, &floor_sender).await?;
    let times = send_steadily(args, &slack, &sender).await?;
    let questions = u64::try_from(times.len())?.div_ceil(QUESTION_SHARE);
    slack.wait_for_posts(questions).await;
    server.settle().await?;
    let resident = resident_by_channels(args.channels, questions, &slack, &sender, &server).await?;
    server.stop()?;

    let ratio = |percent| percentile_ms(&times, percent) / percentile_ms(&floor_times, percent).max(0.001);
    let line = json!({
        "events": times.len(),
        "events_per_second": args.rate,
        "acknowledgement_p50_ms": percentile_ms(&times, 50),
        "acknowledgement_p99_ms": percentile_ms(&times, 99),
        "acknowledgement_max_ms": percentile_ms(&times, 100),
        "floor_p50_ms": percentile_ms(&floor_times, 50),
        "floor_p99_ms": percentile_ms(&floor_times, 99),
        "p50_ratio": (ratio(50) * 100.0).round() / 100.0,
        "p99_ratio": (ratio(99) * 100.0).round() / 100.0,
        "channels": args.channels,
        "resident_mb_by_channels": resident,
    });
    println!("{line}");
    Ok(())
}

async fn start(program: &Path, folder: &Path, slack: &Slack, kubeconfig: &Path) -> Result<ServerProcess> {
    let store = Seeded { store: folder.join("slack.db"), threads: Vec::new() };
    let (api_url, kubeconfig) = (slack.api_url(), kubeconfig.to_string_lossy());
    let variables = [
        ("SLACK_SIGNING_SECRET", SIGNING_SECRET),
        ("SLACK_BOT_TOKEN", BOT_TOKEN),
        ("SLACK_API_URL", &api_url),
        ("KUBECONFIG", &kubeconfig),
        ("THREADKEEP_MODEL", "offline"),
    ];
    ServerProcess::start(program, &store, &variables).await
}

/// Returns the URL of a route of the baseline. Its path has no meaning.
fn floor_url(address: SocketAddr) -> String {
    format!("http://{address}/v1/threads/slack/messages")
}

/// Returns a question to the bot, in a channel of its own.
fn question(number: u64) -> Value {
    json!({
        "type": "app_mention", "channel": format!("C{number:07}"), "user": format!("U{:04}", number % 1_000),
        "text": format!("<@{BOT_USER}> thanks"), "ts": format!("{}.000100", 1_760_000_000 + number),
    })
}

/// Returns a reaction to a message that requests nothing.
fn reaction(number: u64) -> Value {
    json!({
        "type": "reaction_added", "user": format!("U{:04}", number % 1_000), "reaction": "white_check_mark",
        "item": { "type": "message", "channel": format!("C{number:07}"), "ts": "1750000000.000100" },
    })
}

/// Sends events over persistent connections, as Slack does.
#[derive(Clone, Debug)]
struct EventSender {
    client: reqwest::Client,
    url: String,
}

impl EventSender {
    fn new(url: String) -> Result<Self> {
        Ok(Self { client: reqwest::Client::builder().no_proxy().build()?, url })
    }

    /// Sends an event, and returns the seconds until its acknowledgement.
    async fn send(&self, body: String) -> Result<f64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().to_string();
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let request = request.header("x-slack-signature", sign(SIGNING_SECRET, &now, &body));
        let began = Instant::now();
        let response = request.header("x-slack-request-timestamp", now).body(body).send().await?;
        let seconds = began.elapsed().as_secs_f64();
        ensure!(response.status() == 200, "the server returned {}: {}", response.status(), response.text().await?);
        Ok(seconds)
    }
}

/// Sends events at a steady rate, whether or not earlier ones were acknowledged. Returns the seconds until each acknowledgement.
async fn send_steadily(args: &Args, slack: &Slack, sender: &EventSender) -> Result<Vec<f64>> {
    let count = u64::from(args.rate) * u64::from(args.seconds);
    let (mut ticks, mut sent) = (tokio::time::interval(Duration::from_secs(1) / args.rate), JoinSet::new());
    let progress = ProgressBar::new(count);
    for number in 0..count {
        ticks.tick().await;
        let event = if number.is_multiple_of(QUESTION_SHARE) { question(number) } else { reaction(number) };
        let (sender, body) = (sender.clone(), slack.envelope(&event));
        sent.spawn(async move { sender.send(body).await });
        progress.inc(1);
    }
    progress.finish_and_clear();
    sent.join_all().await.into_iter().collect()
}

/// Asks a question in each of many channels. Returns the megabytes of resident memory of the server before the first
/// question and after each part.
async fn resident_by_channels(
    channels: u64,
    posted: u64,
    slack: &Slack,
    sender: &EventSender,
    server: &ServerProcess,
) -> Result<Vec<f64>> {
    let megabytes = || Ok::<_, anyhow::Error>((server.resident_bytes()? / 1e5).round() / 10.0);
    let (limit, mut resident, progress) =
        (Arc::new(Semaphore::new(CONCURRENT)), vec![megabytes()?], ProgressBar::new(channels));
    for part in 0..PARTS {
        let (from, to) = (channels * part / PARTS, channels * (part + 1) / PARTS);
        let mut sent = JoinSet::new();
        for number in from..to {
            let permit = Arc::clone(&limit).acquire_owned().await?;
            // Channels of the steady events are not used again.
            let (sender, body) = (sender.clone(), slack.envelope(&question(1_000_000 + number)));
            let progress = progress.clone();
            sent.spawn(async move {
                let result = sender.send(body).await;
                drop(permit);
                progress.inc(1);
                result
            });
        }
        for result in sent.join_all().await {
            result?;
        }
        slack.wait_for_posts(posted + to).await;
        resident.push(megabytes()?);
    }
    progress.finish_and_clear();
    Ok(resident)
}
