//! Answers that need no commands, and the wording of results.

use threadkeep::agent::ApprovalState;

use crate::cluster::{ObjectSummary, Outcome};
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Requested, Step};
use crate::kinds::Kind;

use super::refer::listed;
use super::words::State;

pub(super) const GREETING: &str = "Hello. I read the Kubernetes cluster and request changes of it: “what pods are running in \
                                   prod?”, “logs of the web deployment”, “scale web to 3”.";
pub(super) const CAPABILITIES: &str = "I operate a Kubernetes cluster. I read pods, deployments, services, nodes and other kinds \
    (list, describe, logs, events, usage, rollouts), and I request changes: delete, scale, restart, roll back, image, memory and \
    CPU limits, labels, cordon, drain, and manifests. Nothing is changed before a person approves it with ✅. I never show values \
    of secrets.";
pub(super) const SPOKEN: &str =
    "I requested nothing: you did not ask me to change something now. Say for example “restart web” if you want it.";
pub(super) const THANKS: &str = "You are welcome.";
pub(super) const NOT_UNDERSTOOD: &str = "I did nothing, because I cannot find a request for the cluster in that. You can say for \
    example “list pods in prod”, “describe the nginx pod”, “logs of the payments deployment” or “scale web to 3”.";
pub(super) const SECRET_VALUE: &str =
    "I never show values of secrets. I can list the keys: “which keys are in secret NAME?”";
pub(super) const NOTHING_WAITS: &str = "There is no request that waits for an approval.";
pub(super) const NOTHING_BEFORE: &str = "I have not requested a change in this conversation.";

/// Returns the requests that wait for an approval, oldest first.
pub(super) fn all_pending(conversation: &Conversation) -> Vec<&Requested> {
    let all = conversation.earlier.iter().flat_map(|exchange| &exchange.requested);
    all.filter(|requested| requested.state == ApprovalState::Pending).collect()
}

/// Returns the newest request that waits for an approval.
pub(super) fn pending(conversation: &Conversation) -> Option<&Requested> {
    all_pending(conversation).pop()
}

/// Says that a request waits.
pub(super) fn waiting(requested: &Requested) -> String {
    format!(
        "The request `{}` waits for its approval. Words are no approval: react to it with ✅ to approve or ❌ to deny.",
        requested.command.line()
    )
}

/// Says that requests were taken back.
pub(super) fn withdrawn(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("`{line}`")).collect();
    format!("I withdrew the request {}: it can no longer be approved, and nothing was changed.", lines.join(", "))
}

/// Says what became of a request that was not carried out; `None` if it was.
pub(super) fn fate(requested: &Requested) -> Option<String> {
    let line = requested.command.line();
    match requested.state {
        ApprovalState::Pending => Some(waiting(requested)),
        ApprovalState::Denied => Some(format!("No: the request `{line}` was denied, so nothing was changed.")),
        ApprovalState::Expired => {
            Some(format!("No: the request `{line}` expired without an approval, so nothing was changed."))
        }
        ApprovalState::Void => {
            Some(format!("No: the request `{line}` was replaced by a later one, so it was not carried out."))
        }
        ApprovalState::OutcomeUnknown => Some(format!("I do not know: the process ended while `{line}` was running.")),
        _ => None,
    }
}

/// Returns a request and what became of it, with the person who decided.
pub(super) fn line_of_history(requested: &Requested) -> String {
    let by = requested.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let state = match requested.state {
        ApprovalState::Pending => "waits for its approval".to_owned(),
        ApprovalState::Denied => format!("was denied{by}: not approved, so nothing was changed"),
        ApprovalState::Expired => "expired without an approval, so nothing was changed".to_owned(),
        ApprovalState::Void => "was taken back or replaced, so it was not carried out".to_owned(),
        ApprovalState::Done => format!("was approved{by} and carried out"),
        ApprovalState::Failed => format!("was approved{by}, and failed"),
        ApprovalState::OutcomeUnknown => "was approved; its outcome is not known".to_owned(),
        _ => format!("was approved{by}"),
    };
    let effect = requested.command.basis.as_ref().map(|basis| basis.effect.trim_start_matches("Dry run: "));
    let effect = effect.filter(|effect| effect.len() < 200).map(|effect| format!(" ({effect})")).unwrap_or_default();
    format!("- `{}`{effect} {state}.", requested.command.line())
}

