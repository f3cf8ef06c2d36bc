//! What to do next for a message: commands, or an answer.

mod after_withdrawal;
mod again;
mod alike;
mod all;
mod another;
mod approvals;
mod changes;
mod checks;
mod conditions;
mod continued;
mod corrections;
mod descriptions;
mod fallback;
mod how_to;
mod images;
mod looks;
mod nodes;
mod places;
mod promotion;
mod reasons;
mod repeat;
mod requests;
mod rewording;
mod sources;
mod targets;
mod totals;

use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Step};

use super::answers;
use super::refer::{self, Found};
use super::withdraw;
use super::words::{Act, Lexicon, Pick, Reading, chained_program, read, without_remark, without_ruled_out};
use again::{completed, repeated, repeats_what_was_refused};
use another::{another_number, another_place, another_value};
use conditions::{conditional, same_condition};
use corrections::amendment;
pub(super) use corrections::amends;
use requests::{LATER, change_and_look, is_several_requests, read_request, several};
use rewording::{
    described_if_needed, of_listed_kind, with_everything_listed, with_image_spoken_of, with_kind_of_name,
    with_more_values, with_node_emptied, with_object_of_image, with_other_extreme, with_place_spoken_of,
    with_same_number,
};

/// The maximum number of words of a question such as "which is the oldest?".
const MAX_WORDS_OF_COMPARISON: usize = 6;

/// The next step of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    Run(Vec<Command>),
    Reply(String),
}

fn reply(text: impl Into<String>) -> Next {
    Next::Reply(text.into())
}

/// Returns the next step for a message.
pub(super) fn next(message: &str, conversation: &Conversation) -> Next {
    let prepared = prepared(message, conversation);
    let message = prepared.as_deref().unwrap_or(message);
    if conversation.withdrawn.is_empty() {
        return next_step(message, conversation);
    }
    let withdrawn = answers::withdrawn(&conversation.withdrawn);
    let reading = read(message, &Lexicon::of(conversation));
    // "Scratch that, prod".
    let newest = conversation.earlier.last().and_then(|last| last.requested.first());
    let has_value = newest.is_some_and(|requested| corrections::is_bare_value(&reading, conversation, requested));
    let is_taken_back = withdraw::cancels(&reading) && !reading.has_any(&["instead", "rather"]) && !has_value
        || reading.forbids() && reading.act == Some(Act::Spoken);
    if is_taken_back && let Some(next) = after_withdrawal::after_withdrawal(message, &reading, conversation, &withdrawn)
    {
        return next;
    }
    match next_step(message, conversation) {
        Next::Reply(text) if text == answers::NOT_UNDERSTOOD => reply(format!("{withdrawn} What do you want instead?")),
        Next::Reply(text) if reading.act == Some(Act::Refusal) || text.starts_with(answers::SPOKEN) => {
            drop(text);
            reply(withdrawn)
        }
        Next::Reply(text) => reply(format!("{withdrawn}\n{text}")),
        run @ Next::Run(_) => run,
    }
}

/// Returns a message without what it rules out, and with the names of the objects that it describes. `None` if it stays as it is.
fn prepared(message: &str, conversation: &Conversation) -> Option<String> {
    let lexicon = Lexicon::of(conversation);
    let without = without_ruled_out(message, &lexicon).or_else(|| without_remark(message, &lexicon));
    let kept = without.as_deref().unwrap_or(message);
    let with_node = nodes::with_node(kept, conversation).or_else(|| descriptions::with_sibling(kept, conversation));
    let kept = with_node.as_deref().unwrap_or(kept);
    let named = sources::with_image(kept, conversation).or_else(|| descriptions::with_names(kept, conversation));
    named.or(with_node).or(without)
}

