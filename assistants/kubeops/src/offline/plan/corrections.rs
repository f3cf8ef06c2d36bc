//! Corrections of a request: another object, namespace or value for it, or only some of several requests.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Requested};
use crate::offline::refer::{self, Found};
use crate::offline::withdraw::is_exclamation;
use crate::offline::words::{Lexicon, Pick, Reading, Replicas, is_ordinary, number_of, read};

use super::again::{relative_replicas, same_source};
use super::checks::last_changed;
use super::descriptions;
use super::images::with_version;
use super::requests::read_request;

/// Words that mark a correction of the previous request.
const CORRECTIONS: [&str; 16] = [
    "not",
    "only",
    "actually",
    "instead",
    "rather",
    "wait",
    "no",
    "nope",
    "sorry",
    "oops",
    "meant",
    "mean",
    "make",
    "correction",
    "nah",
    "hang",
];

/// Words around a bare value that corrects a request: "should be prod", "my bad, 5 i meant".
const AROUND_VALUE: [&str; 76] = [
    "or",
    "and",
    "too",
    "the",
    "one",
    "in",
    "on",
    "to",
    "for",
    "its",
    "it",
    "that",
    "thats",
    "this",
    "these",
    "should",
    "be",
    "been",
    "have",
    "was",
    "is",
    "a",
    "i",
    "ive",
    "we",
    "need",
    "needs",
    "want",
    "wants",
    "said",
    "say",
    "says",
    "means",
    "please",
    "pls",
    "plz",
    "my",
    "bad",
    "fault",
    "env",
    "environment",
    "namespace",
    "ns",
    "ok",
    "okay",
    "ah",
    "ahh",
    "oh",
    "hm",
    "hmm",
    "so",
    "lets",
    "let",
    "go",
    "with",
    "change",
    "use",
    "put",
    "scratch",
    "better",
    "other",
    "uh",
    "um",
    "eh",
    "er",
    "but",
    "of",
    "course",
    "them",
    "dear",
    "god",
    "gosh",
    "man",
    "sec",
    "bro",
    "mate",
];
/// Words that say that a request was a mistake, so that the rest of the message may be any ordinary words.
const MISTAKES: [&str; 16] = [
    "overkill", "wrong", "supposed", "mixed", "confused", "mistake", "typo", "mistyped", "typed", "fingers", "meant",
    "intended", "wanted", "shouldve", "misspoke", "instead",
];

/// Whether a message changes the newest request.
pub(in crate::offline) fn amends(message: &str, conversation: &Conversation) -> bool {
    let named = descriptions::with_names(message, conversation);
    amendment(named.as_deref().unwrap_or(message), conversation).is_some()
}

/// Returns the newest request as a message changes it. "Wrong ns. Blue" says so in two sentences.
pub(super) fn amendment(message: &str, conversation: &Conversation) -> Option<Vec<Command>> {
    let lexicon = Lexicon::of(conversation);
    let whole = read(message, &lexicon);
    let newest = conversation.earlier.last().and_then(|last| last.requested.first());
    // "And blue to 2", "and take the first down to 3": in addition.
    let adds = whole.words.first().is_some_and(|word| matches!(&**word, "and" | "also" | "plus"));
    let is_elsewhere = newest.is_some_and(|newest| {
        whole.namespace.as_ref().is_some_and(|place| newest.command.namespace.as_ref() != Some(place))
    });
    // "Second to 3", after "first one to 2": in addition, too.
    let is_next = whole.pick.is_some_and(|pick| matches!(pick, Pick::At(_) | Pick::Last)) && whole.amount().is_some();
    let counts_on = whole.pick.is_some() && whole.words.iter().any(|word| number_of(word).is_some());
    if (adds && (whole.pick.is_some() || is_elsewhere) || is_next || counts_on && whole.state.is_none())
        && !whole.corrects_in_words()
    {
        return None;
    }
    let is_bare = newest.is_some_and(|requested| is_bare_value(&whole, conversation, requested));
    let by_request = amended(&read_request(message, &lexicon), conversation);
    by_request.or_else(|| amended(&whole, conversation).filter(|_| is_bare))
}

