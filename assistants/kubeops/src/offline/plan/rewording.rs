//! Completes what a message says from the conversation, before its request is planned.

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::Conversation;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Act, Lexicon, Pick, Reading, Replicas, State, read};

use super::checks::last_accepted;

/// "Describe orders there", "same for web in that namespace": in the namespace that the conversation is about, if it has such an object.
pub(super) fn with_place_spoken_of(reading: Reading, conversation: &Conversation) -> Reading {
    let names_place =
        ["that namespace", "this namespace", "same namespace", "that same namespace", "that ns", "same ns"]
            .iter()
            .any(|phrase| reading.says(phrase));
    // "Restart it there", "describe the second of them there": where the user last spoke of.
    let points = reading.words.last().is_some_and(|word| word == "there")
        && reading.verb.is_some_and(|verb| verb != Verb::Get)
        && reading.act.is_none()
        && (reading.pronoun || reading.pick.is_some());
    if points && reading.namespace.is_none() && reading.names.is_empty() && reading.state.is_none() {
        let named = conversation.earlier.iter().rev().find_map(|exchange| {
            let said = read(&exchange.said, &Lexicon::of(conversation)).namespace;
            said.filter(|place| conversation.namespaces.contains(place))
        });
        return Reading { namespace: named, ..reading };
    }
    let is_open = reading.namespace.is_none() && reading.names.len() == 1 && !reading.asks();
    let is_plain = reading.has("there") && reading.verb.is_some() && reading.act.is_none();
    if !is_open || !is_plain && !names_place {
        return reading;
    }
    let kind = reading.kind.clone().filter(|kind| !names_place || kind != "namespaces");
    let there = Reading { namespace: refer::last_namespace(conversation), kind, ..reading.clone() };
    let verb = reading.verb.unwrap_or(Verb::Describe);
    // "And of payments, in that same namespace": not a payments elsewhere.
    match refer::known(conversation, &reading.names[0], verb, &there) {
        Found::None if !names_place => reading,
        _ => there,
    }
}

/// "Which version of shop-api is on staging": a name that only an image has means the workload that runs it.
pub(super) fn with_object_of_image(reading: Reading, conversation: &Conversation) -> Reading {
    let is_read = reading.verb.is_none_or(Verb::is_read);
    let verb = reading.verb.unwrap_or(Verb::Describe);
    if !is_read || reading.act.is_some() {
        return reading;
    }
    let is_image_of = |object: &&ObjectSummary, name: &String| {
        let image = object.image.rsplit('/').next().and_then(|image| image.split(':').next()).unwrap_or_default();
        crate::kinds::WORKLOADS.contains(&&*object.kind) && image == name
    };
    let object_of = |name: &String| {
        if conversation.namespaces.contains(name)
            || refer::known(conversation, name, verb, &Reading { namespace: None, ..reading.clone() }) != Found::None
        {
            return None;
        }
        let all = conversation.mentioned.iter().flatten();
        let mut names: Vec<&String> =
            all.filter(|object| is_image_of(object, name)).map(|object| &object.name).collect();
        names.dedup();
        if let [only] = names[..] { Some(only.clone()) } else { None }
    };
    let names: Vec<String> = reading.names.iter().map(|name| object_of(name).unwrap_or_else(|| name.clone())).collect();
    if names == reading.names {
        return reading;
    }
    let is_implied = reading.verb.is_none();
    Reading { names, verb: reading.verb.or(Some(Verb::Get)), is_implied, ..reading }
}

