//! Commands that read.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::{ApiError, KubeClient, MAX_ITEMS};
use super::text::{code_block, cut, describe, line, readiness, summarise, text};
use super::{Cluster, CommandError, ObjectSummary, Outcome, Result};
use crate::command::{Command, Verb};
use crate::kinds::{Kind, SEARCHED, WORKLOADS};

/// The maximum number of objects that are listed in text.
const MAX_LINES: usize = 60;
/// The default number of lines of a log.
const TAIL: u32 = 50;
/// The maximum number of pods of a workload whose logs are shown.
const MAX_LOGS: usize = 3;
/// The maximum length of a manifest that is shown, in characters.
const MAX_MANIFEST: usize = 10_000;
/// The maximum number of pods that the description of a workload lists.
const MAX_PODS: usize = 10;
/// The maximum number of events that are shown.
const MAX_EVENTS: usize = 15;

impl Cluster {
    /// Carries out a command that reads.
    pub(crate) async fn read(&self, command: &Command) -> Result<Outcome> {
        let command = self.admit(command)?;
        match command.verb {
            Verb::Find => self.find(command).await,
            Verb::Get if command.name.is_none() => self.list(command).await,
            Verb::Get | Verb::Describe => self.show(command).await,
            Verb::Logs => self.logs(command).await,
            Verb::Events => self.events(command).await,
            Verb::Top => self.top(command).await,
            Verb::RolloutStatus => self.rollout_status(command).await,
            Verb::RolloutHistory => self.rollout_history(command).await,
            _ => Err(CommandError::Invalid(format!("`{}` does not read", command.verb.words()))),
        }
    }

    pub(crate) fn kind(command: &Command) -> Result<Kind> {
        let name = command.kind.as_deref().unwrap_or("pods");
        Kind::find(name).ok_or_else(|| CommandError::Invalid(format!("`{name}` is not a kind that I know")))
    }

    /// Returns the objects of a kind in the namespaces that a command covers.
    pub(super) async fn items(&self, kind: &Kind, command: &Command) -> Result<Vec<Value>> {
        let client = self.client()?;
        let selector = command.selector.as_deref();
        let namespaces: Vec<Option<&str>> = match (&command.namespace, &self.rules.namespaces) {
            (Some(namespace), _) => vec![Some(namespace)],
            (None, Some(allowed)) if kind.is_namespaced => allowed.iter().map(|namespace| Some(&**namespace)).collect(),
            (None, _) => vec![None],
        };
        let mut items = Vec::new();
        for namespace in namespaces {
            items.extend(list(client, kind, namespace, selector).await?);
        }
        if kind.plural == "namespaces" {
            items.retain(|item| self.rules.allows(&text(&item["metadata"]["name"])));
        }
        Ok(items)
    }

    async fn list(&self, mut command: Command) -> Result<Outcome> {
        let kind = Self::kind(&command)?;
        command.kind = Some(kind.plural.clone());
        let mut items = self.items(&kind, &command).await?;
        if let Some(node) = &command.node {
            items.retain(|item| item["spec"]["nodeName"] == **node);
        }
        if let Some(like) = command.like.clone() {
            let all = std::mem::take(&mut items);
            items = all.iter().filter(|item| is_like(&text(&item["metadata"]["name"]), &like)).cloned().collect();
            // "The pods of checkout" are not those of `checkout-worker`.
            let is_of = |item: &&Value| summarise(&kind, item).owner.is_some_and(|(_, owner)| owner == like);
            let own: Vec<Value> = items.iter().filter(is_of).cloned().collect();
            if kind.plural == "pods" && !own.is_empty() {
                items = own;
            }
            let may_be_place = items.is_empty() && kind.is_namespaced && command.node.is_none();
            if may_be_place && self.has_namespace(&like).await {
                // "prod pods": the word is the name of a namespace.
                command = Command { namespace: Some(like), like: None, all_namespaces: false, ..command };
                items = self.items(&kind, &command).await?;
            } else if items.is_empty() && command.unhealthy {
                // "Anything broken right now": the word is not a name.
                command.like = None;
                items = all;
            }
        }
        let count = items.len();
        let is_unhealthy = |item: &Value| summarise(&kind, item).is_unhealthy;
        if command.unhealthy && items.iter().any(is_unhealthy) {
            items.retain(is_unhealthy);
        } else if command.unhealthy {
            let text = match count {
                0 => format!("There are no {}{}.", kind.plural, place(&kind, &command)),
                count => format!("All {count} {}{} are healthy.", kind.plural, place(&kind, &command)),
            };
            let objects = items.iter().take(MAX_LINES).map(|item| summarise(&kind, item)).collect();
            return Ok(Outcome { command, text, objects });
        }
        let objects = items.iter().take(MAX_LINES).map(|item| summarise(&kind, item)).collect();
        let mut text = list_text(&kind, &command, &items, count);
        if items.is_empty() && command.namespace.as_deref() == Some(self.default_namespace()) {
            text.push_str(&self.elsewhere(&kind, &command).await?);
        }
        Ok(Outcome { command, text, objects })
    }

