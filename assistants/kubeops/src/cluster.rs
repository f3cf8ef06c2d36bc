//! The cluster: reads and approved changes.

mod changes;
mod client;
mod exec;
mod inventory;
mod kubeconfig;
mod manifest;
mod reads;
mod text;

use std::path::Path;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::command::{Command, Verb};
use crate::config::AccessRules;
use crate::kinds::Kind;
use client::{ApiError, KubeClient};
use kubeconfig::Connection;
pub use kubeconfig::KubeconfigError;
pub(crate) use reads::likeness;

/// How long the names of the namespaces are cached. A failure to read them is cached as an empty list.
const NAMESPACES_KEPT: Duration = Duration::from_secs(60);
/// How long to wait for the names of the namespaces.
const NAMESPACES_WAIT: Duration = Duration::from_secs(2);

/// Installs a TLS provider, unless another part of the program has installed one.
fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// A summary of an object that a result shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSummary {
    /// The kind, in the plural: `pods`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The workload that owns a pod: its kind and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(String, String)>,
    /// The containers of a pod that has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// Whether it has a problem.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unhealthy: bool,
    /// Its first image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The desired number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// The state of a pod or node: `Running`, `CrashLoopBackOff`, `NotReady`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// How many times the containers of a pod have restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// The node on which a pod runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// When it was created, in RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created: String,
}

impl ObjectSummary {
    /// Whether two summaries are of objects of one kind in one namespace.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace) == (&other.kind, &other.namespace)
    }

    /// Whether two summaries are of one object.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.kind, &self.name, &self.namespace) == (&other.kind, &other.name, &other.namespace)
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The command as it was carried out: names and namespaces are filled in.
    pub command: Command,
    /// The text for users.
    pub text: String,
    /// The objects that the text shows.
    pub objects: Vec<ObjectSummary>,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotAllowed(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Failed(String),
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        let text = error.to_string();
        match error {
            ApiError::NotFound(_) => Self::NotFound(text),
            ApiError::Forbidden(_) => Self::NotAllowed(text),
            ApiError::Unreachable(_) => Self::Unreachable(text),
            ApiError::Conflict(_) | ApiError::Other(_) => Self::Failed(text),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, CommandError>;

/// The names of the namespaces, and when they were read.
type KnownNamespaces = Option<(Instant, Vec<String>)>;

/// A cluster, with the rules about what may be done in it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The client, or why there is none.
    client: std::result::Result<KubeClient, String>,
    rules: AccessRules,
    namespaces: Arc<Mutex<KnownNamespaces>>,
}

impl Cluster {
    /// Opens the cluster of a kubeconfig; without a file, that of the user's kubeconfig or of the pod. Nothing is sent. Without
    /// a usable kubeconfig, every command fails with the reason.
    #[must_use]
    pub fn open(file: Option<&Path>, context: Option<&str>, rules: AccessRules) -> Self {
        let default = kubeconfig::default_file().filter(|file| file.is_file());
        let connection = match file.or(default.as_deref()) {
            Some(file) => Connection::read(file, context),
            None => Connection::of_pod().unwrap_or_else(|| Err(kubeconfig::missing())),
        };
        let client = connection.map_err(|error| error.to_string()).and_then(KubeClient::new);
        Self { client, rules, namespaces: Arc::default() }
    }

    /// Returns why there is no connection; `None` if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.client.as_ref().err().map(String::as_str)
    }

    /// Returns the namespace for commands that name none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        self.client.as_ref().map_or("default", KubeClient::namespace)
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &AccessRules {
        &self.rules
    }

    /// Returns the names of the namespaces, which may be up to a minute old; none if they cannot be read.
    pub(crate) async fn namespaces(&self) -> Vec<String> {
        let known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, names)) = known.filter(|(at, _)| at.elapsed() < NAMESPACES_KEPT) {
            return names;
        }
        let Ok(client) = self.client() else { return Vec::new() };
        let answer = tokio::time::timeout(NAMESPACES_WAIT, client.get("/api/v1/namespaces", &[("limit", "500")])).await;
        let listed = answer.ok().and_then(std::result::Result::ok).unwrap_or_default();
        let names =
            listed["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str());
        let mut names: Vec<String> = names.filter(|name| self.rules.allows(name)).map(str::to_owned).collect();
        if names.is_empty() {
            names = self.rules.namespaces.clone().unwrap_or_default();
        }
        let mut kept = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((Instant::now(), names.clone()));
        names
    }

    fn client(&self) -> Result<&KubeClient> {
        self.client.as_ref().map_err(|problem| CommandError::Unreachable(problem.clone()))
    }

    /// Checks the form of a command and whether the rules allow it, and fills in the kind and the namespace.
    pub(crate) fn admit(&self, command: &Command) -> Result<Command> {
        command.check().map_err(|error| CommandError::Invalid(error.to_string()))?;
        let mut command = command.clone();
        if !command.verb.is_read() && self.rules.read_only {
            let text = format!("read-only mode: `{}` is not allowed", command.verb.words());
            return Err(CommandError::NotAllowed(text));
        }
        if matches!(command.verb, Verb::Cordon | Verb::Uncordon | Verb::Drain) {
            command.kind = Some("nodes".to_owned());
        }
        if command.verb == Verb::Apply {
            changes::read_manifest(&mut command)?;
        }
        let kind = match command.kind.as_deref() {
            Some(kind) => {
                let found = Kind::find(kind)
                    .ok_or_else(|| CommandError::Invalid(format!("`{kind}` is not a kind that I know")))?;
                command.kind = Some(found.plural.clone());
                Some(found)
            }
            None => None,
        };
        let is_namespaced = kind.as_ref().is_none_or(|kind| kind.is_namespaced);
        if !is_namespaced {
            command.namespace = None;
            command.all_namespaces = false;
            let is_restricted = self.rules.namespaces.is_some() && !command.verb.is_read();
            if is_restricted {
                return Err(CommandError::NotAllowed(format!("only the namespaces {} are allowed", self.rules.list())));
            }
            return Ok(command);
        }
        if !command.all_namespaces {
            let namespace = command.namespace.get_or_insert_with(|| self.default_namespace().to_owned()).clone();
            if !self.rules.allows(&namespace) {
                let text = format!("the namespace {namespace} is not allowed; allowed are {}", self.rules.list());
                return Err(CommandError::NotAllowed(text));
            }
        } else {
            command.namespace = None;
        }
        Ok(command)
    }
}

/// Returns the digest that an approval of a change depends on: that of the object without its status, managed fields and version. A change that leaves the number of replicas alone does not depend on it: an
/// autoscaler, or a scaling that was approved in the meantime, takes nothing away from the approval of a restart.
pub(crate) fn digest_for(verb: Verb, object: &Value) -> String {
    let mut object = object.clone();
    let ignores_replicas = matches!(
        verb,
        Verb::RolloutRestart | Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::Label | Verb::Annotate
    );
    if ignores_replicas && let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    if ignores_replicas && let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("generation");
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    sort(&mut object);
    Sha256::digest(object.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sorts the fields of all objects, because their order has no meaning.
fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(sort);
        }
        Value::Array(entries) => entries.iter_mut().for_each(sort),
        _ => {}
    }
}