/// "Also team=net", after a label was requested: a further label of the same object.
pub(super) fn with_more_values(reading: Reading, conversation: &Conversation) -> Reading {
    let is_open = reading.verb.is_none_or(|verb| verb == Verb::Get && reading.is_implied)
        && !reading.values.is_empty()
        && reading.act.is_none()
        && reading.names.is_empty()
        && reading.words.len() <= 5
        && !reading.asks();
    let requested = last_accepted(conversation).filter(|_| is_open).and_then(|changed| match &changed.requested[..] {
        [only] => Some(&only.command),
        _ => None,
    });
    match requested.map(|command| command.verb) {
        Some(verb @ (Verb::Label | Verb::Annotate | Verb::SetEnv)) => {
            Reading { verb: Some(verb), pronoun: true, is_implied: false, ..reading }
        }
        _ => reading,
    }
}

/// "Set the bigger one to the same", after a scaling: the number that was requested.
pub(super) fn with_same_number(reading: Reading, conversation: &Conversation) -> Reading {
    let is_meant = ["to the same", "at the same"].iter().any(|end| reading.words.join(" ").ends_with(end))
        && reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Scale))
        && reading.act.is_none()
        && reading.replicas.is_none()
        && !reading.asks();
    let scaled = last_accepted(conversation)
        .is_some_and(|changed| changed.requested.iter().all(|requested| requested.command.verb == Verb::Scale));
    if !is_meant || !scaled {
        return reading;
    }
    Reading { verb: Some(Verb::Scale), replicas: Some(Replicas::Same(0)), is_implied: false, ..reading }
}

/// "Is everything ready there?", after a list: the list as it is now.
pub(super) fn with_everything_listed(reading: Reading, conversation: &Conversation) -> Reading {
    let is_meant = reading.asks()
        && reading.has("everything")
        && reading.has_any(&["ready", "up", "ok", "okay", "healthy", "fine", "running", "good", "alright"])
        && reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.act.is_none()
        && reading.kind.is_none()
        && reading.names.is_empty();
    let listed = conversation.earlier.iter().rev().map(refer::listed).find(|list| !list.is_empty());
    let Some(kind) = listed.filter(|_| is_meant).and_then(|list| list.first().map(|object| object.kind.clone())) else {
        return reading;
    };
    let namespace = reading.namespace.clone().or_else(|| refer::last_namespace(conversation));
    Reading {
        verb: Some(Verb::Get),
        kind: Some(kind),
        is_plural: true,
        pronoun: false,
        each: false,
        namespace,
        unhealthy: false,
        ..reading
    }
}

/// "Set the deployment to that image", "bring that one up to the other's version": the image of what was spoken of last, or of the others of
/// its list.
pub(super) fn with_image_spoken_of(reading: Reading, conversation: &Conversation) -> Reading {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| reading.says(phrase));
    let updates = reading.has_any(&["update", "upgrade", "bump", "set", "bring", "put", "move", "switch"]);
    let is_open = reading.image.is_none()
        && reading.version.is_none()
        && reading.namespace.is_none()
        && reading.limits.is_empty()
        && reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::SetImage | Verb::Scale))
        && updates
        && (!reading.asks() || reading.asks_politely());
    let said_last =
        reading.words.iter().rposition(|word| !matches!(&**word, "too" | "also" | "please" | "pls" | "then"));
    let ends_with_that =
        said_last.is_some_and(|at| at > 0 && reading.words[at - 1] == "to" && reading.words[at] == "that");
    // "What's the image of the public one?", and then "set the internal one to that too".
    let asked_image = conversation.earlier.last().is_some_and(|last| {
        let said = read(&last.said, &Lexicon::of(conversation));
        last.requested.is_empty() && said.has_any(&["image", "images", "version", "versions", "tag"])
    });
    let names_other = ends_with_that && asked_image && runs_same_program(&reading, conversation);
    let is_that = says(&["to that image", "on that image", "to this image", "to that version"])
        || names_other
        || reading.pick == Some(Pick::Other) && ends_with_that;
    let is_of_others = says(&["version of the other", "image of the other", "others version", "others image"])
        || says(&["version the other", "image the other", "version the others", "version that the other"]);
    let image = match is_open {
        true if is_that => match refer::focus(conversation, Verb::Describe, None, None) {
            Found::One(object) => Some(object.image),
            _ => None,
        },
        true if is_of_others => image_of_others(&reading, conversation),
        _ => None,
    };
    let Some(image) = image.filter(|image| !image.is_empty()) else { return reading };
    let pick = reading.pick.filter(|pick| is_that || *pick != Pick::Other);
    let pronoun = reading.pronoun || pick.is_none();
    Reading {
        verb: Some(Verb::SetImage),
        act: None,
        image: Some(image),
        replicas: None,
        is_implied: false,
        picks: Vec::new(),
        pick,
        pronoun,
        ..reading
    }
}

