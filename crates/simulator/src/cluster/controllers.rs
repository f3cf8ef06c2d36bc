//! The controllers: they replace deleted pods, and update the pods of changed deployments and stateful sets.
//!
//! A new pod is running immediately. Loaded pods keep their state until they are replaced.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::objects::{Key, Objects, matches_selector};

const REVISION: &str = "deployment.kubernetes.io/revision";

impl Objects {
    /// Creates a replica set for each deployment, assigns each pod without an owner to the owner whose selector it matches, and
    /// computes the status of each owner that has none.
    pub(crate) fn adopt(&mut self) {
        let deployments: Vec<Key> =
            self.list("apps", "deployments", "").into_iter().map(|(key, _)| key.clone()).collect();
        for key in deployments {
            self.replica_set(&key);
        }
        for plural in ["replicasets", "statefulsets", "daemonsets"] {
            let owners: Vec<(Key, Value)> =
                self.list("apps", plural, "").into_iter().map(|(key, owner)| (key.clone(), owner.clone())).collect();
            for (key, owner) in owners {
                self.adopt_pods(&key, &owner);
            }
        }
        for plural in ["replicasets", "statefulsets", "deployments"] {
            let owners = self.list("apps", plural, "").into_iter();
            let without: Vec<Key> =
                owners.filter(|(_, owner)| owner["status"].is_null()).map(|(key, _)| key.clone()).collect();
            for key in without {
                self.update_status(&key);
            }
        }
    }

