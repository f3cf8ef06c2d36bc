//! Messages that repeat or complete an earlier request, for another object or with another value.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Requested};
use crate::offline::refer::{self, Found};
use crate::offline::words::{Act, Lexicon, Pick, Reading, Replicas, read};

use super::checks::last_changed;
use super::images::version_of;
use super::{Next, reply};

/// "Same for web" after a request that was not approved: it is not repeated for another object.
pub(super) fn repeats_what_was_refused(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let last = conversation.earlier.iter().rev().find(|exchange| !exchange.requested.is_empty())?;
    let requested = last.requested.first()?;
    let is_refused = matches!(requested.state, ApprovalState::Denied | ApprovalState::Expired);
    let repeats = reading.has_any(&["same", "too", "likewise"]) || reading.says("as well");
    let is_plain =
        reading.verb.is_none_or(|verb| verb == Verb::Get) && !reading.is_question && reading.words.len() <= 5;
    let line = requested.command.line();
    (is_refused && repeats && is_plain && !reading.repeats_look())
        .then(|| reply(format!("`{line}` was not approved, so I do not repeat it. What do you want to change?")))
}

/// Returns what a message that rules out the namespace of a request says without it: "not preprod, prod".
fn in_other_namespace(reading: &Reading, conversation: &Conversation, requested: &Requested) -> Option<Reading> {
    let own = requested.command.namespace.as_ref()?;
    let at = reading.words.windows(2).position(|pair| pair[0] == "not" && pair[1] == *own)?;
    let words: Vec<String> = reading
        .words
        .iter()
        .enumerate()
        .filter(|(other, _)| !(at..at + 2).contains(other))
        .map(|(_, word)| word.clone())
        .collect();
    let other = words.iter().find(|word| *word != own && conversation.namespaces.contains(word))?;
    Some(Reading { namespace: Some(other.clone()), words: words.clone(), ..reading.clone() })
}

