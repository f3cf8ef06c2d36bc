//! The objects of the cluster, with their versions.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::resources::{Resource, Resources};
use super::world::World;

/// Group, plural, namespace and name of an object. The namespace of cluster-wide objects is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(group: &str, plural: &str, namespace: &str, name: &str) -> Self {
        let owned = str::to_owned;
        Self { group: owned(group), plural: owned(plural), namespace: owned(namespace), name: owned(name) }
    }
}

/// The number of past changes that a new watcher can request.
const MAX_HISTORY: usize = 4_096;

/// A change that is sent to watchers.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: &'static str,
    pub(crate) key: Key,
    pub(crate) object: Value,
}

/// All objects and logs.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) resources: Resources,
    pub(crate) by_key: BTreeMap<Key, Value>,
    pub(crate) logs: BTreeMap<String, String>,
    /// The names of the pods that replace deleted ones, by namespace and name.
    pub(crate) successors: BTreeMap<(String, String), String>,
    /// Changes since the last call of [`Objects::take_changes`].
    changes: Vec<Change>,
    /// The most recent changes, for watches that start at a version.
    history: VecDeque<Change>,
    version: u64,
    created: u64,
}

impl Objects {
    /// Loads a world. Returns the objects, and the reason for each rejected object.
    pub(crate) fn load(world: World) -> (Self, Vec<String>) {
        let mut resources = Resources::built_in();
        for object in world.objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
            resources.define(object);
        }
        let mut objects = Self {
            resources,
            by_key: BTreeMap::new(),
            logs: world.logs,
            successors: BTreeMap::new(),
            changes: Vec::new(),
            history: VecDeque::new(),
            version: 1_000,
            created: 0,
        };
        let mut refused = Vec::new();
        for object in world.objects {
            if let Err(reason) = objects.load_object(object) {
                refused.push(reason);
            }
        }
        objects.add_namespaces();
        objects.adopt();
        objects.changes.clear();
        (objects, refused)
    }

    fn load_object(&mut self, object: Value) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        let resource = self.resources.of_object(&api_version, &kind).cloned();
        let resource = resource.ok_or_else(|| format!("{kind} {name}: no kind {kind} in {api_version}"))?;
        if name.is_empty() {
            return Err(format!("{kind}: metadata.name is missing"));
        }
        let key = self.key_of(&resource, &object, "default");
        if self.by_key.contains_key(&key) {
            return Err(format!("{kind} {name}: there is another object with this name"));
        }
        self.put(key, object);
        Ok(())
    }

    pub(crate) fn key_of(&self, resource: &Resource, object: &Value, default_namespace: &str) -> Key {
        let metadata = &object["metadata"];
        let namespace = match resource.is_namespaced {
            true => metadata["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or(default_namespace),
            false => "",
        };
        Key::new(&resource.group, &resource.plural, namespace, metadata["name"].as_str().unwrap_or_default())
    }

    /// Creates the namespaces that objects name, and `default`.
    fn add_namespaces(&mut self) {
        let mut names: Vec<String> = self.by_key.keys().map(|key| key.namespace.clone()).collect();
        names.push("default".to_owned());
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let key = Key::new("", "namespaces", "", &name);
            if !self.by_key.contains_key(&key) {
                let namespace = json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }, "status": { "phase": "Active" },
                });
                self.put(key, namespace);
            }
        }
    }

    /// Stores an object with a new version and the metadata that every object has.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Value {
        self.version += 1;
        let is_new = !self.by_key.contains_key(&key);
        let version = self.version.to_string();
        let metadata = &mut object["metadata"];
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        if metadata["uid"].is_null() {
            self.created += 1;
            metadata["uid"] = json!(format!("00000000-0000-4000-8000-{:012}", self.created));
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        metadata["resourceVersion"] = json!(version);
        self.by_key.insert(key.clone(), object.clone());
        let kind = if is_new { "ADDED" } else { "MODIFIED" };
        self.changes.push(Change { version: self.version, kind, key, object: object.clone() });
        object
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Value> {
        let object = self.by_key.remove(key)?;
        self.version += 1;
        let mut last = object.clone();
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.changes.push(Change { version: self.version, kind: "DELETED", key: key.clone(), object: last });
        Some(object)
    }

    /// Returns the changes since the last call, and keeps them for watches.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        let changes = std::mem::take(&mut self.changes);
        self.history.extend(changes.iter().cloned());
        let too_many = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..too_many);
        changes
    }

    /// Returns the changes after a version; `None` if some are no longer stored.
    pub(crate) fn changes_after(&self, version: u64) -> Option<Vec<&Change>> {
        let is_kept =
            self.history.len() < MAX_HISTORY || self.history.front().is_some_and(|first| first.version <= version);
        is_kept.then(|| self.history.iter().filter(|change| change.version > version).collect())
    }

    pub(crate) fn version(&self) -> String {
        self.version.to_string()
    }

    /// Returns the objects of a kind; of all namespaces if `namespace` is empty.
    pub(crate) fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<(&Key, &Value)> {
        let is_listed = |key: &Key| {
            key.group == group && key.plural == plural && (namespace.is_empty() || key.namespace == namespace)
        };
        self.by_key.iter().filter(|(key, _)| is_listed(key)).collect()
    }

    /// Returns a suffix for a new pod, from the characters that Kubernetes uses.
    pub(crate) fn suffix(&mut self) -> String {
        self.created += 1;
        let digest = Sha256::digest(format!("pod {}", self.created));
        digest.iter().take(5).map(|byte| char::from(b"bcdfghjklmnpqrstvwxz2456789"[usize::from(*byte) % 27])).collect()
    }
}

/// Whether an object has all labels of a selector such as `app=web,tier!=cache`.
pub(crate) fn matches_selector(object: &Value, selector: &str) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.split(',').map(str::trim).filter(|part| !part.is_empty()).all(|part| {
        if let Some((name, value)) = part.split_once("!=") {
            return labels[name.trim()] != *value.trim();
        }
        match part.split_once('=') {
            Some((name, value)) => labels[name.trim()] == *value.trim_start_matches('=').trim(),
            None => !labels[part].is_null(),
        }
    })
}

/// Whether an object has the fields of a selector such as `metadata.name=web`.
pub(crate) fn matches_fields(object: &Value, selector: &str) -> bool {
    selector.split(',').map(str::trim).filter(|part| !part.is_empty()).all(|part| {
        let Some((path, value)) = part.split_once('=') else { return false };
        let (path, is_negated) = match path.strip_suffix('!') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let field = object.pointer(&format!("/{}", path.replace('.', "/")));
        let is_equal = field.and_then(Value::as_str).unwrap_or_default() == value.trim_start_matches('=');
        is_equal != is_negated
    })
}
