//! Answers that need no commands, and the wording of results.

use threadkeep::agent::ApprovalState;

use crate::cluster::Shown;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Requested, Step};
use crate::kinds::Kind;

use super::refer::listed;

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
pub(super) const NOTHING_BEFORE: &str = "I have not requested a change in this conversation.";

/// Returns the request that waits for an approval.
pub(super) fn pending(conversation: &Conversation) -> Option<&Requested> {
    let newest = conversation.earlier.iter().rev().find(|exchange| !exchange.requested.is_empty())?;
    newest.requested.iter().find(|requested| requested.state == ApprovalState::Pending)
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
        ApprovalState::Replaced => {
            Some(format!("No: the request `{line}` was replaced by a later one, so it was not carried out."))
        }
        ApprovalState::OutcomeUnknown => Some(format!("I do not know: the process ended while `{line}` was running.")),
        _ => None,
    }
}

/// Returns the newest change of the conversation, with its exchange.
pub(super) fn last_change(conversation: &Conversation) -> Option<(&Exchange, Option<&Requested>, Option<&Step>)> {
    conversation.earlier.iter().rev().find_map(|exchange| {
        let step = exchange.steps.iter().rev().find(|step| !step.command.verb.is_read());
        let requested = exchange.requested.last();
        (step.is_some() || requested.is_some()).then_some((exchange, requested, step))
    })
}

/// Words the results of commands.
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

/// Asks which of several objects is meant.
pub(super) fn ask_which(objects: &[Shown]) -> String {
    let describe = |object: &Shown| {
        let kind = Kind::find(&object.kind).map_or_else(|| object.kind.clone(), |kind| kind.singular);
        let namespace = if object.namespace.is_empty() { String::new() } else { format!(" in {}", object.namespace) };
        format!("{kind} {}{namespace}", object.name)
    };
    let entries: Vec<String> =
        objects.iter().take(10).enumerate().map(|(at, object)| format!("{}. {}", at + 1, describe(object))).collect();
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
pub(super) fn compare(conversation: &Conversation) -> Option<(String, Vec<(Shown, Shown)>)> {
    let (newer, older) = last_two_lists(conversation)?;
    let namespace = |list: &[Shown]| list.first().map(|object| object.namespace.clone()).unwrap_or_default();
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

/// Returns the newest list of objects, and the one before it of the same kind from another namespace.
fn last_two_lists(conversation: &Conversation) -> Option<(Vec<Shown>, Vec<Shown>)> {
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
