//! Runs sets of dialogues: builds the objects of each world, sends the messages and reactions, and compares requests, effects and facts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use threadkeep::agent::Approval;
use threadkeep::{ThreadId, Turn, TurnStatus, Verdict};
use threadkeep_dialogue_sets::{ObservedCall, ObservedTurn, TurnResult, mismatches};
use threadkeep_simulator::cluster::Request;

use super::{Talk, deployment, pod, secret};

/// The expectations that the comparison of all dialogue sets checks.
const COMMON: [&str; 9] =
    ["facts", "absent", "absent_re", "asks", "declines", "calls", "calls_any", "calls_max", "order"];

/// Runs the dialogues of a set.
pub(crate) async fn run_dialogues(set: &Value) -> Vec<TurnResult> {
    let mut results = Vec::new();
    for dialogue in set["dialogues"].as_array().unwrap() {
        let mut script = Script::start(dialogue).await;
        for (number, turn) in dialogue["turns"].as_array().unwrap().iter().enumerate() {
            let Some((mismatches, observed)) = script.run_turn(turn).await else { continue };
            results.push(TurnResult {
                name: format!("{} turn {}", dialogue["id"].as_str().unwrap(), number + 1),
                user: if turn["reaction"].is_object() {
                    turn["reaction"].to_string()
                } else {
                    turn["user"].as_str().unwrap_or_default().to_owned()
                },
                kind: turn["kind"].as_str().map(str::to_owned),
                is_required: turn["level"] != "stretch" && turn["expect"]["level"] != "stretch",
                mismatches,
                observed,
            });
        }
    }
    results
}

/// A request that was made in a dialogue.
struct Asked {
    thread: ThreadId,
    approval: Approval,
}

/// A dialogue that is being run.
struct Script {
    talk: Talk,
    threads: BTreeMap<String, ThreadId>,
    asked: Vec<Asked>,
    /// The ids of the events that were delivered.
    events: BTreeSet<String>,
    /// Whether conversations outlast a restart.
    is_persistent: bool,
    /// Whether conversations are remembered. Otherwise the door opens a new one for each message.
    remembers: bool,
    /// How often conversations were forgotten.
    forgotten: usize,
}

impl Script {
    async fn start(dialogue: &Value) -> Self {
        let (mut approvals, mut memory) = (json!({}), dialogue["config"]["memory"].clone());
        let allowed = &dialogue["config"]["approval_allowed_users"];
        if allowed.is_array() {
            approvals["allowed_users"] = allowed.clone();
        }
        // The backend is an option of the store, not of the assistant.
        let backend = memory.as_object_mut().and_then(|memory| memory.remove("backend"));
        let is_persistent = backend.is_some_and(|backend| backend != "inmemory");
        let remembers = memory["enabled"] != false;
        let config =
            json!({"spec": {"approvals": approvals, "memory": if memory.is_null() { json!({}) } else { memory }}});
        let config = config.to_string();
        let world = &dialogue["world"];
        let talk = Talk::start_with(objects(world), &config).await;
        for (namespace, content) in world["cluster"].as_object().unwrap() {
            for pod in entries(&content["pods"]) {
                prepare_pod(&talk, namespace, pod);
            }
        }
        Self {
            talk,
            threads: BTreeMap::new(),
            asked: Vec::new(),
            events: BTreeSet::new(),
            is_persistent,
            remembers,
            forgotten: 0,
        }
    }