/// Returns the change that was requested last, for another object: "redis-2 as well", "same for web", or after a correction "the ui
/// only".
pub(super) fn repeated(reading: &Reading, conversation: &Conversation) -> Option<Reading> {
    let last = conversation.earlier.iter().rev().take(4).find(|exchange| !exchange.requested.is_empty())?;
    // "And that in production too", after several requests: all of them are repeated elsewhere, or none.
    let is_of_several = last.requested.len() > 1 && reading.names.is_empty() && reading.pick.is_none();
    if is_of_several && reading.namespace.is_some() && reading.state.is_none() && reading.kind.is_none() {
        return None;
    }
    let elsewhere = in_other_namespace(reading, conversation, last.requested.first()?);
    let reading = elsewhere.as_ref().unwrap_or(reading);
    // A change that was carried out after a remark belongs to the remark.
    let changes = |exchange: &Exchange| {
        !exchange.requested.is_empty() || exchange.steps.iter().any(|step| !step.command.verb.is_read())
    };
    let is_newest = conversation.earlier.last().is_some_and(changes)
        || last_changed(conversation).is_some_and(|changed| std::ptr::eq(changed, last));
    let adds = reading.has_any(&["too", "also", "same", "likewise", "ditto", "similarly"]) || reading.says("as well");
    // "Same for web", after a look at another object: the look.
    let changed = refer::subjects(last);
    let is_of_change = |object: &ObjectSummary| {
        changed.iter().any(|changed| {
            let is_owner = object.owner.as_ref().is_some_and(|(_, owner)| *owner == changed.name);
            is_owner || object.name == changed.name
        }) || reading.names.contains(&object.name)
    };
    let verifies = |exchange: &&Exchange| {
        matches!(read(&exchange.said, &Lexicon::of(conversation)).act, Some(Act::Outcome | Act::Repeat))
    };
    let looks = conversation.earlier.iter().rev().take_while(|exchange| exchange.requested.is_empty());
    let looks = looks.filter(|exchange| !verifies(exchange));
    let mut seen = looks.map(refer::subjects).filter(|subjects| !subjects.is_empty());
    let names_change = reading.has_any(&["change", "restart", "scaling", "treatment", "fix", "update", "label"]);
    let means_seen =
        reading.says("same for that one") || reading.says("same for this one") || reading.says("same for it");
    let looked_elsewhere =
        seen.next().is_some_and(|subjects| !subjects.iter().any(is_of_change)) && !names_change && !means_seen;
    let first = reading
        .words
        .iter()
        .find(|word| !matches!(&***word, "ok" | "okay" | "good" | "great" | "thanks" | "cool" | "alright"));
    let continues = is_newest && first.is_some_and(|word| matches!(&**word, "and" | "now" | "then" | "next" | "plus"));
    let requested = last.requested.first()?;
    let is_void = matches!(requested.state, ApprovalState::Void | ApprovalState::Denied);
    // "Ok grafana then", after a request that was denied.
    let ends_with_then = reading.words.last().is_some_and(|word| matches!(&**word, "then" | "instead"));
    let is_next = is_newest && ends_with_then && reading.names.len() == 1 && reading.words.len() <= 5;
    // "Ok grafana then", after "same for loki", which does not exist.
    let failed = conversation.earlier.last().is_some_and(|last| {
        refer::subjects(last).is_empty()
            && last.requested.is_empty()
            && read(&last.said, &Lexicon::of(conversation)).has("same")
    });
    let retries = failed && ends_with_then && reading.names.len() == 1 && reading.words.len() <= 5;
    let corrects = retries
        || !conversation.withdrawn.is_empty()
        || is_void && (reading.has_any(&["meant", "mean", "wanted"]) || is_next);
    let command = &requested.command;
    let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Consent | Act::Refusal));
    // "Same label on web" names the change before it.
    let is_noun = ["same label", "same annotation", "same restart", "same image", "same limit", "same scale"]
        .iter()
        .any(|phrase| reading.says(phrase))
        && reading.verb.is_none_or(|verb| verb == command.verb);
    let has_verb = !is_noun
        && reading.verb.is_some_and(|verb| verb != Verb::Get || !reading.is_implied && reading.words.len() > 5);
    if !(adds && !looked_elsewhere || corrects || continues)
        || is_other
        || has_verb
        || reading.asks()
        // "Same question for web".
        || reading.repeats_look()
        || command.verb == Verb::Apply
    {
        return None;
    }
    // "And web, hows that doing", "web looks fine too": a question or a statement asks for no change.
    let asks_in_passing =
        reading.has_any(&["how", "hows", "what", "whats", "why", "when", "where", "which", "who", "doing", "status"]);
    let states = reading.has_any(&[
        "is", "are", "was", "were", "looks", "look", "seems", "has", "had", "runs", "works", "fails", "crashes",
        "isnt", "arent", "fine", "busy", "slow", "broken",
    ]);
    // "Show me team-b as well".
    let looks = ["show", "list", "describe", "logs", "see", "check", "look", "display"];
    if reading.has_any(&looks) && !corrects && command.verb != Verb::Get {
        return None;
    }
    let repeats = reading.says("same for") || reading.says("the same") || reading.has("do") || corrects;
    if asks_in_passing && !corrects && !reading.says("what about") && !reading.says("how about") || states && !repeats {
        return None;
    }
    // "Same for the other pod", after the logs of a pod: a look.
    let is_look = |exchange: &Exchange| {
        exchange.requested.is_empty()
            && exchange.steps.iter().any(|step| {
                matches!(step.command.verb, Verb::Logs | Verb::Describe | Verb::Events)
                    && step.command.kind.as_deref() == Some("pods")
            })
    };
    if conversation.earlier.last().is_some_and(is_look) && reading.kind.as_deref() == Some("pods") && !names_change {
        return None;
    }
    // "And the logs?", "now 5 lines": about something else.
    let is_about_logs =
        reading.tail.is_some() || reading.since_seconds.is_some() || reading.previous || reading.as_yaml;
    let is_refused = matches!(requested.state, ApprovalState::Denied | ApprovalState::Expired) && !corrects;
    if is_about_logs || continues && !adds && (is_refused || reading.words.len() > 7) {
        return None;
    }
    // "Put that one on prod too" moves an image, and repeats nothing else.
    let moves =
        reading.has_any(&["put", "ship", "promote", "release", "deploy", "push", "take", "bring", "move", "roll"]);
    let is_share = reading.has_any(&["half", "halve", "double", "triple"]);
    if moves && command.verb != Verb::SetImage || is_share {
        return None;
    }
    // "Set the internal one to that too" gives a value, and "the worker too, to its staging image" another one.
    let gives = reading.has_any(&["set", "make", "give", "change", "update", "upgrade"]);
    let has_value = matches!(
        command.verb,
        Verb::SetImage | Verb::Scale | Verb::SetEnv | Verb::SetResources | Verb::Label | Verb::Annotate
    );
    let names_image = reading.has_any(&["image", "version", "tag"]) && !reading.has("same");
    if gives && !has_value || names_image && command.verb == Verb::SetImage {
        return None;
    }
    // "And leaderboard, both regions": not in one of them only.
    if reading.has("both") && reading.names.len() == 1 {
        return None;
    }
    let mut names = reading.names.clone();
    let mut namespace = reading.namespace.clone();
    // "Same for backend": if there is no such namespace, it is an object.
    if let Some(name) = namespace.take_if(|name| names.is_empty() && !conversation.namespaces.contains(name)) {
        names.push(name);
    }
    let mut kind = reading.kind.clone();
    // "6 there as well": the same object, where the conversation is.
    if names.is_empty() && reading.has("there") && namespace.is_none() && reading.pick.is_none() {
        namespace = refer::last_namespace(conversation).filter(|there| Some(there) != command.namespace.as_ref());
        names.extend(command.name.clone().filter(|_| namespace.is_some()));
        kind.clone_from(&command.kind);
    }
    // "Put that one on staging too", "and in staging too".
    let is_whole = reading.kind.is_none() && reading.pick.is_none() && reading.state.is_none();
    let is_elsewhere = names.is_empty() && is_newest && adds && is_whole;
    if is_elsewhere && namespace.as_ref().is_some_and(|there| command.namespace.as_ref() != Some(there)) {
        names.extend(command.name.clone());
        kind.clone_from(&command.kind);
    }
    // "Same for that one then", after a look at another object.
    let is_pronoun = ["that one", "this one", "it"].iter().any(|phrase| reading.says(phrase));
    if names.is_empty()
        && adds
        && is_pronoun
        && is_whole
        && let Found::One(object) = refer::focus(conversation, command.verb, None, None)
        && Some(&object.name) != command.name.as_ref()
    {
        kind = Some(object.kind);
        namespace = namespace.or(Some(object.namespace)).filter(|namespace| !namespace.is_empty());
        names.push(object.name);
    }
    // "I wanted staging": the same object there.
    if names.is_empty() && corrects && namespace.is_some() && namespace != command.namespace {
        names.extend(command.name.clone());
        kind.clone_from(&command.kind);
    }
    if names.is_empty() && reading.pick.is_none() && reading.state.is_none()
        || reading.has_any(&["not", "except", "without", "dont", "never", "leave", "keep", "skip", "spare"])
    {
        return None;
    }
    // A correction never repeats the request that it takes back.
    let is_back = names.iter().all(|name| command.name.as_ref() == Some(name)) && !names.is_empty();
    if corrects
        && !adds
        && is_back
        && namespace.as_ref().is_none_or(|there| command.namespace.as_ref() == Some(there))
        && reading.amount().is_none()
    {
        return None;
    }
    let is_same_object = command.name.as_ref().is_some_and(|name| names.contains(name));
    let image = match is_same_object && reading.version.is_none() {
        _ if reading.image.is_some() => reading.image.clone(),
        true => command.image.clone(),
        false => same_source(command, conversation, &names),
    };
    if kind.is_none() && matches!(command.verb, Verb::Delete | Verb::Label | Verb::Annotate) {
        kind.clone_from(&command.kind);
    }
    Some(Reading {
        act: None,
        verb: Some(command.verb),
        is_implied: false,
        kind,
        names,
        namespace: namespace.or_else(|| command.namespace.clone()),
        replicas: reading
            .replicas
            .or_else(|| reading.amount().map(Replicas::To))
            .or_else(|| relative_replicas(last, conversation))
            .or_else(|| command.replicas.map(Replicas::To)),
        // Another object has another image: only the version is the same.
        image,
        version: reading.version.clone().or_else(|| command.image.as_deref().and_then(version_of).map(str::to_owned)),
        limits: if reading.limits.is_empty() { command.limits.clone() } else { reading.limits.clone() },
        requests: if reading.requests.is_empty() { command.requests.clone() } else { reading.requests.clone() },
        values: if reading.values.is_empty() { command.values.clone() } else { reading.values.clone() },
        revision: reading.revision,
        program: command.program.clone(),
        pronoun: false,
        each: false,
        ..reading.clone()
    })
}

