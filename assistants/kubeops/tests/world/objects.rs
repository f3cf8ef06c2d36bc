//! The objects of a world, as a cluster stores them.

use serde_json::{Map, Value, json};

use super::script::entries;
use super::{Talk, deployment, pod, secret};

/// Builds the objects of a world.
pub(super) fn objects(world: &Value) -> Vec<Value> {
    let mut nodes = entries(&world["nodes"]);
    if nodes.is_empty() {
        nodes = entries(&world["cluster"]["default"]["nodes"]);
    }
    let mut objects: Vec<Value> = nodes.iter().flat_map(node).collect();
    for (namespace, content) in world["cluster"].as_object().unwrap() {
        let entries_of = |name: &str| entries(&content[name]);
        let own_pods = entries_of("pods");
        objects.extend(
            entries_of("deployments").iter().flat_map(|entry| workload(namespace, entry, "Deployment", &own_pods)),
        );
        objects.extend(
            entries_of("statefulsets").iter().flat_map(|entry| workload(namespace, entry, "StatefulSet", &own_pods)),
        );
        let templates: Vec<Value> = objects.iter().filter(|object| object["kind"] == "StatefulSet").cloned().collect();
        objects.extend(own_pods.iter().flat_map(|entry| {
            let mut built = pods(namespace, entry);
            as_template(&mut built[0], entry, &templates);
            built
        }));
        for entry in entries_of("secrets") {
            let data = entry["data"].as_object().unwrap();
            let data: Vec<(&str, &str)> = data.iter().map(|(key, value)| (&**key, value.as_str().unwrap())).collect();
            objects.push(secret(namespace, &text(&entry["name"]), &data));
        }
        objects.extend(entries_of("configmaps").iter().map(|entry| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": entry["name"], "namespace": namespace },
                "data": entry["data"],
            })
        }));
        objects.extend(entries_of("daemonsets").iter().map(|entry| created(daemon_set(namespace, entry), entry)));
        objects.extend(entries_of("jobs").iter().map(|entry| created(job(namespace, entry), entry)));
        objects.extend(entries_of("cronjobs").iter().map(|entry| created(cron_job(namespace, entry), entry)));
        objects.extend(entries_of("services").iter().map(|entry| created(service(namespace, entry), entry)));
        objects.extend(entries_of("events").iter().enumerate().map(|(number, entry)| event(namespace, number, entry)));
        objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }, "status": { "phase": "Active" } }));
    }
    objects
}

/// Gives a pod of a stateful set the containers of its template, if it has the same image: the controller replaces pods that differ.
fn as_template(pod: &mut Value, entry: &Value, sets: &[Value]) {
    let owner = entry["owner"].as_str().and_then(|owner| owner.strip_prefix("statefulset/"));
    let namespace = pod["metadata"]["namespace"].clone();
    let is_owner = |set: &&Value| {
        owner.is_some_and(|owner| set["metadata"]["name"] == owner) && set["metadata"]["namespace"] == namespace
    };
    let Some(set) = sets.iter().find(is_owner) else { return };
    let containers = &set["spec"]["template"]["spec"]["containers"];
    if entry["containers"].is_null() && containers[0]["image"] == pod["spec"]["containers"][0]["image"] {
        pod["spec"]["containers"] = containers.clone();
        if pod["status"]["containerStatuses"].is_array() {
            pod["status"]["containerStatuses"][0]["name"] = containers[0]["name"].clone();
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns a deployment or stateful set, with the replica sets of its history.
fn workload(namespace: &str, entry: &Value, kind: &str, pods: &[Value]) -> Vec<Value> {
    let (name, replicas) = (text(&entry["name"]), entry["replicas"].as_u64().unwrap());
    let mut object = deployment(namespace, &name, replicas, &text(&entry["image"])).remove(0);
    object["kind"] = json!(kind);
    // The pods have the limits of their workload.
    let owner = format!("{}/{name}", kind.to_lowercase());
    let limit = pods.iter().find(|pod| pod["owner"] == *owner && pod["memory_limit"].is_string());
    if let Some(pod) = limit {
        object["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({ "limits": { "memory": pod["memory_limit"] } });
    }
    // As `kubectl create deployment` does, the container is named after the image, if that has another name.
    let image = text(&entry["image"]);
    let base = image.rsplit('/').next().and_then(|image| image.split(':').next()).unwrap_or_default().to_owned();
    if kind == "Deployment" && !image.contains('/') && !base.contains(&name) {
        object["spec"]["template"]["spec"]["containers"][0]["name"] = json!(base);
    }
    object["status"]["readyReplicas"] = entry["ready"].clone();
    // A world that names no history has one: an earlier revision to return to.
    let before = image.rsplit_once(':').map_or(&*image, |(repository, _)| repository);
    let history = if entry["history"].is_array() {
        entries(&entry["history"])
    } else {
        vec![json!({ "revision": 1, "image": format!("{before}:earlier"), "is_invented": true })]
    };
    let uid = format!("{namespace}-{name}");
    object["metadata"]["uid"] = json!(uid);
    let mut objects = Vec::new();
    for revision in history.into_iter().filter(|_| kind == "Deployment") {
        let number = revision["revision"].as_u64().unwrap();
        let mut template = object["spec"]["template"].clone();
        template["spec"]["containers"][0]["image"] = revision["image"].clone();
        let is_current = revision["image"] == entry["image"];
        // It must not adopt the pods of the world.
        let mut selector = object["spec"]["selector"].clone();
        if revision["is_invented"] == true {
            selector["matchLabels"]["revision"] = json!("earlier");
        }
        objects.push(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{name}-{number:05}"), "namespace": namespace, "labels": { "app": name },
                "annotations": { "deployment.kubernetes.io/revision": number.to_string() },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid, "controller": true }],
            },
            "spec": { "replicas": if is_current { replicas } else { 0 }, "selector": selector, "template": template },
        }));
    }
    objects.push(created(object, entry));
    objects
}

