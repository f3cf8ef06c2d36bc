//! Repetitions: the last question or request again, as it was or with one part replaced.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Requested};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Act, Lexicon, Reading, read};

use super::{Next, Planner, reply};

/// Phrases that ask for a repetition.
const AGAIN: [&str; 9] = [
    "again",
    "once more",
    "one more time",
    "another time",
    "a second time",
    "anew",
    "repeat that",
    "retry",
    "another try",
];
/// Verbs that make a request.
const ASKS: [&str; 17] = [
    "retry",
    "redo",
    "rerun",
    "repeat",
    "ask",
    "request",
    "rerequest",
    "submit",
    "resubmit",
    "raise",
    "send",
    "file",
    "post",
    "propose",
    "try",
    "do",
    "put",
];
/// Words of a repetition that name nothing else.
const FILLERS: [&str; 50] = [
    "api",
    "server",
    "cluster",
    "is",
    "back",
    "up",
    "fixed",
    "talked",
    "spoke",
    "misclicked",
    "agrees",
    "agreed",
    "alice",
    "with",
    "ok",
    "okay",
    "please",
    "pls",
    "then",
    "so",
    "well",
    "now",
    "and",
    "just",
    "the",
    "a",
    "for",
    "it",
    "that",
    "this",
    "him",
    "her",
    "them",
    "bob",
    "you",
    "can",
    "could",
    "lets",
    "request",
    "approval",
    "to",
    "one",
    "more",
    "time",
    "once",
    "same",
    "thing",
    "i",
    "want",
    "hm",
];

/// Whether a message asks to repeat what was done or read last, maybe elsewhere.
pub(super) fn asks_to_repeat(reading: &Reading) -> bool {
    ["do that", "do it", "do this", "do the same", "repeat", "same", "same thing", "do likewise", "again"]
        .iter()
        .any(|phrase| reading.says(phrase))
        && reading.words.len() <= 8
}

/// What a message repeats: a request, a request elsewhere, or the list that a change was about. `None` for other messages.
pub(super) fn again(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let left = || what_is_left(reading, conversation).map(|list| Next::Run(vec![list]));
    let next = request_again(reading, conversation).or_else(|| elsewhere_too(reading, conversation)).or_else(left)?;
    Some(match next {
        Next::Run(commands) => Planner { conversation, reading: reading.clone() }.run_or_answer(commands),
        answer @ Next::Reply(_) => answer,
    })
}

/// "Ask for the delete once more", "try again" after a change that failed: the request again. `None` for other messages.
fn request_again(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let is_again = AGAIN.iter().any(|phrase| reading.says(phrase));
    let has_value = reading.replicas.is_some() && !reading.says("one more time")
        || reading.image.is_some()
        || reading.version.is_some()
        || reading.has_condition()
        || reading.has_schedule();
    if !is_again || has_value || reading.has_question && !reading.asks_politely() || reading.forbids() {
        return None;
    }
    let asks_for = reading.has_any(&ASKS);
    let names_request = reading.has_any(&["approval", "requests"])
        || ["the request", "that request", "this request", "my request"].iter().any(|phrase| reading.says(phrase));
    let is_named = |requested: &&Requested| {
        let command = &requested.command;
        let name = command.name.as_deref().unwrap_or_default();
        let fits = |own: &String| crate::cluster::likeness(name, own).is_some_and(|fit| fit < 3);
        (reading.names.is_empty() || reading.names.iter().all(fits))
            && (reading.namespace.is_none() || reading.namespace == command.namespace)
    };
    let all: Vec<&Requested> = conversation.earlier.iter().flat_map(|exchange| &exchange.requested).collect();
    let named = all.iter().rev().copied().find(|requested| {
        asks_for && (names_request || reading.mentions(requested.command.verb)) && is_named(requested)
    });
    let requested = named.or_else(|| {
        let newest = all.last().copied().filter(is_named)?;
        let is_plain = reading.words.iter().all(|word| {
            FILLERS.contains(&&**word) || ASKS.contains(&&**word) || matches!(&**word, "again" | "retry" | "repeat")
        });
        (is_plain && is_last_effect(conversation, &newest.command, reading.has("do"))).then_some(newest)
    })?;
    let command = &requested.command;
    Some(match requested.state {
        ApprovalState::Pending => reply(answers::waiting(requested)),
        ApprovalState::Done | ApprovalState::OutcomeUnknown
            if named.is_none() && command.verb != Verb::RolloutRestart =>
        {
            return None;
        }
        _ => Next::Run(vec![Command { basis: None, ..command.clone() }]),
    })
}

