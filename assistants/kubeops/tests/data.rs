//! The half of the dialogues that is for development: by requests, effects and facts, never by wording.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use threadkeep::{ThreadId, Turn, TurnStatus, Verdict};
use world::{Talk, deployment, pod, secret};

/// Builds the objects of a dialogue's world.
fn objects(world: &Value) -> Vec<Value> {
    let mut objects = Vec::new();
    for (namespace, content) in world["cluster"].as_object().unwrap() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for entry in content["deployments"].as_array().into_iter().flatten() {
            let mut found = deployment(
                namespace,
                &text(&entry["name"]),
                entry["replicas"].as_u64().unwrap(),
                &text(&entry["image"]),
            );
            found[0]["status"]["readyReplicas"] = entry["ready"].clone();
            objects.push(found.remove(0));
        }
        for entry in content["pods"].as_array().into_iter().flatten() {
            objects.push(pod_of(namespace, entry));
        }
        for entry in content["secrets"].as_array().into_iter().flatten() {
            let data: Vec<(&str, &str)> = entry["data"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| (&**key, value.as_str().unwrap()))
                .collect();
            objects.push(secret(namespace, &text(&entry["name"]), &data));
        }
        objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
    }
    objects
}

fn pod_of(namespace: &str, entry: &Value) -> Value {
    let mut pod = pod(namespace, entry["name"].as_str().unwrap(), entry["image"].as_str().unwrap());
    if let Some((_, owner)) = entry["owner"].as_str().and_then(|owner| owner.split_once("deployment/")) {
        pod["metadata"]["labels"] = json!({ "app": owner });
    }
    pod["spec"]["containers"][0]["resources"] = json!({ "limits": { "memory": entry["memory_limit"] } });
    let status = &mut pod["status"]["containerStatuses"][0];
    status["restartCount"] = entry["restarts"].clone();
    if entry["status"] != "Running" {
        status["ready"] = json!(false);
        status["state"] = json!({ "waiting": { "reason": entry["status"] } });
        let last = &entry["last_state"];
        status["lastState"] = json!({ "terminated": { "reason": last["reason"], "exitCode": last["exit_code"] } });
    }
    pod
}

/// Whether a requested command is the expected one.
fn is_request(line: &str, expected: &Value) -> bool {
    let has = |name: &str| expected[name].as_str().is_none_or(|value| line.contains(value));
    let number = expected["replicas"].as_u64().is_none_or(|replicas| line.contains(&format!("--replicas={replicas}")));
    let verb = match expected["verb"].as_str() {
        Some(verb) => line.starts_with(&format!("kubectl {verb} ")),
        None => true,
    };
    let namespace =
        expected["namespace"].as_str().is_none_or(|name| name == "default" || line.ends_with(&format!(" -n {name}")));
    verb && has("name") && has("image") && has("contains") && number && namespace
}

fn requested(turn: &Turn) -> Vec<String> {
    if turn.status != TurnStatus::WaitingForApproval {
        return Vec::new();
    }
    turn.approvals.iter().map(|approval| approval.preview.lines().next().unwrap().to_owned()).collect()
}

/// Returns what a turn did wrong.
fn faults(expect: &Value, turn: &Turn, changes: usize) -> Vec<String> {
    let mut faults = Vec::new();
    let reply = turn.reply.to_lowercase();
    for fact in expect["facts"].as_array().into_iter().flatten() {
        // The local cluster chooses the names of new pods itself.
        if fact["id"] == "new" {
            continue;
        }
        let found =
            fact["any"].as_array().unwrap().iter().any(|text| reply.contains(&text.as_str().unwrap().to_lowercase()));
        if !found {
            faults.push(format!("lacks {}", fact["any"]));
        }
    }
    for text in expect["absent"].as_array().into_iter().flatten() {
        if reply.contains(&text.as_str().unwrap().to_lowercase()) {
            faults.push(format!("has {text}"));
        }
    }
    if let Some(expected) = expect["approvals"].as_array().or(expect["approvals_cover"].as_array()) {
        let requested = requested(turn);
        let fits = expected.iter().all(|one| requested.iter().any(|line| is_request(line, one)));
        if !fits || expected.len() != requested.len() {
            faults.push(format!("requested {requested:?}, not {expected:?}"));
        }
    }
    if let Some(executed) = expect["executed"].as_array() {
        let needed = executed.iter().filter(|one| one["optional"] != true).count();
        if !(needed..=executed.len()).contains(&changes) {
            faults.push(format!("{changes} changes instead of {}", executed.len()));
        }
    }
    if expect["asks"] == true && !turn.reply.trim_end().ends_with('?') {
        faults.push("does not ask".to_owned());
    }
    if expect["calls_max"].as_u64().is_some_and(|max| turn.tool_calls.len() as u64 > max) {
        faults.push(format!("{} calls", turn.tool_calls.len()));
    }
    faults
}

