//! Questions how something is done: the line of kubectl, and what to write here. They request nothing.

use crate::offline::words::{Lexicon, Reading, read};

use super::{Next, Planner, reply};

const ASKS: [&str; 32] = [
    "how do i",
    "how do we",
    "how do you",
    "how can i",
    "how can we",
    "how would i",
    "how would we",
    "how would you",
    "how would one",
    "how does one",
    "how can one",
    "how to",
    "how should i",
    "whats the command",
    "what is the command",
    "which command",
    "what command",
    "the command for",
    "the command to",
    "whats the kubectl",
    "what kubectl",
    "whats the syntax",
    "what is the syntax",
    "just the syntax",
    "what would i type",
    "what do i type",
    "what should i type",
    "what would i run",
    "what do i run",
    "where do i see",
    "where can i see",
    "where would i see",
];

/// Words of a question, the line of kubectl, and the words that ask this assistant for it; empty for what it refuses.
const USAGES: [(&[&str], &str, &str); 22] = [
    (&["allowed", "permission", "permissions", "may i", "rights"], "kubectl auth can-i VERB KIND", ""),
    (
        &[
            "previous logs",
            "before it crashed",
            "before it died",
            "before the crash",
            "last run",
            "already crashed",
            "that crashed",
            "has crashed",
            "crashed container",
            "previous container",
            "that died",
            "that restarted",
        ],
        "kubectl logs POD --previous",
        "previous logs of POD",
    ),
    (&["taint"], "kubectl taint node NODE KEY=VALUE:NoSchedule (with a minus at the end to remove it)", ""),
    (&["out of scheduling", "without killing pods", "no new pods"], "kubectl cordon NODE", "cordon NODE"),
    (&["port-forward", "port forward", "forward a port"], "kubectl port-forward service/NAME 8080:80", ""),
    (&["exec", "shell", "ssh", "get into", "log into"], "kubectl exec -it POD -- sh", ""),
    (&["edit"], "kubectl edit deployment NAME", ""),
    (&["copy", "cp"], "kubectl cp POD:/path/file file", ""),
    (&["follow", "stream", "live logs"], "kubectl logs -f POD", "logs of NAME"),
    (
        &["with that label", "with this label", "by label", "with a label", "with the label", "selector", "filter"],
        "kubectl get pods -l KEY=VALUE",
        "list pods -l KEY=VALUE",
    ),
    (&["uncordon", "schedulable again"], "kubectl uncordon NODE", "uncordon NODE"),
    (&["cordon"], "kubectl cordon NODE", "cordon NODE"),
    (&["drain", "empty a node"], "kubectl drain NODE --ignore-daemonsets", "drain NODE"),
    (&["restart", "bounce", "reboot"], "kubectl rollout restart deployment NAME", "restart NAME"),
    (&["roll back", "rollback", "undo", "revert"], "kubectl rollout undo deployment NAME", "roll back NAME"),
    (&["pause"], "kubectl rollout pause deployment NAME", "pause the rollout of NAME"),
    (&["scale", "replicas"], "kubectl scale deployment NAME --replicas=3", "scale NAME to 3"),
    (
        &["image", "upgrade", "update", "deploy a new version"],
        "kubectl set image deployment NAME CONTAINER=IMAGE:TAG",
        "set the image of NAME to IMAGE:TAG",
    ),
    (
        &["limit", "limits", "memory"],
        "kubectl set resources deployment NAME --limits=memory=512Mi",
        "give NAME 512Mi of memory",
    ),
    (&["label"], "kubectl label pod NAME KEY=VALUE", "label pod NAME KEY=VALUE"),
    (&["annotate", "annotation"], "kubectl annotate pod NAME KEY=VALUE", "annotate pod NAME KEY=VALUE"),
    (&["delete", "remove", "kill", "get rid of"], "kubectl delete pod NAME", "delete pod NAME"),
];

/// Usages of commands that read, for questions that name no object.
const READS: [(&[&str], &str, &str); 6] = [
    (&["restarted", "restarts", "how many times", "how often"], "kubectl get pods", "list pods in NAMESPACE"),
    (
        &["why", "find out", "debug", "investigate"],
        "kubectl describe pod POD, and kubectl logs POD --previous",
        "why does POD crash",
    ),
    (&["events"], "kubectl get events", "events in NAMESPACE"),
    (&["logs", "log"], "kubectl logs POD", "logs of NAME"),
    (&["cpu", "usage", "uses"], "kubectl top pods", "top pods in NAMESPACE"),
    (&["history", "revisions"], "kubectl rollout history deployment NAME", "rollout history of NAME"),
];

/// "How do I restart a deployment?"
pub(super) fn how_to(reading: &Reading) -> Option<Next> {
    if !ASKS.iter().any(|phrase| reading.says(phrase)) || reading.has_any(&["secret", "secrets", "decode", "know"]) {
        return None;
    }
    let says = |words: &[&str]| words.iter().any(|word| reading.says(word));
    // "The command to roll a deployment back".
    let rolls_back = reading.has_any(&["roll", "put", "bring", "go"]) && reading.has("back");
    let says = |words: &[&str]| says(words) || rolls_back && words.contains(&"rollback");
    let reads = READS.iter().filter(|_| reading.names.is_empty());
    let (_, line, words) =
        USAGES.iter().find(|(words, ..)| says(words)).or_else(|| reads.into_iter().find(|(words, ..)| says(words)))?;
    Some(reply(match words.is_empty() {
        true => format!(
            "`{line}` does that, with `-n NAMESPACE`. It needs a terminal of your own: I cannot do it from a chat."
        ),
        false => format!(
            "`{line}` does that, with `-n NAMESPACE`. Here, say “{words}”: a change waits for the approval of a person. I requested nothing."
        ),
    }))
}

impl Planner<'_> {
    /// "Just tell me the command to scale leads to 5": the exact line, if the message names an object.
    pub(super) fn command_line(&self) -> Option<Next> {
        match self.spoken_change()? {
            Next::Run(commands) if commands.iter().all(|command| !command.verb.is_read()) => {
                let lines: Vec<String> = commands.iter().map(|command| format!("`{}`", command.line())).collect();
                Some(reply(format!(
                    "{} does that. I requested nothing; say “do it” if I should.",
                    lines.join(", then ")
                )))
            }
            run @ Next::Run(_) => Some(run),
            Next::Reply(_) => None,
        }
    }

    /// "Ok now do it", after the line of a command.
    pub(super) fn explained_change(&self) -> Option<Next> {
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let reading = read(&last.said, &Lexicon::of(self.conversation));
        if !self.reading.has_any(&["do", "run"]) || how_to(&reading).is_none() {
            return None;
        }
        (Planner { reading, ..*self }).spoken_change()
    }

    /// Plans the change that a message asks to explain; `None` if it names no object.
    fn spoken_change(&self) -> Option<Next> {
        let is_change = self.reading.verb.is_some_and(|verb| !verb.is_read()) && self.reading.names.len() == 1;
        let reading = Reading { act: None, ..self.reading.clone() };
        is_change.then(|| Planner { reading, ..*self }.wanted())
    }
}
