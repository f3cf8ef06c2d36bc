//! Answers to questions that name no command: a look at what they are about, what was requested so far, and what words mean.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::Requested;
use crate::kinds::WORKLOADS;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::Reading;

use super::{Next, Planner, reply};

/// The maximum number of objects that are looked at for a question.
const MAX_LOOKS: usize = 3;
/// The maximum number of objects of which a line is shown for a question.
const MAX_LINES: usize = 8;

/// Words that make a question one about the cluster.
const TOPICS: [&str; 60] = [
    "since",
    "env",
    "label",
    "labels",
    "restart",
    "restarts",
    "restarted",
    "restarting",
    "crash",
    "crashed",
    "crashing",
    "crashes",
    "memory",
    "mem",
    "ram",
    "cpu",
    "limit",
    "limits",
    "image",
    "images",
    "version",
    "versions",
    "tag",
    "release",
    "replicas",
    "replica",
    "copies",
    "ready",
    "running",
    "runs",
    "healthy",
    "health",
    "status",
    "state",
    "rollout",
    "rolled",
    "deployed",
    "exit",
    "exited",
    "error",
    "errors",
    "killed",
    "oom",
    "dying",
    "dies",
    "died",
    "dead",
    "broken",
    "failing",
    "failed",
    "fails",
    "pending",
    "stuck",
    "scheduled",
    "node",
    "nodes",
    "pod",
    "pods",
    "recovered",
    "scale",
];
/// Words that are about the cluster if the message also refers to something.
const WEAK_TOPICS: [&str; 26] = [
    "up",
    "down",
    "ok",
    "okay",
    "fine",
    "run",
    "back",
    "there",
    "gone",
    "many",
    "wrong",
    "going",
    "far",
    "news",
    "where",
    "better",
    "working",
    "green",
    "red",
    "live",
    "good",
    "happening",
    "build",
    "code",
    "stable",
    "progress",
];