/// "Down by one", and then another object: the change of the number counts, not the number that came of it.
pub(super) fn relative_replicas(exchange: &Exchange, conversation: &Conversation) -> Option<Replicas> {
    let at = conversation.earlier.iter().position(|other| std::ptr::eq(other, exchange))?;
    // The answer to a question completes the message before it.
    let asked = conversation.earlier[..at].iter().rev().take_while(|before| before.asked);
    let said = std::iter::once(exchange).chain(asked).map(|exchange| read(&exchange.said, &Lexicon::of(conversation)));
    let given = said.filter_map(|reading| reading.replicas).next();
    given.filter(|given| matches!(given, Replicas::By(_) | Replicas::Times(_) | Replicas::Half))
}

/// "Seatmap too" after `booking` got its image from stage: the image of `seatmap` in stage. `None` if the first image came from no namespace.
pub(super) fn same_source(command: &Command, conversation: &Conversation, names: &[String]) -> Option<String> {
    let image = command.image.as_deref().filter(|_| command.verb == Verb::SetImage)?;
    let [name] = names else { return None };
    let known = conversation.mentioned.iter().flatten();
    let all: Vec<&ObjectSummary> =
        known.chain(conversation.earlier.iter().rev().flat_map(refer::shown_objects)).collect();
    let source = all.iter().find(|object| {
        Some(&object.name) == command.name.as_ref()
            && object.image == image
            && Some(&object.namespace) != command.namespace.as_ref()
    })?;
    let mut twins = all.iter().filter(|object| {
        object.namespace == source.namespace
            && object.kind == source.kind
            && crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit == 0)
    });
    twins.next().map(|twin| twin.image.clone()).filter(|image| !image.is_empty())
}

