//! Lists as tables, which `kubectl get` asks for and prints.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::resources::Resource;

/// A column: its name, and whether only `-o wide` prints it.
type Column = (&'static str, bool);

/// Whether the header `Accept` of a client prefers a table.
pub(crate) fn is_wanted(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or_default();
    first.split(';').any(|parameter| parameter.trim() == "as=Table")
        && first.split(';').any(|parameter| parameter.trim() == "v=v1")
}

/// Returns objects of one kind as a table. `include` is the parameter `includeObject` of the request.
pub(crate) fn table(resource: &Resource, objects: &[&Value], version: &str, include: &str) -> Value {
    let columns: Vec<Value> = columns(resource)
        .iter()
        .map(|(name, is_wide)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({ "name": name, "type": "string", "format": format, "description": name, "priority": u8::from(*is_wide) })
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({ "cells": cells(resource, object, now) });
            match include {
                "None" => {}
                "Object" => row["object"] = (*object).clone(),
                _ => {
                    row["object"] = json!({
                        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
                    });
                }
            }
            row
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": { "resourceVersion": version },
        "columnDefinitions": columns, "rows": rows,
    })
}

fn columns(resource: &Resource) -> &'static [Column] {
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => &[
            ("Name", false),
            ("Ready", false),
            ("Status", false),
            ("Restarts", false),
            ("Age", false),
            ("IP", true),
            ("Node", true),
        ],
        ("apps", "deployments") => {
            &[("Name", false), ("Ready", false), ("Up-to-date", false), ("Available", false), ("Age", false)]
        }
        ("apps", "replicasets") => {
            &[("Name", false), ("Desired", false), ("Current", false), ("Ready", false), ("Age", false)]
        }
        ("apps", "statefulsets") => &[("Name", false), ("Ready", false), ("Age", false)],
        ("apps", "daemonsets") => {
            &[("Name", false), ("Desired", false), ("Current", false), ("Ready", false), ("Age", false)]
        }
        ("", "services") => {
            &[("Name", false), ("Type", false), ("Cluster-IP", false), ("Port(s)", false), ("Age", false)]
        }
        ("", "nodes") => &[("Name", false), ("Status", false), ("Age", false), ("Version", false)],
        ("", "namespaces") => &[("Name", false), ("Status", false), ("Age", false)],
        ("", "configmaps") => &[("Name", false), ("Data", false), ("Age", false)],
        ("", "secrets") => &[("Name", false), ("Type", false), ("Data", false), ("Age", false)],
        ("", "events") => {
            &[("Last Seen", false), ("Type", false), ("Reason", false), ("Object", false), ("Message", false)]
        }
        _ => &[("Name", false), ("Age", false)],
    }
}

fn cells(resource: &Resource, object: &Value, now: i64) -> Vec<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let name = text(&object["metadata"]["name"]);
    let age = age(&object["metadata"]["creationTimestamp"], now);
    let replicas = || spec["replicas"].as_u64().unwrap_or(1).to_string();
    let ready = || format!("{}/{}", count(&status["readyReplicas"]), replicas());
    let entries = |value: &Value| value.as_object().map_or(0, serde_json::Map::len).to_string();
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => {
            let (ready, restarts) = ready_of_pod(object);
            vec![name, ready, pod_status(object), restarts, age, or_none(&status["podIP"]), or_none(&spec["nodeName"])]
        }
        ("apps", "deployments") => {
            vec![name, ready(), count(&status["updatedReplicas"]), count(&status["availableReplicas"]), age]
        }
        ("apps", "replicasets") => {
            vec![name, replicas(), count(&status["replicas"]), count(&status["readyReplicas"]), age]
        }
        ("apps", "statefulsets") => vec![name, ready(), age],
        ("apps", "daemonsets") => vec![
            name,
            count(&status["desiredNumberScheduled"]),
            count(&status["currentNumberScheduled"]),
            count(&status["numberReady"]),
            age,
        ],
        ("", "services") => {
            vec![name, text(&spec["type"]), or_none(&spec["clusterIP"]), ports(&spec["ports"]), age]
        }
        ("", "nodes") => vec![name, node_status(object), age, text(&status["nodeInfo"]["kubeletVersion"])],
        ("", "namespaces") => vec![name, text(&status["phase"]), age],
        ("", "configmaps") => vec![name, entries(&object["data"]), age],
        ("", "secrets") => vec![name, text(&object["type"]), entries(&object["data"]), age],
        ("", "events") => {
            let about = &object["involvedObject"];
            let about = format!("{}/{}", text(&about["kind"]).to_lowercase(), text(&about["name"]));
            let seen = self::age(&object["lastTimestamp"], now);
            vec![seen, text(&object["type"]), text(&object["reason"]), about, text(&object["message"])]
        }
        _ => vec![name, age],
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn or_none(value: &Value) -> String {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>").to_owned()
}

