//! Two objects of one kind and name in two namespaces: making one like the other, and whether objects are equal.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Step};
use crate::kinds::WORKLOADS;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Lexicon, Pick, Reading, Replicas, read};

use super::images::is_same_program;
use super::repeat::twins;
use super::{Next, reply};

/// How many exchanges back a question says in which value two objects are compared.
const RECENT: usize = 4;
/// The maximum number of objects that are compared.
const MAX_COMPARED: usize = 5;
/// The maximum number of words of a question whether objects are equal.
const MAX_WORDS_OF_COMPARISON: usize = 7;
/// Verbs that change the value of an object.
const MOVES: [&str; 21] = [
    "put",
    "bring",
    "set",
    "update",
    "upgrade",
    "downgrade",
    "bump",
    "move",
    "make",
    "give",
    "switch",
    "roll",
    "take",
    "change",
    "raise",
    "lower",
    "get",
    "scale",
    "match",
    "align",
    "sync",
];
/// Phrases for the opposite of the last request.
const REVERSED: [&str; 7] =
    ["the reverse", "other way round", "other way around", "the other way", "vice versa", "the opposite", "way around"];

/// What two objects are compared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Image,
    Replicas,
}

impl Value {
    /// Returns the value that the words of a message name; `None` if they name both or none.
    fn named(reading: &Reading) -> Option<Self> {
        let is_image = reading.has_any(&[
            "image",
            "images",
            "version",
            "versions",
            "tag",
            "tags",
            "release",
            "upgrade",
            "downgrade",
            "update",
            "bump",
        ]);
        let is_number =
            reading.has_any(&["replicas", "replica", "count", "number", "scale", "size", "copies", "instances"])
                || reading.says("as many")
                || reading.says("how many");
        match (is_image, is_number) {
            (true, false) => Some(Self::Image),
            (false, true) => Some(Self::Replicas),
            (false, false) if reading.has_any(&["newer", "older", "outdated"]) => Some(Self::Image),
            _ => None,
        }
    }

    /// Returns the value that the conversation was about last.
    fn spoken_of(conversation: &Conversation) -> Option<Self> {
        let of_exchange = |exchange: &Exchange| {
            let requested = exchange.requested.first().and_then(|requested| match requested.command.verb {
                Verb::Scale => Some(Self::Replicas),
                Verb::SetImage => Some(Self::Image),
                _ => None,
            });
            requested.or_else(|| Self::named(&read(&exchange.said, &Lexicon::of(conversation))))
        };
        conversation.earlier.iter().rev().take(RECENT).find_map(of_exchange)
    }

    /// Returns the value of an object in words; `None` if it is not known.
    fn of(self, object: &ObjectSummary) -> Option<String> {
        match self {
            Self::Image => Some(object.image.clone()).filter(|image| !image.is_empty()),
            Self::Replicas => object.replicas.map(|count| count.to_string()),
        }
    }
}

/// Two objects of one kind and name.
struct Pair {
    one: ObjectSummary,
    other: ObjectSummary,
    /// Whether the first one was spoken of last, alone.
    is_focused: bool,
}

/// Returns the two objects of one kind and name that the conversation was about last.
fn pair(conversation: &Conversation) -> Option<Pair> {
    let is_workload = |object: &ObjectSummary| WORKLOADS.contains(&&*object.kind);
    let newest =
        conversation.earlier.iter().rev().find(|exchange| refer::subjects(exchange).iter().any(is_workload))?;
    let subjects = refer::subjects(newest);
    let fits = |name: &String| {
        subjects.iter().any(|object| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3))
    };
    // "How does cart differ between the two?", after two lists.
    let said = conversation
        .earlier
        .iter()
        .rev()
        .take(RECENT)
        .map(|exchange| read(&exchange.said, &Lexicon::of(conversation)).names);
    let names =
        said.map(|names| names.into_iter().filter(fits).collect::<Vec<String>>()).find(|names| !names.is_empty());
    let names = names.unwrap_or_default();
    let is_named = |object: &ObjectSummary| {
        names.iter().any(|name| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3))
    };
    let mut spoken: Vec<ObjectSummary> = subjects.iter().filter(|object| is_workload(object)).cloned().collect();
    if spoken.iter().any(is_named) {
        spoken.retain(is_named);
    }
    if let [only] = &spoken[..] {
        let all = twins(conversation, only);
        let [one, other] = &all[..] else { return None };
        // "Which of the two has the newer image?", answered in words: the one that the answer named was spoken of last.
        let is_other = |object: &ObjectSummary| object.name == other.name && object.namespace == other.namespace;
        let is_named_last =
            matches!(refer::focus(conversation, Verb::SetImage, None, None), Found::One(focus) if is_other(&focus));
        let (one, other) = if is_named_last { (other, one) } else { (one, other) };
        return Some(Pair { one: current(one, conversation), other: current(other, conversation), is_focused: true });
    }
    let mut pairs = spoken.iter().enumerate().filter_map(|(at, one)| {
        let is_twin = |other: &&ObjectSummary| {
            other.kind == one.kind && other.name == one.name && other.namespace != one.namespace
        };
        let is_first = spoken[..at].iter().find(is_twin).is_none();
        let all: Vec<&ObjectSummary> = spoken.iter().filter(is_twin).collect();
        match all[..] {
            [other] if is_first => Some((one, other)),
            _ => None,
        }
    });
    let (one, other) = pairs.next().filter(|_| pairs.next().is_none())?;
    Some(Pair { one: current(one, conversation), other: current(other, conversation), is_focused: false })
}