    fn adopt_pods(&mut self, key: &Key, owner: &Value) {
        let selector = selector_of(owner);
        let pods = self.list("", "pods", &key.namespace).into_iter();
        let is_free = |pod: &Value| pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty);
        let orphans: Vec<(Key, Value)> = pods
            .filter(|(_, pod)| !selector.is_empty() && is_free(pod) && matches_selector(pod, &selector))
            .map(|(key, pod)| (key.clone(), pod.clone()))
            .collect();
        for (pod_key, mut pod) in orphans {
            pod["metadata"]["ownerReferences"] = json!([owner_reference(owner)]);
            self.put(pod_key, pod);
        }
    }

    /// Updates the pods of a changed object.
    pub(crate) fn reconcile(&mut self, key: &Key) {
        match &*key.plural {
            "deployments" => self.reconcile_deployment(key),
            "replicasets" | "statefulsets" => {
                self.reconcile_pods(key);
                self.update_status(key);
            }
            _ => {}
        }
    }

    /// Replaces a deleted pod, and removes the dependents of a deleted object.
    pub(crate) fn after_delete(&mut self, key: &Key, object: &Value) {
        let owner = object["metadata"]["ownerReferences"][0].clone();
        let plural = match owner["kind"].as_str().unwrap_or_default() {
            "ReplicaSet" => "replicasets",
            "StatefulSet" => "statefulsets",
            _ => "",
        };
        let uid = object["metadata"]["uid"].clone();
        let owned: Vec<Key> = self
            .by_key
            .iter()
            .filter(|(_, other)| {
                other["metadata"]["ownerReferences"]
                    .as_array()
                    .is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for owned_key in owned {
            if let Some(removed) = self.remove(&owned_key) {
                self.after_delete(&owned_key, &removed);
            }
        }
        if key.plural == "namespaces" {
            let inside: Vec<Key> = self.by_key.keys().filter(|other| other.namespace == key.name).cloned().collect();
            for key in inside {
                self.remove(&key);
            }
        }
        if key.plural == "pods" && !plural.is_empty() {
            let owner_key = Key::new("apps", plural, &key.namespace, owner["name"].as_str().unwrap_or_default());
            if self.by_key.contains_key(&owner_key) {
                self.reconcile_pods_named(&owner_key, Some(&key.name));
                self.update_owner_status(&owner_key);
            }
        }
    }

    fn reconcile_deployment(&mut self, key: &Key) {
        let Some(current) = self.replica_set(key) else { return };
        let Some(deployment) = self.by_key.get(key).cloned() else { return };
        let uid = &deployment["metadata"]["uid"];
        let sets: Vec<Key> = self
            .list("apps", "replicasets", &key.namespace)
            .into_iter()
            .filter(|(_, set)| set["metadata"]["ownerReferences"][0]["uid"] == *uid)
            .map(|(key, _)| key.clone())
            .collect();
        for set_key in sets {
            let Some(mut set) = self.by_key.get(&set_key).cloned() else { continue };
            set["spec"]["replicas"] =
                if set_key == current { deployment["spec"]["replicas"].clone() } else { json!(0) };
            self.put(set_key.clone(), set);
            self.reconcile_pods(&set_key);
            self.update_status(&set_key);
        }
        self.update_status(key);
    }

    /// Returns the replica set of a deployment's current template, and creates it if it is missing.
    fn replica_set(&mut self, key: &Key) -> Option<Key> {
        let deployment = self.by_key.get(key)?.clone();
        let template = &deployment["spec"]["template"];
        let sets: Vec<(Key, Value)> = self
            .list("apps", "replicasets", &key.namespace)
            .into_iter()
            .filter(|(_, set)| {
                let owner = &set["metadata"]["ownerReferences"][0];
                owner["kind"] == "Deployment" && owner["name"] == *key.name
            })
            .map(|(key, set)| (key.clone(), set.clone()))
            .collect();
        let is_same =
            |set: &Value| containers(set) == containers(&deployment) && annotations(set) == annotations(&deployment);
        let newest = sets.iter().filter_map(|(_, set)| revision(set)).max().unwrap_or(0);
        let found = sets.iter().find(|(_, set)| is_same(set)).cloned();
        let (set_key, mut set) = found.unwrap_or_else(|| {
            let digest = Sha256::digest(template.to_string());
            let hash: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
            let name = format!("{}-{hash}", key.name);
            let set = json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": { "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner_reference(&deployment)] },
                "spec": { "replicas": deployment["spec"]["replicas"], "selector": deployment["spec"]["selector"], "template": template },
            });
            (Key::new("apps", "replicasets", &key.namespace, &name), set)
        });
        set["metadata"]["ownerReferences"] = json!([owner_reference(&deployment)]);
        let own = revision(&set);
        let number = match own {
            Some(own) if own == newest => own,
            _ => newest + 1,
        };
        set["metadata"]["annotations"][REVISION] = json!(number.to_string());
        self.put(set_key.clone(), set);
        let mut deployment = deployment;
        deployment["metadata"]["annotations"][REVISION] = json!(number.to_string());
        self.put(key.clone(), deployment);
        Some(set_key)
    }

    fn reconcile_pods(&mut self, key: &Key) {
        self.reconcile_pods_named(key, None);
    }

    /// Creates and removes pods until an owner has the desired number. `gone` is the name of a pod that was just deleted.
    fn reconcile_pods_named(&mut self, key: &Key, gone: Option<&str>) {
        let Some(owner) = self.by_key.get(key).cloned() else { return };
        let wanted = owner["spec"]["replicas"].as_u64().unwrap_or(1);
        let mut pods = self.pods_of(&owner, &key.namespace);
        if key.plural == "statefulsets" {
            let outdated: Vec<Key> = pods
                .iter()
                .filter(|(_, pod)| pod["spec"]["containers"] != containers(&owner))
                .map(|(key, _)| key.clone())
                .collect();
            for pod in outdated {
                self.remove(&pod);
            }
            pods = self.pods_of(&owner, &key.namespace);
        }
        while pods.len() as u64 > wanted {
            if let Some((pod, _)) = pods.pop() {
                self.remove(&pod);
            }
        }
        let mut number = 0;
        let mut successor = gone.and_then(|gone| self.successors.remove(&(key.namespace.clone(), gone.to_owned())));
        while (pods.len() as u64) < wanted {
            let name = match (&*key.plural, gone) {
                _ if successor.is_some() => successor.take().unwrap_or_default(),
                ("statefulsets", Some(gone)) if !pods.iter().any(|(pod, _)| pod.name == gone) => gone.to_owned(),
                ("statefulsets", _) => {
                    number += 1;
                    format!("{}-{}", key.name, number - 1)
                }
                _ => format!("{}-{}", key.name, self.suffix()),
            };
            let pod_key = Key::new("", "pods", &key.namespace, &name);
            if !self.by_key.contains_key(&pod_key) {
                let pod = self.put(pod_key.clone(), new_pod(&name, &owner));
                pods.push((pod_key, pod));
            }
        }
    }

    fn pods_of(&self, owner: &Value, namespace: &str) -> Vec<(Key, Value)> {
        let uid = &owner["metadata"]["uid"];
        let pods = self.list("", "pods", namespace).into_iter();
        let own = pods.filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == *uid);
        own.map(|(key, pod)| (key.clone(), pod.clone())).collect()
    }

    /// Updates the status of an owner of pods, and of the deployment that owns it.
    fn update_owner_status(&mut self, key: &Key) {
        self.update_status(key);
        let owner = self.by_key.get(key).map(|set| set["metadata"]["ownerReferences"][0].clone()).unwrap_or_default();
        if owner["kind"] == "Deployment" {
            self.update_status(&Key::new(
                "apps",
                "deployments",
                &key.namespace,
                owner["name"].as_str().unwrap_or_default(),
            ));
        }
    }

    fn update_status(&mut self, key: &Key) {
        let Some(mut owner) = self.by_key.get(key).cloned() else { return };
        let pods: Vec<Value> = match &*key.plural {
            "deployments" => {
                let uid = owner["metadata"]["uid"].clone();
                let sets = self.list("apps", "replicasets", &key.namespace).into_iter();
                let own: Vec<Value> = sets
                    .filter(|(_, set)| set["metadata"]["ownerReferences"][0]["uid"] == uid)
                    .map(|(_, set)| set.clone())
                    .collect();
                own.iter().flat_map(|set| self.pods_of(set, &key.namespace)).map(|(_, pod)| pod).collect()
            }
            _ => self.pods_of(&owner, &key.namespace).into_iter().map(|(_, pod)| pod).collect(),
        };
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        let generation = owner["metadata"]["generation"].as_u64().unwrap_or(1);
        owner["metadata"]["generation"] = json!(generation);
        let status = &mut owner["status"];
        for (name, number) in [
            ("replicas", pods.len()),
            ("readyReplicas", ready),
            ("availableReplicas", ready),
            ("updatedReplicas", pods.len()),
        ] {
            status[name] = json!(number);
        }
        status["observedGeneration"] = json!(generation);
        self.put(key.clone(), owner);
    }
}

fn containers(object: &Value) -> Value {
    object["spec"]["template"]["spec"]["containers"].clone()
}

fn annotations(object: &Value) -> Value {
    object["spec"]["template"]["metadata"]["annotations"].clone()
}

fn revision(set: &Value) -> Option<u64> {
    set["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
}

fn is_ready(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array();
    pod["status"]["phase"] == "Running" && statuses.is_none_or(|all| all.iter().all(|status| status["ready"] != false))
}

/// Returns the selector of an owner as text.
fn selector_of(owner: &Value) -> String {
    let labels = owner["spec"]["selector"]["matchLabels"].as_object();
    let pairs = labels.into_iter().flatten().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}

fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true,
    })
}

fn new_pod(name: &str, owner: &Value) -> Value {
    let template = &owner["spec"]["template"];
    let statuses: Vec<Value> = template["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "ready": true, "restartCount": 0, "started": true,
                "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } },
            })
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": template["spec"],
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }], "containerStatuses": statuses },
    })
}