/// If a message answers the assistant's question, completes it with what the user had asked before.
pub(super) fn completed(reading: Reading, conversation: &Conversation) -> Reading {
    let Some(last) = conversation.earlier.last().filter(|last| last.asked) else { return reading };
    let words = reading.words.clone();
    // "The one that's not ready" excludes nothing.
    let reading = if reading.state.is_some() { reading } else { reading.without_what_is_excluded() };
    // "Fair enough" answers nothing, so the request must not be made again.
    let answers_nothing = reading.kind.is_none()
        && reading.names.is_empty()
        && reading.namespace.is_none()
        && reading.pick.is_none()
        && reading.state.is_none()
        && reading.replicas.is_none()
        && reading.only_number().is_none()
        && reading.image.is_none()
        && reading.version.is_none()
        && reading.container.is_none()
        && reading.limits.is_empty()
        && reading.requests.is_empty()
        && !reading.each;
    if answers_nothing {
        return reading;
    }
    // "Ok, 5 then" and "512Mi" have no verb of their own.
    let is_value = reading.is_only_number()
        || reading.verb == Some(Verb::SetResources) && reading.change_verbs().is_empty() && reading.words.len() <= 4;
    // "The one that's not fully ready".
    let is_choice = reading.state.is_some()
        && reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.words.first().is_some_and(|word| matches!(&**word, "the" | "that"));
    let names_verb = reading.verb.is_some_and(|verb| verb != Verb::Get) && !is_value
        || (reading.verb.is_some() && !reading.is_implied && reading.words.len() > 3 && !is_choice);
    let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Consent))
        || reading.asks()
        || reading.has_any(&["dont", "except", "leave", "what", "why", "where", "none", "neither", "images"])
        || reading.state.is_none() && reading.has_any(&["not", "never", "without"]);
    // An answer names an object; a sentence with more names is about something else.
    // "Promote checkout from staging to prod", after a question about `api`: a message about another object is no answer.
    let is_offered = |name: &String| {
        last.offered.iter().any(|object| {
            crate::cluster::likeness(&object.name, name).is_some() || object.namespace == *name || object.kind == *name
        })
    };
    let is_about_other = !last.offered.is_empty()
        && reading.words.len() > 3
        && !reading.names.is_empty()
        && !reading.names.iter().any(is_offered);
    if names_verb || is_other || is_about_other || reading.names.len() > 2 {
        return reading;
    }
    // "Fine, just the pods in prod then" asks for a list, and answers no question about a change.
    let is_list = reading.is_plural
        && reading.kind.is_some()
        && reading.namespace.is_some()
        && reading.names.is_empty()
        && reading.pick.is_none()
        && reading.state.is_none();
    // "3" to "how many?", and then "web" to "which?": all answers complete the first request.
    let said = read(&last.said, &Lexicon::of(conversation));
    let mut shorter = conversation.clone();
    shorter.earlier.pop();
    // "No, I meant the uploader pod" repeated the request before it for another object.
    let mut before = repeated(&said, &shorter).unwrap_or_else(|| completed(said, &shorter));
    if before.verb.is_none() {
        return reading;
    }
    if is_list && before.verb.is_some_and(|verb| !verb.is_read()) {
        return reading;
    }
    // "Both", after a choice of three.
    if reading.refers_to_two() && last.offered.len() > 2 {
        return reading;
    }
    before.act = None;
    if let Some(object) = chosen(&reading, &words, conversation) {
        before.names = vec![object.name];
        before.kind = Some(object.kind);
        before.namespace = Some(object.namespace).filter(|namespace| !namespace.is_empty()).or(before.namespace);
        (before.pick, before.state, before.is_plural) = (None, None, false);
        (before.pronoun, before.each) = (false, false);
        // The answer does not leave open any more which of them is meant.
        before.words.retain(|word| word != "one");
        before.replicas = before
            .replicas
            .or(reading.replicas)
            .or_else(|| reading.amount().filter(|_| before.verb == Some(Verb::Scale)).map(Replicas::To));
        before.image = reading.image.or(before.image);
        before.version = reading.version.or(before.version);
        before.container = reading.container.or(before.container);
        return before;
    }
    if reading.kind.is_some() {
        before.kind.clone_from(&reading.kind);
        before.is_plural = false;
    }
    if !reading.names.is_empty() {
        before.names.clone_from(&reading.names);
        before.pronoun = false;
    }
    // "The thumbs one": the pod that was offered, not its deployment.
    if let [name] = &reading.names[..]
        && reading.kind.is_none()
    {
        let is_named = |object: &&ObjectSummary| {
            crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3)
                && reading.namespace.as_ref().is_none_or(|there| object.namespace == *there)
        };
        if let [only] = last.offered.iter().filter(is_named).collect::<Vec<_>>()[..] {
            before.names = vec![only.name.clone()];
            before.kind = Some(only.kind.clone());
            before.is_plural = false;
        }
    }
    if reading.namespace.is_some() {
        before.namespace.clone_from(&reading.namespace);
    }
    if reading.pick.is_some() {
        before.pick = reading.pick;
    }
    if reading.state.is_some() {
        before.state = reading.state;
        before.names.clear();
    }
    // "The 2" and "2" choose the second of the candidates, unless a number of replicas was asked for.
    let replicas = reading.replicas.or_else(|| {
        reading.amount().filter(|_| before.verb == Some(Verb::Scale) && !reading.names.is_empty()).map(Replicas::To)
    });
    if let (Some(Replicas::To(number @ 1..)), None) = (replicas, reading.state) {
        if before.verb == Some(Verb::Scale) && before.replicas.is_none() {
            before.replicas = replicas;
            before.words.retain(|word| !word.starts_with('-'));
        } else {
            before.pick = Some(Pick::At(number as usize - 1));
        }
    }
    // "Both", "just pay and mail".
    before.each |= reading.each || reading.names.len() > 1 && reading.has("and");
    if !reading.limits.is_empty() || !reading.requests.is_empty() {
        (before.limits, before.requests) = (reading.limits, reading.requests);
    }
    before.image = reading.image.or(before.image);
    before.container = reading.container.or(before.container);
    before
}