/// Returns the workload that was spoken of last, and the one of the same kind and name in a namespace.
fn pair_in(place: &str, conversation: &Conversation) -> Option<Pair> {
    let Found::One(one) = refer::focus(conversation, Verb::SetImage, None, None) else { return None };
    let is_twin = |object: &&ObjectSummary| {
        object.kind == one.kind && object.name == one.name && object.namespace == place && one.namespace != place
    };
    let other = conversation.mentioned.iter().flatten().find(is_twin)?;
    Some(Pair { one: current(&one, conversation), other: other.clone(), is_focused: true })
}

/// Returns the object in a namespace of the two that the conversation was about last.
pub(super) fn one_in(place: &str, conversation: &Conversation) -> Option<ObjectSummary> {
    let pair = pair(conversation)?;
    [pair.one, pair.other].into_iter().find(|object| object.namespace == place)
}

/// Returns an object with its values as the cluster or the newest answer shows them.
fn current(object: &ObjectSummary, conversation: &Conversation) -> ObjectSummary {
    let shown = conversation.earlier.iter().rev().flat_map(refer::shown_objects);
    let mut known = conversation.mentioned.iter().flatten().chain(shown).filter(|other| other.is_same(object));
    known.find(|other| !other.image.is_empty() || other.replicas.is_some()).unwrap_or(object).clone()
}

/// "Make staging match the other", "put it on the same tag as the other", "downgrade staging to that", "no, the other way round": one of
/// two objects gets the value of the other. `None` for other messages.
pub(super) fn made_alike(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let is_open = reading.image.is_none()
        && reading.version.is_none()
        && reading.values.is_empty()
        && reading.limits.is_empty()
        && reading.requests.is_empty()
        && reading.manifest.is_none()
        && matches!(reading.replicas, None | Some(Replicas::Same(0)))
        && reading.verb.is_none_or(|verb| verb.is_read() || matches!(verb, Verb::Scale | Verb::SetImage))
        && (!reading.asks() || reading.asks_politely())
        && !reading.forbids()
        && !reading.has_condition();
    let is_reversed = REVERSED.iter().any(|phrase| reading.says(phrase));
    if !is_open || !reading.has_any(&MOVES) && !is_reversed {
        return None;
    }
    if let Some(command) = updated_to_newer(reading, conversation) {
        return Some(Next::Run(vec![command]));
    }
    let pair = pair(conversation).or_else(|| pair_in(reading.namespace.as_deref()?, conversation))?;
    let fits_pair = |name: &String| {
        crate::cluster::likeness(&pair.one.name, name).is_some_and(|fit| fit < 3)
            || [&pair.one, &pair.other].iter().any(|object| object.namespace == *name)
    };
    let is_of_kind = reading.kind.as_ref().is_none_or(|kind| *kind == pair.one.kind);
    if !reading.names.iter().all(fits_pair) || !is_of_kind {
        return None;
    }
    if is_reversed {
        return reversed(&pair, conversation);
    }
    let (target, source) = target_and_source(reading, &pair, conversation)?;
    let differs = |value: Value| value.of(target).is_some() && value.of(target) != value.of(source);
    let value = Value::named(reading).or_else(|| Value::spoken_of(conversation)).or_else(|| {
        match (differs(Value::Image), differs(Value::Replicas)) {
            (true, false) => Some(Value::Image),
            (false, true) => Some(Value::Replicas),
            _ => None,
        }
    })?;
    if value.of(source).is_some() && value.of(source) == value.of(target) {
        return Some(reply(format!(
            "{} and {} already have the same: {}.",
            answers::label(target),
            answers::label(source),
            value.of(source).unwrap_or_default()
        )));
    }
    changed(target, source, value).map(|command| Next::Run(vec![command]))
}

