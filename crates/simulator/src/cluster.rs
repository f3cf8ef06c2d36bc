//! A Kubernetes API server whose objects come from a folder.
//!
//! It serves discovery, get, list, watch, create, update, patch, delete, eviction, the scale subresource, logs and
//! exec, with dry runs, version conflicts, preconditions, tables, and RBAC's error messages for denied requests. Its
//! controllers replace the pods of replica sets, deployments and stateful sets. It does not check credentials.

mod controllers;
mod exec;
mod objects;
mod patch;
mod replies;
mod resources;
mod serving;
mod table;
mod world;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::lock;
use objects::{Change, Key, Objects};
pub use resources::Resource;
pub use world::{World, WorldError, log_key};

/// The capacity of a watcher's buffer, in changes.
const WATCH_BACKLOG: usize = 4_096;

/// A received request. Discovery requests are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The verb, as RBAC names it: `get`, `list`, `delete`, …
    pub verb: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The subresource, such as `scale`.
    pub subresource: Option<String>,
    /// The namespace; empty for requests across all namespaces and for objects without one.
    pub namespace: String,
    /// The object's name.
    pub name: Option<String>,
    /// Whether it is a dry run.
    pub is_dry_run: bool,
}

impl Request {
    /// Whether the request may change the cluster.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !self.is_dry_run
            && (!matches!(&*self.verb, "get" | "list" | "watch") || self.subresource.as_deref() == Some("exec"))
    }
}

/// An operation to deny. `*` matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The verb.
    pub verb: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
}

pub(crate) struct Shared {
    pub(crate) objects: Mutex<Objects>,
    pub(crate) requests: Mutex<Vec<Request>>,
    pub(crate) denials: Mutex<Vec<Denial>>,
    pub(crate) outage: Mutex<Option<String>>,
    pub(crate) programs: Mutex<exec::Programs>,
    pub(crate) changes: broadcast::Sender<Change>,
}

impl Shared {
    /// Sends the changes to the watchers.
    fn publish(&self, objects: &mut Objects) {
        for change in objects.take_changes() {
            // There may be no watcher.
            drop(self.changes.send(change));
        }
    }
}

/// A running API server. It stops when it is dropped.
pub struct Cluster {
    address: SocketAddr,
    shared: Arc<Shared>,
    refused: Vec<String>,
    serving: JoinHandle<()>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Cluster {
    /// Starts a server on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(world: World) -> std::io::Result<Self> {
        let (objects, refused) = Objects::load(world);
        let shared = Arc::new(Shared {
            objects: Mutex::new(objects),
            requests: Mutex::default(),
            denials: Mutex::default(),
            outage: Mutex::default(),
            programs: Mutex::default(),
            changes: broadcast::Sender::new(WATCH_BACKLOG),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { address, shared, refused, serving })
    }

    /// Returns the URL of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a kubeconfig for this server, in YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: local\n\
             clusters: [{{name: local, cluster: {{server: \"{}\"}}}}]\n\
             contexts: [{{name: local, context: {{cluster: local, user: bot}}}}]\n\
             users: [{{name: bot, user: {{token: local}}}}]\n",
            self.url()
        )
    }

    /// Returns the reason for each object of the world that was rejected.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the requests so far that could change the cluster.
    #[must_use]
    pub fn changes(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::is_change).collect()
    }

    /// Returns an object; `group` is empty for the core group, `namespace` for objects without one.
    #[must_use]
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        lock(&self.shared.objects).by_key.get(&Key::new(group, plural, namespace, name)).cloned()
    }

    /// Returns the names of the objects of a kind in a namespace.
    #[must_use]
    pub fn names(&self, group: &str, plural: &str, namespace: &str) -> Vec<String> {
        let objects = lock(&self.shared.objects);
        objects.list(group, plural, namespace).into_iter().map(|(key, _)| key.name.clone()).collect()
    }

    /// Removes an object, as another client would. Returns whether it existed.
    pub fn remove(&self, group: &str, plural: &str, namespace: &str, name: &str) -> bool {
        let mut objects = lock(&self.shared.objects);
        let is_removed = objects.remove(&Key::new(group, plural, namespace, name)).is_some();
        self.shared.publish(&mut objects);
        is_removed
    }

    /// Changes an object, as another client would, without running the controllers. Returns whether it exists.
    pub fn edit(&self, group: &str, plural: &str, namespace: &str, name: &str, edit: impl FnOnce(&mut Value)) -> bool {
        let key = Key::new(group, plural, namespace, name);
        let mut objects = lock(&self.shared.objects);
        let Some(mut object) = objects.by_key.get(&key).cloned() else { return false };
        edit(&mut object);
        objects.put(key, object);
        self.shared.publish(&mut objects);
        true
    }

    /// Sets the name of the pod that a controller creates when this one is deleted.
    pub fn replace_as(&self, namespace: &str, pod: &str, successor: &str) {
        let pod = (namespace.to_owned(), pod.to_owned());
        lock(&self.shared.objects).successors.insert(pod, successor.to_owned());
    }

    /// Sets the log of a pod, or of one of its containers: `POD.CONTAINER`.
    pub fn write_log(&self, namespace: &str, pod: &str, is_previous: bool, log: &str) {
        lock(&self.shared.objects).logs.insert(log_key(namespace, pod, is_previous), log.to_owned());
    }

    /// Sets the output and the exit code of a program in the containers of a pod. By default, there are only `echo` and `hostname`.
    pub fn install(&self, namespace: &str, pod: &str, line: &str, output: &str, exit_code: i32) {
        let key = exec::key(namespace, pod, line);
        lock(&self.shared.programs).insert(key, (output.to_owned(), exit_code));
    }

    /// Denies matching requests from now on.
    pub fn deny(&self, verb: &str, resource: &str, namespace: &str) {
        let owned = str::to_owned;
        let denial = Denial { verb: owned(verb), resource: owned(resource), namespace: owned(namespace) };
        lock(&self.shared.denials).push(denial);
    }

    /// Makes every request fail with this error; `None` ends the outage.
    pub fn fail(&self, message: Option<&str>) {
        *lock(&self.shared.outage) = message.map(str::to_owned);
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let response = serving::answer(&shared, &method, path, query, &headers, &body);
    match upgrade {
        Ok(upgrade) if path.ends_with("/exec") && response.status().is_success() => {
            exec::run(upgrade, &lock(&shared.programs), path, query)
        }
        _ => response,
    }
}
