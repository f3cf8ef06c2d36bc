//! The test bench: a server with the Slack door, a simulated Slack and a simulated cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep::{Agent, ChatModel, Memory, MemoryOptions, Scope, TenantId, ThreadOrder, ThreadQuery};
use threadkeep_kubeops::{Cluster, Config, Kubeops};
use threadkeep_server::{AuditLog, Server, ServerOptions};
use threadkeep_simulator::cluster::{self, World};
use threadkeep_simulator::slack::{APP_TOKEN, App, BOT_TOKEN, Message, SIGNING_SECRET, Slack, TEAM};
use threadkeep_slack::{EVENTS_PATH, EventSource, INTERACTIONS_PATH, SlackOptions, door};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long an answer may take.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Settings {
    pub(crate) config: &'static str,
    pub(crate) remembers: bool,
    pub(crate) requester_may_approve: bool,
    /// Whether events arrive in Socket Mode.
    pub(crate) is_socket_mode: bool,
    /// The time after which an unfinished answer is shown. Long by default, so that answers do not grow on a slow machine.
    pub(crate) growth_interval: Duration,
    /// The model. Default: the offline model.
    pub(crate) model: Option<Arc<dyn ChatModel>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: "spec: {}",
            remembers: true,
            requester_may_approve: true,
            is_socket_mode: false,
            growth_interval: Duration::from_secs(86_400),
            model: None,
        }
    }
}

pub(crate) struct Bench {
    pub(crate) cluster: cluster::Cluster,
    pub(crate) slack: Slack,
    pub(crate) app: App,
    /// The URL of the server.
    pub(crate) url: String,
    memory: Memory,
    store: String,
    settings: Settings,
    kubeconfig: PathBuf,
    running: Option<Running>,
    _folder: tempfile::TempDir,
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Bench {
    /// Starts a server on a SQLite file.
    pub(crate) async fn start(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("slack.db").display());
        Self::start_in(folder, store, settings).await
    }

