//! Objects as text for users. The text never contains values of secrets or of environment variables.

use serde_json::Value;

use super::ObjectSummary;
use crate::kinds::Kind;

/// The maximum length of the dump of an object whose kind has no text of its own, in characters.
const MAX_DUMP: usize = 2_500;
/// The maximum length of a config map's value that is shown, in characters.
const MAX_VALUE: usize = 200;

/// Summarises an object: returns what a conversation needs to refer to it.
pub(crate) fn summarise(kind: &Kind, object: &Value) -> ObjectSummary {
    let metadata = &object["metadata"];
    let several = containers(kind, object).iter().map(|container| text(&container["name"])).collect::<Vec<_>>();
    let image = containers(kind, object).first().map(|container| text(&container["image"])).unwrap_or_default();
    ObjectSummary {
        kind: kind.plural.clone(),
        name: text(&metadata["name"]),
        namespace: text(&metadata["namespace"]),
        owner: owner(metadata),
        containers: if kind.plural == "pods" && several.len() > 1 { several } else { Vec::new() },
        is_unhealthy: is_unhealthy(kind, object),
        image,
        replicas: object["spec"]["replicas"].as_u64(),
        state: match &*kind.plural {
            "pods" => pod_state(object),
            "nodes" => node_state(object).to_owned(),
            _ => String::new(),
        },
        restarts: (kind.plural == "pods").then(|| pod_counts(object).2),
        node: if kind.plural == "pods" { text(&object["spec"]["nodeName"]) } else { String::new() },
        created: text(&metadata["creationTimestamp"]),
    }
}

/// Returns the workload that owns an object. A deployment's name is derived from that of its replica set.
fn owner(metadata: &Value) -> Option<(String, String)> {
    let owner = metadata["ownerReferences"].as_array()?.first()?;
    let (kind, name) = (owner["kind"].as_str()?, owner["name"].as_str()?);
    let plural = Kind::find(kind)?.plural;
    let hash = metadata["labels"]["pod-template-hash"].as_str();
    if plural == "replicasets" {
        let deployment = match hash {
            Some(hash) => name.strip_suffix(hash)?.strip_suffix('-')?,
            None => name.rsplit_once('-')?.0,
        };
        return Some(("deployments".to_owned(), deployment.to_owned()));
    }
    Some((plural, name.to_owned()))
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn containers<'a>(kind: &Kind, object: &'a Value) -> &'a [Value] {
    let spec = match &*kind.plural {
        "pods" => &object["spec"],
        "cronjobs" => &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        _ => &object["spec"]["template"]["spec"],
    };
    spec["containers"].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the number of ready replicas and the desired number.
pub(crate) fn readiness(kind: &Kind, object: &Value) -> (u64, u64) {
    let status = &object["status"];
    if kind.plural == "daemonsets" {
        return (number(&status["numberReady"]), number(&status["desiredNumberScheduled"]));
    }
    (number(&status["readyReplicas"]), object["spec"]["replicas"].as_u64().unwrap_or(1))
}

/// Returns the state of a pod as kubectl prints it: the reason of a waiting or ended container, otherwise the phase.
pub(crate) fn pod_state(pod: &Value) -> String {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating".to_owned();
    }
    for status in pod["status"]["containerStatuses"].as_array().into_iter().flatten() {
        for state in ["waiting", "terminated"] {
            if let Some(reason) = status["state"][state]["reason"].as_str() {
                return reason.to_owned();
            }
        }
    }
    pod["status"]["reason"].as_str().or(pod["status"]["phase"].as_str()).unwrap_or("Unknown").to_owned()
}

/// Returns how the containers of a pod last terminated: " (last: OOMKilled, exit code 137)".
fn last_end(pod: &Value) -> String {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let ends: Vec<String> = statuses
        .map(|status| &status["lastState"]["terminated"])
        .filter(|ended| ended.is_object())
        .map(|ended| format!("{}, exit code {}", text(&ended["reason"]), number(&ended["exitCode"])))
        .collect();
    if ends.is_empty() { String::new() } else { format!(" (last: {})", ends.join("; ")) }
}