/// Returns which of two objects is changed, and which has the value; `None` if the words do not say it.
fn target_and_source<'a>(
    reading: &Reading,
    pair: &'a Pair,
    conversation: &Conversation,
) -> Option<(&'a ObjectSummary, &'a ObjectSummary)> {
    let words: Vec<&str> = reading.words.iter().map(String::as_str).collect();
    let ends = |phrase: &str| {
        let tail = words
            .iter()
            .rposition(|word| !matches!(*word, "please" | "pls" | "too" | "then" | "now" | "one"))
            .map_or(0, |at| at + 1);
        words[..tail].join(" ").ends_with(phrase)
    };
    let is_source = |at: usize| {
        let before = &words[at.saturating_sub(3)..at];
        let near = before.iter().rposition(|word| !matches!(*word, "the" | "in" | "what" | "deployment"));
        near.is_some_and(|near| matches!(before[near], "as" | "like" | "match" | "matches" | "from" | "of" | "with"))
    };
    let other_at = words.windows(2).position(|pair| pair == ["the", "other"]).map(|at| at + 1);
    // "Make it the same in staging".
    let same_in = words
        .windows(3)
        .any(|three| three[0] == "the" && three[1] == "same" && matches!(three[2], "in" | "on" | "for"));
    let refers = same_in && reading.has("make") && reading.namespace.is_some()
        || ends("to that")
        || ends("to the same")
        || ends("the same") && reading.has("to")
        || other_at.is_some_and(is_source)
        || ends("as the older")
        || ends("as the newer")
        || reading.has_any(&["match", "align", "sync"]);
    if !refers {
        return None;
    }
    // "Give that the same number as the older".
    let age =
        words.windows(3).find(|three| three[0] == "as" && three[1] == "the" && matches!(three[2], "older" | "newer"));
    if let Some(age) = age {
        let question = Reading { words: vec![age[2].to_owned()], ..Reading::default() };
        let (source, _) = refer::by_version(&conversation.earlier, &question)?;
        let is_source = |object: &ObjectSummary| object.name == source.name && object.namespace == source.namespace;
        return match (is_source(&pair.one), is_source(&pair.other)) {
            (true, false) => Some((&pair.other, &pair.one)),
            (false, true) => Some((&pair.one, &pair.other)),
            _ => None,
        };
    }
    let place_at = |object: &ObjectSummary| {
        let by_word = words.iter().position(|word| *word == object.namespace);
        by_word.or_else(|| {
            let is_meant = reading.namespace.as_ref() == Some(&object.namespace);
            words.iter().position(|word| {
                is_meant && crate::cluster::likeness(&object.namespace, word).is_some_and(|fit| fit < 3)
            })
        })
    };
    let (one, other) = (&pair.one, &pair.other);
    let named = reading.namespace.iter().all(|place| *place == one.namespace || *place == other.namespace);
    if !named {
        return None;
    }
    // "Bring the first up to that".
    if let Some(pick) = reading.pick.filter(|pick| *pick != Pick::Other) {
        let Found::One(picked) = refer::picked(conversation, pick, reading, Verb::SetImage) else { return None };
        let is_picked = |object: &ObjectSummary| object.name == picked.name && object.namespace == picked.namespace;
        return match (is_picked(one), is_picked(other)) {
            (true, false) => Some((one, other)),
            (false, true) => Some((other, one)),
            _ => None,
        };
    }
    if reading.state.is_some() {
        return None;
    }
    match (place_at(one), place_at(other)) {
        (Some(at), None) if is_source(at) => Some((other, one)),
        (Some(_), None) => Some((one, other)),
        (None, Some(at)) if is_source(at) => Some((one, other)),
        (None, Some(_)) => Some((other, one)),
        (Some(first), Some(second)) => match (is_source(first), is_source(second)) {
            (true, false) => Some((other, one)),
            (false, true) => Some((one, other)),
            _ => None,
        },
        // "Upgrade the other one to that".
        (None, None) if !pair.is_focused => None,
        (None, None) if other_at.is_some_and(|at| !is_source(at)) => Some((other, one)),
        // "Put it on the same tag as the other".
        (None, None) => {
            let points = reading.has("it") || reading.says("that one") || reading.says("this one");
            points.then_some((one, other))
        }
    }
}