/// The meanings of Kubernetes terms.
pub(super) const MEANINGS: &[(&[&str], &str)] = &[
    (
        &["crashloopbackoff", "crashloop", "crashlooping"],
        "CrashLoopBackOff: the container starts, exits with an error and is started again and again (it keeps crashing), with longer pauses \
         each time. Its log before the last restart (“previous logs of POD”) and its exit code (“describe POD”) usually say why.",
    ),
    (
        &["imagepullbackoff", "errimagepull", "imagepull"],
        "ImagePullBackOff (and ErrImagePull): the node cannot pull (download) the container's image: a wrong name or tag that does not \
         exist, or no access to the registry. Kubernetes retries with longer pauses.",
    ),
    (
        &["oomkilled", "oom", "oomkill"],
        "OOMKilled: the container used more memory than its limit, so the kernel killed it (exit code 137). Raise the memory limit, or \
         let the program use less.",
    ),
    (
        &["pending"],
        "Pending: the pod is accepted, and not running yet. Usually no node has enough free CPU or memory, or no node matches; its events \
         say which.",
    ),
    (
        &["containercreating"],
        "ContainerCreating: the pod has a node, and its volumes, network or images are being prepared.",
    ),
    (
        &["evicted", "eviction"],
        "Evicted: the node ran short of memory or disk, so it ended the pod. Its workload starts another one.",
    ),
    (&["terminating"], "Terminating: the pod was deleted, and has until its grace period ends to stop."),
    (&["completed"], "Completed: the container ended without an error (exit code 0), as that of a job does."),
    (
        &["notready"],
        "NotReady: a node does not report to the control plane, or fails its health checks, so no new pods are scheduled there. Of a pod: \
         its readiness probe fails, so its service sends it no traffic.",
    ),
    (
        &["cordon", "cordoned", "schedulingdisabled", "unschedulable"],
        "Cordon: the node is marked unschedulable (SchedulingDisabled): no new pods start there, and those that run stay. Uncordon takes it \
         back.",
    ),
    (
        &["drain", "drained", "draining"],
        "Drain: the node is cordoned, and its pods are evicted, so that their workloads start them on other nodes.",
    ),
    (
        &["rollout", "rolling"],
        "Rollout: a deployment replaces its pods with those of a new revision step by step, so that enough stay ready.",
    ),
    (
        &["readiness probe", "readiness probes", "readinessprobe", "readiness"],
        "Readiness probe: a check that the kubelet makes of a container again and again. While it fails, the pod counts as not ready, and its \
         service sends it no traffic.",
    ),
    (
        &["liveness probe", "liveness probes", "livenessprobe", "liveness"],
        "Liveness probe: a check that the kubelet makes of a container again and again. If it fails several times, the container is restarted.",
    ),
    (&["replica", "replicas"], "Replicas: how many copies (pods) of a workload should run."),
    (
        &["deployment", "deployments"],
        "A deployment keeps a number of identical pods running, and rolls out new versions of them.",
    ),
    (
        &["statefulset", "statefulsets"],
        "A statefulset keeps pods with fixed names and their own storage running: one that is deleted comes back under the same name.",
    ),
    (&["daemonset", "daemonsets"], "A daemonset runs one pod on each node."),
    (&["pod", "pods"], "A pod is one running instance: one or more containers that share a network and volumes."),
    (&["namespace", "namespaces"], "A namespace is part of the cluster with its own names and rights."),
    (&["configmap", "configmaps"], "A configmap holds settings that pods read as files or environment variables."),
    (
        &["exit code 137", "137"],
        "Exit code 137: the container was killed (SIGKILL), most often because it was out of memory (OOMKilled).",
    ),
    (&["exit code 139", "139"], "Exit code 139: the program crashed with a segmentation fault (SIGSEGV)."),
    (&["exit code 143", "143"], "Exit code 143: the container was asked to stop (SIGTERM)."),
    (&["exit code 1"], "Exit code 1: the program ended with an error of its own; its log says which."),
];

/// Returns the newest change of the conversation, with its exchange.
pub(super) fn last_change(conversation: &Conversation) -> Option<(&Exchange, Option<&Requested>, Option<&Step>)> {
    last_change_of(conversation, &|_| true)
}

