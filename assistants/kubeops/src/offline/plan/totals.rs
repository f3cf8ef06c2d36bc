//! Counts and sums of what was shown last.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::Step;
use crate::offline::answers;
use crate::offline::refer;

use super::{Next, Planner, reply};

/// The maximum number of objects that are read one by one for a sum.
const MAX_READ: usize = 5;

impl Planner<'_> {
    /// "How many is that?", "how many aren't running?": of the list that was shown last.
    pub(super) fn count_of_list(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_open = reading.names.is_empty() && reading.kind.is_none() && reading.namespace.is_none();
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let list =
            last.steps.iter().rev().find(|step| step.command.verb == Verb::Get && step.command.name.is_none())?;
        let objects = list.outcome.as_ref().map(|outcome| &outcome.objects).filter(|objects| !objects.is_empty())?;
        let is_brief = reading.words.len() <= 6 && reading.act.is_none();
        if !is_open || !is_brief || !reading.counts || reading.verb.is_some_and(|verb| !verb.is_read()) {
            return None;
        }
        let fits = |words: &[&str]| reading.has_any(words);
        let is_negated = fits(&["not", "arent", "isnt", "dont", "werent"]);
        let is_healthy = fits(&["ready", "running", "healthy", "ok", "up", "fine"]);
        let is_unhealthy = reading.unhealthy || fits(&["down", "unready", "unhealthy"]);
        if !is_healthy && !is_unhealthy {
            let counts_them = [
                "how many is that",
                "how many are that",
                "how many are they",
                "how many are those",
                "how many are there",
                "how many in total",
                "how many",
            ];
            let joined = reading.words.join(" ");
            return counts_them.contains(&&*joined).then(|| self.run_or_answer(vec![list.command.clone()]));
        }
        let wanted = is_unhealthy || is_negated;
        let found: Vec<&str> = objects
            .iter()
            .filter(|object| object.is_unhealthy == wanted && !matches!(&*object.state, "Completed" | "Succeeded"))
            .map(|object| &*object.name)
            .collect();
        let what = if wanted { "not healthy" } else { "healthy" };
        let names = if found.is_empty() { String::new() } else { format!(": {}", found.join(", ")) };
        Some(reply(format!("{} of the {} in the last list are {what}{names}.", found.len(), objects.len())))
    }

    /// "How many replicas do they have together?", "total restarts of all of them": the sum over the objects that were shown last.
    pub(super) fn in_total(&self) -> Option<Next> {
        let reading = &self.reading;
        let asks_sum = reading.has_any(&["together", "total", "altogether", "combined", "overall", "sum"]);
        let is_read =
            reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Describe)) && reading.act.is_none();
        let is_replicas = reading.has_any(&["replicas", "copies", "instances"]);
        let is_restarts = reading.words.iter().any(|word| word.starts_with("restart"));
        let is_open = reading.names.is_empty() && reading.namespace.is_none() && !reading.all_namespaces;
        if !asks_sum || !is_read || !is_open || is_replicas == is_restarts {
            return None;
        }
        let number = |object: &ObjectSummary| if is_replicas { object.replicas } else { object.restarts };
        let shown =
            self.conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty())?;
        let complete = |object| refer::completed(self.conversation, object);
        let objects: Vec<ObjectSummary> =
            shown.into_iter().map(complete).filter(|object| number(object).is_some()).collect();
        if objects.len() < 2 {
            return None;
        }
        let commands: Vec<Command> = match objects.len() {
            ..=MAX_READ => objects.iter().map(|object| self.command(Verb::Get, object)).collect(),
            _ => refer::last_lists(self.conversation),
        };
        let done: Vec<&Step> = self.conversation.steps.iter().filter(|step| step.command.verb == Verb::Get).collect();
        if done.is_empty() {
            return Some(Next::Run(commands));
        }
        let is_meant = |object: &&ObjectSummary| objects.iter().any(|own| own.is_same(object));
        let read =
            done.iter().filter_map(|step| step.outcome.as_ref()).flat_map(|outcome| &outcome.objects).filter(is_meant);
        let numbers: Vec<u64> = read.filter_map(number).collect();
        let text = answers::of_steps(&done);
        if numbers.len() != objects.len() {
            return Some(reply(text));
        }
        let what = if is_replicas { "replicas" } else { "restarts" };
        Some(reply(format!("{} {what} in total.\n{text}", numbers.iter().sum::<u64>())))
    }

    /// "How many is that?", after a look at the keys of a secret or config map. They are read again, because the text is not kept.
    pub(super) fn count_of_keys(&self) -> Option<Next> {
        let joined = self.reading.words.join(" ");
        let asks = matches!(
            &*joined,
            "how many is that" | "how many are that" | "how many are they" | "how many keys" | "how many"
        );
        let last = self.conversation.earlier.last().filter(|last| asks && last.requested.is_empty())?;
        let has_keys = |command: &Command| {
            command.name.is_some()
                && matches!(command.kind.as_deref(), Some("secrets" | "secret" | "configmaps" | "configmap"))
                && matches!(command.verb, Verb::Get | Verb::Describe)
        };
        let [step] = last.steps.iter().filter(|step| has_keys(&step.command)).collect::<Vec<&Step>>()[..] else {
            return None;
        };
        let Some(read) = self.conversation.steps.iter().find(|step| has_keys(&step.command)) else {
            return Some(Next::Run(vec![step.command.clone()]));
        };
        let text = answers::of_steps(&[read]);
        let lower = text.to_lowercase();
        let keys = lower.split_once("keys:").or_else(|| lower.split_once("keys "))?.1;
        let keys = keys.split(['(', '\n']).next().unwrap_or_default();
        let count = keys.split(',').filter(|key| !key.trim().is_empty()).count();
        Some(reply(format!("{count} keys.\n{text}")))
    }
}