/// Whether nothing was looked at since a change was requested or carried out; if the message says "do", looks at the changed object do not
/// count.
fn is_last_effect(conversation: &Conversation, command: &Command, does: bool) -> bool {
    let is_change = |exchange: &Exchange| {
        let same = |own: &Command| own.verb == command.verb && own.name == command.name;
        exchange.requested.iter().any(|requested| same(&requested.command))
            || exchange.steps.iter().any(|step| same(&step.command))
    };
    // "Do it again", after a look that only checked the change.
    let checks = |exchange: &Exchange| {
        let is_same = |object: &ObjectSummary| {
            let is_owner = object.owner.as_ref().is_some_and(|(_, owner)| Some(owner) == command.name.as_ref());
            is_owner || Some(&object.name) == command.name.as_ref()
        };
        let subjects = refer::subjects(exchange);
        does && exchange.requested.is_empty()
            && !subjects.is_empty()
            && subjects.iter().all(is_same)
            && !is_change(exchange)
    };
    let has_effect = |exchange: &&Exchange| {
        let reads = exchange.steps.iter().any(|step| step.command.verb != Verb::Find);
        !checks(exchange) && (!exchange.requested.is_empty() || reads)
    };
    conversation.earlier.iter().rev().find(has_effect).is_some_and(is_change)
}

/// "Do that one in us too": the change that was made or requested last, in another namespace. `None` for other messages.
fn elsewhere_too(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let repeats =
        ["do that", "do it", "do this", "do the same", "repeat that", "repeat it", "same thing", "do likewise"]
            .iter()
            .any(|phrase| reading.says(phrase));
    let namespace = reading.namespace.as_ref().filter(|name| conversation.namespaces.contains(name))?;
    let is_plain = reading.names.is_empty()
        && reading.kind.is_none()
        && reading.pick.is_none()
        && reading.amount().is_none()
        && reading.image.is_none()
        && reading.change_verbs().is_empty()
        && reading.verb.is_none_or(|verb| verb == Verb::Get)
        && !reading.asks()
        && !reading.forbids()
        && !reading.has_condition();
    if !repeats || !is_plain {
        return None;
    }
    let is_refused = |state| matches!(state, ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Void);
    let recent = conversation.earlier.iter().rev().take(4);
    let exchange =
        recent.clone().find(|exchange| exchange.requested.iter().any(|requested| !is_refused(requested.state)))?;
    let commands: Vec<Command> = exchange
        .requested
        .iter()
        .filter(|requested| !is_refused(requested.state))
        .map(|requested| Command { basis: None, namespace: Some(namespace.clone()), ..requested.command.clone() })
        .filter(|command| exchange.requested.iter().all(|requested| requested.command.namespace != command.namespace))
        .collect();
    (!commands.is_empty()).then_some(Next::Run(commands))
}

/// Returns the message that a repetition asks for again, if no read of the conversation stands for it: one whose reads all failed, and for
/// "and now?" a question that read nothing.
pub(super) fn message_again(repetition: &Reading, conversation: &Conversation) -> Option<String> {
    let is_repetition = |reading: &Reading| reading.act == Some(Act::Repeat);
    for exchange in conversation.earlier.iter().rev() {
        let reading = read(&exchange.said, &Lexicon::of(conversation));
        let searches = !exchange.steps.is_empty() && exchange.steps.iter().all(|step| step.command.verb == Verb::Find);
        if searches && exchange.steps.iter().all(|step| step.error.is_some()) && !is_repetition(&reading) {
            return Some(exchange.said.clone());
        }
        if exchange.steps.iter().any(|step| step.command.verb.is_read() && step.command.verb != Verb::Find) {
            return None;
        }
        let is_question = reading.asks() || matches!(reading.act, Some(Act::Outcome | Act::History | Act::Why));
        if repetition.has("now") && is_question && !is_repetition(&reading) {
            return Some(exchange.said.clone());
        }
    }
    None
}

impl Planner<'_> {
    /// Repeats the reads of the last exchange that had any. After a change of an object, "and now?" asks for its outcome.
    pub(super) fn read_again(&self) -> Next {
        let reads = refer::last_reads(self.conversation);
        let last = self.conversation.earlier.iter().rev().find(|exchange| {
            !exchange.requested.is_empty() || exchange.steps.iter().any(|step| step.command.verb != Verb::Find)
        });
        let has_changed = last
            .is_some_and(|last| last.steps.iter().any(|step| !step.command.verb.is_read() && step.outcome.is_some()));
        let is_of_object = reads.iter().all(|read| read.name.is_some());
        if self.reading.has("now") && has_changed && is_of_object {
            return self.outcome();
        }
        if !reads.is_empty() {
            return Next::Run(reads.into_iter().map(|read| self.with_log_options(read)).collect());
        }
        match refer::focus(self.conversation, Verb::Get, None, None) {
            Found::One(object) if self.reading.has_any(&["list", "show", "them"]) => Next::Run(vec![Command {
                kind: Some(object.kind),
                namespace: (!object.namespace.is_empty()).then_some(object.namespace),
                ..Command::new(Verb::Get)
            }]),
            _ => match answers::last_change(self.conversation) {
                Some((_, Some(requested), _)) => reply(format!(
                    "The last change was `{}`. If you want it once more, please say it in full. What do you want to change?",
                    requested.command.line()
                )),
                _ => reply("There is nothing to repeat yet."),
            },
        }
    }
}

