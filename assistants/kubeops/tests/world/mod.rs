//! A simulated cluster, and a conversation with the assistant about it.

#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

mod objects;
pub(crate) mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use threadkeep::agent::Approval;
use threadkeep::{
    Agent, AgentError, Clock, Memory, MemoryOptions, Scope, SystemClock, ThreadId, Timestamp, Turn, Verdict,
};
use threadkeep_kubeops::{Cluster, Config, Kubeops};
use threadkeep_simulator::cluster::{self, World, log_key};

/// The system clock plus an adjustable offset.
#[derive(Debug, Default)]
pub(crate) struct LaterClock(AtomicI64);

impl LaterClock {
    pub(crate) fn advance_seconds(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for LaterClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.0.load(Ordering::SeqCst))
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

/// A conversation with the assistant.
pub(crate) struct Talk {
    pub(crate) clock: Arc<LaterClock>,
    pub(crate) cluster: cluster::Cluster,
    pub(crate) agent: Agent,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
    _folder: tempfile::TempDir,
}

impl Talk {
    pub(crate) async fn start(objects: Vec<Value>) -> Self {
        Self::start_with(objects, "spec: {}").await
    }

    pub(crate) async fn start_with(objects: Vec<Value>, config: &str) -> Self {
        Self::start_with_model(objects, config, None).await
    }

    pub(crate) async fn start_with_model(
        objects: Vec<Value>,
        config: &str,
        model: Option<Arc<dyn threadkeep::ChatModel>>,
    ) -> Self {
        let name_of = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        let pods = objects.iter().filter(|object| object["kind"] == "Pod");
        let logs = pods.map(|pod| {
            let key = log_key(pod["metadata"]["namespace"].as_str().unwrap(), &name_of(pod), false);
            (key, "starting\nlistening on 8080\n".to_owned())
        });
        let world = World { logs: logs.collect(), objects };
        let cluster = cluster::Cluster::start(world).await.unwrap();
        assert_eq!(cluster.refused(), [] as [String; 0]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, cluster.kubeconfig()).unwrap();
        let config = Config::from_yaml(config).unwrap();
        let client = Cluster::open(Some(&file), None, config.access.clone());
        assert_eq!(client.problem(), None);
        let clock = Arc::new(LaterClock::default());
        let memory = Memory::with_clock(threadkeep::open_backend("memory:").await.unwrap(), Arc::clone(&clock) as _);
        let options = MemoryOptions { retention: Some(config.memory.retention()), ..memory.options().clone() };
        let memory = memory.with_options(options).unwrap();
        let scope = Scope::tenant("T0LOCAL").unwrap();
        let thread = memory.open_by_key(&scope, "C123456").await.unwrap().thread.id;
        let agent = Agent::new(memory, Kubeops::new(client, &config, model));
        Self { clock, cluster, agent, scope, thread, _folder: folder }
    }

    pub(crate) async fn say(&self, text: &str) -> Turn {
        self.agent.chat(&self.scope, self.thread, text).await.unwrap()
    }

    pub(crate) async fn decide(&self, turn: &Turn, verdict: Verdict) -> Result<Turn, AgentError> {
        self.agent.decide(&self.scope, self.thread, &turn.approvals[0].id, verdict, "bob", &mut |_| {}).await
    }

    pub(crate) async fn approvals(&self) -> Vec<Approval> {
        self.agent.approvals(&self.scope, self.thread).await.unwrap()
    }

    /// Returns the first preview line of each open approval.
    pub(crate) async fn pending(&self) -> Vec<String> {
        let open = self.agent.list_open_approvals(&self.scope, self.thread).await.unwrap();
        open.iter().map(|approval| approval.preview.lines().next().unwrap().to_owned()).collect()
    }

    pub(crate) async fn texts(&self) -> Vec<String> {
        let messages = self.agent.memory().newest(&self.scope, self.thread, 100).await.unwrap();
        messages.iter().map(|message| message.plain_text().into_owned()).collect()
    }
}

/// Returns a deployment with its pods.
pub(crate) fn deployment(namespace: &str, name: &str, replicas: u64, image: &str) -> Vec<Value> {
    let labels = json!({ "app": name });
    let mut objects = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": name, "image": image, "resources": { "limits": { "memory": "256Mi" } } }] },
            },
        },
        "status": { "replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas },
    })];
    for number in 0..replicas {
        let mut pod = pod(namespace, &format!("{name}-7b4f9c6d5-x{number}x9k"), image);
        pod["metadata"]["labels"] = labels.clone();
        pod["spec"]["containers"][0]["name"] = json!(name);
        objects.push(pod);
    }
    objects
}

/// Returns a running pod.
pub(crate) fn pod(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": namespace },
        "spec": { "containers": [{ "name": "main", "image": image }] },
        "status": {
            "phase": "Running",
            "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0, "state": { "running": {} } }],
        },
    })
}

/// Returns a secret.
pub(crate) fn secret(namespace: &str, name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace }, "type": "Opaque", "data": data })
}
