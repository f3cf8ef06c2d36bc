//! Commands that change the cluster: the check before the approval, and the change after it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::client::{ApiError, Patch};
use super::text::{code_block, cut, readiness, summarise, text};
use super::{Cluster, CommandError, Outcome, Result, digest_for};
use crate::command::{Basis, Command, Verb};
use crate::kinds::{Kind, SCALABLE, WORKLOADS};

/// How many times a change is retried if only the status of the object changed in between.
const ATTEMPTS: usize = 4;
/// The maximum length of the output of a program that is shown, in characters.
const MAX_SHOWN_OUTPUT: usize = 2_500;
/// The maximum number of pods that a drain evicts.
const MAX_EVICTIONS: usize = 500;

/// A request that changes one object.
enum Change {
    Delete,
    Scale(u32),
    Patch(Patch, Value),
    Drain,
    Apply(Value),
    Exec,
}

/// Reads the manifest of a command, and fills in kind, name and namespace.
pub(crate) fn read_manifest(command: &mut Command) -> Result<Value> {
    let manifest = command.manifest.as_deref().unwrap_or_default();
    let invalid = |reason: String| CommandError::Invalid(reason);
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(manifest).map_err(|_| invalid("the manifest is not valid YAML".to_owned()))?;
    let mut documents: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
    if documents.len() != 1 {
        return Err(invalid(format!(
            "the manifest contains {} objects, but an approval is for exactly one",
            documents.len()
        )));
    }
    let object = documents.remove(0);
    let (api_version, kind_name) = (text(&object["apiVersion"]), text(&object["kind"]));
    let kind = Kind::of_object(&api_version, &kind_name)
        .ok_or_else(|| invalid(format!("`{kind_name}` in `{api_version}` is not a kind that I know")))?;
    if kind.plural == "secrets" {
        return Err(CommandError::NotAllowed(
            "secrets cannot be applied from a conversation, because it would store their values".to_owned(),
        ));
    }
    let name =
        object["metadata"]["name"].as_str().ok_or_else(|| invalid("the manifest has no metadata.name".to_owned()))?;
    command.kind = Some(kind.plural);
    command.name = Some(name.to_owned());
    if let Some(namespace) = object["metadata"]["namespace"].as_str() {
        command.namespace = Some(namespace.to_owned());
    }
    command.clone().check().map_err(|error| invalid(error.to_string()))?;
    Ok(object)
}

impl Cluster {
    /// Checks a command that changes the cluster, with a dry run. Returns the command with the state of the object that the
    /// approval will be for.
    pub(crate) async fn prepare(&self, command: &Command) -> Result<Command> {
        let mut command = self.admit(command)?;
        command.basis = None;
        let kind = Self::kind(&command)?;
        let object = match self.object(&kind, &command).await {
            Err(CommandError::NotFound(_)) if command.verb == Verb::Apply => Value::Null,
            object => object?,
        };
        complete(&mut command, &kind, &object)?;
        let change = self.change_of(&command, &kind, &object).await?;
        let effect = self.describe_effect(&command, &kind, &object, &change).await?;
        let uid = text(&object["metadata"]["uid"]);
        command.basis = Some(Basis { uid, digest: digest_for(command.verb, &object), effect });
        Ok(command)
    }