/// "So what's there now".
fn asks_what_is_there(reading: &Reading) -> bool {
    let is_filler = |word: &&String| {
        matches!(
            &***word,
            "so" | "ok" | "and" | "now" | "hm" | "then" | "in" | "still" | "running" | "runs" | "else" | "atm"
        )
    };
    let words: Vec<&str> = reading.words.iter().filter(|word| !is_filler(word)).map(String::as_str).collect();
    matches!(words[..], ["whats", "there"] | ["what", "is", "there"])
}

/// "What's left there?": the list of what the last change or list was about.
fn what_is_left(reading: &Reading, conversation: &Conversation) -> Option<Command> {
    let asks = ["whats left", "what is left", "whats still", "what remains", "who is left", "what else is"]
        .iter()
        .any(|phrase| reading.says(phrase))
        || reading.has_any(&["left", "remaining", "remain", "remains", "leftover"]) && reading.asks()
        || asks_what_is_there(reading);
    if !asks
        || reading.has_any(&["open", "waiting", "pending", "approval", "approve", "requests"])
        || !reading.change_verbs().is_empty()
        || !reading.names.is_empty()
        || reading.namespace.is_some()
        || reading.kind.is_some()
    {
        return None;
    }
    for exchange in conversation.earlier.iter().rev() {
        let change = exchange.steps.iter().rev().map(|step| &step.command).find(|command| !command.verb.is_read());
        let change = change.or(exchange.requested.last().map(|requested| &requested.command));
        let list = exchange
            .steps
            .iter()
            .rev()
            .map(|step| step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command));
        let mut list = list.filter(|command| command.verb == Verb::Get && command.kind.is_some());
        if let Some(command) = change.or(list.next()) {
            return Some(Command {
                kind: command.kind.clone(),
                namespace: command.namespace.clone(),
                all_namespaces: command.all_namespaces,
                ..Command::new(Verb::Get)
            });
        }
    }
    None
}

/// Returns the objects of one kind and name in the namespaces that the conversation was about: "the two".
pub(super) fn twins(
    conversation: &Conversation,
    object: &crate::cluster::ObjectSummary,
) -> Vec<crate::cluster::ObjectSummary> {
    let mut all = vec![object.clone()];
    let recent = conversation.earlier.iter().rev().take(8);
    let spoken = recent
        .flat_map(|exchange| refer::subjects(exchange).into_iter().chain(refer::shown_objects(exchange).cloned()));
    for other in spoken.filter(|other| other.kind == object.kind && other.name == object.name) {
        if !all.iter().any(|known| known.namespace == other.namespace) {
            all.push(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(state: ApprovalState) -> Conversation {
        let command = Command::new(Verb::Delete).on("pods", "queue-0", Some("blue"));
        let requested = vec![Requested { command, state, turn: "t1".to_owned(), by: None }];
        Conversation {
            earlier: vec![Exchange { said: "delete queue-0".to_owned(), requested, ..Exchange::default() }],
            namespaces: vec!["blue".to_owned(), "green".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        }
    }

    #[test]
    fn a_request_is_made_again_unless_it_waits_or_was_carried_out() {
        let next = |message: &str, state| {
            let conversation = after(state);
            again(&read(message, &Lexicon::of(&conversation)), &conversation)
        };
        let is_made =
            |next: Option<Next>| matches!(next, Some(Next::Run(commands)) if commands[0].verb == Verb::Delete);
        for message in ["submit that request again", "please propose the delete one more time", "try again"] {
            assert!(is_made(next(message, ApprovalState::Denied)), "{message}");
            assert!(matches!(next(message, ApprovalState::Pending), Some(Next::Reply(_))), "{message}");
        }
        assert_eq!(next("again", ApprovalState::Done), None);
        assert_eq!(next("list the pods again", ApprovalState::Denied), None);
        assert!(is_made(next("now do that in green as well", ApprovalState::Done)));
        assert_eq!(next("do that in green as well", ApprovalState::Denied), None);
    }
}
