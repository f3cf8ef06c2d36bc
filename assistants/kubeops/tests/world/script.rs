//! Runs sets of dialogues: builds the objects of each world, sends the messages and reactions, and compares requests, effects and facts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use threadkeep::agent::Approval;
use threadkeep::{ThreadId, Turn, TurnStatus, Verdict};
use threadkeep_dialogue_sets::{ObservedCall, ObservedTurn, TurnResult, mismatches};
use threadkeep_simulator::cluster::Request;

use super::Talk;
use super::objects::{objects, prepare_pod};

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
pub(super) fn entries(list: &Value) -> Vec<Value> {
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