/// Whether the only object that a message names runs the program of the one that was spoken of last.
fn runs_same_program(reading: &Reading, conversation: &Conversation) -> bool {
    let [name] = &reading.names[..] else { return false };
    match (
        refer::known(conversation, name, Verb::SetImage, reading),
        refer::focus(conversation, Verb::Describe, None, None),
    ) {
        (Found::One(own), Found::One(other)) => {
            own.name != other.name && !own.image.is_empty() && super::images::is_same_program(&own.image, &other.image)
        }
        _ => false,
    }
}

/// Returns the image that all other objects of a list have.
fn image_of_others(reading: &Reading, conversation: &Conversation) -> Option<String> {
    let found = match reading.pick.filter(|pick| *pick != Pick::Other) {
        Some(pick) => refer::picked(conversation, pick, &Reading::default(), Verb::SetImage),
        None => refer::focus(conversation, Verb::SetImage, None, None),
    };
    let Found::One(object) = found else { return None };
    let is_same = |other: &ObjectSummary| other.name == object.name && other.namespace == object.namespace;
    let lists = conversation.earlier.iter().rev().map(refer::listed);
    let list = lists.filter(|list| list.len() > 1).find(|list| list.iter().any(is_same))?;
    let others: Vec<&ObjectSummary> =
        list.iter().filter(|other| !is_same(other) && other.kind == object.kind).collect();
    let image = &others.first()?.image;
    others.iter().all(|other| other.image == *image).then(|| image.clone())
}