    /// Starts a server on the store with the given URL.
    pub(crate) async fn start_on(store: String, settings: Settings) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), store, settings).await
    }

    async fn start_in(folder: tempfile::TempDir, store: String, settings: Settings) -> Self {
        let cluster = cluster::Cluster::start(world()).await.unwrap();
        assert_eq!(cluster.refused(), [] as [String; 0]);
        let slack = Slack::start().await.unwrap();
        let kubeconfig = folder.path().join("config");
        std::fs::write(&kubeconfig, cluster.kubeconfig()).unwrap();
        let memory = threadkeep::open(&store).await.unwrap();
        let app = App::SocketMode;
        let mut bench = Self {
            cluster,
            slack,
            app,
            url: String::new(),
            memory,
            store,
            settings,
            kubeconfig,
            running: None,
            _folder: folder,
        };
        bench.serve().await;
        bench
    }

    async fn serve(&mut self) {
        let config = Config::from_yaml(self.settings.config).unwrap();
        let client = Cluster::open(Some(&self.kubeconfig), None, config.access.clone());
        let retention = Some(config.memory.retention());
        let memory = self.memory.with_options(MemoryOptions { retention, ..self.memory.options().clone() }).unwrap();
        let assistants = Server::assistants();
        assistants.put(Agent::new(memory, Kubeops::new(client, &config, self.settings.model.clone()))).unwrap();
        let source = match self.settings.is_socket_mode {
            true => EventSource::SocketMode { app_token: APP_TOKEN.to_owned() },
            false => EventSource::Requests { signing_secret: SIGNING_SECRET.to_owned() },
        };
        let options = SlackOptions {
            api_url: self.slack.api_url(),
            remembers: self.settings.remembers,
            requester_may_approve: self.settings.requester_may_approve,
            post_interval: Duration::ZERO,
            growth_interval: self.settings.growth_interval,
            ..SlackOptions::new(source, vec![BOT_TOKEN.to_owned()], "kubeops")
        };
        let server = Server::new(self.memory.clone(), ServerOptions::default()).with_assistants(assistants);
        let server = server.with_door(door(options).unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        if !self.settings.is_socket_mode {
            self.app = App::at(&url, EVENTS_PATH, INTERACTIONS_PATH);
        }
        self.url = url;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            server.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
        self.running = Some(Running { stop, task });
    }

    /// Starts another server on the same store, beside the first. Returns its app, and a value that keeps it running.
    pub(crate) async fn serve_beside(&mut self) -> (App, impl Sized + use<>) {
        let first = (self.app.clone(), self.running.take());
        self.serve().await;
        let second = (std::mem::replace(&mut self.app, first.0), self.running.take());
        self.running = first.1;
        second
    }

    /// Stops the server, and starts another one on the same store. A store in memory stays open.
    pub(crate) async fn restart(&mut self) {
        let Running { stop, task } = self.running.take().unwrap();
        assert_eq!(stop.send(()), Ok(()));
        task.await.unwrap();
        self.slack.wait_for_sockets(0).await;
        if self.store != "memory:" {
            self.memory = threadkeep::open(&self.store).await.unwrap();
        }
        self.serve().await;
    }

    /// A user writes a message; returns the next message of the bot in that channel.
    pub(crate) async fn ask(&self, channel: &str, user: &str, text: &str, thread_ts: Option<&str>) -> Message {
        let before = self.slack.messages().len();
        self.slack.say(&self.app, channel, user, text, thread_ts).await;
        let answer = self.slack.wait_for(|messages| {
            messages.iter().skip(before).find(|message| message.is_from_bot() && message.channel == channel).cloned()
        });
        tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or_else(|_| panic!("no answer to {text}"))
    }

    /// A user reacts to a message; waits until the bot has posted the outcome, and returns it.
    pub(crate) async fn decide(&self, channel: &str, request: &Message, user: &str, emoji: &str) -> Message {
        let before = self.slack.messages().len();
        self.slack.react(&self.app, channel, &request.ts, user, emoji).await;
        let outcome = self.slack.wait_for(|messages| messages.get(before).cloned());
        tokio::time::timeout(ANSWER_TIMEOUT, outcome).await.expect("the decision has an outcome")
    }

    fn scope(&self) -> Scope {
        Scope::tenant(self.team()).unwrap()
    }

    pub(crate) fn team(&self) -> &'static str {
        TEAM
    }

    /// Returns the keys of the conversations.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let threads =
            self.memory.list_threads(&self.scope(), &ThreadQuery::new(ThreadOrder::Recent, 100)).await.unwrap().threads;
        threads.into_iter().filter_map(|thread| thread.key.map(|key| key.to_string())).collect()
    }

    async fn messages(&self, key: &str) -> Vec<threadkeep::Message> {
        let thread = self.memory.find_thread_by_key(&self.scope(), key).await.unwrap().unwrap();
        self.memory.newest(&self.scope(), thread.id, 100).await.unwrap()
    }

    pub(crate) async fn texts(&self, key: &str) -> Vec<String> {
        self.messages(key).await.iter().map(|message| message.plain_text().into_owned()).collect()
    }

    pub(crate) async fn roles(&self, key: &str) -> Vec<String> {
        self.messages(key).await.iter().map(|message| format!("{:?}", message.content.role).to_lowercase()).collect()
    }

    /// Returns the actor, the action and the outcome of each audit record.
    pub(crate) async fn audit(&self) -> Vec<(String, String, String)> {
        let log = AuditLog::new(&self.memory).list(&TenantId::new(self.team()).unwrap(), 100).await.unwrap();
        log.into_iter().map(|record| (record.by, record.act, record.outcome)).collect()
    }
}

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Returns the cluster's objects: `nginx` and a redis pod in `default`, `api` and `cart` in `shop`.
pub(crate) fn world() -> World {
    let mut objects = Vec::new();
    for (namespace, name, replicas, image) in
        [("default", "nginx", 1, "nginx:1.27"), ("shop", "api", 2, "api:1"), ("shop", "cart", 3, "cart:1")]
    {
        let labels = json!({ "app": name });
        let template =
            json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": name, "image": image }] } });
        let status = json!({ "replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas });
        objects.push(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": namespace },
            "spec": { "replicas": replicas, "selector": { "matchLabels": labels }, "template": template }, "status": status,
        }));
        for number in 0..replicas {
            objects.push(pod(namespace, &format!("{name}-7b4f9c6d5-x{number}x9k"), image, &labels));
        }
    }
    objects.push(pod("default", "redis-master-0", "redis:7.2", &json!({})));
    objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "empty" } }));
    World { objects, ..World::default() }
}

fn pod(namespace: &str, name: &str, image: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": { "containers": [{ "name": "main", "image": image }] },
        "status": { "phase": "Running", "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0 }] },
    })
}