/// Whether a message consists of a value for a waiting request and of words around it, and says nothing else: "sry, prod", "5 not 3".
pub(super) fn is_bare_value(reading: &Reading, conversation: &Conversation, requested: &Requested) -> bool {
    let reading = &reading.without_what_is_excluded();
    let command = &requested.command;
    // "Crap, wrong ns. blue", after the change was made: the same there, with an approval of its own.
    let regrets = reading.has_any(&MISTAKES) || reading.words.iter().take(2).any(|word| is_exclamation(word));
    let waits = matches!(requested.state, ApprovalState::Pending | ApprovalState::Void)
        || requested.state == ApprovalState::Done && regrets;
    let is_verb = reading.verb.is_some_and(|verb| {
        !matches!(verb, Verb::Get | Verb::Scale) || reading.has_any(&["scale", "show", "list", "get", "see", "check"])
    });
    // "And prod", "now prod": in addition.
    let adds = !reading.has("wrong") && reading.has_any(&["also", "same", "both", "and", "plus", "again"])
        || reading.has("too") && !reading.is_too_much() && !reading.has("wrong")
        || reading.words.first().is_some_and(|word| matches!(&**word, "now" | "then" | "next"));
    let is_plain =
        reading.kind.as_deref().is_none_or(|kind| kind == "namespaces") && !reading.asks() && !adds && !is_verb;
    if !waits || !is_plain || reading.is_question || reading.has_condition() || reading.forbids() {
        return false;
    }
    let is_mistake = (reading.has_any(&MISTAKES) || reading.is_too_much()) && reading.words.len() <= 11;
    let is_around = |word: &&String| {
        AROUND_VALUE.contains(&&***word)
            || CORRECTIONS.contains(&&***word)
            || MISTAKES.contains(&&***word)
            || is_exclamation(word)
            || is_mistake && is_ordinary(word) && number_of(word).is_none() && !conversation.namespaces.contains(*word)
    };
    let values: Vec<&String> = reading.words.iter().filter(|word| !is_around(word)).collect();
    let is_number = |word: &&String| number_of(word).is_some();
    let own = command.namespace.as_ref();
    let other = |name: &&String| Some(*name) != own && conversation.namespaces.contains(*name);
    let there = reading.namespace.as_ref().filter(other).or_else(|| reading.names.iter().find(other));
    match (own, there) {
        (Some(own), Some(there)) => {
            let is_place = |word: &&String| {
                *word == own
                    || *word == there
                    || crate::cluster::likeness(there, word).is_some_and(|fit| fit < 3)
                    || matches!(&***word, "production" | "stage" | "stg" | "development")
            };
            !values.is_empty() && values.iter().all(is_place)
        }
        _ => {
            matches!(command.verb, Verb::Scale | Verb::RolloutUndo)
                && corrected_number(reading, command).is_some()
                && !values.is_empty()
                && values.iter().all(|word| {
                    is_number(word) || matches!(&***word, "replicas" | "copies" | "instances" | "revision" | "rev")
                })
        }
    }
}

/// Returns the number of replicas or the revision that a message gives instead of that of a request: "3 was a typo, 5".
fn corrected_number(reading: &Reading, command: &Command) -> Option<u32> {
    if let Some(number) = reading.amount() {
        return Some(number);
    }
    let is_revision = command.verb == Verb::RolloutUndo && reading.revision.is_some();
    if reading.replicas.is_some() || reading.counts_something_else() && !is_revision {
        return None;
    }
    let numbers = reading.words.iter().filter(|word| *word != "one").filter_map(|word| number_of(word));
    let mut other: Vec<u32> = numbers.filter(|number| command.replicas.or(command.revision) != Some(*number)).collect();
    other.dedup();
    if let [only] = other[..] { Some(only) } else { None }
}