/// "Update the older web to the newer one", "put the other on the older version": one of two gets the older or newer image.
fn updated_to_newer(reading: &Reading, conversation: &Conversation) -> Option<Command> {
    let is_age = |word: &str| matches!(word, "newer" | "newest" | "older" | "oldest");
    let words: Vec<&str> = reading.words.iter().map(String::as_str).collect();
    let value = (1..words.len()).find(|at| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let before = at.checked_sub(2).map_or("", |before| words[before]);
        let is_value = matches!(next, "image" | "version" | "tag" | "release");
        is_age(words[*at]) && words[at - 1] == "the" && (matches!(before, "to" | "on") || is_value)
    });
    let age = words[value?];
    if reading.has_any(&["revision", "rollout", "back"])
        || reading.verb == Some(Verb::Scale)
        || reading.replicas.is_some()
    {
        return None;
    }
    let is_place = |name: &String| conversation.namespaces.contains(name);
    let mut names: Vec<String> = reading.names.iter().filter(|name| !is_place(name)).cloned().collect();
    if names.is_empty()
        && let Some(pair) = pair(conversation)
    {
        names.push(pair.one.name);
    }
    let question = Reading { names, words: vec![age.to_owned()], ..Reading::default() };
    let (source, target) = refer::by_version(&conversation.earlier, &question)?;
    let (source, target) = (current(&source, conversation), current(&target, conversation));
    let fits_place = reading.namespace.as_ref().is_none_or(|place| *place == target.namespace);
    changed(&target, &source, Value::Image).filter(|_| fits_place && source.image != target.image)
}

/// Returns the command that gives an object the value of another one; `None` if they do not run the same program.
fn changed(target: &ObjectSummary, source: &ObjectSummary, value: Value) -> Option<Command> {
    let on = |verb: Verb| Command::new(verb).on(&target.kind, &target.name, Some(&target.namespace));
    match value {
        Value::Image => is_same_program(&target.image, &source.image)
            .then(|| Command { image: Some(source.image.clone()), ..on(Verb::SetImage) }),
        Value::Replicas => {
            let count = u32::try_from(source.replicas?).ok()?;
            Some(Command { replicas: Some(count), ..on(Verb::Scale) })
        }
    }
}

/// "No the reverse": the other object of the newest request gets what the object of the request has, if that was not changed.
fn reversed(pair: &Pair, conversation: &Conversation) -> Option<Next> {
    let requested = conversation.earlier.iter().rev().find_map(|exchange| match &exchange.requested[..] {
        [only] => Some(only),
        _ => None,
    })?;
    let is_open = matches!(requested.state, ApprovalState::Pending | ApprovalState::Void | ApprovalState::Denied);
    let is_meant = |object: &ObjectSummary| {
        requested.command.name.as_ref() == Some(&object.name)
            && requested.command.namespace.as_ref() == Some(&object.namespace)
    };
    let (source, target) = match (is_meant(&pair.one), is_meant(&pair.other)) {
        (true, false) => (&pair.one, &pair.other),
        (false, true) => (&pair.other, &pair.one),
        _ => return None,
    };
    let value = match requested.command.verb {
        Verb::Scale => Value::Replicas,
        Verb::SetImage => Value::Image,
        _ => return None,
    };
    changed(target, source, value).filter(|_| is_open).map(|command| Next::Run(vec![command]))
}

/// "Same image?", "equal now?": reads the objects that were spoken of last, and says whether they are equal. `None` for other messages.
pub(super) fn compared(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    const WORDS: [&str; 45] = [
        "same",
        "equal",
        "identical",
        "alike",
        "match",
        "matching",
        "even",
        "now",
        "image",
        "images",
        "version",
        "versions",
        "tag",
        "tags",
        "replicas",
        "count",
        "number",
        "are",
        "is",
        "do",
        "does",
        "they",
        "both",
        "the",
        "it",
        "on",
        "of",
        "have",
        "has",
        "all",
        "yet",
        "them",
        "so",
        "and",
        "ok",
        "two",
        "each",
        "run",
        "use",
        "these",
        "those",
        "with",
        "in",
        "sync",
        "a",
    ];
    let is_meant = (reading.is_question || reading.asks())
        && reading.words.len() <= MAX_WORDS_OF_COMPARISON
        && reading.has_any(&["same", "equal", "identical", "alike", "match", "matching", "even"])
        && reading.words.iter().all(|word| WORDS.contains(&&**word))
        && !reading.says("the same for");
    if !is_meant {
        return None;
    }
    let newest = conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty())?;
    let objects = match &newest[..] {
        [_] => pair(conversation).map(|pair| vec![pair.one, pair.other])?,
        several if several.len() <= MAX_COMPARED => several.to_vec(),
        _ => return None,
    };
    let value = Value::named(reading).or_else(|| Value::spoken_of(conversation)).unwrap_or(Value::Image);
    let get = |object: &ObjectSummary| {
        let namespace = (!object.namespace.is_empty()).then_some(&*object.namespace);
        Command::new(Verb::Get).on(&object.kind, &object.name, namespace)
    };
    let done: Vec<&Step> = conversation
        .steps
        .iter()
        .filter(|step| step.command.verb == Verb::Get && step.command.name.is_some())
        .collect();
    if done.is_empty() {
        return Some(Next::Run(objects.iter().map(get).collect()));
    }
    let shown: Vec<&ObjectSummary> =
        done.iter().filter_map(|step| step.outcome.as_ref()).flat_map(|outcome| &outcome.objects).collect();
    let values: Vec<String> = shown.iter().filter_map(|object| value.of(object)).collect();
    let text = answers::of_steps(&done);
    if values.len() != objects.len() {
        return Some(reply(text));
    }
    let what = if value == Value::Image { "image" } else { "number of replicas" };
    let verdict = match values.iter().all(|own| *own == values[0]) {
        true => format!("Yes, the same {what}: {}.", values[0]),
        false => format!("No, the {what} differs: {}.", values.join(", ")),
    };
    Some(reply(format!("{verdict}\n{text}")))
}