/// "What memory limit does it have?", "what controls it?": only a description shows limits and owners.
pub(super) fn described_if_needed(reading: Reading) -> Reading {
    // "What deployment is that from?"
    let asks_owner = [
        "is that from",
        "is it from",
        "is that part of",
        "is it part of",
        "belong to",
        "belongs to",
        "owns it",
        "owns that",
    ]
    .iter()
    .any(|phrase| reading.says(phrase));
    // "How old is it?", "since when does that run?": a description says when it was created.
    let asks_age =
        ["how old", "how long has", "how long is", "how long have", "since when", "what age", "how long does"]
            .iter()
            .any(|phrase| reading.says(phrase))
            || reading.has("when") && reading.has_any(&["created", "started", "start", "born"]);
    let refers = reading.pronoun
        || reading.pick.is_some()
        || reading.state.is_some()
        || !reading.names.is_empty()
        || reading.has_any(&["it", "its", "that", "this"]);
    let is_open = reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Top))
        && matches!(reading.act, None | Some(Act::Outcome | Act::History | Act::Spoken));
    if asks_age && refers && is_open && !reading.is_plural && !reading.has_any(&["you", "we", "request", "rollout"]) {
        let pronoun = reading.pronoun || reading.names.is_empty() && reading.pick.is_none() && reading.state.is_none();
        return Reading { verb: Some(Verb::Describe), act: None, is_implied: false, pronoun, ..reading };
    }
    // "How much memory does it get?" asks for the limit, not for the usage.
    let gets =
        ["does it get", "does it have", "may it use", "is it allowed", "can it use", "does that get", "does that have"]
            .iter()
            .any(|phrase| reading.says(phrase));
    let asks_amount = reading.says("how much") && reading.has_any(&["memory", "mem", "ram", "cpu"]);
    if gets && asks_amount && reading.names.is_empty() {
        return Reading {
            verb: Some(Verb::Describe),
            act: None,
            is_implied: false,
            pronoun: true,
            kind: None,
            ..reading
        };
    }
    // "Images?", after a list: those of all objects of the list.
    let is_attribute = reading.has_any(&["images", "versions", "tags", "ages"]) && reading.words.len() <= 3;
    let is_open = matches!(reading.verb, None | Some(Verb::Get)) && reading.act.is_none();
    if is_attribute && is_open && refers_to_nothing(&reading) {
        return Reading { verb: Some(Verb::Get), is_implied: false, pronoun: true, each: true, ..reading };
    }
    // "Which namespace was that in?": an answer about the object names its namespace.
    let asks_place =
        ["which namespace", "what namespace", "which ns", "what ns"].iter().any(|phrase| reading.says(phrase));
    let points = reading.has_any(&["it", "that", "this"]) && reading.kind.as_deref() == Some("namespaces");
    if asks_place
        && points
        && reading.names.is_empty()
        && reading.namespace.is_none()
        && !reading.says("that namespace")
    {
        return Reading { verb: Some(Verb::Get), act: None, is_implied: false, pronoun: true, kind: None, ..reading };
    }
    // "How often?", after a question about restarts.
    let how_often = reading.says("how often") || reading.says("how many times");
    if how_often && reading.words.len() <= 4 && reading.names.is_empty() && reading.pick.is_none() {
        return Reading { verb: Some(Verb::Get), act: None, is_implied: false, pronoun: true, ..reading };
    }
    let is_workload = reading.kind.as_deref().is_some_and(|kind| crate::kinds::WORKLOADS.contains(&kind));
    if asks_owner && is_workload && !reading.is_plural && reading.names.is_empty() && reading.asks() {
        return Reading { verb: Some(Verb::Describe), is_implied: false, pronoun: true, ..reading };
    }
    let is_meant = reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.has_any(&["limit", "limits", "controls", "owns", "owner", "manages"])
        && reading.asks()
        && !reading.is_plural
        && (reading.pronoun || reading.pick.is_some() || reading.state.is_some() || !reading.names.is_empty());
    if is_meant { Reading { verb: Some(Verb::Describe), is_implied: false, ..reading } } else { reading }
}

/// Whether a message names no object, kind or place.
fn refers_to_nothing(reading: &Reading) -> bool {
    reading.names.is_empty()
        && reading.kind.is_none()
        && reading.namespace.is_none()
        && reading.pick.is_none()
        && reading.state.is_none()
        && !reading.pronoun
}

/// "Background jobs are slow, that's the worker I believe?": a kind that is far from the name belongs to something else, if no object of the
/// kind has the name.
pub(super) fn with_kind_of_name(reading: Reading, conversation: &Conversation) -> Reading {
    let [name] = &reading.names[..] else { return reading };
    let at = |fits: &dyn Fn(&String) -> bool| reading.words.iter().position(fits);
    let kind_at = at(&|word| crate::kinds::kind_word(word).is_some_and(|kind| Some(kind.plural) == reading.kind));
    let (Some(kind_at), Some(name_at)) = (kind_at, at(&|word| word == name)) else { return reading };
    let is_read = reading.verb.is_none_or(Verb::is_read);
    let open = Reading { kind: None, is_plural: false, ..reading.clone() };
    let is_far = kind_at.abs_diff(name_at) > 3;
    let is_of_kind = refer::known(conversation, name, Verb::Describe, &reading) != Found::None;
    let is_known = refer::known(conversation, name, Verb::Describe, &open) != Found::None;
    if is_read && is_far && !is_of_kind && is_known { open } else { reading }
}