fn count(value: &Value) -> String {
    value.as_u64().unwrap_or(0).to_string()
}

fn ports(ports: &Value) -> String {
    let port = |port: &Value| format!("{}/{}", count(&port["port"]), port["protocol"].as_str().unwrap_or("TCP"));
    ports.as_array().into_iter().flatten().map(port).collect::<Vec<_>>().join(",")
}

/// Returns a pod's ready and total containers (`1/2`), and its number of restarts.
fn ready_of_pod(pod: &Value) -> (String, String) {
    let containers = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let statuses = || pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let ready = statuses().filter(|status| status["ready"] == true).count();
    let restarts: u64 = statuses().filter_map(|status| status["restartCount"].as_u64()).sum();
    (format!("{ready}/{containers}"), restarts.to_string())
}

/// Returns the reason why a container is waiting or terminated; otherwise the pod's reason or phase.
fn pod_status(pod: &Value) -> String {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating".to_owned();
    }
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let mut reasons = statuses.filter_map(|status| {
        let state = &status["state"];
        state["waiting"]["reason"].as_str().or_else(|| state["terminated"]["reason"].as_str())
    });
    let own = pod["status"]["reason"].as_str().or_else(|| pod["status"]["phase"].as_str());
    reasons.next_back().or(own).unwrap_or("Unknown").to_owned()
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let status = match ready.and_then(|ready| ready["status"].as_str()) {
        Some("True") => "Ready",
        Some("False") => "NotReady",
        _ => "Unknown",
    };
    let is_cordoned = node["spec"]["unschedulable"] == true;
    format!("{status}{}", if is_cordoned { ",SchedulingDisabled" } else { "" })
}

/// Returns the age of a timestamp in its largest unit: `45s`, `12m`, `7h`, `30d`.
fn age(time: &Value, now: i64) -> String {
    let Some(at) = time.as_str().and_then(unix_seconds) else { return "<unknown>".to_owned() };
    match (now - at).max(0) {
        seconds if seconds < 120 => format!("{seconds}s"),
        seconds if seconds < 7_200 => format!("{}m", seconds / 60),
        seconds if seconds < 172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Reads a time such as `2026-01-01T00:00:00Z`.
fn unix_seconds(time: &str) -> Option<i64> {
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // A year that begins in March has its leap day at the end.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // The number of days from the first of March of the year 0 to 1970.
    let days = days - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_largest_unit() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2024-02-29T12:30:05Z"), Some(1_709_209_805));
        assert_eq!(unix_seconds("yesterday"), None);
        for (seconds, expected) in [(119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d"), (-5, "0s")] {
            assert_eq!(age(&json!("1970-01-01T00:00:00Z"), seconds), expected);
        }
        assert_eq!(age(&Value::Null, 5), "<unknown>");
    }

    #[test]
    fn the_status_of_a_pod_is_the_reason_why_it_does_not_run() {
        let pod = |state: Value| json!({ "status": { "phase": "Running", "containerStatuses": [{ "state": state }] } });
        assert_eq!(pod_status(&pod(json!({ "running": {} }))), "Running");
        assert_eq!(pod_status(&pod(json!({ "waiting": { "reason": "CrashLoopBackOff" } }))), "CrashLoopBackOff");
        assert_eq!(pod_status(&pod(json!({ "terminated": { "reason": "OOMKilled" } }))), "OOMKilled");
        assert_eq!(pod_status(&json!({ "status": { "phase": "Failed", "reason": "Evicted" } })), "Evicted");
        assert_eq!(pod_status(&json!({ "metadata": { "deletionTimestamp": "x" } })), "Terminating");
    }

    #[test]
    fn a_table_is_returned_to_clients_that_prefer_one() {
        assert!(is_wanted("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"));
        assert!(!is_wanted("application/json"));
        assert!(!is_wanted("application/json, application/json;as=Table;v=v1;g=meta.k8s.io"));
    }
}