    /// Carries out a command that was approved, exactly as it was approved, if the object is still the same.
    pub(crate) async fn apply(&self, approved: &Command) -> Result<Outcome> {
        let basis =
            approved.basis.clone().ok_or_else(|| CommandError::Invalid("the command was not checked".to_owned()))?;
        let command = Command { basis: None, ..self.admit(&Command { basis: None, ..approved.clone() })? };
        let kind = Self::kind(&command)?;
        let mut attempts = 0;
        loop {
            let object = match self.object(&kind, &command).await {
                Err(CommandError::NotFound(_)) if command.verb == Verb::Apply && basis.uid.is_empty() => Value::Null,
                object => object?,
            };
            let uid = text(&object["metadata"]["uid"]);
            if uid != basis.uid || digest_for(command.verb, &object) != basis.digest {
                let what = if uid == basis.uid { "was changed" } else { "was replaced by another one" };
                let name = command.name.unwrap_or_default();
                let text = format!("{} {name} {what} since the request, so nothing was done; ask again", kind.singular);
                return Err(CommandError::Failed(text));
            }
            let change = self.change_of(&command, &kind, &object).await?;
            match self.send(&command, &kind, &object, &change, false).await {
                Err(ApiError::Conflict(_)) if attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error.into()),
                Ok(answer) => {
                    let text = done_text(&command, &kind, &basis, &answer);
                    let objects = if object.is_null() { Vec::new() } else { vec![summarise(&kind, &object)] };
                    return Ok(Outcome { command, text, objects });
                }
            }
        }
    }

    async fn change_of(&self, command: &Command, kind: &Kind, object: &Value) -> Result<Change> {
        let template = |patch: Value| json!({ "spec": { "template": patch } });
        let container = command.container.clone().unwrap_or_default();
        let of_container = |members: Value| {
            let mut entry = members;
            entry["name"] = json!(container);
            template(json!({ "spec": { "containers": [entry] } }))
        };
        let strategic = |patch: Value| Ok(Change::Patch(Patch::Strategic, patch));
        match command.verb {
            Verb::Delete => Ok(Change::Delete),
            Verb::Scale => Ok(Change::Scale(command.replicas.unwrap_or_default())),
            Verb::SetImage => strategic(of_container(json!({ "image": command.image }))),
            Verb::SetResources => {
                let mut resources = json!({});
                for (name, values) in [("limits", &command.limits), ("requests", &command.requests)] {
                    if !values.is_empty() {
                        resources[name] = json!(values);
                    }
                }
                strategic(of_container(json!({ "resources": resources })))
            }
            Verb::SetEnv => {
                let entry = |(name, value): (&String, &Option<String>)| match value {
                    Some(value) => json!({ "name": name, "value": value }),
                    None => json!({ "name": name, "$patch": "delete" }),
                };
                strategic(of_container(json!({ "env": command.values.iter().map(entry).collect::<Vec<_>>() })))
            }
            Verb::RolloutRestart => {
                let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                strategic(template(
                    json!({ "metadata": { "annotations": { "kubectl.kubernetes.io/restartedAt": now } } }),
                ))
            }
            Verb::RolloutPause => strategic(json!({ "spec": { "paused": true } })),
            Verb::RolloutResume => strategic(json!({ "spec": { "paused": null } })),
            Verb::RolloutUndo => self.undo_patch(command, object).await,
            Verb::Label => Ok(Change::Patch(Patch::Merge, json!({ "metadata": { "labels": command.values } }))),
            Verb::Annotate => Ok(Change::Patch(Patch::Merge, json!({ "metadata": { "annotations": command.values } }))),
            Verb::Cordon => strategic(json!({ "spec": { "unschedulable": true } })),
            Verb::Uncordon => strategic(json!({ "spec": { "unschedulable": null } })),
            Verb::Drain => Ok(Change::Drain),
            Verb::Exec => Ok(Change::Exec),
            Verb::Apply => Ok(Change::Apply(read_manifest(&mut command.clone())?)),
            _ => Err(CommandError::Invalid(format!("`{}` of {} changes nothing", command.verb.words(), kind.plural))),
        }
    }

    async fn undo_patch(&self, command: &Command, object: &Value) -> Result<Change> {
        let revisions = self.revisions(command).await?;
        let current = revisions.last().map_or(0, |(number, _)| *number);
        let wanted = command
            .revision
            .or_else(|| revisions.iter().rev().map(|(number, _)| *number).find(|number| *number != current));
        let found = wanted.and_then(|wanted| revisions.iter().find(|(number, _)| *number == wanted));
        let Some((_, set)) = found else {
            return Err(CommandError::Failed("there is no earlier revision to return to".to_owned()));
        };
        let mut template = set["spec"]["template"].clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("pod-template-hash");
        }
        let uid = &object["metadata"]["uid"];
        Ok(Change::Patch(
            Patch::Json,
            json!([
                { "op": "test", "path": "/metadata/uid", "value": uid },
                { "op": "replace", "path": "/spec/template", "value": template },
            ]),
        ))
    }

    /// Sends a change, or only a dry run of it.
    async fn send(
        &self,
        command: &Command,
        kind: &Kind,
        object: &Value,
        change: &Change,
        is_dry_run: bool,
    ) -> std::result::Result<Value, ApiError> {
        let client = self.client().map_err(|error| ApiError::Unreachable(error.to_string()))?;
        let name = command.name.as_deref().unwrap_or_default();
        let path = format!("{}/{name}", kind.path(command.namespace.as_deref()));
        let metadata = &object["metadata"];
        let (uid, version) = (&metadata["uid"], &metadata["resourceVersion"]);
        match change {
            Change::Delete => {
                let options = json!({
                    "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                    "preconditions": { "uid": uid },
                });
                client.delete(&path, &options, is_dry_run).await
            }
            Change::Scale(replicas) => {
                let scale = json!({
                    "kind": "Scale", "apiVersion": "autoscaling/v1",
                    "metadata": { "name": name, "namespace": metadata["namespace"], "uid": uid, "resourceVersion": version },
                    "spec": { "replicas": replicas },
                });
                client.put(&format!("{path}/scale"), &scale, is_dry_run).await
            }
            Change::Patch(Patch::Json, patch) => client.patch(&path, Patch::Json, patch, is_dry_run).await,
            Change::Patch(patch, body) => {
                let mut body = body.clone();
                body["metadata"]["uid"] = uid.clone();
                body["metadata"]["resourceVersion"] = version.clone();
                client.patch(&path, *patch, &body, is_dry_run).await
            }
            Change::Apply(manifest) => client.patch(&path, Patch::Apply, manifest, is_dry_run).await,
            Change::Drain | Change::Exec if is_dry_run => Ok(Value::Null),
            Change::Exec => {
                let mut query = vec![("stdout", "true"), ("stderr", "true")];
                query.extend(command.container.as_deref().map(|container| ("container", container)));
                query.extend(command.program.iter().map(|word| ("command", &**word)));
                let executed = client.exec(&format!("{path}/exec"), &query).await?;
                Ok(json!({ "output": executed.output, "exit_code": executed.exit_code }))
            }
            Change::Drain => {
                let body = json!({ "metadata": { "uid": uid, "resourceVersion": version }, "spec": { "unschedulable": true } });
                client.patch(&path, Patch::Strategic, &body, false).await?;
                let mut evicted = 0;
                for pod in self.pods_on(name).await? {
                    let (pod, namespace) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["namespace"]));
                    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace } });
                    client
                        .post(&format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction"), &eviction, false)
                        .await?;
                    evicted += 1;
                }
                Ok(json!({ "evicted": evicted }))
            }
        }
    }

    /// Returns the pods of a node that a drain evicts: all but static pods and those of daemon sets, which stay on the node.
    async fn pods_on(&self, node: &str) -> std::result::Result<Vec<Value>, ApiError> {
        let client = self.client().map_err(|error| ApiError::Unreachable(error.to_string()))?;
        let answer = client.get("/api/v1/pods", &[("fieldSelector", &format!("spec.nodeName={node}"))]).await?;
        let is_evicted = |pod: &&Value| {
            let metadata = &pod["metadata"];
            let is_mirror = !metadata["annotations"]["kubernetes.io/config.mirror"].is_null();
            metadata["ownerReferences"][0]["kind"] != "DaemonSet" && !is_mirror
        };
        Ok(answer["items"].as_array().into_iter().flatten().filter(is_evicted).take(MAX_EVICTIONS).cloned().collect())
    }

    /// Describes what a change would do, with a dry run if there is one.
    async fn describe_effect(&self, command: &Command, kind: &Kind, object: &Value, change: &Change) -> Result<String> {
        if matches!(change, Change::Drain) {
            let pods = self.pods_on(command.name.as_deref().unwrap_or_default()).await?;
            return Ok(format!("No dry run: a drain would cordon the node and evict {} pods.", pods.len()));
        }
        if matches!(change, Change::Exec) {
            let (program, container) = (command.program.join(" "), command.container.as_deref().unwrap_or_default());
            return Ok(format!("No dry run: `{program}` would run in the container {container}."));
        }
        let answer = self.send(command, kind, object, change, true).await?;
        let effect = match change {
            Change::Delete => delete_effect(kind, object),
            Change::Scale(replicas) => {
                format!("{} → {replicas} replicas", object["spec"]["replicas"].as_u64().unwrap_or(1))
            }
            _ => {
                let changes = differences(object, &answer);
                if changes.is_empty() { "nothing would change".to_owned() } else { changes.join("; ") }
            }
        };
        Ok(format!("Dry run: {effect}"))
    }
}

