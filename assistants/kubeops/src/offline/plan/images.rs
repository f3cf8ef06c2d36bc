//! Images and versions, containers, and the changes that revert others.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};

/// Returns the version of an image.
pub(super) fn version_of(image: &str) -> Option<&str> {
    image.rsplit_once(':').map(|(_, version)| version).filter(|version| !version.contains('/'))
}

/// Whether two images differ only in their version, and in the registry or path before the name.
pub(super) fn is_same_program(one: &str, other: &str) -> bool {
    let name = |image: &str| {
        let last = image.rsplit('/').next().unwrap_or(image);
        last.split([':', '@']).next().unwrap_or(last).to_owned()
    };
    name(one) == name(other)
}

/// Returns an image with another version.
pub(super) fn with_version(image: &str, version: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    // A colon before the last slash belongs to the port of the registry.
    let end = name.rfind(':').filter(|at| !name[*at..].contains('/')).unwrap_or(name.len());
    format!("{}:{version}", &name[..end])
}

/// Returns the container of a pod that a message names.
pub(super) fn named_container(pod: &ObjectSummary, words: &[String]) -> Option<String> {
    // The name of the pod may begin with that of a container.
    let is_of_pod = |container: &&String| crate::cluster::likeness(&pod.name, container).is_some();
    let mut named: Vec<&String> = pod.containers.iter().filter(|container| words.contains(container)).collect();
    named.sort_by_key(is_of_pod);
    named.first().map(|container| (*container).clone())
}

/// Returns the command that reverts a change, if the change itself states the earlier value: the replicas before a scaling are those
/// of its dry run.
pub(super) fn inverse(change: &Command) -> Option<Command> {
    let base = Command { basis: None, ..change.clone() };
    match change.verb {
        Verb::RolloutPause => Some(Command { verb: Verb::RolloutResume, ..base }),
        Verb::RolloutResume => Some(Command { verb: Verb::RolloutPause, ..base }),
        Verb::Cordon | Verb::Drain => Some(Command { verb: Verb::Uncordon, ..base }),
        Verb::Uncordon => Some(Command { verb: Verb::Cordon, ..base }),
        Verb::Scale => {
            let (before, _) = change.basis.as_ref()?.effect.strip_prefix("Dry run: ")?.split_once(" → ")?;
            Some(Command { replicas: Some(before.parse().ok()?), ..base })
        }
        // The dry run states each value: "metadata.labels.tier: (none) → front". Annotations may contain anything, so theirs are not read.
        Verb::Label => {
            let effect = change.basis.as_ref()?.effect.strip_prefix("Dry run: ")?;
            let stated = |path: &str| {
                let values = effect.split("; ").find_map(|part| part.strip_prefix(path)?.strip_prefix(": "))?;
                values.split_once(" → ").map(|(before, _)| before.to_owned())
            };
            let mut values = change.values.clone();
            for (name, value) in &mut values {
                // Without any label before, the dry run states only that.
                let before = stated(&format!("metadata.labels.{name}")).or_else(|| stated("metadata.labels"))?;
                *value = (before != "(none)").then_some(before);
            }
            Some(Command { values, ..base })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Basis;

    #[test]
    fn a_label_gets_the_value_that_the_dry_run_states_as_earlier() {
        let inverse_of = |effect: &str| {
            let basis = Basis { uid: "1".to_owned(), digest: String::new(), effect: effect.to_owned() };
            let values = [("team".to_owned(), Some("red".to_owned()))].into();
            let change = Command { basis: Some(basis), values, ..Command::new(Verb::Label).on("pods", "a-1", None) };
            inverse(&change).map(|inverse| inverse.values["team"].clone())
        };
        assert_eq!(inverse_of("Dry run: metadata.labels.team: blue → red"), Some(Some("blue".to_owned())));
        assert_eq!(inverse_of("Dry run: metadata.labels.team: (none) → red"), Some(None));
        assert_eq!(inverse_of("Dry run: metadata.labels: (none) → {}"), Some(None));
        assert_eq!(inverse_of("Dry run: nothing changes"), None);
    }
}