/// Returns the previous request as a correction changes it: "no, make it 5", "staging, actually", "no, web-1".
pub(super) fn amended(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let waits = |requested: &Requested| matches!(requested.state, ApprovalState::Pending | ApprovalState::Void);
    let newest = conversation.earlier.last()?;
    // "Make it 5 instead", after a look at something.
    let refers_back = reading.has_any(&["instead", "actually", "rather", "make", "correction"]);
    let last = match newest.requested.is_empty() {
        false => newest,
        true => conversation
            .earlier
            .iter()
            .rev()
            .take(3)
            .find(|exchange| refers_back && exchange.requested.iter().any(waits))
            .or_else(|| {
                // "That was a typo, should be 5", after a question about the change.
                let changed = last_changed(conversation)?;
                is_bare_value(reading, conversation, changed.requested.first()?).then_some(changed)
            })?,
    };
    if let Some(kept) = kept_of_several(reading, &last.requested) {
        return Some(kept);
    }
    let requested = last.requested.first()?;
    let has_own_verb = match reading.verb {
        None | Some(Verb::Get) => false,
        Some(Verb::Scale) => reading.has("scale") && !reading.pronoun,
        Some(verb) => verb != requested.command.verb,
    };
    let adds = reading.has_any(&["also", "same", "both"])
        || reading.says("as well")
        || reading.has("too") && !reading.is_too_much() && !reading.has("wrong");
    let is_open = waits(requested);
    // "Finance says max 6. so 6": a value for the pending request, and nothing else.
    // "Prod has 4", "5 people are waiting".
    let states = reading.has_any(&["has", "had", "stays", "stay", "already", "are", "were", "got"])
        || reading.says("we have")
        || reading.says("there is");
    let gives_value = is_open
        && !states
        && !reading.asks()
        && reading.names.is_empty()
        && reading.kind.is_none()
        && match requested.command.verb {
            Verb::Scale => {
                reading.amount().is_some() || matches!(reading.replicas, Some(Replicas::Half | Replicas::Times(_)))
            }
            Verb::SetImage => reading.version.is_some() || reading.image.is_some(),
            Verb::SetEnv | Verb::Label | Verb::Annotate => !reading.values.is_empty(),
            Verb::SetResources => !(reading.limits.is_empty() && reading.requests.is_empty()),
            Verb::RolloutUndo => reading.revision.is_some(),
            _ => false,
        };
    let is_bare = is_bare_value(reading, conversation, requested);
    let corrects = reading.has_any(&CORRECTIONS) || reading.is_only_number() || gives_value || is_bare;
    if has_own_verb || adds || reading.has_condition() || reading.words.len() > 14 || !corrects || reading.is_question {
        return None;
    }
    let without = reading.without_what_is_excluded();
    let reading = &without;
    let object = corrected_object(reading, conversation, requested)?;
    // "Down by one", and then "no, the other one": of the number of the other one.
    let is_other = object.as_ref().is_some_and(|object| requested.command.name.as_ref() != Some(&object.name));
    if is_other && reading.replicas.is_none() && relative_replicas(last, conversation).is_some() {
        return None;
    }
    // "Take three away", and then "no, take away only one": of the number that there is.
    let is_step = matches!(reading.replicas, Some(Replicas::By(_)));
    if is_step && relative_replicas(last, conversation).is_some() {
        return None;
    }
    let number = reading.replicas.or_else(|| corrected_number(reading, &requested.command).map(Replicas::To));
    let mut is_changed = false;
    let amend = |requested: &Requested| {
        let mut command = Command { basis: None, ..requested.command.clone() };
        if let Some(object) = &object {
            is_changed |= command.name.as_ref() != Some(&object.name);
            // "No, payments instead", after an image from another namespace: that of payments there.
            if command.verb == Verb::SetImage && command.name.as_ref() != Some(&object.name) && reading.image.is_none()
            {
                let own = same_source(&requested.command, conversation, std::slice::from_ref(&object.name));
                command.container = None;
                command.image = own.or(command.image);
            }
            command.kind = Some(object.kind.clone());
            command.name = Some(object.name.clone());
            command.namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone());
        }
        if matches!(command.verb, Verb::Label | Verb::Annotate | Verb::SetEnv) && !reading.values.is_empty() {
            is_changed |= command.values != reading.values;
            command.values.clone_from(&reading.values);
        }
        // "Too many, half of that": of the number that was requested.
        let wanted = number.and_then(|number| number.of(command.replicas?));
        if let (Verb::Scale, Some(number)) = (command.verb, wanted) {
            is_changed |= command.replicas != Some(number);
            command.replicas = Some(number);
        }
        if command.verb == Verb::SetResources && !(reading.limits.is_empty() && reading.requests.is_empty()) {
            is_changed |= (&command.limits, &command.requests) != (&reading.limits, &reading.requests);
            command.limits.clone_from(&reading.limits);
            command.requests.clone_from(&reading.requests);
        }
        if let (Verb::SetImage, Some(version)) = (command.verb, &reading.version) {
            let image = command.image.as_deref().map(|image| with_version(image, version));
            is_changed |= image != command.image;
            command.image = image;
        }
        if let (Verb::SetImage, Some(image)) = (command.verb, &reading.image) {
            is_changed |= command.image.as_ref() != Some(image);
            command.image = Some(image.clone());
        }
        let wanted = reading.revision.or_else(|| is_bare.then(|| corrected_number(reading, &command)).flatten());
        if let (Verb::RolloutUndo, Some(revision)) = (command.verb, wanted) {
            is_changed |= command.revision != Some(revision);
            command.revision = Some(revision);
        } else if command.verb == Verb::RolloutUndo && reading.has_any(&["previous", "prior", "before"]) {
            // "The previous revision, not 1".
            is_changed |= command.revision.is_some();
            command.revision = None;
        }
        let is_known =
            |name: &&String| conversation.namespaces.contains(name) || command.namespace.as_ref() == Some(*name);
        let namespace = reading.namespace.as_ref().or_else(|| reading.names.iter().find(is_known));
        if let Some(namespace) = namespace.filter(|_| command.namespace.is_some()) {
            is_changed |= command.namespace.as_ref() != Some(namespace);
            command.namespace = Some(namespace.clone());
        }
        command
    };
    let commands: Vec<Command> = last.requested.iter().map(amend).collect();
    is_changed.then_some(commands)
}