fn pod_counts(pod: &Value) -> (usize, usize, u64) {
    let statuses = pod["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let all = pod["spec"]["containers"].as_array().map_or(0, Vec::len).max(statuses.len());
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    (ready, all, statuses.iter().map(|status| number(&status["restartCount"])).sum())
}

fn node_state(node: &Value) -> &'static str {
    let is_ready = condition(node, "Ready").is_none_or(|condition| condition["status"] == "True");
    match (is_ready, node["spec"]["unschedulable"] == true) {
        (true, true) => "SchedulingDisabled",
        (true, false) => "Ready",
        (false, true) => "NotReady,SchedulingDisabled",
        (false, false) => "NotReady",
    }
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == *name)
}

fn is_unhealthy(kind: &Kind, object: &Value) -> bool {
    match &*kind.plural {
        "pods" => {
            let (state, (ready, all, _)) = (pod_state(object), pod_counts(object));
            match &*state {
                "Running" => ready < all && object["status"]["containerStatuses"].is_array(),
                "Completed" | "Succeeded" | "Terminating" => false,
                _ => true,
            }
        }
        "deployments" | "statefulsets" | "daemonsets" => {
            let (ready, wanted) = readiness(kind, object);
            ready < wanted
        }
        "nodes" => condition(object, "Ready").is_some_and(|condition| condition["status"] != "True"),
        "jobs" => number(&object["status"]["failed"]) > 0,
        "persistentvolumeclaims" => object["status"]["phase"].as_str().is_some_and(|phase| phase != "Bound"),
        _ => false,
    }
}

/// Returns an object as an entry of a list.
pub(crate) fn line(kind: &Kind, object: &Value, with_namespace: bool) -> String {
    let metadata = &object["metadata"];
    let name = match with_namespace && kind.is_namespaced {
        true => format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"])),
        false => text(&metadata["name"]),
    };
    let images: Vec<String> = containers(kind, object).iter().map(|container| text(&container["image"])).collect();
    let image = if images.is_empty() { String::new() } else { format!(", image {}", images.join(" and ")) };
    let (spec, status) = (&object["spec"], &object["status"]);
    let details = match &*kind.plural {
        "pods" => {
            let (ready, all, restarts) = pod_counts(object);
            let node = spec["nodeName"].as_str().map(|node| format!(", on {node}")).unwrap_or_default();
            let last = if is_unhealthy(kind, object) { last_end(object) } else { String::new() };
            format!(": {}{last}, {ready}/{all} ready, {restarts} restarts{image}{node}", pod_state(object))
        }
        "deployments" | "statefulsets" | "daemonsets" | "replicasets" => {
            let (ready, wanted) = readiness(kind, object);
            let paused = if spec["paused"] == true { ", paused" } else { "" };
            format!(" ({ready}/{wanted} ready){image}{paused}")
        }
        "services" => {
            let ports: Vec<String> =
                spec["ports"].as_array().into_iter().flatten().map(|port| port["port"].to_string()).collect();
            format!(": {}, {}, port {}", text(&spec["type"]), text(&spec["clusterIP"]), ports.join(", "))
        }
        "nodes" => {
            let ready = condition(object, "Ready").is_none_or(|condition| condition["status"] == "True");
            let cordoned = if spec["unschedulable"] == true { ", cordoned (SchedulingDisabled)" } else { "" };
            format!(
                ": {}{cordoned}, {}",
                if ready { "Ready" } else { "NotReady" },
                text(&status["nodeInfo"]["kubeletVersion"])
            )
        }
        "namespaces" | "persistentvolumeclaims" | "persistentvolumes" => format!(": {}", text(&status["phase"])),
        "secrets" | "configmaps" => format!(": keys {}", keys(object).join(", ")),
        "jobs" => format!(
            ": {} succeeded, {} failed, {} active",
            number(&status["succeeded"]),
            number(&status["failed"]),
            number(&status["active"])
        ),
        "cronjobs" => {
            format!(": {}{}", text(&spec["schedule"]), if spec["suspend"] == true { ", suspended" } else { "" })
        }
        "ingresses" => {
            let hosts: Vec<String> =
                spec["rules"].as_array().into_iter().flatten().map(|rule| text(&rule["host"])).collect();
            format!(": {}", hosts.join(", "))
        }
        "horizontalpodautoscalers" => {
            let target = text(&spec["scaleTargetRef"]["name"]);
            let (least, most) = (number(&spec["minReplicas"]), number(&spec["maxReplicas"]));
            format!(": {target}, {least} to {most} replicas, now {}", number(&status["currentReplicas"]))
        }
        _ => String::new(),
    };
    format!("- {name}{details}")
}