/// "Now empty it", "open it up again", directly after a node was spoken of: a drain, and the end of a cordon.
pub(super) fn with_node_emptied(reading: Reading, conversation: &Conversation) -> Reading {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| reading.says(phrase));
    let points = reading.has_any(&["it", "that", "this"]);
    let verb = match () {
        () if !points => None,
        () if reading.has_any(&["empty", "clear", "vacate"]) => Some(Verb::Drain),
        () if reading.has_any(&["open", "reopen", "unblock", "unlock"]) => Some(Verb::Uncordon),
        () if says(&[
            "back in",
            "back into",
            "put it back",
            "bring it back",
            "take it back",
            "enable it",
            "use it again",
        ]) =>
        {
            Some(Verb::Uncordon)
        }
        () if reading.has_any(&["block", "close", "lock", "disable"]) => Some(Verb::Cordon),
        () => None,
    };
    let is_plain = reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::RolloutUndo | Verb::Top))
        && reading.names.is_empty()
        && reading.act.is_none();
    let last = conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty());
    let is_node = last.is_some_and(|subjects| subjects.len() == 1 && subjects[0].kind == "nodes");
    if verb.is_none() || !is_plain || !is_node || reading.asks() && !reading.asks_politely() || reading.forbids() {
        return reading;
    }
    Reading { verb, pronoun: true, kind: None, ..reading }
}

/// "The web ones", after a list of pods: those of the list's kind that have the name.
pub(super) fn of_listed_kind(reading: Reading, conversation: &Conversation) -> Reading {
    let [name] = &reading.names[..] else { return reading };
    let is_meant = reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.kind.is_none()
        && reading.act.is_none()
        && (reading.says(&format!("{name} ones")) || reading.says(&format!("{name}s ones")));
    let listed = conversation.earlier.iter().rev().map(refer::listed).find(|list| list.len() > 1);
    let Some(kind) = listed.filter(|_| is_meant).and_then(|list| list.first().map(|object| object.kind.clone())) else {
        return reading;
    };
    Reading { verb: Some(Verb::Get), kind: Some(kind), is_plural: true, pronoun: false, each: false, ..reading }
}

/// "And the most?" after "which has the fewest replicas?", and of the names of a superlative, those that exist.
pub(super) fn with_other_extreme(mut reading: Reading, conversation: &Conversation) -> Reading {
    if reading.state.is_some_and(State::is_superlative) && reading.names.len() > 1 {
        let known = |name: &String| refer::known(conversation, name, Verb::Describe, &reading) != Found::None;
        let names: Vec<String> = reading.names.iter().filter(|name| known(name)).cloned().collect();
        return Reading { names, ..reading };
    }
    let is_never = reading.has_any(&["never", "none"]);
    let is_most = reading.has_any(&["most", "highest", "maximum"]);
    let is_least = reading.has_any(&["least", "fewest", "lowest", "minimum"]);
    let is_plain = reading.names.is_empty() && reading.state.is_none() && reading.words.len() <= 5;
    let said = conversation.earlier.last().map(|last| read(&last.said, &Lexicon::of(conversation)));
    let Some(before) = said.filter(|_| is_plain && (is_most != is_least || is_never)) else { return reading };
    reading.state = match before.state {
        Some(State::MostRestarted | State::LeastRestarted | State::MoreRestarts(_) | State::Restarted(_))
            if is_never =>
        {
            Some(State::Restarted(0))
        }
        _ if is_never => return reading,
        Some(State::MostRestarted | State::LeastRestarted) if is_most => Some(State::MostRestarted),
        Some(State::MostRestarted | State::LeastRestarted) => Some(State::LeastRestarted),
        Some(State::MostReplicas | State::LeastReplicas) if is_most => Some(State::MostReplicas),
        Some(State::MostReplicas | State::LeastReplicas) => Some(State::LeastReplicas),
        _ => return reading,
    };
    Reading { verb: Some(Verb::Get), act: None, kind: before.kind, each: reading.each || is_never, ..reading }
}