/// Returns the changes that a message asks for. For a change whose value has to be read first, only the object is known.
pub(super) fn planned_changes(message: &str, conversation: &Conversation) -> Vec<Command> {
    let prepared = prepared(message, conversation);
    let message = prepared.as_deref().unwrap_or(message);
    let verb = read_request(message, &Lexicon::of(conversation)).verb.filter(|verb| !verb.is_read());
    match next_step(message, conversation) {
        Next::Run(commands) => commands
            .into_iter()
            .map(|command| match verb {
                Some(verb) if command.verb == Verb::Get && command.name.is_some() => Command { verb, ..command },
                _ => command,
            })
            .filter(|command| !command.verb.is_read())
            .collect(),
        Next::Reply(_) => Vec::new(),
    }
}

/// Returns the next step for a message. A change in a namespace that the message rules out is never requested.
fn next_step(message: &str, conversation: &Conversation) -> Next {
    let mut next = planned_step(message, conversation);
    if let Next::Run(commands) = &mut next {
        commands.dedup();
    }
    let Next::Run(commands) = &next else { return next };
    let ruled_out = read(message, &Lexicon::of(conversation)).places_ruled_out(&conversation.namespaces);
    let is_there = |command: &&Command| {
        !command.verb.is_read() && command.namespace.as_ref().is_some_and(|namespace| ruled_out.contains(namespace))
    };
    match commands.iter().find(is_there).and_then(|command| command.namespace.clone()) {
        Some(namespace) => reply(format!(
            "You ruled out {namespace}, and I would change something there, so I requested nothing. Which namespace do you mean?"
        )),
        None => descriptions::checked(next, message, conversation),
    }
}