/// "Cancel the restart", after several requests that were made together: the others stay.
pub(super) fn kept_after_cancel(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let last = conversation.earlier.iter().rev().find(|exchange| !exchange.requested.is_empty())?;
    let replaced: Vec<&Command> = last
        .requested
        .iter()
        .filter(|requested| {
            requested.state == ApprovalState::Void && conversation.withdrawn.contains(&requested.command.line())
        })
        .map(|requested| &requested.command)
        .collect();
    let is_named = |command: &&Command| {
        let name = command.name.as_deref().unwrap_or_default();
        reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some_and(|fit| fit < 3))
            || reading.mentions(command.verb)
    };
    let kept: Vec<Command> = replaced
        .iter()
        .copied()
        .filter(|command| !is_named(command))
        .map(|command| Command { basis: None, ..command.clone() })
        .collect();
    (replaced.len() > 1 && !kept.is_empty() && kept.len() < replaced.len()).then_some(kept)
}

/// "Only ben", "not c, just b": of several requests that were made together, those that stay. `None` if the message excludes none.
fn kept_of_several(reading: &Reading, requested: &[Requested]) -> Option<Vec<Command>> {
    let waiting: Vec<&Requested> = requested
        .iter()
        .filter(|requested| matches!(requested.state, ApprovalState::Pending | ApprovalState::Void))
        .collect();
    let excludes = reading.has_any(&[
        "forget", "drop", "only", "just", "not", "leave", "leav", "keep", "except", "skip", "spare", "without", "dont",
        "wait", "still", "exclude",
    ]);
    if waiting.len() < 2
        || !excludes
        || reading.is_question
        || reading.verb.is_some_and(|verb| !verb.is_read() && verb != waiting[0].command.verb)
    {
        return None;
    }
    let mention = |requested: &Requested| {
        let name = requested.command.name.as_deref().unwrap_or_default();
        let own = |word: &str| crate::cluster::likeness(name, word).is_some_and(|fit| fit < 3);
        let is_shared = |word: &str| {
            waiting
                .iter()
                .filter(|other| {
                    crate::cluster::likeness(other.command.name.as_deref().unwrap_or_default(), word)
                        .is_some_and(|fit| fit < 3)
                })
                .count()
                > 1
        };
        // "Only shop-test", of requests in two namespaces.
        let is_place = |word: &str| {
            let in_place = |one: &Requested| one.command.namespace.as_deref() == Some(word);
            in_place(requested) && !waiting.iter().all(|other| in_place(other))
        };
        let by_name = reading.words.iter().position(|word| own(word) && !is_shared(word) && word != "a");
        by_name.or_else(|| reading.words.iter().position(|word| is_place(word)))
    };
    // "Only mail and web", but not "only mail, web is fixed".
    let is_kept = |at: usize| {
        let before = &reading.words[at.saturating_sub(4)..at];
        let Some(only) = before.iter().rposition(|word| matches!(&**word, "only" | "just")) else { return false };
        let between = &before[only + 1..];
        let is_filler = |word: &String| is_ordinary(word) || crate::kinds::kind_word(word).is_some();
        between.last().is_some_and(|word| word == "and") || between.iter().all(is_filler)
    };
    let only: Vec<&Requested> =
        waiting.iter().copied().filter(|requested| mention(requested).is_some_and(is_kept)).collect();
    let rest: Vec<&Requested> = waiting.iter().copied().filter(|requested| mention(requested).is_none()).collect();
    let kept = if only.is_empty() { rest } else { only };
    if kept.is_empty() || kept.len() == waiting.len() {
        return None;
    }
    Some(kept.iter().map(|requested| Command { basis: None, ..requested.command.clone() }).collect())
}