/// Sets when an object was created, if the world says it.
fn created(mut object: Value, entry: &Value) -> Value {
    if entry["created"].is_string() {
        object["metadata"]["creationTimestamp"] = entry["created"].clone();
    }
    object
}

/// Returns a pod, with its usage.
fn pods(namespace: &str, entry: &Value) -> Vec<Value> {
    let name = text(&entry["name"]);
    let mut pod = pod(namespace, &name, &text(&entry["image"]));
    if let Some((_, owner)) = entry["owner"].as_str().and_then(|owner| owner.split_once('/')) {
        pod["metadata"]["labels"] = json!({ "app": owner });
        if entry["owner"].as_str().is_some_and(|owner| owner.starts_with("job/")) {
            pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": owner }]);
        }
        // A world may name the owner without having it as an object.
        if entry["owner"].as_str().is_some_and(|owner| owner.starts_with("statefulset/")) {
            pod["metadata"]["ownerReferences"] =
                json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "controller": true }]);
        }
    }
    for (key, value) in entry["labels"].as_object().into_iter().flatten() {
        pod["metadata"]["labels"][key] = value.clone();
    }
    if entry["created"].is_string() {
        pod["metadata"]["creationTimestamp"] = entry["created"].clone();
    }
    if entry["node"].is_string() {
        pod["spec"]["nodeName"] = entry["node"].clone();
    }
    let resources = json!({ "limits": { "memory": entry["memory_limit"] } });
    pod["spec"]["containers"][0]["resources"] = resources;
    let containers = entries(&entry["containers"]);
    if !containers.is_empty() {
        let template = pod["spec"]["containers"][0].clone();
        let status = pod["status"]["containerStatuses"][0].clone();
        let named = |template: &Value| -> Vec<Value> {
            let entry = |name: &Value| {
                let mut entry = template.clone();
                entry["name"] = name.clone();
                entry
            };
            containers.iter().map(entry).collect()
        };
        pod["spec"]["containers"] = json!(named(&template));
        pod["status"]["containerStatuses"] = json!(named(&status));
    }
    let status = &mut pod["status"]["containerStatuses"][0];
    status["restartCount"] = entry["restarts"].clone();
    match entry["status"].as_str().unwrap() {
        "Running" => {}
        "Pending" => pod["status"] = json!({ "phase": "Pending" }),
        reason => {
            status["ready"] = json!(false);
            status["state"] = json!({ "waiting": { "reason": reason } });
        }
    }
    let last = &entry["last_state"];
    if last.is_object() && entry["status"] != "Pending" {
        let ended = json!({ "reason": last["reason"], "exitCode": last["exit_code"] });
        pod["status"]["containerStatuses"][0]["lastState"] = json!({ "terminated": ended });
    }
    let mut objects = vec![pod];
    if entry["cpu"].is_string() {
        let usage = json!({ "cpu": entry["cpu"], "memory": entry["memory"] });
        objects.push(json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": { "name": name, "namespace": namespace },
            "containers": [{ "name": "main", "usage": usage }],
        }));
    }
    objects
}

/// Writes the logs of a pod, and names the pod that replaces it.
pub(super) fn prepare_pod(talk: &Talk, namespace: &str, entry: Value) {
    let (cluster, name) = (&talk.cluster, text(&entry["name"]));
    match &entry["logs"] {
        Value::String(log) => cluster.write_log(namespace, &name, false, log),
        Value::Object(logs) => {
            for (container, log) in logs {
                cluster.write_log(namespace, &format!("{name}.{container}"), false, log.as_str().unwrap());
            }
        }
        _ => {}
    }
    if let Some(log) = entry["previous_logs"].as_str() {
        cluster.write_log(namespace, &name, true, log);
        // The log of a container that waits for its restart is that of its last run.
        let waits = entry["status"].as_str().is_some_and(|status| status.contains("BackOff"));
        if entry["logs"].is_null() && waits {
            cluster.write_log(namespace, &name, false, log);
        }
    }
    if let Some(successor) = entry["recreated_as"].as_str() {
        cluster.replace_as(namespace, &name, successor);
    }
}