    /// Returns a sentence that names the other namespaces with objects of a kind; empty if there are none.
    async fn elsewhere(&self, kind: &Kind, command: &Command) -> Result<String> {
        let everywhere = Command { namespace: None, all_namespaces: true, ..command.clone() };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in self.items(kind, &everywhere).await? {
            *counts.entry(text(&item["metadata"]["namespace"])).or_default() += 1;
        }
        let named: Vec<String> = counts.iter().map(|(namespace, count)| format!("{namespace} ({count})")).collect();
        let example = counts.keys().next().map(|namespace| format!("{} in {namespace}", kind.plural));
        Ok(example
            .map_or_else(String::new, |example| format!(" There are some in {}: try “{example}”.", named.join(", "))))
    }

    async fn has_namespace(&self, name: &str) -> bool {
        let Ok(client) = self.client() else { return false };
        self.rules.allows(name) && client.get(&format!("/api/v1/namespaces/{name}"), &[]).await.is_ok()
    }

    /// Returns the object that a command names.
    pub(crate) async fn object(&self, kind: &Kind, command: &Command) -> Result<Value> {
        let name = command.name.as_deref().unwrap_or_default();
        let path = format!("{}/{name}", kind.path(command.namespace.as_deref()));
        Ok(self.client()?.get(&path, &[]).await?)
    }

    async fn show(&self, command: Command) -> Result<Outcome> {
        let kind = Self::kind(&command)?;
        let object = self.object(&kind, &command).await?;
        let name = command.name.clone().unwrap_or_default();
        let mut objects = vec![summarise(&kind, &object)];
        let text = if command.as_yaml {
            let manifest = cut(&super::manifest::yaml(&kind, &object)?, MAX_MANIFEST);
            format!("{} *{name}*:\n{}", title(&kind.singular), code_block(&manifest))
        } else if command.verb == Verb::Get {
            let namespace =
                command.namespace.as_deref().map(|name| format!(" in the {name} namespace")).unwrap_or_default();
            format!("{}{namespace}:\n{}", title(&kind.singular), line(&kind, &object, false))
        } else {
            let mut text = format!("{} *{name}*\n{}", title(&kind.singular), describe(&kind, &object));
            let mut events = self.events_of(&kind, &command).await.unwrap_or_default();
            if WORKLOADS.contains(&&*kind.plural) {
                let pods = self.pods_of(&command).await.unwrap_or_default();
                text.push_str(&self.describe_pods(&pods, &command, &mut events, &mut objects).await);
            }
            if !events.is_empty() {
                text.push_str(&format!("\nEvents:\n{}", events.join("\n")));
            }
            text
        };
        Ok(Outcome { command, text, objects })
    }