/// Returns the object that an answer chooses among those that the last question offered, by any parts of its description that the answer
/// has. `words` are those of the whole answer, also of what it excludes. `None` if several fit, or if the answer says something else.
fn chosen(reading: &Reading, words: &[String], conversation: &Conversation) -> Option<ObjectSummary> {
    let last = conversation.earlier.last().filter(|last| last.offered.len() > 1)?;
    // "Not production, the other".
    let excluded = |object: &&ObjectSummary| {
        words.windows(2).any(|pair| pair[0] == "not" && (object.namespace == pair[1] || object.name == pair[1]))
    };
    if reading.pick == Some(Pick::Other) && last.offered.iter().any(|object| excluded(&object)) {
        let mut others = last.offered.iter().filter(|object| !excluded(object));
        return others.next().filter(|_| others.next().is_none()).cloned();
    }
    let says_which = !reading.names.is_empty() || reading.namespace.is_some() || reading.kind.is_some();
    if !says_which || reading.pick.is_some() || reading.state.is_some() || reading.each || reading.names.len() > 1 {
        return None;
    }
    let has_name = |object: &ObjectSummary, name: &String| {
        [&object.name, &object.namespace]
            .into_iter()
            .any(|own| crate::cluster::likeness(own, name).is_some_and(|fit| fit < 3))
    };
    let fits = |object: &&ObjectSummary| {
        reading.names.iter().all(|name| has_name(object, name))
            && reading.namespace.as_ref().is_none_or(|place| object.namespace == *place)
            && reading.kind.as_ref().is_none_or(|kind| object.kind == *kind || kind == "namespaces")
    };
    let fitting: Vec<&ObjectSummary> = last.offered.iter().filter(fits).collect();
    let exact: Vec<&ObjectSummary> =
        fitting.iter().copied().filter(|object| reading.names.contains(&object.name)).collect();
    match (&fitting[..], &exact[..]) {
        ([only], _) | (_, [only]) => Some((*only).clone()),
        _ => None,
    }
}