    /// Runs a turn; `None` for operations that other tests cover.
    async fn run_turn(&mut self, turn: &Value) -> Option<(Vec<String>, String)> {
        for step in entries(&turn["before"]) {
            self.apply(&step);
        }
        let (before, asked) = (self.talk.cluster.requests().len(), self.asked.len());
        // Slack delivers an event again: the door handles it once, as its tests show.
        let event = turn["slack"]["event_id"].as_str().map(str::to_owned);
        let is_again = event.is_some_and(|event| !self.events.insert(event));
        let mut decided = None;
        let answer = if is_again {
            None
        } else if turn["reaction"].is_object() {
            decided = self.react(&turn["reaction"]).await;
            decided.as_ref().and_then(|(_, answer)| answer.clone())
        } else {
            Some(self.say(turn).await?)
        };
        let requests = self.talk.cluster.requests().split_off(before);
        let expect = turn["expect"].as_object().unwrap();
        let mut faults = Vec::new();
        if let Some(answer) = &answer {
            let mut common: Map<String, Value> = expect
                .iter()
                .filter(|(key, _)| COMMON.contains(&&***key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let limit = common.remove("calls_max").and_then(|most| most.as_u64());
            if limit.is_some_and(|most| answer.tool_calls.len() as u64 > most) {
                faults.push(format!("{} calls", answer.tool_calls.len()));
            }
            faults.extend(mismatches(&common, &observed(answer, &requests), &are_equal));
        } else if !entries(&turn["expect"]["facts"]).is_empty() {
            faults.push("no answer".to_owned());
        }
        faults.extend(self.effect_faults(&turn["expect"], asked, decided.as_ref().map(|(at, _)| *at), &requests).await);
        let said = answer.map_or_else(|| "(no effect)".to_owned(), |answer| answer.reply);
        let calls: Vec<String> = requests
            .iter()
            .map(|one| {
                format!("{} {} {}/{}", one.verb, one.resource, one.namespace, one.name.as_deref().unwrap_or("*"))
            })
            .collect();
        Some((faults, format!("{said}\n    [{}]", calls.join(", "))))
    }

    fn apply(&mut self, step: &Value) {
        if step["restart"] == true && !self.is_persistent {
            self.forgotten += 1;
        }
        let cluster = &self.talk.cluster;
        if let Some(gone) = step["cluster_remove"].as_object() {
            let text = |name: &str| gone[name].as_str().unwrap().to_owned();
            let kind = plural(&text("kind"));
            let group = if matches!(&*kind, "deployments" | "statefulsets" | "daemonsets") { "apps" } else { "" };
            cluster.remove(group, &kind, &text("namespace"), &text("name"));
        }
        if let Some(failure) = step.get("kubectl_fail") {
            cluster.fail(failure.as_str());
        }
        if let Some(seconds) = step["advance_clock_s"].as_i64() {
            self.talk.clock.advance_seconds(seconds);
        }
    }

    async fn say(&mut self, turn: &Value) -> Option<Turn> {
        let text = turn["user"].as_str().filter(|text| !text.is_empty())?.replace("<@U0BOT>", "");
        if !self.remembers {
            self.forgotten += 1;
        }
        let slack = &turn["slack"];
        let key = format!("{} {} {}", slack["channel"], slack["thread"], self.forgotten).replace('"', "");
        let talk = &self.talk;
        // A thread that expired is opened again.
        let thread = talk.agent.memory().open_by_key(&talk.scope, key.clone()).await.unwrap().thread.id;
        self.threads.insert(key, thread);
        let answer = talk.agent.chat(&talk.scope, thread, text.trim()).await.unwrap();
        if answer.status == TurnStatus::WaitingForApproval {
            let all = talk.agent.approvals(&talk.scope, thread).await.unwrap();
            let is_new = |approval: &Approval| answer.approvals.iter().any(|new| new.id == approval.id);
            self.asked.extend(all.into_iter().filter(is_new).map(|approval| Asked { thread, approval }));
        }
        Some(answer)
    }

    /// Reacts as the Slack door lets users react: only some emoji decide, and only those of users in the workspace. Returns the position of
    /// the request and the answer; `None` without an effect.
    async fn react(&mut self, reaction: &Value) -> Option<(usize, Option<Turn>)> {
        let verdict = match reaction["emoji"].as_str().unwrap().split("::").next().unwrap() {
            "white_check_mark" | "heavy_check_mark" | "+1" | "thumbsup" => Verdict::Approve,
            "x" | "no_entry" | "-1" | "thumbsdown" => Verdict::Deny { reason: None },
            _ => return None,
        };
        let at = match reaction["on"].as_str().unwrap() {
            "last_approval" => self.asked.len().checked_sub(1)?,
            "user_message" => return None,
            on => on.strip_prefix("approval:").unwrap().parse::<usize>().unwrap() - 1,
        };
        let by = reaction["by"].as_str().unwrap();
        // Someone outside the workspace, and the assistant's own user.
        if matches!(by, "U03MALLORY" | "U0BOT") {
            return None;
        }
        let asked = self.asked.get(at)?;
        let (agent, id) = (&self.talk.agent, &asked.approval.id);
        Some((at, agent.decide(&self.talk.scope, asked.thread, id, verdict, by, &mut |_| {}).await.ok()))
    }

    /// Compares requests for approvals, executed changes, and what waits.
    async fn effect_faults(
        &self,
        expect: &Value,
        asked: usize,
        decided: Option<usize>,
        requests: &[Request],
    ) -> Vec<String> {
        let mut faults = Vec::new();
        let requested: Vec<&Approval> = self.asked[asked..].iter().map(|asked| &asked.approval).collect();
        let lines: Vec<&str> = requested.iter().map(|approval| line_of(approval)).collect();
        let covers =
            |expected: &[Value]| expected.iter().all(|one| requested.iter().any(|approval| is_request(approval, one)));
        if let Some(expected) = expect["approvals"].as_array()
            && (!covers(expected) || expected.len() != requested.len())
        {
            faults.push(format!("requested {lines:?}, not {}", expect["approvals"]));
        }
        if !covers(&entries(&expect["approvals_cover"])) {
            faults.push(format!("requested {lines:?}, not {}", expect["approvals_cover"]));
        }
        if expect["approvals_max"].as_u64().is_some_and(|most| requested.len() as u64 > most) {
            faults.push(format!("requested {lines:?}"));
        }
        for never in entries(&expect["never_approves"]) {
            if requested.iter().any(|approval| is_request(approval, &never)) {
                faults.push(format!("requested {lines:?}"));
            }
        }
        if let Some(expected) = expect["executed"].as_array() {
            let changed: Vec<&Request> = requests.iter().filter(|request| request.is_change()).collect();
            let ran = decided.filter(|_| !changed.is_empty()).map(|at| &self.asked[at].approval);
            let needed = expected.iter().filter(|one| one["optional"] != true).count();
            let fits = match ran {
                Some(ran) => expected.iter().any(|one| is_request(ran, one)),
                None => needed == 0 && changed.is_empty(),
            };
            if !fits {
                faults.push(format!("executed {:?}, not {}", ran.map(line_of), expect["executed"]));
            }
        }
        if let Some(expected) = expect["pending"].as_u64() {
            let mut pending = 0;
            for thread in self.threads.values() {
                pending += self.talk.agent.list_open_approvals(&self.talk.scope, *thread).await.unwrap().len() as u64;
            }
            if pending != expected {
                faults.push(format!("{pending} requests wait, not {expected}"));
            }
        }
        faults
    }
}

/// Returns the entries of a list; none if it is absent.
fn entries(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

fn line_of(approval: &Approval) -> &str {
    approval.preview.lines().next().unwrap_or_default()
}

/// Whether a request is the expected one.
fn is_request(approval: &Approval, expected: &Value) -> bool {
    let command: Value = approval.arguments.read().unwrap();
    expected.as_object().unwrap().iter().all(|(name, value)| match &**name {
        "contains" => line_of(approval).contains(value.as_str().unwrap()),
        "optional" => true,
        "verb_any" => entries(value).iter().any(|verb| are_equal("verb", verb, &spoken(&command)["verb"])),
        _ => are_equal(name, value, &spoken(&command)[&**name]),
    })
}

/// Returns a command as the sets write it.
fn spoken(command: &Value) -> Value {
    let mut spoken = command.clone();
    spoken["verb"] = json!(command["verb"].as_str().unwrap().replace('_', " "));
    spoken["resource"] = command["kind"].clone();
    spoken["to_revision"] = command["revision"].clone();
    spoken["since"] = command["since_seconds"].clone();
    if command["all_namespaces"] == true {
        spoken["namespace"] = json!("*");
    }
    spoken
}

/// Compares an expected value with the actual one, by name.
fn are_equal(name: &str, expected: &Value, actual: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match name {
        "resource" => actual.is_string() && plural(&text(expected)) == plural(&text(actual)),
        // A list of all namespaces covers each one, and cluster-wide objects have none.
        "namespace" => match actual {
            Value::Null => expected == "default",
            actual => actual == expected || actual == "*",
        },
        "previous" => actual == expected || (expected == false && actual.is_null()),
        "since" => duration(&text(expected)) == actual.as_u64(),
        _ => !actual.is_null() && text(expected) == text(actual),
    }
}

fn duration(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * seconds)
}

fn plural(kind: &str) -> String {
    match kind {
        "ns" => "namespaces".to_owned(),
        "po" => "pods".to_owned(),
        "deploy" => "deployments".to_owned(),
        kind if kind.ends_with('s') => kind.to_owned(),
        kind => format!("{kind}s"),
    }
}

/// Returns a turn as the comparison of dialogue sets expects it. The requests that a command made count as calls, too: the logs of a
/// workload are those of its pods.
fn observed(turn: &Turn, requests: &[Request]) -> ObservedTurn {
    let call = |arguments: Value| ObservedCall { name: "kubectl".to_owned(), arguments };
    let commands: Vec<Value> =
        turn.tool_calls.iter().map(|call| spoken(&call.arguments.read::<Value>().unwrap())).collect();
    let mut calls: Vec<ObservedCall> = commands.iter().cloned().map(call).collect();
    // Lists of all namespaces that no command asked for look names up; nothing of them is shown.
    let lists_all = commands.iter().any(|command| command["verb"] != "find" && command["all_namespaces"] == true);
    let is_lookup = |request: &Request| request.namespace.is_empty() && request.name.is_none() && !lists_all;
    let shown = requests.iter().filter(|request| !request.is_change() && !request.is_dry_run);
    for request in shown.filter(|request| !is_lookup(request) || is_of_cluster(&request.resource)) {
        let namespace = if request.namespace.is_empty() { "*" } else { &request.namespace };
        let mut arguments = json!({ "verb": "get", "resource": request.resource, "namespace": namespace });
        if let Some(name) = &request.name {
            arguments["name"] = json!(name);
        }
        if request.subresource.as_deref() == Some("log") {
            arguments["verb"] = json!("logs");
            let logs = commands.iter().find(|command| command["verb"] == "logs").unwrap();
            for name in ["tail", "since", "previous", "container"] {
                arguments[name] = logs[name].clone();
            }
        }
        calls.push(call(arguments));
    }
    let is_refusal = turn.tool_calls.is_empty() && turn.status == TurnStatus::Completed;
    ObservedTurn { reply: turn.reply.clone(), calls, is_refusal }
}

fn is_of_cluster(resource: &str) -> bool {
    matches!(resource, "nodes" | "namespaces" | "persistentvolumes")
}

/// Builds the objects of a world.
fn objects(world: &Value) -> Vec<Value> {
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
fn prepare_pod(talk: &Talk, namespace: &str, entry: Value) {
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