fn planned_step(message: &str, conversation: &Conversation) -> Next {
    let lexicon = Lexicon::of(conversation);
    if let Some(program) = chained_program(message) {
        return reply(format!(
            "I requested nothing: `{program}` is for a shell, and I do not run one. Please send the request for the cluster alone."
        ));
    }
    let whole = read(message, &lexicon);
    if let Some(answer) = how_to::how_to(&whole) {
        return (Planner { conversation, reading: whole }).command_line().unwrap_or(answer);
    }
    if let Some(answer) = (Planner { conversation, reading: whole.clone() }).last_subject() {
        return answer;
    }
    if let Some(answer) = approvals::about_approvals(&whole, conversation) {
        return answer;
    }
    let may_ask = whole.act.is_none_or(|act| matches!(act, Act::Compare | Act::Same | Act::Outcome | Act::History));
    if may_ask && let Some(next) = (Planner { conversation, reading: whole.clone() }).about_nodes() {
        return next;
    }
    let planner = Planner { conversation, reading: whole.clone() };
    if whole.act.is_none()
        && let Some(text) = planner.nothing_described(message)
    {
        return reply(text);
    }
    if let Some(next) = planner.in_which_places().or_else(|| planner.of_two()) {
        return next;
    }
    let may_check = whole.act.is_none_or(|act| matches!(act, Act::Outcome | Act::History | Act::Repeat | Act::Spoken));
    if may_check && checks::asks_for_outcome(&whole, conversation) {
        if let Some(text) = checks::fates_of_several(&whole, conversation) {
            return reply(text);
        }
        let reading = Reading { act: Some(Act::Outcome), ..whole };
        let planner = Planner { conversation, reading };
        return match planner.outcome() {
            Next::Run(commands) => planner.run_or_answer(commands),
            answer @ Next::Reply(_) => answer,
        };
    }
    if let Some(place) = &whole.unknown_place
        && repeat::asks_to_repeat(&whole)
    {
        return reply(format!("There is no namespace {place}, so I did nothing. Which namespace do you mean?"));
    }
    if let Some(next) = repeat::again(&whole, conversation) {
        return next;
    }
    match alike::made_alike(&whole, conversation).or_else(|| alike::compared(&whole, conversation)) {
        Some(Next::Run(commands)) => return Planner { conversation, reading: whole }.run_or_answer(commands),
        Some(answer) => return answer,
        None => {}
    }
    if let Some(next) = several(message, conversation, &lexicon) {
        return next;
    }
    if let Some(next) = change_and_look(message, conversation, &lexicon) {
        return next;
    }
    if let Some(next) = all::several_reads(message, conversation, &lexicon) {
        return next;
    }
    let request = read_request(message, &lexicon);
    if let Some(commands) = amendment(message, conversation) {
        return Planner { conversation, reading: request }.run_or_answer(commands);
    }
    let another = another_place(&whole, conversation).or_else(|| another_value(&request, conversation)).or_else(|| {
        // The number comes first in the message, and its reasons follow.
        let whole = read(message, &lexicon);
        // "Bob does not like 3. Then 2."
        another_number(&whole, conversation)
            .or_else(|| another_number(&requests::last_sentence(message, &lexicon)?, conversation))
    });
    if let Some(commands) = another {
        return Planner { conversation, reading: request }.run_or_answer(commands);
    }
    let is_change = request.verb.is_some_and(|verb| !verb.is_read());
    let has_condition = request.has_condition();
    let excludes_name = !is_change && request.names.len() + usize::from(request.state.is_some()) > 1;
    let request = if (is_change || excludes_name) && request.act.is_none() {
        request.without_what_is_excluded()
    } else {
        request
    };
    if is_change && request.act.is_none() && has_condition && !request.has_schedule() {
        return conditional(message, conversation, &lexicon);
    }
    if let Some(next) = same_condition(&request, conversation, &lexicon) {
        return next;
    }
    let reminds =
        request.says("remind me") && request.has_any(&["in", "at", "when", "later", "tomorrow", "tonight", "to"]);
    if request.act.is_none() && (request.has_schedule() && request.asks_politely() || reminds) {
        return reply(LATER);
    }
    if let Some(next) = (Planner { conversation, reading: request.clone() }).in_both_places(&read(message, &lexicon)) {
        return next;
    }
    if let Some(unclear) = is_several_requests(&request) {
        return unclear;
    }
    if let Some(refused) = repeats_what_was_refused(&request, conversation) {
        return refused;
    }
    let asked = Planner { conversation, reading: request.clone() };
    let promoted = asked.promotion().filter(|_| request.act.is_none() || asked.moves_one_place());
    if let Some(Next::Run(commands)) = promoted {
        return Planner { conversation, reading: request }.run_or_answer(commands);
    }
    let asked = Planner { conversation, reading: request.clone() };
    if let Some(reading) = asked.of_another_kind().or_else(|| asked.as_was_explained()) {
        return Planner { conversation, reading }.wanted();
    }
    let request =
        with_object_of_image(with_same_number(with_more_values(request, conversation), conversation), conversation);
    let request = described_if_needed(with_place_spoken_of(request, conversation));
    let request = with_image_spoken_of(with_everything_listed(request, conversation), conversation);
    let reading = repeated(&request, conversation).unwrap_or_else(|| completed(request, conversation));
    let reading = with_kind_of_name(with_node_emptied(reading, conversation), conversation);
    let reading = with_other_extreme(of_listed_kind(reading, conversation), conversation);
    let planner = Planner { conversation, reading };
    let nothing = planner.no_other_one().or_else(|| planner.is_in_list()).or_else(|| planner.gone_one());
    if let Some(answer) = nothing.map(reply).or_else(|| planner.twin_elsewhere()) {
        return answer;
    }
    match planner.wanted() {
        Next::Run(commands) => planner.run_or_answer(commands),
        Next::Reply(text) if planner.is_no_answer(&text) => planner.look().unwrap_or(Next::Reply(text)),
        answer => answer,
    }
}

struct Planner<'a> {
    conversation: &'a Conversation,
    reading: Reading,
}

