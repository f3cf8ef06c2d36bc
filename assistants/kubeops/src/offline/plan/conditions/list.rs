//! Changes of those pods of a namespace that are in a state: "check the pods in orders: if one is crashing restart its deployment".

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::Conversation;
use crate::offline::answers;
use crate::offline::plan::{Next, Planner, reply};
use crate::offline::refer;
use crate::offline::words::{Lexicon, Reading, is_change_phrase, read};

/// Words of a condition on any pod of a list.
const INDEFINITE: [&str; 9] = ["one", "any", "anything", "something", "some", "a", "pods", "ones", "either"];
/// Words that negate a condition.
const NEGATIONS: [&str; 8] = ["not", "no", "none", "nothing", "isnt", "arent", "healthy", "fine"];

/// A message in its parts.
pub(super) struct Parts {
    condition: String,
    order: String,
}

/// Splits a message into a condition on any pod, and the change that is wanted then. What happens otherwise is left out.
pub(super) fn parts(message: &str) -> Option<Parts> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let plain: Vec<String> = words
        .iter()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace(['\'', '’'], ""))
        .collect();
    let start = plain.iter().position(|word| word == "if")?;
    // "Restart it if one crashes": the change comes first, and is read as a condition on one object.
    let at = (start + 1..plain.len()).find(|at| is_change_phrase(&plain[*at..]))?;
    let begins_otherwise = |at: usize| {
        matches!(&*plain[at], "otherwise" | "else" | "unless")
            || plain[at] == "if" && plain.get(at + 1).is_some_and(|next| matches!(&**next, "not" | "none" | "nothing"))
    };
    let end = (at..plain.len()).find(|at| begins_otherwise(*at)).unwrap_or(plain.len());
    let condition = &plain[start + 1..at];
    let is_indefinite = condition.iter().take(4).any(|word| INDEFINITE.contains(&&**word));
    let is_negated = condition.iter().any(|word| NEGATIONS.contains(&&**word));
    let has_more = plain[at..end].iter().any(|word| matches!(&**word, "if" | "unless"));
    (is_indefinite && !is_negated && !has_more)
        .then(|| Parts { condition: condition.join(" "), order: words[at..end].join(" ") })
}

/// Requests a change of the pods that are in the state of the condition now, or of their workload: those of `place`, or of the namespace
/// that the message names. `None` for other messages.
pub(super) fn of_list(
    message: &str,
    place: Option<&String>,
    conversation: &Conversation,
    lexicon: &Lexicon,
) -> Option<Next> {
    let parts = parts(message)?;
    let (condition, order, whole) =
        (read(&parts.condition, lexicon), read(&parts.order, lexicon), read(message, lexicon));
    let [verb] = order.change_verbs()[..] else { return None };
    let is_plain = order.act.is_none() && order.verb == Some(verb) && order.names.is_empty() && whole.names.is_empty();
    if !is_plain || !condition.unhealthy {
        return None;
    }
    let namespace = place.or(whole.namespace.as_ref()).cloned().or_else(|| refer::last_namespace(conversation));
    let list = Command {
        kind: Some("pods".to_owned()),
        namespace: namespace.clone().filter(|_| !whole.all_namespaces),
        all_namespaces: whole.all_namespaces || namespace.is_none(),
        ..Command::new(Verb::Get)
    };
    let Some(read) = conversation.steps.iter().find(|step| step.command.verb == Verb::Get) else {
        return Some(Next::Run(vec![list]));
    };
    if let Some(error) = &read.error {
        return Some(reply(format!("I could not read that: {error}")));
    }
    let pods = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
    let sick: Vec<&ObjectSummary> = pods.iter().filter(|pod| is_in_state(&condition, pod)).collect();
    if sick.is_empty() {
        let place = namespace.map(|name| format!(" in {name}")).unwrap_or_default();
        return Some(reply(format!(
            "No pod{place} is in that state ({} looked at), so the condition does not hold: I requested nothing.",
            pods.len()
        )));
    }
    // "Its deployment", "that pod".
    let kind = order.kind.as_deref();
    let mut objects: Vec<ObjectSummary> = Vec::new();
    for object in sick.iter().filter_map(|pod| refer::fitting(pod, verb, kind)) {
        if !objects.iter().any(|known| (&known.name, &known.namespace) == (&object.name, &object.namespace)) {
            objects.push(object);
        }
    }
    let names: Vec<&str> = sick.iter().map(|pod| pod.name.as_str()).collect();
    Some(match &objects[..] {
        [] => reply(format!(
            "The condition holds for {}, which has nothing that “{}” applies to: I requested nothing.",
            names.join(", "),
            verb.words()
        )),
        [object] => {
            let planner = Planner { conversation, reading: order };
            planner.run_or_answer(vec![planner.command(verb, object)])
        }
        several => reply(answers::ask_which(several)),
    })
}

/// Whether a pod is in the state of a condition: exactly, not only unhealthy in another way.
fn is_in_state(condition: &Reading, pod: &ObjectSummary) -> bool {
    let has = |states: &[&str]| states.iter().any(|state| pod.state.contains(state));
    if condition.words.iter().any(|word| word.starts_with("crash")) {
        return pod.is_unhealthy && has(&["Crash", "OOM", "Error"]);
    }
    match condition.has("pending") {
        true => has(&["Pending", "ContainerCreating"]),
        false => pod.is_unhealthy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_on_any_pod_is_told_from_one_on_an_object() {
        let parts_of = |message: &str| parts(message).map(|parts| (parts.condition, parts.order));
        assert_eq!(
            parts_of("look at billing, if any pod there is failing, delete it, otherwise do nothing"),
            Some(("any pod there is failing".to_owned(), "delete it,".to_owned()))
        );
        assert_eq!(parts_of("if web is down, restart it"), None);
        assert_eq!(parts_of("if none of them is crashing, restart web"), None);
    }
}