impl Planner<'_> {
    /// Shows what a message that is not a command is about; `None` if it is not about the cluster.
    pub(super) fn look(&self) -> Option<Next> {
        let planner = Planner { reading: self.reading.without_what_is_excluded(), ..*self };
        let reading = &planner.reading;
        let is_about_object = !reading.names.is_empty() || reading.pick.is_some() || reading.state.is_some();
        let refers = reading.pronoun
            || reading.has_any(&["they", "they're", "theyre", "each", "there", "that", "this", "he", "she"]);
        let has_strong_topic =
            reading.has_any(&TOPICS) || reading.kind.is_some() || reading.unhealthy || reading.asks_state;
        let has_weak_topic = reading.has_any(&WEAK_TOPICS);
        let first = reading
            .words
            .iter()
            .find(|word| !matches!(&***word, "ok" | "hm" | "hmm" | "good" | "great" | "phew" | "thanks" | "cool"));
        let asks = reading.has_question
            || reading.has_any(&["which", "what", "whats", "how", "when"])
            || reading.asks()
            || first.is_some_and(|word| {
                matches!(&**word, "and" | "so" | "still" | "all" | "any" | "anything" | "everything")
            });
        // "A good name for a cat": too much that has nothing to do with the cluster.
        let is_far = reading.unknown > 1 && !is_about_object && !has_strong_topic;
        if is_far {
            return None;
        }
        // "And the currency?", after a look at an object.
        let continues = reading.is_question
            && reading.words.first().is_some_and(|word| word == "and")
            && reading.words.len() <= 4
            && reading.unknown == 1
            && reading.act.is_none()
            && self.conversation.earlier.last().is_some_and(|last| {
                let named = last.steps.iter().filter(|step| step.outcome.is_some() && step.command.name.is_some());
                last.requested.is_empty() && named.count() == 1
            });
        if continues && let Found::One(object) = refer::focus(self.conversation, Verb::Describe, None, None) {
            return Some(self.describe_all(&[object]));
        }
        let has_topic = has_strong_topic || has_weak_topic && asks;
        let is_short = reading.words.len() <= 8;
        if is_about_object {
            let objects = planner.looked_at();
            if !objects.is_empty() && (asks || has_topic || reading.words.len() <= 4) {
                return Some(self.describe_all(&objects));
            }
            if !objects.is_empty() || !reading.names.is_empty() {
                return None;
            }
        }
        let refers_briefly = refers && asks && (reading.namespace.is_some() || reading.words.len() <= 6);
        // "Will do it myself" asks nothing.
        if !has_topic && !refers_briefly || !(asks || has_strong_topic && is_short) {
            return None;
        }
        let is_about_all =
            reading.has_any(&["anything", "any", "everything", "everyone", "all", "others", "rest", "anyone"]);
        let of_image = self.with_image();
        if !of_image.is_empty() && asks {
            return Some(self.describe_all(&of_image));
        }
        if reading.namespace.is_none() && !is_about_all && (refers || !reading.is_plural) {
            let kind = reading.kind.as_deref();
            let focus = refer::focus(self.conversation, Verb::Describe, kind, None);
            let focus =
                if focus == Found::None { refer::focus(self.conversation, Verb::Describe, None, None) } else { focus };
            match focus {
                Found::One(object) => return Some(self.describe_all(&self.with_twins(object))),
                Found::Several(objects) if objects.len() <= MAX_LOOKS => return Some(self.describe_all(&objects)),
                Found::Several(_) | Found::None => {}
            }
        }
        let namespace = reading.namespace.clone().or_else(|| refer::last_namespace(self.conversation))?;
        let is_pods = reading.kind.as_deref().is_none_or(|kind| kind == "pods");
        if is_pods {
            return Some(self.contents(&namespace));
        }
        Some(self.run_or_answer(vec![self.list_command(Verb::Get)]))
    }

    /// Lists the contents of the namespace that a message names.
    pub(super) fn namespace_contents(&self) -> Next {
        let namespace = self.reading.namespace.clone().or_else(|| refer::last_namespace(self.conversation));
        self.contents(&namespace.unwrap_or_else(|| self.conversation.default_namespace.clone()))
    }

    fn contents(&self, namespace: &str) -> Next {
        let list = |kind: &str| Command {
            kind: Some(kind.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..Command::new(Verb::Get)
        };
        self.run_or_answer(vec![list("pods"), list("deployments"), list("statefulsets")])
    }

    /// "Invoices, is prod behind staging?": the same object in each namespace that the message names.
    pub(super) fn in_several_namespaces(&self) -> Option<Next> {
        let reading = &self.reading;
        let named: Vec<&String> =
            self.conversation.namespaces.iter().filter(|name| reading.words.contains(name)).collect();
        let objects: Vec<&String> = reading.names.iter().filter(|name| !named.contains(name)).collect();
        let is_read = reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Describe));
        let [name] = objects[..] else { return None };
        // "Show me cart in shop and shop-test".
        let joins = reading.has("and") && reading.has_any(&["show", "describe", "get", "see", "list"]);
        if named.len() < 2 || !is_read || !(reading.asks() || joins) {
            return None;
        }
        let anywhere = Reading { namespace: None, ..reading.clone() };
        let all = self.conversation.mentioned.iter().flatten().filter(|object| named.contains(&&object.namespace));
        let objects = refer::best_fitting(all, name, Verb::Describe, anywhere.kind.as_deref());
        let workloads: Vec<ObjectSummary> =
            objects.into_iter().filter(|object| WORKLOADS.contains(&&*object.kind)).collect();
        (workloads.len() > 1).then(|| self.describe_all(&workloads))
    }

    /// "What is each of them at?": the objects of the same name in other namespaces that the conversation changed, too.
    fn with_twins(&self, object: ObjectSummary) -> Vec<ObjectSummary> {
        if self.reading.refers_to_two() {
            return super::repeat::twins(self.conversation, &object).into_iter().take(2).collect();
        }
        let mut all = vec![object];
        if self.reading.each || self.reading.has("both") {
            let requested = self.conversation.earlier.iter().rev().flat_map(|exchange| &exchange.requested);
            for command in requested.map(|requested| &requested.command) {
                let is_twin =
                    command.name.as_ref() == Some(&all[0].name) && command.kind.as_ref() == Some(&all[0].kind);
                let namespace = command.namespace.clone().unwrap_or_default();
                if is_twin && !all.iter().any(|known| known.namespace == namespace) {
                    all.push(ObjectSummary { namespace, ..all[0].clone() });
                }
            }
        }
        all
    }

    /// "What postgres do we run": workloads whose image has the name.
    fn with_image(&self) -> Vec<ObjectSummary> {
        let reading = &self.reading;
        if !reading.names.is_empty() || reading.kind.is_some() || reading.pick.is_some() {
            return Vec::new();
        }
        let has_name = |object: &&ObjectSummary| {
            let image = object.image.rsplit('/').next().and_then(|image| image.split(':').next()).unwrap_or_default();
            WORKLOADS.contains(&&*object.kind)
                && reading.words.iter().any(|word| word.len() > 3 && image.split('-').any(|part| part == word))
                && reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace)
        };
        let found: Vec<ObjectSummary> =
            self.conversation.mentioned.iter().flatten().filter(has_name).cloned().collect();
        refer::in_last_namespace(self.conversation, reading, found)
    }

    /// Returns the objects that a question names.
    fn looked_at(&self) -> Vec<ObjectSummary> {
        let reading = &self.reading;
        let objects_of = |found: Found| match found {
            Found::One(object) => vec![object],
            Found::Several(objects) => objects,
            Found::None => Vec::new(),
        };
        let verb = Verb::Describe;
        if let Some(pick) = reading.pick {
            return objects_of(refer::picked(self.conversation, pick, reading, verb));
        }
        if let Some(state) = reading.state.filter(|_| reading.names.is_empty()) {
            return objects_of(refer::in_state(self.conversation, state, reading, verb));
        }
        let mut objects: Vec<ObjectSummary> = Vec::new();
        for name in &reading.names {
            objects.extend(objects_of(refer::known(self.conversation, name, verb, reading)));
        }
        objects
    }

    fn describe_all(&self, objects: &[ObjectSummary]) -> Next {
        // A workload stands for its pods.
        let is_covered = |object: &&ObjectSummary| {
            !objects.iter().any(|other| {
                WORKLOADS.contains(&&*other.kind)
                    && object.owner.as_ref().is_some_and(|(_, owner)| *owner == other.name)
                    && object.namespace == other.namespace
            })
        };
        let shown: Vec<&ObjectSummary> = objects.iter().filter(is_covered).collect();
        // Of more objects, a line of each.
        let (verb, most) = if shown.len() > MAX_LOOKS { (Verb::Get, MAX_LINES) } else { (Verb::Describe, MAX_LOOKS) };
        let commands: Vec<Command> = shown.into_iter().take(most).map(|object| self.command(verb, object)).collect();
        self.run_or_answer(commands)
    }

    /// Lists what was requested in this conversation and what became of it: for the objects that the message names, or for all.
    pub(super) fn history(&self) -> Option<String> {
        let reading = &self.reading;
        let requested: Vec<_> = self.conversation.earlier.iter().flat_map(|exchange| &exchange.requested).collect();
        let is_named = |command: &Command| {
            let name = command.name.as_deref().unwrap_or_default();
            reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some())
                || reading.names.is_empty() && reading.namespace.is_some() && reading.namespace == command.namespace
        };
        let named: Vec<_> = requested.iter().copied().filter(|requested| is_named(&requested.command)).collect();
        let chosen = if named.is_empty() { requested } else { named };
        if chosen.is_empty() {
            return None;
        }
        // "What did you change?": what was carried out comes first, then what was only requested.
        let is_about_changes = ["change", "changed", "changes"].iter().any(|word| reading.has(word));
        let (done, rest): (Vec<_>, Vec<_>) =
            chosen.iter().copied().partition(|requested| requested.state == ApprovalState::Done);
        if is_about_changes && !done.is_empty() && !rest.is_empty() {
            let lines = |some: &[&Requested]| -> String {
                let lines: Vec<String> =
                    some.iter().rev().take(5).rev().map(|requested| answers::line_of_history(requested)).collect();
                lines.join("\n")
            };
            return Some(format!("{}\nNot carried out:\n{}", lines(&done), lines(&rest)));
        }
        let lines: Vec<String> =
            chosen.iter().rev().take(5).rev().map(|requested| answers::line_of_history(requested)).collect();
        Some(lines.join("\n"))
    }

    /// "What does CrashLoopBackOff mean?"
    pub(super) fn explain(&self) -> Option<Next> {
        let reading = &self.reading;
        // "Deployments I mean" corrects, and asks for no meaning.
        let is_correction = ["i mean", "i meant", "you mean", "we mean"].iter().any(|phrase| reading.says(phrase));
        let asks = reading.has_any(&["mean", "means", "meaning", "explain"]) && !is_correction
            || reading.says("what does") && reading.has("do") && reading.names.is_empty()
            || ["what is a", "what is an", "whats a", "whats an", "what are", "is that bad", "difference between"]
                .iter()
                .any(|phrase| reading.says(phrase));
        if !asks {
            return None;
        }
        let meanings: Vec<&str> = answers::MEANINGS
            .iter()
            .filter(|(words, _)| {
                words.iter().any(|word| if word.contains(' ') { reading.says(word) } else { reading.has(word) })
            })
            .map(|(_, meaning)| *meaning)
            .collect();
        if meanings.is_empty() {
            return None;
        }
        // The answer to a question about an object also shows the object.
        let objects = if reading.names.is_empty() { Vec::new() } else { self.looked_at() };
        Some(match (objects.is_empty(), self.describe_all(&objects)) {
            (false, Next::Reply(text)) => reply(format!("{}\n\n{text}", meanings.join("\n"))),
            (false, run) => run,
            (true, _) => reply(meanings.join("\n")),
        })
    }

    /// "Will it come back?": what happens to a pod that is deleted.
    pub(super) fn explain_return(&self) -> Option<Next> {
        let reading = &self.reading;
        let asks_return = [
            "will it come back",
            "come back",
            "be recreated",
            "recreated",
            "recreate it",
            "new name",
            "same name",
            "new one",
            "start again by itself",
        ]
        .iter()
        .any(|phrase| reading.says(phrase));
        let is_asked = reading.asks() && reading.has_any(&["will", "why", "does", "would", "is", "how"]);
        if !asks_return || !is_asked || reading.namespace.is_some() && reading.names.is_empty() {
            return None;
        }
        let found = match reading.names.is_empty() {
            true => refer::focus(self.conversation, Verb::Describe, None, None),
            false => Found::of(self.looked_at()),
        };
        let object = match &found {
            Found::One(object) => object,
            Found::Several(objects) => objects.first()?,
            Found::None => return None,
        };
        let owner = object.owner.clone().or_else(|| self.owner_of(&object.name));
        let text = match (&*object.kind, owner) {
            ("pods", Some((kind, owner))) if kind == "statefulsets" => format!(
                "Pod {} belongs to statefulset {owner}: if it is deleted, the statefulset starts it again under the same name, {}.",
                object.name, object.name
            ),
            ("pods", Some((kind, owner))) => format!(
                "Pod {} belongs to {} {owner}, which keeps its number of replicas: if a pod is deleted, its replicaset creates a new pod \
                 under a new name. To stop that, scale the {} to 0 or delete it.",
                object.name,
                kind.trim_end_matches('s'),
                kind.trim_end_matches('s'),
            ),
            ("pods", None) => format!("Nothing owns pod {}: if it is deleted, it does not come back.", object.name),
            (kind, _) => format!(
                "No: {} {} is not created again by itself if it is deleted; its pods are, as long as it exists.",
                kind.trim_end_matches('s'),
                object.name
            ),
        };
        Some(reply(text))
    }

    /// Returns the owner of a pod that an earlier answer showed.
    fn owner_of(&self, name: &str) -> Option<(String, String)> {
        let shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let mut shown = shown.chain(self.conversation.mentioned.iter().flatten());
        shown.find(|object| object.kind == "pods" && object.name == name).and_then(|object| object.owner.clone())
    }
}
