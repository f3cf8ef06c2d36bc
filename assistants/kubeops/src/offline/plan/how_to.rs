//! Questions how something is done: the line of kubectl, and what to write here. They request nothing.

use crate::offline::words::Reading;

use super::{Next, reply};

const ASKS: [&str; 17] = [
    "how do i",
    "how do we",
    "how do you",
    "how can i",
    "how can we",
    "how would i",
    "how would we",
    "how would you",
    "how to",
    "how should i",
    "how does one",
    "whats the command",
    "what is the command",
    "which command",
    "what command",
    "whats the kubectl",
    "what kubectl",
];

/// Words of a question, the line of kubectl, and the words that ask this assistant for it; empty for what it refuses.
const USAGES: [(&[&str], &str, &str); 18] = [
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

/// "How do I restart a deployment?"
pub(super) fn how_to(reading: &Reading) -> Option<Next> {
    if !ASKS.iter().any(|phrase| reading.says(phrase))
        || reading.has_any(&["secret", "secrets", "decode", "know", "many"])
    {
        return None;
    }
    let (_, line, words) = USAGES.iter().find(|(words, ..)| words.iter().any(|word| reading.says(word)))?;
    Some(reply(match words.is_empty() {
        true => format!(
            "`{line}` does that, with `-n NAMESPACE`. It needs a terminal of your own, so I cannot do it from a chat."
        ),
        false => format!(
            "`{line}` does that, with `-n NAMESPACE`. Here, say “{words}”: a change waits for the approval of a person. I requested nothing."
        ),
    }))
}
