//! Events of Slack while the server is killed: each is handled once, and none is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use threadkeep::core::RecordQuery;
use threadkeep::{Memory, Namespace, RecordOwner, Scope};
use threadkeep_simulator::cluster::{Cluster, World};
use threadkeep_simulator::slack::{BOT_TOKEN, BOT_USER, Message, SIGNING_SECRET, Slack, TEAM};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::postgres::with_postgres;
use super::serve::Server;
use super::{Cli, TIMEOUT};

/// The number of questions, which `THREADKEEP_SLACK_EVENTS` overrides.
fn questions() -> usize {
    std::env::var("THREADKEEP_SLACK_EVENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

/// The number of senders.
const SENDERS: usize = 8;
/// The number of questions per channel. It is small, because Slack allows only one answer per second in a channel.
const PER_CHANNEL: usize = 6;
/// How long to wait before an event that was not acknowledged is sent again, and between checks of the store.
const RETRY: Duration = Duration::from_millis(50);

/// The name of an object that does not exist; the answer to a question contains it.
fn marker(number: usize) -> String {
    format!("ghost-{number:06}")
}

/// A simulated Slack and a simulated cluster, which outlive the server.
struct Setup {
    slack: Slack,
    _cluster: Cluster,
    /// The URL for events at the running server.
    events: Mutex<String>,
    acknowledged: AtomicUsize,
}

impl Setup {
    async fn start(cli: &Cli) -> Self {
        let slack = Slack::start().await.unwrap();
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
        let cluster = Cluster::start(World { objects: vec![namespace], ..World::default() }).await.unwrap();
        cli.file("kubeconfig", cluster.kubeconfig());
        Self { slack, _cluster: cluster, events: Mutex::default(), acknowledged: AtomicUsize::new(0) }
    }

    /// Starts a server on the store of the command line. Events go to it from now on.
    fn serve(&self, cli: &Cli) -> Server {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline"]);
        command.env("SLACK_SIGNING_SECRET", SIGNING_SECRET).env("SLACK_BOT_TOKEN", BOT_TOKEN);
        command.env("SLACK_API_URL", self.slack.api_url()).env("KUBECONFIG", cli.path("kubeconfig"));
        let server = Server::start_with(command);
        *self.events.lock().unwrap() = format!("http://{}/slack/events", server.address);
        server
    }

    /// Asks a question as Slack delivers it: as a message and as a mention, every third event twice, and each until it is acknowledged.
    async fn ask(&self, number: usize) {
        let (channel, text) =
            (format!("C{:05}", number / PER_CHANNEL), format!("<@{BOT_USER}> describe pod {} in shop", marker(number)));
        let message = self.slack.write(&channel, "U01ALICE", &text, None);
        for (index, kind) in ["message", "app_mention"].into_iter().enumerate() {
            let event = json!({
                "type": kind, "channel": channel, "user": "U01ALICE", "text": text, "ts": message.ts, "event_ts": message.ts,
                "channel_type": "channel",
            });
            let body = self.slack.envelope(&event);
            let times = if (2 * number + index).is_multiple_of(3) { 2 } else { 1 };
            for _ in 0..times {
                self.deliver(&body).await;
            }
        }
    }

    async fn deliver(&self, body: &str) {
        loop {
            let url = self.events.lock().unwrap().clone();
            if self.slack.post(&url, body, "application/json", None).await.status == Some(200) {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Returns how often each question was answered.
    fn answers(&self) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for message in self.slack.messages().iter().filter(|message: &&Message| message.is_from_bot()) {
            if let Some(at) = message.text.find("ghost-") {
                *answers.entry(message.text[at..].chars().take(12).collect()).or_default() += 1;
            }
        }
        answers
    }
}

/// Returns the number of requests that were accepted but are not finished.
async fn pending(memory: &Memory) -> usize {
    let scope = Scope::tenant(TEAM).unwrap();
    let Some(inbox) = memory.find_thread_by_key(&scope, "slack:inbox").await.unwrap() else { return 0 };
    let namespace = Some(Namespace::app("slack-requests").unwrap());
    let query = RecordQuery { namespace, ..RecordQuery::of(RecordOwner::Thread(inbox.id)) };
    memory.list_records(&scope, query).await.unwrap().len()
}

fn answers_survive_a_kill(cli: &Cli, store: &str) {
    let (runtime, count) = (Runtime::new().unwrap(), questions());
    let setup = Arc::new(runtime.block_on(Setup::start(cli)));
    let mut server = setup.serve(cli);
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let setup = Arc::clone(&setup);
        let task = async move {
            for number in (sender..count).step_by(SENDERS) {
                setup.ask(number).await;
            }
        };
        senders.spawn_on(task, runtime.handle());
    }
    runtime.block_on(async {
        while setup.acknowledged.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    server.signal("-KILL");
    server.child.wait().unwrap();
    let server = setup.serve(cli);
    runtime.block_on(async {
        while senders.join_next().await.transpose().unwrap().is_some() {}
        let memory = threadkeep::open(store).await.unwrap();
        let (mut fewest, mut since) = (usize::MAX, std::time::Instant::now());
        loop {
            let remaining = pending(&memory).await + count.saturating_sub(setup.answers().len());
            if remaining == 0 {
                break;
            }
            if remaining < fewest {
                (fewest, since) = (remaining, std::time::Instant::now());
            }
            assert!(since.elapsed() < TIMEOUT, "{fewest} requests are not answered: {:?}", server.log.lock().unwrap());
            tokio::time::sleep(RETRY).await;
        }
    });
    let expected: BTreeMap<String, usize> = (0..count).map(|number| (marker(number), 1)).collect();
    let wrong: Vec<_> =
        setup.answers().into_iter().filter(|(marker, times)| expected.get(marker) != Some(times)).collect();
    assert_eq!((setup.answers().len(), wrong), (count, Vec::new()));
}

// S4.37
#[test]
fn each_event_of_slack_is_answered_once_although_the_server_is_killed() {
    let cli = Cli::new();
    answers_survive_a_kill(&cli, &format!("sqlite:{}", cli.store().display()));
}

// S4.37
#[test]
fn each_event_of_slack_is_answered_once_on_postgresql() {
    with_postgres(|cli| answers_survive_a_kill(cli, cli.url.as_ref().unwrap()));
}
