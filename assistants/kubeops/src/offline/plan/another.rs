//! Messages that give the newest change another number, place or value.

use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange};
use crate::offline::refer;
use crate::offline::withdraw::is_exclamation;
use crate::offline::words::{Reading, is_ordinary, number_of};

/// Returns the changes that an exchange requested, or those that were refused before a request.
fn tried(exchange: &Exchange) -> Vec<&Command> {
    if !exchange.requested.is_empty() {
        return exchange.requested.iter().map(|requested| &requested.command).collect();
    }
    let failed = exchange.steps.iter().filter(|step| step.error.is_some() && !step.command.verb.is_read());
    failed.map(|step| &step.command).collect()
}

/// "Ok 4 then, the boss says 6 is too many": the scaling that was requested last, with the number that the message begins with.
pub(super) fn another_number(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let recent: Vec<&Exchange> = conversation.earlier.iter().rev().take(3).collect();
    let at = recent.iter().position(|exchange| !tried(exchange).is_empty())?;
    let [command] = tried(recent[at])[..] else { return None };
    let is_other = |exchange: &&Exchange| {
        refer::subjects(exchange)
            .iter()
            .any(|object| Some(&object.name) != command.name.as_ref() && object.kind != "pods")
    };
    let is_filler = |word: &&String| {
        matches!(
            &***word,
            "ok" | "okay"
                | "fine"
                | "then"
                | "so"
                | "well"
                | "alright"
                | "hm"
                | "hmm"
                | "right"
                | "lets"
                | "say"
                | "do"
                | "try"
                | "make"
                | "it"
        )
    };
    let words: Vec<&String> = reading.words.iter().skip_while(is_filler).collect();
    let number = words.first().filter(|word| ***word != "one").and_then(|word| number_of(word))?;
    let next = words.iter().skip(1).skip_while(|word| matches!(&****word, "replicas" | "copies" | "instances"));
    let rest: Vec<&str> = next.map(|word| word.as_str()).collect();
    let is_judged = matches!(
        rest[..],
        ["is", "enough" | "fine" | "ok" | "plenty" | "better" | "good" | "right", ..]
            | ["will" | "should", "do" | "be", ..]
    );
    let ends = is_judged
        || rest.first().is_none_or(|word| matches!(*word, "then" | "instead" | "please" | "pls" | "only" | "max"));
    let is_plain = matches!(reading.verb, None | Some(Verb::Get | Verb::Scale))
        && reading.kind.is_none()
        && reading.names.iter().all(|name| command.name.as_ref() == Some(name))
        && reading.namespace.is_none()
        && !reading.is_question
        && !reading.forbids();
    let is_elsewhere = recent[..at].iter().any(is_other) || recent[..at].iter().any(|exchange| exchange.asked);
    if command.verb != Verb::Scale || !ends || !is_plain || is_elsewhere || command.replicas == Some(number) {
        return None;
    }
    Some(vec![Command { basis: None, replicas: Some(number), ..command.clone() }])
}

/// "Prod of course", after a change failed in a namespace that does not exist: the change in the right one.
pub(super) fn another_place(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let last = conversation.earlier.last().filter(|last| last.requested.is_empty())?;
    let [command] = tried(last)[..] else { return None };
    let place = reading.namespace.as_ref().or_else(|| match &reading.words[..] {
        [only] => conversation.namespaces.iter().find(|name| *name == only),
        _ => None,
    })?;
    let was_unknown = command.namespace.as_ref().is_some_and(|own| !conversation.namespaces.contains(own));
    let is_plain = reading.names.is_empty()
        && reading.kind.as_deref().is_none_or(|kind| kind == "namespaces")
        && reading.verb.is_none_or(|verb| verb == Verb::Get && reading.is_implied)
        && !reading.asks()
        && reading.words.len() <= 6;
    let changed = Command { basis: None, namespace: Some(place.clone()), ..command.clone() };
    (was_unknown && is_plain && conversation.namespaces.contains(place)).then_some(vec![changed])
}

/// "Back to info" after `LOG_LEVEL=debug` was set: the same name, another value.
pub(super) fn another_value(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let last = conversation.earlier.iter().rev().take(3).find(|exchange| !exchange.requested.is_empty())?;
    let requested = last.requested.first().filter(|_| last.requested.len() == 1)?;
    let command = &requested.command;
    let has_values = matches!(command.verb, Verb::SetEnv | Verb::Label | Verb::Annotate) && command.values.len() == 1;
    let is_plain = matches!(reading.verb, None | Some(Verb::Get | Verb::Describe | Verb::RolloutUndo))
        && reading.namespace.is_none()
        && reading.replicas.is_none();
    if !has_values || !is_plain || reading.is_question || reading.words.len() > 9 {
        return None;
    }
    // "Wrong level, warn", which took the request back.
    let (name, before) = command.values.iter().next()?;
    if !conversation.withdrawn.is_empty()
        && reading.names.len() <= 1
        && let Some((value, rest)) = reading.words.split_last()
        && rest.iter().any(|word| matches!(&**word, "wrong" | "meant" | "no" | "not" | "sorry" | "oops" | "rather"))
        && rest.iter().all(|word| {
            let is_part = name.to_lowercase().split(['_', '-', '.', '/']).any(|part| part == word);
            is_ordinary(word) || word.len() < 3 || is_part || is_exclamation(word)
        })
        && (!is_ordinary(value) && crate::kinds::kind_word(value).is_none()
            || matches!(&**value, "true" | "false" | "off" | "on" | "info" | "error"))
        && !conversation.namespaces.contains(value)
        && before.as_ref() != Some(value)
    {
        let values = [(name.clone(), Some(value.clone()))].into();
        return Some(vec![Command { basis: None, values, ..command.clone() }]);
    }
    let at = reading.words.iter().rposition(|word| word == "to")?;
    let value = reading.words.get(at + 1).filter(|_| at + 2 >= reading.words.len() || reading.words.len() - at <= 4)?;
    let leads = at == 0
        || reading.words[..at]
            .iter()
            .any(|word| matches!(&**word, "back" | "set" | "it" | "put" | "make" | "change" | "switch"));
    let is_value = value.len() > 1 && value.chars().all(|c| c.is_ascii_alphanumeric() || "._/:@-".contains(c));
    let is_word = !matches!(
        &**value,
        "the"
            | "a"
            | "it"
            | "that"
            | "this"
            | "what"
            | "how"
            | "normal"
            | "before"
            | "see"
            | "be"
            | "do"
            | "work"
            | "me"
    );
    if !leads || !is_value || !is_word || before.as_ref() == Some(value) {
        return None;
    }
    let values = [(name.clone(), Some(value.clone()))].into();
    Some(vec![Command { basis: None, values, ..command.clone() }])
}
