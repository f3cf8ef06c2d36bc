//! Images that a message gives by where they run: "the image from qa", "the eu version", "that image".

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::Conversation;
use crate::kinds::Kind;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Description, Lexicon, Reading, descriptions, read};

use super::alike::one_in;
use super::images::is_same_program;
use super::{Next, next_step};

/// Verbs that put an image on a workload.
const MOVES: [&str; 14] = [
    "put", "bring", "set", "update", "upgrade", "bump", "move", "use", "give", "switch", "roll", "take", "change",
    "raise",
];
const IMAGES: [&str; 3] = ["image", "version", "tag"];

/// Returns the request to set an image that a message gives by where it runs, or the message itself if its words alone are one. `None` for
/// other messages.
pub(super) fn with_image(message: &str, conversation: &Conversation) -> Option<String> {
    let lexicon = Lexicon::of(conversation);
    let reading = read(message, &lexicon);
    let is_open = reading.image.is_none()
        && reading.version.is_none()
        && reading.replicas.is_none()
        && reading.limits.is_empty()
        && reading.requests.is_empty()
        && reading.values.is_empty()
        && reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Describe | Verb::SetImage))
        && (!reading.asks() || reading.asks_politely())
        && !reading.forbids()
        && !reading.has_condition();
    if !is_open || !reading.has_any(&MOVES) || !reading.has_any(&IMAGES) && !reading.has("what") {
        return None;
    }
    let source = source_place(&reading, &lexicon)?;
    let target = target(message, &reading, conversation, &lexicon, &source)?;
    let from = match source {
        Source::Spoken => match refer::focus(conversation, Verb::Describe, None, None) {
            Found::One(object) => object,
            _ => return None,
        },
        Source::Place(place) => ObjectSummary { namespace: place, ..target.clone() },
    };
    if is_same(&target, &from) {
        return None;
    }
    let image = image_of(&from, conversation)?;
    // What the words of the message alone mean comes first.
    if !is_same_program(&image, &image_of(&target, conversation)?) {
        return None;
    }
    let is_change = matches!(next_step(message, conversation), Next::Run(commands)
        if commands.iter().any(|command| command.verb == Verb::SetImage));
    if is_change {
        return Some(message.to_owned());
    }
    let kind = Kind::find(&target.kind)?.singular;
    Some(format!("set image of {kind} {} in {} to {image}", target.name, target.namespace))
}

fn is_same(one: &ObjectSummary, other: &ObjectSummary) -> bool {
    one.name == other.name && one.namespace == other.namespace
}

/// Returns the image of an object, as the cluster or an earlier answer shows it.
fn image_of(object: &ObjectSummary, conversation: &Conversation) -> Option<String> {
    let shown = conversation.earlier.iter().rev().flat_map(refer::shown_objects);
    let mut known = conversation.mentioned.iter().flatten().chain(shown);
    known.find(|other| is_same(other, object) && !other.image.is_empty()).map(|other| other.image.clone())
}

/// Where the image runs.
enum Source {
    /// On what was spoken of last.
    Spoken,
    /// On the object of the same name in this namespace.
    Place(String),
}

fn source_place(reading: &Reading, lexicon: &Lexicon) -> Option<Source> {
    let place = |word: &String| match lexicon.has_namespace(word) {
        true => Some(word.clone()),
        false => lexicon.namespace_like(word),
    };
    let is_image = |word: &String| IMAGES.contains(&&**word);
    let words = &reading.words;
    // "The eu version".
    let before = words.windows(3).find(|three| three[0] == "the" && is_image(&three[2]));
    if let Some(found) = before.and_then(|three| place(&three[1])) {
        return Some(Source::Place(found));
    }
    // "The image from qa", "the version of the eu one".
    let after = words.iter().enumerate().find(|(at, word)| {
        is_image(word) && words.get(at + 1).is_some_and(|next| matches!(&**next, "from" | "of" | "in"))
    });
    let after = after.and_then(|(at, _)| words[at + 2..].iter().find(|word| *word != "the"));
    if let Some(found) = after.and_then(place) {
        return Some(Source::Place(found));
    }
    // "Up to what staging has", "the same image as prod".
    let ends = ["has", "runs", "uses", "have"];
    let shown = words.windows(3).find(|three| three[0] == "what" && ends.contains(&&*three[2]));
    if let Some(found) = shown.and_then(|three| place(&three[1])) {
        return Some(Source::Place(found));
    }
    // "Give web the image prod has".
    let runs = words.windows(3).find(|three| is_image(&three[0]) && ends.contains(&&*three[2]));
    if let Some(found) = runs.and_then(|three| place(&three[1])) {
        return Some(Source::Place(found));
    }
    if let Some(at) = words.iter().position(|word| word == "as").filter(|_| reading.has("same")) {
        return words[at + 1..].iter().find(|word| *word != "the" && *word != "in").and_then(place).map(Source::Place);
    }
    let is_that = words.windows(2).any(|pair| matches!(&*pair[0], "that" | "this" | "same") && is_image(&pair[1]));
    is_that.then_some(Source::Spoken)
}

/// Returns the workload whose image is set: the one that the message describes or names, or the one that was spoken of. A place that is
/// not that of the image says where it is.
fn target(
    message: &str,
    reading: &Reading,
    conversation: &Conversation,
    lexicon: &Lexicon,
    source: &Source,
) -> Option<ObjectSummary> {
    let is_source = |place: &String| matches!(source, Source::Place(own) if own == place);
    let place = conversation.namespaces.iter().find(|place| reading.words.contains(place) && !is_source(place));
    let there = place.cloned().or_else(|| {
        let spoken = refer::last_namespace(conversation).filter(|spoken| !is_source(spoken));
        spoken.filter(|_| reading.says("in there") || !reading.names.is_empty())
    });
    let is_of_image = |description: &Description| description.words.iter().any(|word| IMAGES.contains(&&**word));
    let meant: Vec<Description> = descriptions(message, lexicon)
        .into_iter()
        .filter(|description| !description.is_excluded && !is_of_image(description))
        .collect();
    let names: Vec<&String> = reading.names.iter().filter(|name| !conversation.namespaces.contains(name)).collect();
    let found = match (&meant[..], &names[..]) {
        ([first, ..], _) => refer::described(conversation, first, lexicon),
        ([], [name]) => {
            let namespace = Some(there.clone()?);
            let there = Reading { namespace, kind: None, ..reading.clone() };
            refer::known(conversation, name, Verb::SetImage, &there)
        }
        ([], []) => match (refer::focus(conversation, Verb::SetImage, None, None), place) {
            // "Put the staging version of it into production".
            (Found::One(object), Some(place)) if object.namespace != *place => {
                let shown = conversation.earlier.iter().rev().flat_map(refer::shown_objects);
                let mut known = shown.chain(conversation.mentioned.iter().flatten());
                let twin = known
                    .find(|other| other.kind == object.kind && other.name == object.name && other.namespace == *place);
                Found::of(twin.cloned().into_iter().collect())
            }
            (Found::One(object), _) => Found::One(object),
            (found, place) => place.and_then(|place| one_in(place, conversation)).map_or(found, Found::One),
        },
        ([], _) => return None,
    };
    match found {
        Found::One(object) => refer::fitting(&object, Verb::SetImage, None),
        _ => None,
    }
}