#[tokio::test]
async fn the_dialogues_for_development_pass() {
    let folder = std::env::var("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must be the folder of the data sets; `cargo xtask test --data` sets it");
    let text = std::fs::read_to_string(format!("{folder}/dialogues/k8s-dev.json")).unwrap();
    let set: Value = serde_json::from_str(&text).unwrap();
    let (mut passed, mut failed) = (0, Vec::new());
    for dialogue in set["dialogues"].as_array().unwrap() {
        let allowed = &dialogue["config"]["approval_allowed_users"];
        let config = if allowed.is_array() {
            format!("spec: {{approvals: {{allowed_users: {allowed}}}}}")
        } else {
            "spec: {}".to_owned()
        };
        let mut world = World {
            talk: Talk::start_with(objects(&dialogue["world"]), &config).await,
            threads: BTreeMap::new(),
            requests: Vec::new(),
        };
        for entry in dialogue["world"]["cluster"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|content| content["pods"].as_array().cloned().unwrap_or_default())
        {
            if let Some(log) = entry["previous_logs"].as_str() {
                world.talk.cluster.write_log("prod", entry["name"].as_str().unwrap(), true, log);
            }
        }
        for turn in dialogue["turns"].as_array().unwrap() {
            match world.play(turn).await {
                None => {}
                Some(faults) if faults.is_empty() => passed += 1,
                Some(faults) => failed.push(format!("{} {}: {faults:?}", dialogue["id"], turn["user"])),
            }
        }
    }
    println!("{passed} turns passed, {} failed", failed.len());
    assert_eq!(failed, [] as [String; 0]);
}

struct World {
    talk: Talk,
    threads: BTreeMap<String, ThreadId>,
    /// The turns that requested something, with their threads.
    requests: Vec<(ThreadId, Turn)>,
}

impl World {
    /// Plays a turn; `None` for operations that other tests cover.
    async fn play(&mut self, turn: &Value) -> Option<Vec<String>> {
        for step in turn["before"].as_array().into_iter().flatten() {
            if let Some(gone) = step["cluster_remove"].as_object() {
                self.talk.cluster.remove(
                    "",
                    "pods",
                    gone["namespace"].as_str().unwrap(),
                    gone["name"].as_str().unwrap(),
                );
            }
            if let Some(failure) = step.get("kubectl_fail") {
                self.talk.cluster.fail(failure.as_str());
            }
        }
        let before = self.talk.cluster.changes().len();
        let answer =
            if turn["reaction"].is_object() { self.react(&turn["reaction"]).await } else { self.say(turn).await? };
        let changes = self.talk.cluster.changes().len() - before;
        match answer {
            Some(answer) => Some(faults(&turn["expect"], &answer, changes)),
            None => Some(if turn["expect"]["executed"] == json!([]) && changes == 0 {
                Vec::new()
            } else {
                vec!["nothing happened".to_owned()]
            }),
        }
    }

    async fn say(&mut self, turn: &Value) -> Option<Option<Turn>> {
        let text = turn["user"].as_str().filter(|text| !text.is_empty())?.replace("<@U0BOT>", "");
        let place = format!("{} {}", turn["slack"]["channel"], turn["slack"]["thread"]);
        let (talk, key) = (&self.talk, place.replace('"', ""));
        if !self.threads.contains_key(&key) {
            let thread = talk.agent.memory().open_by_key(&talk.scope, key.clone()).await.unwrap().thread.id;
            self.threads.insert(key.clone(), thread);
        }
        let thread = self.threads[&key];
        let answer = talk.agent.chat(&talk.scope, thread, text.trim()).await.unwrap();
        if answer.status == TurnStatus::WaitingForApproval {
            self.requests.push((thread, answer.clone()));
        }
        Some(Some(answer))
    }

    async fn react(&mut self, reaction: &Value) -> Option<Turn> {
        let on = reaction["on"].as_str().unwrap();
        let at = on.strip_prefix("approval:").map_or(self.requests.len(), |number| number.parse().unwrap());
        let (thread, request) = &self.requests[at - 1];
        let verdict = if reaction["emoji"] == "x" { Verdict::Deny { reason: None } } else { Verdict::Approve };
        let by = reaction["by"].as_str().unwrap();
        let (agent, id) = (&self.talk.agent, &request.approvals[0].id);
        agent.decide(&self.talk.scope, *thread, id, verdict, by, &mut |_| {}).await.ok()
    }
}