/// Like [`last_change`], of the changes for which `is_meant` returns true.
pub(super) fn last_change_of<'a>(
    conversation: &'a Conversation,
    is_meant: &dyn Fn(&Command) -> bool,
) -> Option<(&'a Exchange, Option<&'a Requested>, Option<&'a Step>)> {
    conversation.earlier.iter().rev().find_map(|exchange| {
        let mut steps = exchange.steps.iter().rev();
        let step = steps.find(|step| !step.command.verb.is_read() && is_meant(&step.command));
        let requested = exchange.requested.iter().rev().find(|requested| is_meant(&requested.command));
        (step.is_some() || requested.is_some()).then_some((exchange, requested, step))
    })
}

/// Puts the results of commands into words.
pub(super) fn of_steps(steps: &[&Step]) -> String {
    let texts: Vec<String> = steps
        .iter()
        .map(|step| match (&step.outcome, &step.error) {
            (Some(outcome), _) if step.command.verb.is_read() => outcome.text.clone(),
            (Some(outcome), _) => format!("✅ Done: {}\n`{}`", outcome.text, step.command.line()),
            (None, Some(error)) if step.command.verb.is_read() => format!("I could not read that: {error}"),
            (None, Some(error)) => format!("`{}` was not carried out. {error}", step.command.line()),
            (None, None) => String::new(),
        })
        .collect();
    texts.join("\n\n")
}

/// Says which object of a list has the most or the least of something; `None` if the list does not decide it.
pub(super) fn superlative(state: State, steps: &[&Step]) -> Option<String> {
    let objects: Vec<ObjectSummary> =
        steps.iter().filter_map(|step| step.outcome.as_ref()).flat_map(|outcome| outcome.objects.clone()).collect();
    let what = match state {
        State::MostRestarted => "the most restarts",
        State::LeastRestarted => "the fewest restarts",
        State::MostReplicas => "the most replicas",
        State::LeastReplicas => "the fewest replicas",
        State::Most => "the most",
        State::Least => "the fewest",
        _ => return None,
    };
    match &state.filter(&objects)[..] {
        [only] if objects.len() > 1 => Some(format!("{} has {what}.", only.name)),
        _ => None,
    }
}

/// Returns the pods of a list that restarted so often; `None` if the state is another, or if nothing was listed.
pub(super) fn restarted(state: State, steps: &[&Step]) -> Option<String> {
    let condition = match state {
        State::Restarted(0) => "never restarted".to_owned(),
        State::Restarted(times) => format!("restarted {times} times"),
        State::MoreRestarts(times) => format!("restarted more than {times} times"),
        _ => return None,
    };
    let outcomes: Vec<&Outcome> = steps.iter().filter_map(|step| step.outcome.as_ref()).collect();
    let objects: Vec<ObjectSummary> = outcomes.iter().flat_map(|outcome| outcome.objects.clone()).collect();
    let is_list = objects.len() > 1 && objects.iter().all(|object| object.restarts.is_some());
    let found = state.filter(&objects);
    let is_found = |line: &&str| found.iter().any(|object| line.contains(&object.name));
    let lines = outcomes.iter().flat_map(|outcome| outcome.text.lines());
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("- ")).filter(is_found).collect();
    let total = objects.len();
    is_list.then(|| match found.len() {
        0 => format!("None of the {total} pods {condition}."),
        count => format!("{count} of the {total} pods {condition}:\n{}", lines.join("\n")),
    })
}

/// Names an object: "deployment web in shop".
pub(super) fn label(object: &ObjectSummary) -> String {
    let kind = Kind::find(&object.kind).map_or_else(|| object.kind.clone(), |kind| kind.singular);
    let namespace = if object.namespace.is_empty() { String::new() } else { format!(" in {}", object.namespace) };
    format!("{kind} {}{namespace}", object.name)
}

/// Asks which of several objects is meant.
pub(super) fn ask_which(objects: &[ObjectSummary]) -> String {
    let entries: Vec<String> =
        objects.iter().take(10).enumerate().map(|(at, object)| format!("{}. {}", at + 1, label(object))).collect();
    format!("Several objects fit:\n{}\nWhich one do you mean?", entries.join("\n"))
}

/// Asks for the object of a command.
pub(super) fn ask_what(verb: Verb) -> String {
    let what = match verb {
        Verb::Cordon | Verb::Uncordon | Verb::Drain => "Which node",
        Verb::Scale | Verb::RolloutRestart | Verb::RolloutUndo | Verb::SetImage | Verb::SetResources => {
            "Which deployment"
        }
        _ => "Which object",
    };
    format!(
        "{what} do you mean? Please give its kind and name; I have nothing in this conversation that “{}” could refer to. Which one is it?",
        verb.words()
    )
}