/// Returns the keys of a secret or config map.
fn keys(object: &Value) -> Vec<String> {
    let members = ["data", "stringData", "binaryData"].iter().filter_map(|name| object[*name].as_object());
    members.flat_map(|members| members.keys().cloned()).collect()
}

/// Describes an object in detail.
pub(crate) fn describe(kind: &Kind, object: &Value) -> String {
    let metadata = &object["metadata"];
    let mut lines = Vec::new();
    if kind.is_namespaced {
        lines.push(format!("Namespace: {}", text(&metadata["namespace"])));
    }
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={}", text(value))).collect();
    if !labels.is_empty() {
        lines.push(format!("Labels: {}", labels.join(", ")));
    }
    if let Some((kind, name)) = owner(metadata) {
        lines.push(format!("Owner: {}/{name}", Kind::find(&kind).map_or(kind, |kind| kind.singular)));
    }
    if let Some(created) = metadata["creationTimestamp"].as_str() {
        lines.push(format!("Created: {created}"));
    }
    match &*kind.plural {
        "pods" => describe_pod(object, &mut lines),
        "deployments" | "statefulsets" | "daemonsets" | "replicasets" => {
            let (ready, wanted) = readiness(kind, object);
            lines.push(format!("Replicas: {wanted} wanted, {ready} ready"));
            lines.extend(containers(kind, object).iter().map(container_line));
        }
        "secrets" => lines.push(format!(
            "Type: {}\nKeys: {} (values are never shown)",
            text(&object["type"]),
            keys(object).join(", ")
        )),
        "configmaps" => {
            for (name, value) in object["data"].as_object().into_iter().flatten() {
                lines.push(format!("{name}: {}", cut(&text(value), MAX_VALUE)));
            }
        }
        _ => {
            let dump = serde_json::to_string_pretty(&object["spec"]).unwrap_or_default();
            lines.push(line(kind, object, false).trim_start_matches("- ").to_owned());
            if !object["spec"].is_null() {
                lines.push(format!("Spec: {}", cut(&dump, MAX_DUMP)));
            }
        }
    }
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        if condition["status"] != "True" || kind.plural == "deployments" {
            let reason = condition["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
            lines.push(format!("Condition {}: {}{reason}", text(&condition["type"]), text(&condition["status"])));
        }
    }
    lines.join("\n")
}

fn describe_pod(pod: &Value, lines: &mut Vec<String>) {
    let (ready, all, restarts) = pod_counts(pod);
    lines.push(format!("Status: {}, {ready}/{all} ready, {restarts} restarts", pod_state(pod)));
    if let Some(node) = pod["spec"]["nodeName"].as_str() {
        lines.push(format!("Node: {node}"));
    }
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        lines.push(container_line(container));
        let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
        for status in statuses.filter(|status| status["name"] == container["name"]) {
            if let Some(message) = status["state"]["waiting"]["message"].as_str() {
                lines.push(format!("  Waiting: {}", cut(message, MAX_VALUE)));
            }
            for (title, state) in [("Terminated", &status["state"]), ("Last state", &status["lastState"])] {
                let ended = &state["terminated"];
                if !ended.is_null() {
                    lines.push(format!(
                        "  {title}: {}, exit code {}",
                        text(&ended["reason"]),
                        number(&ended["exitCode"])
                    ));
                }
            }
        }
    }
}

/// Describes a container: image, limits and requests, but not its environment.
fn container_line(container: &Value) -> String {
    let mut line = format!("Container {}: image {}", text(&container["name"]), text(&container["image"]));
    for (name, title) in [("limits", "limits"), ("requests", "requests")] {
        let values = container["resources"][name].as_object().into_iter().flatten();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{name} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect();
        if !values.is_empty() {
            line.push_str(&format!(", {title}: {}", values.join(", ")));
        }
    }
    line
}

/// Cuts the text at a number of characters, and marks the cut.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the text as a block of code. The text cannot end the block.
pub(crate) fn code_block(text: &str) -> String {
    format!("```\n{}\n```", text.trim_end().replace("```", "'''"))
}