/// "One of the two can go": returns the objects among which the message leaves open which one is meant.
pub(super) fn left_open(reading: &Reading, conversation: &Conversation) -> Option<Vec<ObjectSummary>> {
    let is_open = [
        "one of the two",
        "one of them",
        "one of those",
        "one of these",
        "one of both",
        "either of them",
        "one of the three",
    ]
    .iter()
    .any(|phrase| reading.says(phrase));
    let says_which =
        !reading.names.is_empty() || reading.pick.is_some() || reading.state.is_some() || reading.namespace.is_some();
    if !is_open || says_which {
        return None;
    }
    let newest = conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty())?;
    match &newest[..] {
        [_] => pair(conversation).map(|pair| vec![pair.one, pair.other]),
        _ => Some(newest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Outcome;

    fn web(namespace: &str, replicas: u64, image: &str) -> ObjectSummary {
        ObjectSummary {
            kind: "deployments".to_owned(),
            name: "web".to_owned(),
            namespace: namespace.to_owned(),
            replicas: Some(replicas),
            image: image.to_owned(),
            ..ObjectSummary::default()
        }
    }

    fn shown(said: &str, objects: Vec<ObjectSummary>) -> Exchange {
        let steps = objects.into_iter().map(|object| {
            let command = Command::new(Verb::Get).on(&object.kind, &object.name, Some(&object.namespace));
            let outcome = Outcome { command: command.clone(), text: String::new(), objects: vec![object] };
            Step { command, outcome: Some(outcome), error: None }
        });
        Exchange { said: said.to_owned(), steps: steps.collect(), ..Exchange::default() }
    }

    fn conversation(earlier: Vec<Exchange>) -> Conversation {
        Conversation {
            earlier,
            namespaces: vec!["blue".to_owned(), "green".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        }
    }

    fn change(message: &str, conversation: &Conversation) -> Option<String> {
        match made_alike(&read(message, &Lexicon::of(conversation)), conversation)? {
            Next::Run(commands) => Some(commands.iter().map(Command::line).collect::<Vec<String>>().join("; ")),
            Next::Reply(_) => None,
        }
    }

    #[test]
    fn one_of_two_gets_the_value_of_the_other() {
        let (blue, green) = (web("blue", 2, "web:1.9"), web("green", 4, "web:1.8"));
        let counted = conversation(vec![shown("web replicas: blue vs green?", vec![blue.clone(), green.clone()])]);
        let scale = Some("kubectl scale deployment web --replicas=4 -n blue".to_owned());
        assert_eq!(change("make blue match the other", &counted), scale);
        assert_eq!(change("make it match the other", &counted), None);
        let seen = conversation(vec![shown("image of web in blue", vec![blue]), shown("and in green?", vec![green])]);
        let newer = |message: &str| change(message, &seen).is_some_and(|line| line.contains("web:1.9 -n green"));
        assert!(newer("put it on the same tag as the other"));
        assert!(newer("update the older one to the newer one"));
        assert!(change("downgrade blue to that", &seen).is_some_and(|line| line.contains("web:1.8 -n blue")));
        for message in ["put it on web:2.0", "did you make it match the other?", "restart the other"] {
            assert_eq!(change(message, &seen), None, "{message}");
        }
    }
}