fn delete_effect(kind: &Kind, object: &Value) -> String {
    let summary = summarise(kind, object);
    let note = match (&*kind.plural, summary.owner) {
        ("pods", Some((owner_kind, owner))) => {
            let owner_kind = Kind::find(&owner_kind).map_or(owner_kind, |kind| kind.singular);
            format!("; {owner_kind} {owner} will create another pod")
        }
        ("pods", None) => "; nothing will create it again".to_owned(),
        ("deployments" | "statefulsets", _) => {
            let (ready, _) = readiness(kind, object);
            format!("; with its pods, of which {ready} are ready")
        }
        ("namespaces", _) => "; with everything in it".to_owned(),
        _ => String::new(),
    };
    format!("{} {} would be deleted{note}", kind.singular, summary.name)
}

/// Fills in what a command leaves open, and checks that the verb fits the kind.
fn complete(command: &mut Command, kind: &Kind, object: &Value) -> Result<()> {
    let plural = &*kind.plural;
    let fits = match command.verb {
        Verb::Scale => SCALABLE.contains(&plural),
        Verb::RolloutRestart | Verb::SetImage | Verb::SetResources | Verb::SetEnv => WORKLOADS.contains(&plural),
        Verb::RolloutUndo | Verb::RolloutPause | Verb::RolloutResume => plural == "deployments",
        Verb::Cordon | Verb::Uncordon | Verb::Drain => plural == "nodes",
        Verb::Exec => plural == "pods",
        _ => true,
    };
    if !fits {
        let text = format!("`{}` is not possible for a {}", command.verb.words(), kind.singular);
        return Err(CommandError::Invalid(text));
    }
    if matches!(command.verb, Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::Exec) {
        let spec = if plural == "pods" { &object["spec"] } else { &object["spec"]["template"]["spec"] };
        let containers = spec["containers"].as_array();
        let names: Vec<String> = containers.into_iter().flatten().map(|container| text(&container["name"])).collect();
        match (&command.container, &names[..]) {
            (Some(container), names) if !names.contains(container) => {
                return Err(CommandError::Invalid(format!(
                    "there is no container {container}; there are {}",
                    names.join(", ")
                )));
            }
            (None, [only]) => command.container = Some(only.clone()),
            (None, names) => {
                return Err(CommandError::Invalid(format!("which container do you mean: {}?", names.join(", "))));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Lists the fields that differ between an object and the result of a dry run, apart from those that every change touches.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found.truncate(12);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    const IGNORED: [&str; 5] =
        ["status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "metadata.uid"];
    if before == after || IGNORED.contains(&path) {
        return;
    }
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                compare(&join(name), &before[name], &after[name], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (before, after)) in one.iter().zip(other).enumerate() {
                let name = before["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                compare(&join(&name), before, after, found);
            }
        }
        // Values of environment variables may be secret.
        _ if path.contains(".env.") => found.push(format!("{path} changes")),
        _ => found.push(format!("{path}: {} → {}", short(before), short(after))),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => super::text::cut(text, 100),
        other => super::text::cut(&other.to_string(), 100),
    }
}

/// Describes what was done.
fn done_text(command: &Command, kind: &Kind, basis: &Basis, answer: &Value) -> String {
    let name = command.name.as_deref().unwrap_or_default();
    let what = match command.verb {
        Verb::Delete => "deleted".to_owned(),
        Verb::Scale => format!("scaled to {} replicas", command.replicas.unwrap_or_default()),
        Verb::SetImage => format!("image set to {}", command.image.as_deref().unwrap_or_default()),
        Verb::SetResources => "resources changed".to_owned(),
        Verb::SetEnv => "environment changed".to_owned(),
        Verb::RolloutRestart => "restarted".to_owned(),
        Verb::RolloutUndo => "rolled back".to_owned(),
        Verb::RolloutPause => "paused".to_owned(),
        Verb::RolloutResume => "resumed".to_owned(),
        Verb::Label => "labelled".to_owned(),
        Verb::Annotate => "annotated".to_owned(),
        Verb::Cordon => "cordoned".to_owned(),
        Verb::Uncordon => "uncordoned".to_owned(),
        Verb::Drain => format!("drained: {} pods evicted", answer["evicted"]),
        Verb::Exec => {
            let output = cut(&text(&answer["output"]), MAX_SHOWN_OUTPUT);
            let output = if output.trim().is_empty() { "no output".to_owned() } else { code_block(&output) };
            format!("ran `{}` with exit code {}:\n{output}", command.program.join(" "), answer["exit_code"])
        }
        _ if basis.uid.is_empty() => "created".to_owned(),
        _ => "applied".to_owned(),
    };
    format!("{} {name} {what}", kind.singular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_names_the_fields_that_change() {
        let before = json!({ "metadata": { "resourceVersion": "1" }, "spec": { "containers": [{ "name": "web", "image": "a:1", "env": [{ "name": "KEY", "value": "x" }] }] } });
        let mut after = before.clone();
        after["metadata"]["resourceVersion"] = json!("2");
        assert_eq!(differences(&before, &after), Vec::<String>::new());
        after["spec"]["containers"][0]["image"] = json!("a:2");
        after["spec"]["containers"][0]["env"][0]["value"] = json!("secret");
        let found = differences(&before, &after);
        assert_eq!(found, ["spec.containers.web.env.KEY.value changes", "spec.containers.web.image: a:1 → a:2"]);
    }

    #[test]
    fn status_and_versions_do_not_affect_the_digest() {
        let object = json!({ "metadata": { "name": "web", "resourceVersion": "1" }, "spec": { "replicas": 1 }, "status": { "x": 1 } });
        let mut other = json!({ "spec": { "replicas": 1 }, "metadata": { "resourceVersion": "9", "name": "web", "managedFields": [] } });
        let (scale, restart) = (Verb::Scale, Verb::RolloutRestart);
        assert_eq!(digest_for(scale, &object), digest_for(scale, &other));
        other["spec"]["replicas"] = json!(2);
        assert_ne!(digest_for(scale, &object), digest_for(scale, &other));
        assert_eq!(digest_for(restart, &object), digest_for(restart, &other));
        other["metadata"]["labels"] = json!({ "a": "b" });
        assert_ne!(digest_for(restart, &object), digest_for(restart, &other));
    }
}