impl Planner<'_> {
    /// Runs the commands, or answers from their results if they were run in this turn.
    fn run_or_answer(&self, commands: Vec<Command>) -> Next {
        let done: Vec<&Step> = self
            .conversation
            .steps
            .iter()
            .filter(|step| {
                step.command.verb != Verb::Find && commands.iter().any(|command| command.verb == step.command.verb)
            })
            .collect();
        // A list that was read to find an object does not answer a question about the object alone.
        let are_named = commands.iter().all(|command| command.verb == Verb::Get && command.name.is_some());
        let done: Vec<&Step> = match are_named {
            true => done.into_iter().filter(|step| step.command.name.is_some() || step.error.is_some()).collect(),
            false => done,
        };
        if done.is_empty() {
            return Next::Run(commands);
        }
        // A log that cannot be read does not answer a question about a cause.
        let is_extra = |step: &&&Step| {
            step.command.verb == Verb::Logs
                && step.error.is_some()
                && self.reading.verb != Some(Verb::Logs)
                && done.len() > 1
        };
        let is_empty_list = |step: &&&Step| {
            let is_list = step.command.verb == Verb::Get && step.command.name.is_none();
            // In "services and deployments in prod", each list is asked for.
            let is_asked = self.reading.has("and") && self.reading.kind.is_some();
            is_list
                && !is_asked
                && done.len() > 1
                && step.outcome.as_ref().is_some_and(|outcome| outcome.objects.is_empty())
        };
        let mut shown: Vec<&Step> =
            done.iter().filter(|step| !is_extra(step) && !is_empty_list(step)).copied().collect();
        if shown.is_empty() {
            shown = done.iter().take(1).copied().collect();
        }
        let is_list = self.reading.verb.is_none_or(|verb| verb == Verb::Get);
        if let Some(text) = self.reading.state.and_then(|state| answers::restarted(state, &shown)).filter(|_| is_list) {
            return reply(text);
        }
        let text = answers::of_steps(&shown);
        if let Some(note) = self.reading.state.and_then(|state| answers::superlative(state, &shown)) {
            return reply(format!("{note}\n{text}"));
        }
        match self.deletion_report() {
            Some(note) => reply(format!("{note}\n{text}")),
            None => reply(text),
        }
    }

    /// Whether a reply says that a message was not understood, so showing what the message is about is more helpful.
    fn is_no_answer(&self, text: &str) -> bool {
        let reading = &self.reading;
        let is_read = reading.verb.is_none_or(Verb::is_read);
        let asks_what = reading.verb.is_some_and(|verb| is_read && text == answers::ask_what(verb));
        let is_consent = text == answers::NOTHING_WAITS;
        is_read && (text == answers::NOT_UNDERSTOOD || asks_what) || is_consent && reading.asks()
    }

    fn wanted(&self) -> Next {
        // "What else is in that namespace?"
        let names_place = ["that namespace", "this namespace", "the same namespace", "the namespace"];
        if self.reading.kind.as_deref() == Some("namespaces")
            && self.reading.names.is_empty()
            && self.reading.has_any(&["else", "other", "anything", "everything"])
            && names_place.iter().any(|phrase| self.reading.says(&format!("in {phrase}")))
        {
            return self.namespace_contents();
        }
        let is_open = self.reading.act.is_none() && self.reading.namespace.is_none() && self.reading.kind.is_none();
        if is_open
            && matches!(self.reading.verb, None | Some(Verb::Get))
            && self.reading.has_any(&["which", "what", "whats"])
            && self.reading.words.len() <= MAX_WORDS_OF_COMPARISON
            && let Some(text) = self.which_version()
        {
            return reply(text);
        }
        if let Some(next) = self.same_question().or_else(|| self.was_done()).or_else(|| self.in_last_log()) {
            return next;
        }
        if let Some(next) = self.asks_for_replacement() {
            return next;
        }
        if self.reading.pick == Some(Pick::Fresh) && self.reading.has_any(&["name", "called"]) {
            return self.of_verb(Verb::Describe);
        }
        if self.reading.verb.is_none_or(Verb::is_read) || self.reading.act == Some(Act::Spoken) {
            let explained = self
                .why_failed()
                .or_else(|| self.why_not())
                .or_else(|| self.explain_return())
                .or_else(|| self.explain());
            if let Some(next) = explained {
                return next;
            }
        }
        let asks_for_cause = ["what killed", "what crashed", "what broke", "what happened to"];
        if !self.reading.names.is_empty() && asks_for_cause.iter().any(|phrase| self.reading.says(phrase)) {
            return self.diagnose();
        }
        if let Some(next) = self.who() {
            return next;
        }
        if self.reading.words.last().is_some_and(|word| word == "why")
            && self.reading.act.is_none()
            && self.reading.verb.is_none_or(Verb::is_read)
        {
            return if self.reading.names.is_empty() { self.why() } else { self.diagnose() };
        }
        if self.reading.act.is_none()
            && self.asks_for_namespace()
            && !self.reading.unhealthy
            && self.reading.verb.is_none_or(|verb| verb == Verb::Get)
            && !self.reading.counts
        {
            return self.namespace_contents();
        }
        if let Some(next) = self.in_total().or_else(|| self.count_of_keys()).or_else(|| self.count_of_list()) {
            return next;
        }
        if let Some(next) = self.in_several_namespaces() {
            return next;
        }
        if self.reading.act == Some(Act::Same) && self.asks_for_namespace() && !self.reading.says("what about") {
            return self.of_verb(Verb::Get);
        }
        if let Some(act) = self.reading.act {
            return self.of_act(act);
        }
        if let Some(next) = self.promotion() {
            return next;
        }
        if self.is_diagnosis() {
            return self.diagnose();
        }
        let Some(verb) = self.reading.verb else { return self.without_verb() };
        // "And those of the other broken one", after logs.
        let continues =
            ["those of", "that of", "the same for", "same for"].iter().any(|phrase| self.reading.says(phrase));
        if verb == Verb::Get
            && continues
            && (self.reading.pick.is_some() || self.names_in_full())
            && let Some(continued) = self.continued_pick()
        {
            return self.of_verb(continued);
        }
        // "Make that 100 lines", "50 then".
        if (verb == Verb::Logs || verb == Verb::Scale && self.reading.is_only_number())
            && self.reading.names.is_empty()
            && let Some(next) = self.logs_again()
        {
            return next;
        }
        if verb == Verb::Apply {
            return match &self.reading.manifest {
                Some(manifest) => Next::Run(vec![Command {
                    manifest: Some(manifest.clone()),
                    namespace: self.reading.namespace.clone(),
                    ..Command::new(verb)
                }]),
                None => reply(
                    "Please paste the manifest of one object in a block of code, with its kind and name. What do you want to apply?",
                ),
            };
        }
        let reading = &self.reading;
        let is_empty = reading.names.is_empty()
            && reading.kind.is_none()
            && !reading.pronoun
            && reading.pick.is_none()
            && reading.state.is_none();
        let is_far = reading.is_implied && is_empty && reading.unknown > 0 && reading.namespace.is_none();
        if verb == Verb::Get && (is_far || !self.is_specific()) {
            return self.without_verb();
        }
        let lists = self.reading.is_plural && self.reading.names.is_empty() && !self.reading.pronoun;
        if verb == Verb::Describe && lists {
            return self.of_verb(Verb::Get);
        }
        self.of_verb(verb)
    }

    /// Returns the number of names of objects in a message.
    fn named_objects(&self) -> usize {
        let is_object = |name: &&String| {
            !self.conversation.namespaces.contains(name)
                && refer::known(self.conversation, name, Verb::Get, &self.reading) != Found::None
        };
        self.reading.names.iter().filter(is_object).count()
    }

    /// Returns the namespaces of the cluster that a message names.
    fn named_namespaces(&self) -> Vec<String> {
        let all = self.conversation.namespaces.iter();
        all.filter(|name| self.reading.words.contains(name)).cloned().collect()
    }

    /// Whether a question is about what was done in this conversation.
    fn asks_for_history(&self) -> bool {
        self.reading
            .has_any(&["you", "we", "i", "who", "when", "which", "did", "already", "was", "has", "have", "were"])
            && !self.reading.has_any(&["if", "should", "would", "happens", "could"])
    }

    /// Whether a message without a kind asks for an object, and does not consist only of words such as "check" and "what".
    fn is_specific(&self) -> bool {
        let reading = &self.reading;
        let looks_like_name = |name: &String| name.contains('-') || name.chars().any(|c| c.is_ascii_digit());
        reading.kind.is_some()
            || reading.namespace.is_some()
            || reading.names.is_empty()
                && (reading.pronoun || reading.pick.is_some() || reading.state.is_some() || reading.unknown == 0)
            || reading.words.len() <= 4 && reading.unknown < 2
            || reading.names.iter().any(looks_like_name)
            || reading.asks_for_state()
            || reading.has_any(&["status", "state", "health", "healthy", "running", "ready", "up"])
            || reading.names.iter().any(|name| refer::known(self.conversation, name, Verb::Get, reading) != Found::None)
    }

    fn of_act(&self, act: Act) -> Next {
        if act == Act::Compare
            && self.reading.has_any(&["which", "who"])
            && self.reading.namespace.is_none()
            && let Some(text) = self.which_version()
        {
            return reply(text);
        }
        match act {
            Act::Greeting => reply(answers::GREETING),
            Act::Thanks => reply(answers::THANKS),
            Act::Capabilities => reply(answers::CAPABILITIES),
            Act::SecretValue => reply(answers::SECRET_VALUE),
            Act::Refused(reason) => reply(format!("I cannot do that from a chat: {reason}.")),
            Act::Consent => match answers::pending(self.conversation) {
                Some(requested) => reply(answers::waiting(requested)),
                None => self
                    .explained_change()
                    .or_else(|| self.refused_change_again())
                    .unwrap_or_else(|| reply(answers::NOTHING_WAITS)),
            },
            Act::Refusal => match answers::pending(self.conversation) {
                Some(requested) => reply(format!(
                    "Nothing was changed. The request `{}` still waits: react with ❌ to deny it.",
                    requested.command.line()
                )),
                None => reply("All right, nothing was changed."),
            },
            Act::History => reply(self.history().unwrap_or_else(|| answers::NOTHING_BEFORE.to_owned())),
            Act::Spoken if self.reading.asks() && self.reading.verb.is_some() && self.asks_for_history() => {
                match self.history() {
                    Some(history) => reply(history),
                    None => reply(format!("{} {}", answers::SPOKEN, answers::NOTHING_BEFORE)),
                }
            }
            Act::Spoken => reply(match answers::pending(self.conversation) {
                Some(requested) => format!("I requested nothing. {}", answers::waiting(requested)),
                None => format!("{} Nothing was changed.", answers::SPOKEN),
            }),
            Act::Outcome if self.reading.has("why") && self.reading.pronoun => self.why(),
            Act::Outcome => self.outcome(),
            Act::Repeat => match repeat::message_again(&self.reading, self.conversation) {
                Some(message) => next_step(&message, self.conversation),
                None => self.read_again(),
            },
            Act::Same => self.same(),
            // "Compare the replicas of api and api-gateway".
            Act::Compare if self.named_objects() > 1 => self.of_verb(Verb::Get),
            Act::Compare => match answers::compare(self.conversation) {
                Some((text, _)) => reply(text),
                None if answers::compare_last_two(self.conversation).is_some() => {
                    reply(answers::compare_last_two(self.conversation).unwrap_or_default())
                }
                None if self.named_namespaces().len() == 2 => {
                    let list = |namespace: String| Command {
                        kind: Some(self.reading.kind.clone().unwrap_or_else(|| "deployments".to_owned())),
                        namespace: Some(namespace),
                        ..Command::new(Verb::Get)
                    };
                    self.run_or_answer(self.named_namespaces().into_iter().map(list).collect())
                }
                None => self.compare_with_place().unwrap_or_else(|| {
                    reply("To compare, list the same kind in two namespaces first. Which ones do you mean?")
                }),
            },
            Act::Align => self.align(),
            Act::Why => self.why(),
        }
    }
}