/// Compares the images of the two newest lists of the same kind. Returns the text, and the pairs that differ.
pub(super) fn compare(conversation: &Conversation) -> Option<(String, Vec<(ObjectSummary, ObjectSummary)>)> {
    let (newer, older) = last_two_lists(conversation)?;
    let namespace = |list: &[ObjectSummary]| list.first().map(|object| object.namespace.clone()).unwrap_or_default();
    let (one, other) = (namespace(&older), namespace(&newer));
    let (mut lines, mut same, mut pairs, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for object in &older {
        let Some(twin) = newer.iter().find(|twin| twin.name == object.name) else {
            lines.push(format!("- {}: only in {one}", object.name));
            continue;
        };
        if object.image == twin.image {
            same.push(object.name.clone());
        } else {
            lines.push(format!("- {}: image {} in {one}, {} in {other}", object.name, object.image, twin.image));
            pairs.push((object.clone(), twin.clone()));
        }
        if let (Some(before), Some(after)) = (object.replicas, twin.replicas)
            && before != after
        {
            counts.push(format!("{} {before} and {after}", object.name));
        }
    }
    let new = newer.iter().filter(|object| !older.iter().any(|twin| twin.name == object.name));
    lines.extend(new.map(|object| format!("- {}: only in {other}", object.name)));
    let mut text = match lines.is_empty() {
        true => format!("The images in {one} and {other} are the same."),
        false => format!("Different between {one} and {other}:\n{}", lines.join("\n")),
    };
    if !same.is_empty() && !lines.is_empty() {
        text.push_str(&format!("\nSame image: {}.", same.join(", ")));
    }
    if !counts.is_empty() {
        text.push_str(&format!("\nReplicas: {}.", counts.join("; ")));
    }
    Some((text, pairs))
}

/// Compares the images of a workload and of the one of the same name in another namespace, if both were shown last.
pub(super) fn compare_last_two(conversation: &Conversation) -> Option<String> {
    let recent = conversation.earlier.iter().rev().take(4).flat_map(super::refer::shown_objects);
    let shown: Vec<&ObjectSummary> =
        recent.filter(|object| object.kind != "pods" && !object.image.is_empty()).collect();
    let newer = shown.first()?;
    let older = shown
        .iter()
        .find(|object| object.name == newer.name && object.kind == newer.kind && object.namespace != newer.namespace)?;
    let verdict = if newer.image == older.image { "No, both have the same image" } else { "Yes, the images differ" };
    Some(format!(
        "{verdict}: {} has {} in {}, and {} in {}.",
        newer.name, older.image, older.namespace, newer.image, newer.namespace
    ))
}

/// Returns the newest list of objects, and the one before it of the same kind from another namespace.
fn last_two_lists(conversation: &Conversation) -> Option<(Vec<ObjectSummary>, Vec<ObjectSummary>)> {
    let mut lists = conversation
        .earlier
        .iter()
        .rev()
        .filter(|exchange| {
            exchange.steps.iter().any(|step| step.command.verb == Verb::Get && step.command.name.is_none())
        })
        .map(listed)
        .filter(|list| !list.is_empty());
    let newer = lists.next()?;
    let (kind, namespace) = (newer[0].kind.clone(), newer[0].namespace.clone());
    let older = lists.find(|list| list[0].kind == kind && list[0].namespace != namespace)?;
    Some((newer, older))
}

/// Returns the command that shows whether a change had its effect.
pub(super) fn verification(command: &Command) -> Command {
    match command.verb {
        Verb::Delete => {
            Command { kind: command.kind.clone(), namespace: command.namespace.clone(), ..Command::new(Verb::Get) }
        }
        Verb::Exec | Verb::Label | Verb::Annotate | Verb::Cordon | Verb::Uncordon | Verb::Drain | Verb::Apply => {
            Command {
                kind: command.kind.clone(),
                name: command.name.clone(),
                namespace: command.namespace.clone(),
                ..Command::new(Verb::Describe)
            }
        }
        _ => Command {
            kind: command.kind.clone(),
            name: command.name.clone(),
            namespace: command.namespace.clone(),
            ..Command::new(Verb::RolloutStatus)
        },
    }
}