/// "Sorry, 71": the object of the same kind whose name contains the number, if there is only one.
fn numbered_object(reading: &Reading, conversation: &Conversation, requested: &Requested) -> Option<ObjectSummary> {
    let command = &requested.command;
    if command.verb == Verb::Scale || !reading.names.is_empty() || reading.namespace.is_some() {
        return None;
    }
    // "1 not 0", about `broker-0`.
    if let Some((base, own)) = command.name.as_deref().and_then(|name| name.rsplit_once('-'))
        && own.parse::<u32>().is_ok()
        && let Some(number) = reading.only_number().filter(|number| number.to_string() != own)
        && reading.words.iter().all(|word| number_of(word).is_some() || is_ordinary(word))
    {
        return Some(ObjectSummary {
            kind: command.kind.clone().unwrap_or_default(),
            name: format!("{base}-{number}"),
            namespace: command.namespace.clone().unwrap_or_default(),
            ..ObjectSummary::default()
        });
    }
    let numbers: Vec<&String> =
        reading.words.iter().filter(|word| word.len() > 1 && word.parse::<u32>().is_ok()).collect();
    let [number] = numbers[..] else { return None };
    let fits = |object: &&ObjectSummary| {
        Some(&object.kind) == command.kind.as_ref()
            && crate::cluster::likeness(&object.name, number).is_some_and(|fit| fit < 3)
            && object.namespace == command.namespace.clone().unwrap_or_default()
    };
    let mut found = conversation.mentioned.iter().flatten().filter(fits);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// Returns the object with which a correction replaces that of a request; the inner value is `None` if it names none. Returns `None`
/// if a name fits no object, or several.
fn corrected_object(
    reading: &Reading,
    conversation: &Conversation,
    requested: &Requested,
) -> Option<Option<ObjectSummary>> {
    if let Some(pick) = reading.pick.filter(|pick| *pick != Pick::Other || reading.names.is_empty()) {
        return match refer::picked(conversation, pick, reading, requested.command.verb) {
            Found::One(object) => Some(Some(object)),
            Found::Several(_) | Found::None => None,
        };
    }
    // "Not that, the failed one".
    if let Some(state) = reading.state.filter(|_| reading.names.is_empty()) {
        return match refer::in_state(conversation, state, reading, requested.command.verb) {
            Found::One(object) => Some(Some(object)),
            Found::Several(_) | Found::None => None,
        };
    }
    let mut named = numbered_object(reading, conversation, requested);
    // "2 has a long job": the kind belongs to something else.
    let kind = reading.kind.clone().filter(|kind| kind != "namespaces").filter(|kind| {
        refer::kinds_of(requested.command.verb).is_none_or(|kinds| kinds.contains(&&**kind) || kind == "pods")
    });
    let reading = &Reading {
        kind: kind.or_else(|| {
            matches!(requested.command.verb, Verb::Delete).then(|| requested.command.kind.clone()).flatten()
        }),
        namespace: reading.namespace.clone().or_else(|| requested.command.namespace.clone()),
        ..reading.clone()
    };
    if reading.names.is_empty()
        && let Some(kind) = reading.kind.as_ref().filter(|kind| requested.command.kind.as_ref() != Some(*kind))
    {
        return refer::related(conversation, &requested.command, kind).map(Some);
    }
    // "Leave payments, the atlas one".
    let is_left = |name: &String| requested.command.name.as_ref() == Some(name) && reading.names.len() > 1;
    for name in reading.names.iter().filter(|name| !conversation.namespaces.contains(name) && !is_left(name)) {
        let looks_like_name = name.contains('-') || name.chars().any(|c| c.is_ascii_digit());
        match refer::known(conversation, name, requested.command.verb, reading) {
            Found::One(object) if named.is_none() => named = Some(object),
            // "Ugh no, 4".
            Found::None if !looks_like_name => {}
            _ => return None,
        }
    }
    Some(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Exchange;

    #[test]
    fn a_bare_value_corrects_a_waiting_request() {
        let command =
            Command { replicas: Some(6), ..Command::new(Verb::Scale).on("deployments", "tracker", Some("green")) };
        let requested = vec![Requested { command, state: ApprovalState::Pending, turn: "t1".to_owned(), by: None }];
        let conversation = Conversation {
            earlier: vec![Exchange { said: "scale tracker to 6".to_owned(), requested, ..Exchange::default() }],
            namespaces: vec!["blue".to_owned(), "green".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        };
        let amended_to = |message: &str| {
            let reading = read(message, &Lexicon::of(&conversation));
            amended(&reading, &conversation).map(|commands| (commands[0].namespace.clone(), commands[0].replicas))
        };
        let blue = Some((Some("blue".to_owned()), Some(6)));
        for message in ["ups, blue", "blue it should be", "not in green, in blue", "i typed the wrong ns, blue please"]
        {
            assert_eq!(amended_to(message), blue, "{message}");
        }
        let eight = Some((Some("green".to_owned()), Some(8)));
        for message in ["8", "6 is too few, 8", "sooorry 8 not 6", "or rather 8"] {
            assert_eq!(amended_to(message), eight, "{message}");
        }
        for message in ["and blue", "blue?", "blue is busy", "what runs in blue", "same in blue", "+1", "green"] {
            assert_eq!(amended_to(message), None, "{message}");
        }
    }
}
