//! Follow-ups that are not commands by themselves: the outcome, the same elsewhere, the cause of a problem.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Requested, Step};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::Act;

use super::checks::last_accepted;
use super::{Next, Planner, reply};

/// Longer words of a question are looked for in a log.
const MIN_WORD_OF_LOG: usize = 5;
/// The maximum number of words of a question what became of "it".
const MAX_WORDS_OF_QUESTION: usize = 8;
/// The maximum number of lines of a log that answer a question.
const MAX_LINES: usize = 5;

impl Planner<'_> {
    /// Says whether the object that was deleted is gone, as the list of this turn shows.
    pub(super) fn deletion_report(&self) -> Option<String> {
        if self.reading.act != Some(Act::Outcome) {
            return None;
        }
        let (_, requested, change) = answers::last_change(self.conversation)?;
        if let Some(fate) = requested.and_then(answers::fate) {
            return Some(fate);
        }
        let command = &change.filter(|step| step.command.verb == Verb::Delete)?.command;
        let name = command.name.as_ref()?;
        let listed = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
        let is_there = listed.flat_map(|outcome| &outcome.objects).any(|object| object.name == *name);
        Some(if is_there { format!("{name} is still there.") } else { format!("Yes, {name} is gone: it was deleted.") })
    }

    /// "Did it work?": from the conversation, or from a look at the object.
    pub(super) fn outcome(&self) -> Next {
        self.outcome_of(&|_| true)
    }

    /// "So was the scheduler restarted?": the outcome of the newest change of this kind that was requested for the object. `None` if none
    /// was.
    pub(super) fn was_done(&self) -> Option<Next> {
        const DONE: [(&str, Verb); 12] = [
            ("gone", Verb::Delete),
            ("restarted", Verb::RolloutRestart),
            ("scaled", Verb::Scale),
            ("deleted", Verb::Delete),
            ("removed", Verb::Delete),
            ("updated", Verb::SetImage),
            ("upgraded", Verb::SetImage),
            ("changed", Verb::SetImage),
            ("rolled", Verb::RolloutUndo),
            ("cordoned", Verb::Cordon),
            ("uncordoned", Verb::Uncordon),
            ("drained", Verb::Drain),
        ];
        let reading = &self.reading;
        let asks = reading.asks() && reading.has_any(&["was", "were", "has", "have", "is"]) && !reading.counts;
        // "Is it drained by now?", after questions about something else.
        if reading.names.is_empty() && reading.has_any(&["it", "that"]) && reading.words.len() <= MAX_WORDS_OF_QUESTION
        {
            let (_, verb) = DONE.iter().find(|(word, _)| reading.has(word) && *word != "gone")?;
            let is_meant = |command: &Command| command.verb == *verb;
            answers::last_change_of(self.conversation, &is_meant).filter(|_| asks)?;
            return Some(self.outcome_of(&is_meant));
        }
        let [name] = &reading.names[..] else { return None };
        // "Was the api touched?"
        let is_requested = |requested: &Requested| {
            requested
                .command
                .name
                .as_ref()
                .and_then(|own| crate::cluster::likeness(own, name))
                .is_some_and(|fit| fit < 3)
        };
        let requested = self.conversation.earlier.iter().flat_map(|exchange| &exchange.requested);
        if reading.has("touched") && reading.asks() && requested.clone().any(is_requested) {
            return self.history().map(reply);
        }
        let (_, verb) = DONE.iter().find(|(word, _)| reading.has(word))?;
        let is_meant = |command: &Command| {
            let fit = command.name.as_ref().and_then(|own| crate::cluster::likeness(own, name));
            command.verb == *verb && fit.is_some_and(|fit| fit < 3)
        };
        answers::last_change_of(self.conversation, &is_meant).filter(|_| asks)?;
        Some(self.outcome_of(&is_meant))
    }

    fn outcome_of(&self, is_meant: &dyn Fn(&Command) -> bool) -> Next {
        let Some((_, requested, step)) = answers::last_change_of(self.conversation, is_meant) else {
            return match refer::focus(self.conversation, Verb::Get, None, None) {
                Found::One(object) => Next::Run(vec![self.command(Verb::Get, &object)]),
                _ => reply(answers::NOTHING_BEFORE),
            };
        };
        if let Some(text) = requested.and_then(answers::fate) {
            // "Is that still there?", after a request that was denied.
            let ended = requested.filter(|requested| requested.state != ApprovalState::Pending);
            let object = ended.filter(|_| self.reading.asks_presence()).map(|requested| &requested.command);
            return match object.filter(|command| command.name.is_some()) {
                Some(command) => self.run_or_answer(vec![Command {
                    kind: command.kind.clone(),
                    name: command.name.clone(),
                    namespace: command.namespace.clone(),
                    ..Command::new(Verb::Get)
                }]),
                None => reply(text),
            };
        }
        match step {
            Some(Step { error: Some(error), command, .. }) => {
                reply(format!("It failed: `{}` was not carried out. {error}", command.line()))
            }
            Some(Step { command, .. }) => Next::Run(vec![answers::verification(command)]),
            None => reply("The request was decided, and its result is not known yet."),
        }
    }

    /// "Which deployment were we just looking at?": the object that was spoken of last.
    pub(super) fn last_subject(&self) -> Option<Next> {
        const ASKS: [&str; 8] = [
            "were we just looking at",
            "were we looking at",
            "were we talking about",
            "are we talking about",
            "did we just look at",
            "did i just ask about",
            "was i asking about",
            "were we on",
        ];
        if !ASKS.iter().any(|phrase| self.reading.says(phrase)) || !self.reading.names.is_empty() {
            return None;
        }
        match refer::focus(self.conversation, Verb::Describe, self.reading.kind.as_deref(), None) {
            Found::One(object) => Some(self.run_or_answer(vec![self.command(Verb::Get, &object)])),
            _ => None,
        }
    }

    /// "Which variable is missing?", after a log: its lines that have words of the question. The log is read again, because its text is not
    /// kept with the conversation.
    pub(super) fn in_last_log(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_open = reading.names.is_empty()
            && reading.kind.is_none()
            && reading.namespace.is_none()
            && reading.pick.is_none()
            && reading.act.is_none()
            && reading.state.is_none()
            && !reading.unhealthy
            && !reading.counts
            && !reading.pronoun
            && !reading.words.iter().any(|word| word.starts_with("restart"))
            && !reading.has_any(&[
                "who", "anything", "exit", "code", "image", "version", "limit", "memory", "cpu", "status", "node", "ip",
            ])
            && matches!(reading.verb, None | Some(Verb::Get));
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let is_log = |step: &&Step| step.command.verb == Verb::Logs;
        let log = last.steps.iter().find(is_log).filter(|_| is_open && reading.unknown > 0 && reading.asks())?;
        let Some(now) = self.conversation.steps.iter().find(is_log) else {
            return Some(Next::Run(vec![log.command.clone()]));
        };
        let text = now.outcome.as_ref().map_or("", |outcome| &outcome.text);
        let is_of_question = |line: &&str| {
            let line = line.to_lowercase();
            reading.words.iter().any(|word| word.len() > MIN_WORD_OF_LOG && line.contains(&**word))
        };
        let lines: Vec<&str> = text.lines().skip(1).filter(is_of_question).take(MAX_LINES).collect();
        // "How was the match?" is not about the log.
        let is_about_log = reading.has_any(&["log", "logs", "line", "lines", "error", "errors", "say", "says", "said"]);
        if lines.is_empty() && !is_about_log {
            return None;
        }
        Some(if lines.is_empty() {
            reply(format!("The log has no line with these words.\n{}", answers::of_steps(&[now])))
        } else {
            reply(format!("The log says:\n```\n{}\n```", lines.join("\n")))
        })
    }

    /// "Same in production": the change that was requested last, or else what was read last.
    pub(super) fn same(&self) -> Next {
        let last = self.conversation.earlier.iter().rev().find(|exchange| {
            !exchange.requested.is_empty() || exchange.steps.iter().any(|step| step.command.verb != Verb::Find)
        });
        // "Edge-test same downgrade pls", after a look: the change before it.
        let names_change = self.reading.has_any(&[
            "downgrade",
            "upgrade",
            "update",
            "bump",
            "change",
            "restart",
            "rollback",
            "scaling",
            "scale",
            "fix",
            "treatment",
            "label",
            "limit",
            "limits",
        ]);
        let changed = self.conversation.earlier.iter().rev().take(4).find(|exchange| !exchange.requested.is_empty());
        let last = if names_change { changed.or(last) } else { last };
        // "Cool, same on production", after a question whether the change worked: the change.
        let last = if self.reading.has("same") { last_accepted(self.conversation).or(last) } else { last };
        // "Same list for staging": the list, and no change.
        let last = last.filter(|_| !self.reading.repeats_look());
        // "How's the same one doing in prod?", after a request: a look at its object there.
        let requested = last.and_then(|exchange| exchange.requested.first());
        if let Some(requested) = requested.filter(|_| self.reading.asks() && self.reading.has("same")) {
            let look = Command::new(Verb::Get);
            let command =
                Command { kind: requested.command.kind.clone(), name: requested.command.name.clone(), ..look };
            return self.run_or_answer(vec![Command { namespace: self.reading.namespace.clone(), ..command }]);
        }
        if let Some(exchange) = last.filter(|exchange| !exchange.requested.is_empty() && self.reading.has("same")) {
            let changes = exchange.requested.iter().map(|requested| &requested.command);
            // "Same for staging but 2".
            let number = self.reading.only_number();
            if self.reading.has("but") && number.is_none() {
                return reply("The same, but what? Please say the whole change. Which one do you want?");
            }
            let with_number = |change: Command| match number {
                Some(number) if change.verb == Verb::Scale => Command { replicas: Some(number), ..change },
                _ => change,
            };
            return Next::Run(changes.map(|change| with_number(self.with_place_of_reading(change))).collect());
        }
        let reads = match self.reading.has_any(&["list", "listing", "lists"]) {
            true => refer::last_lists(self.conversation),
            false => refer::last_reads(self.conversation),
        };
        if reads.is_empty() {
            return if self.reading.verb.is_some() { self.of_verb(Verb::Get) } else { reply(answers::NOT_UNDERSTOOD) };
        }
        let in_that_place = |command: Command| {
            let command = self.of_workload(command);
            // A pod's name is of its own namespace, so the pods there are listed.
            let is_pod = command.kind.as_deref() == Some("pods") && matches!(command.verb, Verb::Get | Verb::Describe);
            let command = if is_pod { Command { verb: Verb::Get, name: None, ..command } } else { command };
            Command { namespace: self.reading.namespace.clone(), all_namespaces: false, ..command }
        };
        Next::Run(reads.into_iter().map(in_that_place).collect())
    }

    /// Returns a requested change for the namespace that the message names, or for the object if the name is that of an object: "same
    /// for web".
    fn with_place_of_reading(&self, change: &Command) -> Command {
        let change = Command { basis: None, ..change.clone() };
        let name = self.reading.namespace.as_deref().unwrap_or_default();
        let mut shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let object = shown.find(|object| {
            object.name == name
                && Some(&object.kind) == change.kind.as_ref()
                && Some(&object.namespace) == change.namespace.as_ref()
        });
        match object {
            Some(object) if !self.conversation.namespaces.iter().any(|known| known == name) => {
                Command { name: Some(object.name.clone()), ..change }
            }
            _ => Command { namespace: self.reading.namespace.clone(), ..change },
        }
    }

    /// "And the sidecar container?", "just the last 10m of that": the logs that were read last, with other options.
    pub(super) fn logs_again(&self) -> Option<Next> {
        let reading = &self.reading;
        let last = refer::last_reads(self.conversation).into_iter().find(|read| read.verb == Verb::Logs)?;
        // "50", directly after logs.
        let newest = self.conversation.earlier.last().filter(|newest| newest.requested.is_empty());
        let is_after_logs =
            newest.is_some_and(|newest| newest.steps.iter().any(|step| step.command.verb == Verb::Logs));
        let number = reading.only_number().filter(|_| is_after_logs && reading.is_only_number());
        if let Some(number) = number.filter(|_| reading.namespace.is_none()) {
            let tail = Some(number.clamp(1, crate::command::MAX_TAIL));
            return Some(self.run_or_answer(vec![Command { tail, ..last }]));
        }
        let names_container = self.container_of(&last).is_some();
        let has_options =
            reading.tail.is_some() || reading.since_seconds.is_some() || reading.previous || names_container;
        let names_logs = reading.has_any(&["logs", "log", "tail", "output", "stderr", "stdout", "print", "printed"]);
        let has_verb = reading.verb.is_some_and(|verb| verb != Verb::Logs || names_logs);
        let refers = reading.pick.is_some() || reading.state.is_some() || reading.kind.is_some();
        let is_about_logs = !has_verb && !refers && reading.namespace.is_none();
        (has_options && is_about_logs).then(|| self.run_or_answer(vec![self.with_log_options(last)]))
    }

    /// Returns a command with the options for logs that the message has.
    pub(super) fn with_log_options(&self, command: Command) -> Command {
        if command.verb != Verb::Logs {
            return command;
        }
        let reading = &self.reading;
        Command {
            tail: reading.tail.map(|tail| tail.clamp(1, crate::command::MAX_TAIL)).or(command.tail),
            since_seconds: reading.since_seconds.or(command.since_seconds),
            previous: reading.previous || command.previous && !reading.has_any(&["current", "live", "running"]),
            container: self.container_of(&command).or_else(|| command.container.clone()),
            ..command
        }
    }

    /// Returns the container of a command's pod that the message names.
    fn container_of(&self, command: &Command) -> Option<String> {
        let mut shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let pod = shown.find(|object| object.kind == "pods" && Some(&object.name) == command.name.as_ref());
        let of_pod = pod.and_then(|pod| pod.containers.iter().find(|name| self.reading.words.contains(name)).cloned());
        of_pod.or_else(|| self.reading.container.clone())
    }

    /// Turns a command on a pod into one on its workload, because pods have other names in another namespace.
    fn of_workload(&self, command: Command) -> Command {
        let objects = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let is_named = |object: &&ObjectSummary| object.kind == "pods" && Some(&object.name) == command.name.as_ref();
        match objects.filter(is_named).find_map(|pod| pod.owner.clone()) {
            Some((kind, name)) => Command { kind: Some(kind), name: Some(name), ..command },
            None => command,
        }
    }

    /// "Bring production up to the same version": the images of the other list, for the objects that differ.
    pub(super) fn align(&self) -> Next {
        let Some((_, pairs)) = answers::compare(self.conversation) else {
            return reply("To align versions, list the deployments of both namespaces first. Which ones do you mean?");
        };
        let is_meant = |namespace: &str| self.reading.words.iter().any(|word| word == namespace);
        let mut commands = Vec::new();
        for (one, other) in &pairs {
            let (target, source) = match (is_meant(&one.namespace), is_meant(&other.namespace)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => return reply("Which namespace should be changed?"),
            };
            let base = Command::new(Verb::SetImage).on(&target.kind, &target.name, Some(&target.namespace));
            commands.push(Command { image: Some(source.image.clone()), ..base });
        }
        if commands.is_empty() { reply("They already have the same images.") } else { Next::Run(commands) }
    }

    /// "Why?": a look at what the last answer showed to be wrong.
    pub(super) fn why(&self) -> Next {
        // "Why is the site down? ns www": what is in the namespace.
        let is_place = self.reading.namespace.is_some() && self.reading.names.is_empty() && !self.reading.pronoun;
        if is_place && self.reading.pick.is_none() && self.reading.state.is_none() {
            return self.namespace_contents();
        }
        let failed =
            self.conversation.earlier.last().and_then(|last| last.steps.iter().rev().find(|step| step.error.is_some()));
        if let Some(Step { error: Some(error), command, .. }) = failed.filter(|step| !step.command.verb.is_read()) {
            return reply(format!("Because `{}` failed: {error}", command.line()));
        }
        // "Why did it restart?"
        if self.reading.pronoun
            && self.reading.words.iter().any(|word| word.starts_with("restart"))
            && let Found::One(object) = refer::focus(self.conversation, Verb::Describe, None, None)
        {
            return self.examine(&[&object]);
        }
        for exchange in self.conversation.earlier.iter().rev() {
            let unhealthy: Vec<ObjectSummary> =
                refer::listed(exchange).into_iter().filter(|object| object.is_unhealthy).take(3).collect();
            if !unhealthy.is_empty() {
                return self.examine(&unhealthy.iter().collect::<Vec<_>>());
            }
        }
        if let Some((_, _, Some(Step { error: Some(error), command, .. }))) = answers::last_change(self.conversation) {
            return reply(format!("Because `{}` failed: {error}", command.line()));
        }
        match refer::focus(self.conversation, Verb::Describe, None, None) {
            Found::One(object) => self.examine(&[&object]),
            Found::Several(objects) => reply(answers::ask_which(&objects)),
            Found::None => reply("Why what? Please name the object. Which one do you mean?"),
        }
    }

    pub(super) fn is_diagnosis(&self) -> bool {
        let reading = &self.reading;
        let is_question = reading.has_any(&[
            "why",
            "wrong",
            "issue",
            "investigate",
            "diagnose",
            "troubleshoot",
            "whats",
            "keeps",
            "debugging",
        ]) || reading.has("since") && reading.has("when")
            || ["have a look", "take a look", "look into", "look at", "check out", "help me"]
                .iter()
                .any(|phrase| reading.says(phrase));
        let is_about_problem = reading.unhealthy
            || reading.has_any(&[
                "issue",
                "slow",
                "restarting",
                "investigate",
                "diagnose",
                "troubleshoot",
                "down",
                "dying",
                "why",
            ]);
        let is_read = reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Describe));
        let asks_why_of_list = reading.has("why")
            && reading.unhealthy
            && reading.namespace.is_none()
            && reading.names.is_empty()
            && is_read;
        asks_why_of_list
            || is_read
                && is_question
                && is_about_problem
                && !reading.is_plural
                && (!reading.names.is_empty() || reading.pronoun)
            || is_read && !reading.names.is_empty() && !reading.is_plural && self.asks_whats_up()
            || is_read && reading.state.is_some() && !reading.each && self.asks_whats_up()
    }

    fn asks_whats_up(&self) -> bool {
        ["whats up", "what is up", "going on with", "happening with", "wrong with", "the matter with", "the deal with"]
            .iter()
            .any(|phrase| self.reading.says(phrase))
    }

    /// "What is wrong with web?": describes its pods that are not healthy, or else the object.
    pub(super) fn diagnose(&self) -> Next {
        let reading = &self.reading;
        // "And the other pod, what's its problem?"
        if let Some(pick) = reading.pick
            && let Found::One(object) = refer::picked(self.conversation, pick, reading, Verb::Describe)
        {
            return self.examine(&[&object]);
        }
        if let Some(state) = reading.state.filter(|_| reading.names.is_empty())
            && let Found::One(object) = refer::in_state(self.conversation, state, reading, Verb::Describe)
        {
            return self.examine(&[&object]);
        }
        let Some(name) = reading.names.first() else { return self.why() };
        let find = |kind: Option<&str>| Command {
            kind: kind.map(str::to_owned),
            like: Some(name.clone()),
            namespace: reading.namespace.clone(),
            all_namespaces: reading.namespace.is_none(),
            ..Command::new(Verb::Find)
        };
        let searches: Vec<&Step> =
            self.conversation.steps.iter().filter(|step| step.command.verb == Verb::Find).collect();
        let Some(step) = searches.first() else {
            return Next::Run(vec![find(reading.kind.as_deref()), find(Some("pods"))]);
        };
        if let Some(error) = &step.error {
            return reply(format!("I could not read that: {error}"));
        }
        let found: Vec<ObjectSummary> = searches
            .iter()
            .filter_map(|step| step.outcome.as_ref())
            .flat_map(|outcome| outcome.objects.clone())
            .collect();
        let found = self.in_namespace(found);
        let sick: Vec<&ObjectSummary> =
            found.iter().filter(|object| object.kind == "pods" && object.is_unhealthy).collect();
        let mut objects: Vec<&ObjectSummary> = sick.into_iter().take(2).collect();
        if objects.is_empty() {
            objects = found.iter().take(1).collect();
        }
        objects.dedup();
        match objects.is_empty() {
            true if reading.unhealthy && reading.namespace.is_some() => {
                let list = Command { like: None, unhealthy: true, ..self.list_command(Verb::Get) };
                self.run_or_answer(vec![list])
            }
            true => reply(format!("I found nothing like {name}.")),
            false => self.examine(&objects),
        }
    }

    /// Describes objects; for a crashing pod, adds the log of its last run.
    fn examine(&self, objects: &[&ObjectSummary]) -> Next {
        let mut commands: Vec<Command> = objects.iter().map(|object| self.command(Verb::Describe, object)).collect();
        let crashes = |object: &&&ObjectSummary| {
            object.kind == "pods"
                && object.restarts.unwrap_or(0) > 0
                && object.is_unhealthy
                && !object.state.contains("Image")
        };
        if let Some(pod) = objects.iter().find(crashes) {
            commands.push(Command { previous: true, tail: Some(20), ..self.command(Verb::Logs, pod) });
        }
        // What a job did is only in its log.
        if let [job] = objects
            && job.kind == "jobs"
            && self.reading.act == Some(Act::Why)
        {
            commands.push(Command { tail: Some(5), ..self.command(Verb::Logs, job) });
        }
        Next::Run(commands)
    }
}
