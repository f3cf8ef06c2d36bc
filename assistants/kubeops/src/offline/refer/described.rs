//! Objects that a noun phrase describes. All parts of the description must fit: a word that fits nothing is never dropped.

use crate::cluster::{ObjectSummary, likeness};
use crate::command::Verb;
use crate::conversation::{Conversation, Exchange};
use crate::kinds::kind_word;
use crate::offline::words::{Age, Description, Lexicon, Pick, Reading, State, read};

use super::picks::without_owner;
use super::{Found, by_creation, by_version, completed, listed, shown_objects, subjects, unique, was_deleted};

/// Returns how a word fits an object: 0 is its whole name, 1 a part of it, 2 its namespace, 3 its image. `None` if it does not fit.
pub(in crate::offline) fn fit_of(object: &ObjectSummary, word: &str, lexicon: &Lexicon) -> Option<u8> {
    let of_name = |word: &str| {
        let owner = object.owner.as_ref().map(|(_, owner)| owner);
        let fits = std::iter::once(&object.name).chain(owner).filter_map(|name| likeness(name, word));
        fits.filter(|fit| *fit < 3).min().map(|fit| fit.min(1))
    };
    let alias = match word {
        "production" => "prod",
        "prod" => "production",
        "stage" | "stg" => "staging",
        "dev" => "development",
        _ => word,
    };
    let is_place = [word, alias].iter().any(|word| likeness(&object.namespace, word).is_some_and(|fit| fit < 3));
    let (program, tag) = object.image.rsplit_once(':').unwrap_or((&object.image, ""));
    let program = program.rsplit('/').next().unwrap_or_default();
    let is_image = word.len() > 2 && program.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
        || !tag.is_empty() && (word == tag || word == object.image || word.strip_prefix('v') == Some(tag));
    of_name(word)
        .or_else(|| is_place.then_some(2))
        .or_else(|| is_image.then_some(3))
        .or_else(|| lexicon.linked(word).and_then(|linked| of_name(&linked)))
}

/// Keeps the objects to which all words of a description apply. For each word, those that it fits best.
fn with_words(mut objects: Vec<ObjectSummary>, description: &Description, lexicon: &Lexicon) -> Vec<ObjectSummary> {
    let has_kind = |object: &ObjectSummary| description.kind.as_ref().is_none_or(|kind| *kind == object.kind);
    let is_there = |object: &ObjectSummary| description.place.as_ref().is_none_or(|place| *place == object.namespace);
    let is_on = |object: &ObjectSummary| description.node.as_ref().is_none_or(|node| *node == object.node);
    objects.retain(|object| has_kind(object) && is_there(object) && is_on(object));
    for word in &description.words {
        let best = objects.iter().filter_map(|object| fit_of(object, word, lexicon)).min();
        objects.retain(|object| best.is_some() && fit_of(object, word, lexicon) == best);
    }
    objects.retain(|object| {
        !description.without.iter().any(|word| fit_of(object, word, lexicon).is_some_and(|fit| fit < 2))
    });
    objects
}

/// Returns the objects that a description means.
pub(in crate::offline) fn described(
    conversation: &Conversation,
    description: &Description,
    lexicon: &Lexicon,
) -> Found {
    if let Some(verb) = description.asked_for.as_deref() {
        return asked_for(conversation, verb);
    }
    if description.is_opposite {
        return opposite(conversation, description, lexicon);
    }
    if let Some(age) = description.age {
        return of_age(conversation, age, description, lexicon);
    }
    for exchange in conversation.earlier.iter().rev() {
        if let Some(twin) = twin(conversation, exchange, description, lexicon) {
            return Found::One(twin);
        }
        let list = without_owner(unique(listed(exchange)), description.kind.is_some());
        let is_counted = description.count.is_none_or(|count| list.len() == count);
        if list.len() < 2 || !is_counted || !is_list_of(&list, description) {
            continue;
        }
        let list = list.into_iter().map(|object| completed(conversation, object)).collect();
        let found = selected(conversation, list, description, lexicon);
        if !found.is_empty() {
            return Found::of(found);
        }
    }
    if description.list.is_some() {
        return Found::None;
    }
    // Without a list: the objects that were spoken of, and those of the cluster that the message may mean.
    let spoken = conversation.earlier.iter().rev().map(subjects).filter(|subjects| subjects.len() == 1).flatten();
    let is_compared = description.state.is_some_and(State::is_superlative);
    let mentioned = conversation.mentioned.iter().flatten().filter(|_| !is_compared).cloned();
    let all = unique(spoken.chain(mentioned).collect());
    let all = all.into_iter().map(|object| completed(conversation, object)).collect();
    let found = selected(conversation, all, description, lexicon);
    // A position needs a list.
    if description.position.is_some() { Found::None } else { Found::of(found) }
}

/// Returns the objects of a list that a description means.
fn selected(
    conversation: &Conversation,
    list: Vec<ObjectSummary>,
    description: &Description,
    lexicon: &Lexicon,
) -> Vec<ObjectSummary> {
    let mut found = with_words(list, description, lexicon);
    found.retain(|object| !was_deleted(conversation, object));
    if let Some(state) = description.state {
        if state.is_superlative() && found.len() < 2 {
            return Vec::new();
        }
        found = state.filter(&found);
    }
    if description.is_other
        && let Some(spoken) = spoken_last(conversation, &found)
    {
        found.retain(|object| !object.is_same(&spoken));
    }
    match description.position {
        None => found,
        Some(Pick::At(at)) => found.get(at).cloned().into_iter().collect(),
        Some(Pick::Last) => found.last().cloned().into_iter().collect(),
        Some(Pick::Middle) if found.len() % 2 == 1 => vec![found[found.len() / 2].clone()],
        Some(_) => Vec::new(),
    }
}