fn node(entry: &Value) -> Vec<Value> {
    // As kubectl prints it: `Ready,SchedulingDisabled`.
    let status = entry["status"].as_str().unwrap_or_default();
    let ready = if status.split(',').any(|part| part == "Ready") { "True" } else { "False" };
    let is_cordoned = status.contains("SchedulingDisabled") || entry["unschedulable"] == true;
    let mut spec = if is_cordoned { json!({ "unschedulable": true }) } else { json!({}) };
    if entry["taints"].is_array() {
        spec["taints"] = entry["taints"].clone();
    }
    let mut labels = Map::new();
    if let Some(role) = entry["roles"].as_str() {
        labels.insert(format!("node-role.kubernetes.io/{role}"), json!(""));
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": entry["name"], "labels": labels }, "spec": spec,
        "status": {
            "conditions": [{ "type": "Ready", "status": ready }], "nodeInfo": { "kubeletVersion": entry["version"] },
        },
    });
    let mut objects = vec![created(object, entry)];
    if entry["cpu"].is_string() {
        objects.push(json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": { "name": entry["name"] },
            "usage": { "cpu": entry["cpu"], "memory": entry["memory"] },
        }));
    }
    objects
}

/// Returns a daemon set.
fn daemon_set(namespace: &str, entry: &Value) -> Value {
    let mut object = deployment(namespace, &text(&entry["name"]), 0, &text(&entry["image"])).remove(0);
    object["kind"] = json!("DaemonSet");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    object["status"] = json!({ "desiredNumberScheduled": entry["desired"], "numberReady": entry["ready"] });
    object
}

/// Returns a job. Its completions are a number, or written as kubectl prints them: `0/1`.
fn job(namespace: &str, entry: &Value) -> Value {
    let printed = text(&entry["completions"]);
    let (succeeded, completions) = printed.split_once('/').unwrap_or(("0", "1"));
    let number = |text: &str| text.parse::<u64>().unwrap();
    let is_failed = entry["status"] == "Failed";
    let labels = json!({ "app": entry["name"] });
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": entry["name"], "namespace": namespace },
        "spec": {
            "completions": entry["completions"].as_u64().unwrap_or_else(|| number(completions)),
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": entry["image"] }] } },
        },
        "status": {
            "succeeded": entry["succeeded"].as_u64().unwrap_or_else(|| number(succeeded)),
            "failed": entry["failed"].as_u64().unwrap_or(u64::from(is_failed)),
            "conditions": [{ "type": entry["status"], "status": "True" }],
        },
    })
}

fn cron_job(namespace: &str, entry: &Value) -> Value {
    let pod = json!({ "spec": { "containers": [{ "name": "main", "image": entry["image"] }] } });
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": entry["name"], "namespace": namespace },
        "spec": {
            "schedule": entry["schedule"], "suspend": entry["suspend"], "jobTemplate": { "spec": { "template": pod } },
        },
    })
}

/// Returns a service. It has one `port`, or `ports` as a list or as kubectl prints them: `443:30443/TCP,80/TCP`.
fn service(namespace: &str, entry: &Value) -> Value {
    let listed = entry["ports"].as_array().into_iter().flatten().cloned();
    let printed: Vec<Value> = entry["port"]
        .as_u64()
        .map_or_else(|| text(&entry["ports"]), |port| port.to_string())
        .split(',')
        .filter(|port| !port.is_empty())
        .map(|port| {
            let (numbers, protocol) = port.split_once('/').unwrap_or((port, "TCP"));
            let (port, node_port) = numbers.split_once(':').map_or((numbers, None), |(port, node)| (port, Some(node)));
            let mut entry = json!({ "port": port.parse::<u32>().unwrap(), "protocol": protocol });
            if let Some(node_port) = node_port {
                entry["nodePort"] = json!(node_port.parse::<u32>().unwrap());
            }
            entry
        })
        .collect();
    let ports: Vec<Value> = listed.chain(printed).collect();
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": entry["name"], "namespace": namespace },
        "spec": { "type": entry["type"], "clusterIP": entry["cluster_ip"], "ports": ports, "selector": { "app": entry["name"] } },
    })
}

fn event(namespace: &str, number: usize, entry: &Value) -> Value {
    let object = text(&entry["object"]);
    let (kind, name) = object.split_once('/').unwrap();
    let mut letters = kind.chars();
    let kind: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("{name}.{number}"), "namespace": namespace },
        "involvedObject": { "kind": kind, "name": name, "namespace": namespace }, "type": entry["type"],
        "reason": entry["reason"], "message": entry["message"], "lastTimestamp": format!("2026-06-16T09:{number:02}:00Z"),
    })
}