    /// Returns a line for each pod of a workload, and adds the events of pods with problems.
    async fn describe_pods(
        &self,
        pods: &[Value],
        command: &Command,
        events: &mut Vec<String>,
        objects: &mut Vec<ObjectSummary>,
    ) -> String {
        let Some(kind) = Kind::find("pods").filter(|_| !pods.is_empty()) else { return String::new() };
        let lines: Vec<String> = pods.iter().take(MAX_PODS).map(|pod| line(&kind, pod, false)).collect();
        for pod in pods.iter().filter(|pod| summarise(&kind, pod).is_unhealthy).take(2) {
            let of_pod = Command { name: Some(text(&pod["metadata"]["name"])), ..command.clone() };
            events.extend(self.events_of(&kind, &of_pod).await.unwrap_or_default());
        }
        objects.extend(pods.iter().take(MAX_PODS).map(|pod| summarise(&kind, pod)));
        let rest = pods.len().saturating_sub(MAX_PODS);
        let rest = if rest == 0 { String::new() } else { format!("\nand {rest} more") };
        format!("\nPods:\n{}{rest}", lines.join("\n"))
    }

    /// Finds objects by part of their names. Exact names come first, then names that begin with the part, then others.
    async fn find(&self, command: Command) -> Result<Outcome> {
        let like = command.like.clone().unwrap_or_default();
        let kinds: Vec<Kind> = match &command.kind {
            Some(kind) => Kind::find(kind).into_iter().collect(),
            None => SEARCHED.iter().filter_map(|kind| Kind::find(kind)).collect(),
        };
        let mut found: Vec<(u8, ObjectSummary)> = Vec::new();
        let mut failure = None;
        for kind in kinds {
            match self.items(&kind, &command).await {
                Ok(items) => found.extend(items.iter().filter_map(|item| {
                    let summary = summarise(&kind, item);
                    Some((likeness(&summary.name, &like)?, summary))
                })),
                Err(error @ CommandError::Unreachable(_)) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        let best = found.iter().map(|(likeness, _)| *likeness).min();
        let objects: Vec<ObjectSummary> = found
            .into_iter()
            .filter(|(likeness, _)| Some(*likeness) == best)
            .map(|(_, summary)| summary)
            .take(MAX_LINES)
            .collect();
        if let (true, Some(failure)) = (objects.is_empty(), failure) {
            return Err(failure);
        }
        let names: Vec<String> = objects.iter().map(|summary| format!("- {} {}", summary.kind, summary.name)).collect();
        Ok(Outcome { command, text: names.join("\n"), objects })
    }

    /// Returns the pod that a command names, or the pods of the workload that it names.
    async fn pods_of(&self, command: &Command) -> Result<Vec<Value>> {
        let kind = Self::kind(command)?;
        let object = self.object(&kind, command).await?;
        if kind.plural == "pods" {
            return Ok(vec![object]);
        }
        let labels = match &*kind.plural {
            "services" => &object["spec"]["selector"],
            _ => &object["spec"]["selector"]["matchLabels"],
        };
        let pairs: Vec<String> =
            labels.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={}", text(value))).collect();
        let name = command.name.as_deref().unwrap_or_default();
        let pods = Kind::find("pods").ok_or_else(|| CommandError::Invalid("no pods".to_owned()))?;
        let namespace = command.namespace.as_deref();
        let mut found = match pairs.is_empty() {
            true => Vec::new(),
            false => list(self.client()?, &pods, namespace, Some(&pairs.join(","))).await?,
        };
        if found.is_empty() && WORKLOADS.contains(&&*kind.plural) {
            let all = list(self.client()?, &pods, namespace, None).await?;
            let is_owned = |pod: &Value| summarise(&pods, pod).owner.is_some_and(|(_, owner)| owner == name);
            found = all.into_iter().filter(is_owned).collect();
        }
        if found.is_empty() {
            return Err(CommandError::NotFound(format!("{} {name} has no pods", kind.singular)));
        }
        found.sort_by_key(|pod| !summarise(&pods, pod).is_unhealthy);
        Ok(found)
    }

    async fn logs(&self, command: Command) -> Result<Outcome> {
        let pods = self.pods_of(&command).await?;
        let kind = Kind::find("pods").ok_or_else(|| CommandError::Invalid("no pods".to_owned()))?;
        let (tail, count) = (command.tail.unwrap_or(TAIL), pods.len());
        let (mut texts, mut objects) = (Vec::new(), Vec::new());
        for pod in pods.iter().take(MAX_LOGS) {
            texts.push(self.log(&command, pod, tail).await?);
            objects.push(summarise(&kind, pod));
        }
        if count > MAX_LOGS {
            texts.push(format!("{} more pods are not shown.", count - MAX_LOGS));
        }
        Ok(Outcome { command, text: texts.join("\n"), objects })
    }

    async fn log(&self, command: &Command, pod: &Value, tail: u32) -> Result<String> {
        let (name, namespace) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["namespace"]));
        let containers: Vec<String> = pod["spec"]["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| text(&container["name"]))
            .collect();
        let default = pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"].as_str();
        let container = command.container.clone().or(default.map(str::to_owned)).or(containers.first().cloned());
        let (lines, seconds) = (tail.to_string(), command.since_seconds.map(|seconds| seconds.to_string()));
        let mut query = vec![("tailLines", &*lines)];
        query.extend(container.as_deref().map(|container| ("container", container)));
        query.extend(seconds.as_deref().map(|seconds| ("sinceSeconds", seconds)));
        if command.previous {
            query.push(("previous", "true"));
        }
        let log = self.client()?.log(&format!("/api/v1/namespaces/{namespace}/pods/{name}/log"), &query).await?;
        let before = if command.previous { " before its last restart" } else { "" };
        let others: Vec<&str> =
            containers.iter().filter(|other| Some(*other) != container.as_ref()).map(String::as_str).collect();
        let note = if others.is_empty() {
            String::new()
        } else {
            format!(" (container {}; also {})", container.unwrap_or_default(), others.join(", "))
        };
        if log.trim().is_empty() {
            return Ok(format!("The log of {name}{before}{note} is empty."));
        }
        Ok(format!("Last {} lines of {name}{before}{note}:\n{}", log.lines().count(), code_block(&log)))
    }

    /// Returns the newest events, as lines.
    async fn events_of(&self, kind: &Kind, command: &Command) -> Result<Vec<String>> {
        let events = Kind::find("events").ok_or_else(|| CommandError::Invalid("no events".to_owned()))?;
        let mut found = list(self.client()?, &events, command.namespace.as_deref(), None).await?;
        let is_about = |event: &Value| {
            let object = &event["involvedObject"];
            let own_kind = Kind::find(&text(&object["kind"])).is_some_and(|other| other.plural == kind.plural);
            command.name.as_ref().is_none_or(|name| own_kind && object["name"] == **name)
        };
        found.retain(is_about);
        let time = |event: &Value| {
            event["lastTimestamp"].as_str().or(event["eventTime"].as_str()).unwrap_or_default().to_owned()
        };
        found.sort_by_key(time);
        let newest = found.iter().rev().take(MAX_EVENTS).rev();
        Ok(newest
            .map(|event| {
                let object = &event["involvedObject"];
                let about = format!("{}/{}", text(&object["kind"]).to_lowercase(), text(&object["name"]));
                format!(
                    "- {} {} {about}: {}",
                    text(&event["type"]),
                    text(&event["reason"]),
                    cut(&text(&event["message"]), 300)
                )
            })
            .collect())
    }

    async fn events(&self, command: Command) -> Result<Outcome> {
        let kind = Self::kind(&command)?;
        let lines = self.events_of(&kind, &command).await?;
        let about = command.name.as_ref().map(|name| format!(" of {} {name}", kind.singular)).unwrap_or_default();
        let place = place(&kind, &command);
        let text = match lines.len() {
            0 => format!("There are no events{about}{place}."),
            _ => format!("Events{about}{place}:\n{}", lines.join("\n")),
        };
        Ok(Outcome { command, text, objects: Vec::new() })
    }

    async fn top(&self, command: Command) -> Result<Outcome> {
        let kind = Self::kind(&command)?;
        if !matches!(&*kind.plural, "pods" | "nodes") {
            return Err(CommandError::Invalid("`top` shows pods and nodes".to_owned()));
        }
        let metrics = Kind { group: "metrics.k8s.io".to_owned(), version: "v1beta1".to_owned(), ..kind.clone() };
        let items = match self.items(&metrics, &command).await {
            Err(CommandError::NotFound(_)) => {
                return Err(CommandError::Failed(
                    "the cluster has no metrics: metrics-server is not installed".to_owned(),
                ));
            }
            items => items?,
        };
        let is_named = |item: &&Value| command.name.as_ref().is_none_or(|name| item["metadata"]["name"] == **name);
        let used = |item: &Value| {
            let usages: Vec<&Value> = match item["containers"].as_array() {
                Some(containers) => containers.iter().map(|container| &container["usage"]).collect(),
                None => vec![&item["usage"]],
            };
            let sum =
                |name: &str| usages.iter().map(|usage| quantity(usage[name].as_str().unwrap_or("0"))).sum::<f64>();
            (sum("cpu") * 1000.0, sum("memory") / 1_048_576.0)
        };
        let mut rows: Vec<(String, (f64, f64))> =
            items.iter().filter(is_named).map(|item| (text(&item["metadata"]["name"]), used(item))).collect();
        rows.sort_by(|(_, one), (_, other)| other.1.total_cmp(&one.1));
        let lines: Vec<String> = rows
            .iter()
            .take(MAX_LINES)
            .map(|(name, (cpu, memory))| format!("- {name}: CPU {cpu:.0}m, memory {memory:.0}Mi"))
            .collect();
        let place = place(&kind, &command);
        let text = match lines.len() {
            0 => format!("There are no metrics of {}{place}.", kind.plural),
            _ => format!("Usage of {}{place}:\n{}", kind.plural, lines.join("\n")),
        };
        Ok(Outcome { command, text, objects: Vec::new() })
    }

    async fn rollout_status(&self, command: Command) -> Result<Outcome> {
        let kind = Self::kind(&command)?;
        let object = self.object(&kind, &command).await?;
        let (ready, wanted) = readiness(&kind, &object);
        let status = &object["status"];
        let updated = status["updatedReplicas"].as_u64().unwrap_or(ready);
        let name = command.name.clone().unwrap_or_default();
        let text = match ready >= wanted && updated >= wanted {
            true => format!("{} {name} is successfully rolled out: {ready}/{wanted} ready.", kind.singular),
            false => format!(
                "{} {name} is not rolled out yet: {updated} of {wanted} updated, {ready} of {wanted} ready.",
                kind.singular
            ),
        };
        let text = format!("{text}\n{}", describe(&kind, &object));
        Ok(Outcome { command, text, objects: vec![summarise(&kind, &object)] })
    }

    async fn rollout_history(&self, command: Command) -> Result<Outcome> {
        let revisions = self.revisions(&command).await?;
        let lines: Vec<String> = revisions
            .iter()
            .map(|(number, set)| {
                let containers = set["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
                let images: Vec<String> = containers.map(|container| text(&container["image"])).collect();
                format!("- revision {number}: {}", images.join(", "))
            })
            .collect();
        let name = command.name.clone().unwrap_or_default();
        let text = format!("Revisions of deployment {name}, oldest first:\n{}", lines.join("\n"));
        let kind = Self::kind(&command)?;
        let object = self.object(&kind, &command).await?;
        Ok(Outcome { command, text, objects: vec![summarise(&kind, &object)] })
    }

    /// Returns the revisions of a deployment with their replica sets, oldest first.
    pub(crate) async fn revisions(&self, command: &Command) -> Result<Vec<(u32, Value)>> {
        let kind = Self::kind(command)?;
        if kind.plural != "deployments" {
            return Err(CommandError::Invalid("only deployments have a history here".to_owned()));
        }
        let deployment = self.object(&kind, command).await?;
        let sets = Kind::find("replicasets").ok_or_else(|| CommandError::Invalid("no replica sets".to_owned()))?;
        let uid = &deployment["metadata"]["uid"];
        let all = list(self.client()?, &sets, command.namespace.as_deref(), None).await?;
        let own = all.into_iter().filter(|set| set["metadata"]["ownerReferences"][0]["uid"] == *uid);
        let number =
            |set: &Value| text(&set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]).parse().ok();
        let mut revisions: Vec<(u32, Value)> = own.filter_map(|set| Some((number(&set)?, set))).collect();
        revisions.sort_by_key(|(number, _)| *number);
        Ok(revisions)
    }
}

async fn list(
    client: &KubeClient,
    kind: &Kind,
    namespace: Option<&str>,
    selector: Option<&str>,
) -> std::result::Result<Vec<Value>, ApiError> {
    let limit = MAX_ITEMS.to_string();
    let mut query = vec![("limit", &*limit)];
    query.extend(selector.map(|selector| ("labelSelector", selector)));
    let answer = client.get(&kind.path(namespace), &query).await?;
    Ok(answer["items"].as_array().cloned().unwrap_or_default())
}

/// Returns how well a name matches `like`, 0 if they are equal; `None` if it does not contain it.
pub(crate) fn likeness(name: &str, like: &str) -> Option<u8> {
    if name == like {
        return Some(0);
    }
    let is_word = |at: usize| {
        let (before, after) = (name[..at].chars().next_back(), name[at + like.len()..].chars().next());
        before.is_none_or(|c| "-.".contains(c)) && after.is_none_or(|c| "-.".contains(c))
    };
    match name.find(like) {
        Some(0) if is_word(0) => Some(1),
        Some(_) if name.match_indices(like).any(|(at, _)| is_word(at)) => Some(2),
        Some(_) => Some(3),
        None => None,
    }
}

fn is_like(name: &str, like: &str) -> bool {
    likeness(name, like).is_some()
}

/// Returns a quantity such as `250m` or `64Mi` as a number.
fn quantity(text: &str) -> f64 {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().unwrap_or(0.0);
    number
        * match &text[end..] {
            "n" => 1e-9,
            "u" => 1e-6,
            "m" => 1e-3,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "Ki" => 1024.0,
            "Mi" => 1_048_576.0,
            "Gi" => 1_073_741_824.0,
            _ => 1.0,
        }
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns where a list is from: " in the default namespace".
pub(crate) fn place(kind: &Kind, command: &Command) -> String {
    match &command.namespace {
        _ if !kind.is_namespaced => String::new(),
        Some(namespace) => format!(" in the {namespace} namespace"),
        None => " in all namespaces".to_owned(),
    }
}

/// Puts a list into words. `total` is the number of objects before those without problems were left out.
fn list_text(kind: &Kind, command: &Command, items: &[Value], total: usize) -> String {
    let on_node = command.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
    let place = format!("{on_node}{}", place(kind, command));
    let like = command.like.as_ref().map(|like| format!(" like {like}")).unwrap_or_default();
    let problem = if command.unhealthy { " with problems" } else { "" };
    if items.is_empty() {
        return format!("There are no {}{like}{place}.", kind.plural);
    }
    let lines: Vec<String> =
        items.iter().take(MAX_LINES).map(|item| line(kind, item, command.namespace.is_none())).collect();
    let rest = items.len().saturating_sub(MAX_LINES);
    let rest = if rest == 0 { String::new() } else { format!("\nand {rest} more") };
    if items.len() < total {
        let have = if items.len() == 1 { "has" } else { "have" };
        return format!(
            "{} of the {total} {}{like}{place} {have} problems:\n{}{rest}",
            items.len(),
            kind.plural,
            lines.join("\n")
        );
    }
    if let [_] = items {
        return format!("There is 1 {}{like}{problem}{place}:\n{}", kind.singular, lines.join("\n"));
    }
    format!("Here are the {} {}{like}{problem}{place}:\n{}{rest}", items.len(), kind.plural, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_names_fit_best_then_first_words_then_other_words() {
        assert_eq!(likeness("nginx", "nginx"), Some(0));
        assert_eq!(likeness("nginx-7b4f9c-x2x9k", "nginx"), Some(1));
        assert_eq!(likeness("my-nginx-1", "nginx"), Some(2));
        assert_eq!(likeness("mynginx", "nginx"), Some(3));
        assert_eq!(likeness("redis", "nginx"), None);
    }

    #[test]
    fn quantities_are_read_with_their_units() {
        assert!((quantity("250m") - 0.25).abs() < 1e-9);
        assert!((quantity("64Mi") - 67_108_864.0).abs() < 1e-3);
        assert!((quantity("1500000n") - 0.0015).abs() < 1e-9);
    }
}