/// Returns the object of several that was spoken of last, alone: itself, or a pod of it.
fn spoken_last(conversation: &Conversation, objects: &[ObjectSummary]) -> Option<ObjectSummary> {
    let singles = conversation.earlier.iter().rev().map(subjects).filter(|subjects| subjects.len() == 1).flatten();
    let mut spoken = singles.filter_map(|spoken| {
        let spoken = super::subjects::with_owner(conversation, spoken);
        let is_meant = |object: &&ObjectSummary| {
            object.is_same(&spoken)
                || object.namespace == spoken.namespace
                    && spoken.owner.as_ref().is_some_and(|(kind, name)| (kind, name) == (&object.kind, &object.name))
        };
        objects.iter().find(is_meant).cloned()
    });
    spoken.next()
}

/// "The qa one", "the one in beta": the object of the same kind and name as the one that an exchange was about, in the namespace.
fn twin(
    conversation: &Conversation,
    exchange: &Exchange,
    description: &Description,
    lexicon: &Lexicon,
) -> Option<ObjectSummary> {
    let is_plain = description.state.is_none()
        && description.position.is_none()
        && description.without.is_empty()
        && description.node.is_none()
        && (!description.words.is_empty() || description.place.is_some());
    let [spoken] = &subjects(exchange)[..] else { return None };
    if !is_plain || description.kind.as_ref().is_some_and(|kind| *kind != spoken.kind) {
        return None;
    }
    let is_there = |object: &ObjectSummary| {
        description.place.as_ref().is_none_or(|place| *place == object.namespace)
            && description.words.iter().all(|word| {
                let fit = fit_of(object, word, lexicon);
                fit == Some(2) || fit.is_some() && description.words.len() > 1
            })
            && description.words.iter().any(|word| fit_of(object, word, lexicon) == Some(2))
                | description.place.is_some()
    };
    let shown =
        conversation.earlier.iter().rev().flat_map(shown_objects).chain(conversation.mentioned.iter().flatten());
    let is_twin =
        |object: &&ObjectSummary| object.kind == spoken.kind && object.name == spoken.name && is_there(object);
    let found = unique(std::iter::once(spoken).chain(shown).filter(is_twin).cloned().collect());
    let [only] = &found[..] else { return None };
    (!description.is_other || !only.is_same(spoken)).then(|| only.clone())
}

/// Whether a list is the one that a description names: "on the crm list".
fn is_list_of(list: &[ObjectSummary], description: &Description) -> bool {
    description.list.as_ref().is_none_or(|word| {
        let kind = kind_word(word).map(|kind| kind.plural);
        list.iter().all(|object| {
            kind.as_ref() == Some(&object.kind) || likeness(&object.namespace, word).is_some_and(|fit| fit < 3)
        })
    })
}

/// "The one I wanted to scale": the object of the newest request of that change.
fn asked_for(conversation: &Conversation, verb: &str) -> Found {
    let is_meant = |verb_of_request: Verb| match verb_of_request {
        Verb::Scale => verb.starts_with("scal"),
        Verb::RolloutRestart => verb.starts_with("restart") || verb.starts_with("bounc"),
        Verb::Delete => verb.starts_with("delet") || verb.starts_with("kill"),
        Verb::SetImage => verb.starts_with("updat"),
        Verb::RolloutUndo => verb.starts_with("roll") || verb.starts_with("undo"),
        _ => false,
    };
    let asks = |exchange: &&Exchange| exchange.requested.iter().any(|requested| is_meant(requested.command.verb));
    conversation.earlier.iter().rev().find(asks).map_or(Found::None, |exchange| Found::of(subjects(exchange)))
}

/// "Are the first two ready?", and then "the one that isn't".
fn opposite(conversation: &Conversation, description: &Description, lexicon: &Lexicon) -> Found {
    let Some(last) = conversation.earlier.last() else { return Found::None };
    let asked: Reading = read(&last.said, lexicon);
    let state = match asked.state {
        Some(State::Healthy) => State::Unhealthy,
        Some(state) if !state.is_superlative() => State::Healthy,
        Some(_) => return Found::None,
        None if asked.has("ready") => State::NotReady,
        None if asked.has_any(&["healthy", "ok", "okay", "fine", "up", "running", "good"]) => State::Unhealthy,
        None => return Found::None,
    };
    Found::of(state.filter(&with_words(subjects(last), description, lexicon)))
}

/// "The older of the two": by the version of the image, of two objects that run the same program, or else the pod that was created first.
fn of_age(conversation: &Conversation, age: Age, description: &Description, lexicon: &Lexicon) -> Found {
    let word = if age == Age::Older { "older" } else { "newer" };
    let question = Reading { names: description.words.clone(), ..read(word, lexicon) };
    if let Some((meant, _)) = by_version(&conversation.earlier, &question) {
        return Found::of(with_words(vec![meant], description, lexicon));
    }
    // "The newest one", after a list that shows the pod that replaced another one.
    if age == Age::Newer
        && description.words.is_empty()
        && let Found::One(new) = super::newly_listed(conversation, Verb::Describe)
    {
        return Found::One(new);
    }
    match by_creation(&conversation.earlier, &question) {
        Some((meant, _)) => Found::of(with_words(vec![meant], description, lexicon)),
        None => Found::None,
    }
}
