//! Follow-ups that are no commands of their own: the outcome, the same elsewhere, the reason of a problem.

use crate::cluster::Shown;
use crate::command::{Command, Verb};
use crate::conversation::Step;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::Act;

use super::{Next, Planner, reply};

impl Planner<'_> {
    /// Says whether the object that was deleted is gone, as the list of this turn shows.
    pub(super) fn gone(&self) -> Option<String> {
        if self.reading.act != Some(Act::Outcome) {
            return None;
        }
        let (_, _, change) = answers::last_change(self.conversation)?;
        let command = &change.filter(|step| step.command.verb == Verb::Delete)?.command;
        let name = command.name.as_ref()?;
        let listed = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
        let is_there = listed.flat_map(|outcome| &outcome.objects).any(|object| object.name == *name);
        Some(if is_there { format!("{name} is still there.") } else { format!("Yes, {name} is gone: it was deleted.") })
    }

    /// "Did it work?": from the conversation, or from a look at the object.
    pub(super) fn outcome(&self) -> Next {
        let Some((_, requested, step)) = answers::last_change(self.conversation) else {
            return match refer::focus(self.conversation, Verb::Get, None, None) {
                Found::One(object) => Next::Run(vec![self.command(Verb::Get, &object)]),
                _ => reply(answers::NOTHING_BEFORE),
            };
        };
        if let Some(text) = requested.and_then(answers::fate) {
            return reply(text);
        }
        match step {
            Some(Step { error: Some(error), command, .. }) => {
                reply(format!("It failed: `{}` was not carried out. {error}", command.line()))
            }
            Some(Step { command, .. }) => Next::Run(vec![answers::verification(command)]),
            None => reply("The request was decided, and its result is not known yet."),
        }
    }

    /// "Same in production".
    pub(super) fn same(&self) -> Next {
        let reads = refer::last_reads(self.conversation);
        if reads.is_empty() {
            return if self.reading.verb.is_some() { self.of_verb(Verb::Get) } else { reply(answers::NOT_UNDERSTOOD) };
        }
        let there = |command: Command| {
            let command = self.of_workload(command);
            Command { namespace: self.reading.namespace.clone(), all_namespaces: false, ..command }
        };
        Next::Run(reads.into_iter().map(there).collect())
    }

    /// Lets a command on a pod be one on its workload, because pods have other names in another namespace.
    fn of_workload(&self, command: Command) -> Command {
        let objects = self.conversation.earlier.iter().rev().flat_map(refer::shown);
        let is_named = |object: &&Shown| object.kind == "pods" && Some(&object.name) == command.name.as_ref();
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
        for exchange in self.conversation.earlier.iter().rev() {
            let unhealthy: Vec<Shown> =
                refer::listed(exchange).into_iter().filter(|object| object.is_unhealthy).take(3).collect();
            if !unhealthy.is_empty() {
                return Next::Run(unhealthy.iter().map(|object| self.command(Verb::Describe, object)).collect());
            }
        }
        if let Some((_, _, Some(Step { error: Some(error), command, .. }))) = answers::last_change(self.conversation) {
            return reply(format!("Because `{}` failed: {error}", command.line()));
        }
        match refer::focus(self.conversation, Verb::Describe, None, None) {
            Found::One(object) => Next::Run(vec![self.command(Verb::Describe, &object)]),
            Found::Several(objects) => reply(answers::ask_which(&objects)),
            Found::None => reply("Why what? Please name the object. Which one do you mean?"),
        }
    }

    pub(super) fn is_diagnosis(&self) -> bool {
        let reading = &self.reading;
        let is_question =
            reading.has_any(&["why", "wrong", "issue", "investigate", "diagnose", "troubleshoot", "whats"]);
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
        is_read
            && is_question
            && is_about_problem
            && !reading.is_plural
            && (!reading.names.is_empty() || reading.pronoun)
            || is_read && !reading.names.is_empty() && !reading.is_plural && self.asks_whats_up()
    }

    fn asks_whats_up(&self) -> bool {
        ["whats up", "what is up", "going on with", "happening with", "wrong with", "the matter with", "the deal with"]
            .iter()
            .any(|phrase| self.reading.says(phrase))
    }

    /// "What is wrong with web?": describes its pods that are not healthy, or else the object.
    pub(super) fn diagnose(&self) -> Next {
        let reading = &self.reading;
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
        let found: Vec<Shown> = searches
            .iter()
            .filter_map(|step| step.outcome.as_ref())
            .flat_map(|outcome| outcome.objects.clone())
            .collect();
        let found = self.in_namespace(found);
        let sick: Vec<&Shown> = found.iter().filter(|object| object.kind == "pods" && object.is_unhealthy).collect();
        let mut objects: Vec<&Shown> = sick.into_iter().take(2).collect();
        if objects.is_empty() {
            objects = found.iter().take(1).collect();
        }
        objects.dedup();
        match objects.is_empty() {
            true => reply(format!("I found nothing like {name}.")),
            false => Next::Run(objects.into_iter().map(|object| self.command(Verb::Describe, object)).collect()),
        }
    }
}
