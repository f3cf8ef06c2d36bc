//! "Release booking to prod": the image of another namespace.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::kinds::WORKLOADS;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Pick, Reading};

use super::{Next, Planner, reply};

impl Planner<'_> {
    /// Sets the image of a workload in the namespace that the message names to that of the same workload in another namespace, if
    /// there is only one other image.
    pub(super) fn promotion(&self) -> Option<Next> {
        let reading = &self.reading;
        let moves = reading.has_any(&[
            "release", "promote", "ship", "deploy", "roll", "push", "put", "copy", "move", "take", "bring", "get",
            "upgrade", "update", "bump", "rollout", "sync", "set", "give", "switch", "raise",
        ]);
        let has_value = reading.image.is_some()
            || reading.version.is_some()
            || reading.replicas.is_some()
            || !reading.values.is_empty();
        let is_other = reading.verb.is_some_and(|verb| !matches!(verb, Verb::Get | Verb::SetImage))
            || reading.asks() && !reading.asks_politely();
        let known = |word: &str| {
            self.conversation
                .namespaces
                .iter()
                .find(|name| *name == word || *word == *"production" && *name == "prod")
                .cloned()
        };
        // "Set that image in prod then".
        let says_image = ["that image", "that version", "that tag"].iter().any(|phrase| reading.says(phrase));
        let target = self.namespace_to_change().or_else(|| self.place_of_focus()).or_else(|| {
            reading.words.windows(2).find_map(|pair| match &*pair[0] {
                "to" | "on" | "onto" | "into" => known(&pair[1]),
                "in" if says_image => known(&pair[1]),
                _ => None,
            })
        })?;
        let is_picked = reading.pick.is_some_and(|pick| pick != Pick::Other || self.place_of_focus().is_none());
        if !moves || has_value || is_other || is_picked {
            return None;
        }
        let there = self.workload_in(&target)?;
        let twin = |object: &&ObjectSummary| {
            object.kind == there.kind && object.name == there.name && object.namespace != target
        };
        let earlier = self.conversation.earlier.iter().flat_map(refer::shown_objects);
        let known = self.conversation.mentioned.iter().flatten();
        // The newest state counts.
        let mut sources: Vec<&ObjectSummary> = Vec::new();
        for object in known.chain(earlier).filter(twin).filter(|object| !object.image.is_empty()) {
            let is_named =
                reading.words.contains(&object.namespace) || object.namespace == "prod" && reading.has("production");
            let is_seen = sources.iter().any(|source| source.namespace == object.namespace);
            let others_named =
                self.conversation.namespaces.iter().any(|name| *name != target && reading.words.contains(name));
            if !is_seen && (is_named || !others_named) {
                sources.push(object);
            }
        }
        match sources[..] {
            [source] if source.image == there.image => Some(reply(format!(
                "{} in {target} already has the image {}, as in {}.",
                there.name, there.image, source.namespace
            ))),
            [source] => Some(Next::Run(vec![Command {
                image: Some(source.image.clone()),
                ..Command::new(Verb::SetImage).on(&there.kind, &there.name, Some(&target))
            }])),
            [] => None,
            _ => Some(reply(format!("Which image do you mean? {} has several in other namespaces.", there.name))),
        }
    }

    /// Whether a message moves one object to the image of another place, whatever else its words may mean.
    pub(super) fn moves_one_place(&self) -> bool {
        let is_one =
            self.reading.words.windows(3).any(|three| {
                three[0] == "the" && three[2] == "one" && self.conversation.namespaces.contains(&three[1])
            });
        self.place_of_focus().is_some() || is_one && self.namespace_to_change().is_some()
    }

    /// "Put it on the same as team-b", "bring that one up to the version of the other": the namespace of what was spoken of last, if the
    /// message names another one as an example.
    fn place_of_focus(&self) -> Option<String> {
        let reading = &self.reading;
        let is_place = |name: &String| self.conversation.namespaces.contains(name);
        let names_example = reading.has("same")
            && (reading.words.windows(2).any(|pair| pair[0] == "as" && is_place(&pair[1]))
                || reading.words.windows(3).any(|three| three[0] == "as" && three[1] == "the" && is_place(&three[2])))
            || reading.has_any(&["version", "image", "tag"]) && reading.says("of the other")
            || reading.words.windows(3).any(|three| {
                // "Set that one to the qa version".
                three[0] == "the" && is_place(&three[1]) && matches!(&*three[2], "version" | "image" | "tag")
            });
        if !names_example || !reading.pronoun || !reading.names.iter().all(is_place) {
            return None;
        }
        match refer::focus(self.conversation, Verb::SetImage, None, None) {
            Found::One(object) if !reading.words.contains(&object.namespace) => Some(object.namespace),
            _ => None,
        }
    }

    /// "Put prod on the version of staging", "bring eu to that": the namespace is what is changed, and what follows says to which image.
    fn namespace_to_change(&self) -> Option<String> {
        let words = &self.reading.words;
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let namespaces = &self.conversation.namespaces;
        let known = |word: &str| {
            let mut like = namespaces
                .iter()
                .filter(|name| crate::cluster::likeness(name, word).is_some_and(|fit| fit < 3) && !word.is_empty());
            let exact = namespaces.iter().find(|name| *name == word || word == "production" && **name == "prod");
            exact.or_else(|| like.next().filter(|_| like.next().is_none())).cloned()
        };
        (1..words.len()).find_map(|at| {
            // "Put the prod one on the same image".
            let is_one = word(at - 1) == "the" && word(at + 1) == "one";
            let moved = matches!(
                if is_one && at > 1 { word(at - 2) } else { word(at - 1) },
                "put" | "bring" | "move" | "get" | "set" | "take" | "upgrade" | "update" | "bump" | "switch" | "raise"
            );
            // "Set prod cart to what staging has".
            let to = at + 1 + usize::from(is_one || self.reading.names.iter().any(|name| name == word(at + 1)));
            // "Update kiosk in south to the north version".
            let is_placed = word(at - 1) == "in" && word(at + 1) == "to";
            let is_moved = moved && matches!(word(to), "to" | "on" | "in" | "onto" | "at" | "up");
            let target = known(word(at)).filter(|_| is_moved || is_placed)?;
            let rest = &words[to..];
            let names_other = rest.iter().any(|word| known(word).is_some_and(|other| other != target));
            let says_newer = rest.iter().any(|word| matches!(&**word, "newer" | "newest"));
            // "Bring eu to that", but not "to that node".
            let ends_with_it = rest.iter().position(|word| matches!(&**word, "that" | "this")).is_some_and(|at| {
                rest.get(at + 1).is_none_or(|next| {
                    matches!(
                        &**next,
                        "version" | "image" | "tag" | "release" | "one" | "please" | "pls" | "too" | "now"
                    )
                })
            });
            let is_return = rest.iter().any(|word| {
                matches!(&**word, "before" | "previous" | "old" | "older" | "last" | "earlier" | "was" | "were" | "had")
            });
            let is_same = is_one
                && rest
                    .windows(2)
                    .any(|pair| pair[0] == "same" && matches!(&*pair[1], "image" | "version" | "tag" | "release"));
            let is_image = !is_return && (names_other || says_newer || ends_with_it || is_same);
            is_image.then_some(target)
        })
    }

    /// Returns the workload that a message names, or that was spoken of, in a namespace.
    fn workload_in(&self, namespace: &str) -> Option<ObjectSummary> {
        let reading = &self.reading;
        let names: Vec<&String> =
            reading.names.iter().filter(|name| !self.conversation.namespaces.contains(name)).collect();
        // "Bring eu to that".
        let part = self.namespace_to_change();
        let is_part = |name: &String| {
            part.as_ref().is_some_and(|part| crate::cluster::likeness(part, name).is_some_and(|fit| fit < 3))
        };
        let names: Vec<&String> = names.into_iter().filter(|name| !is_part(name)).collect();
        let name = match names[..] {
            [name] => name.clone(),
            [] if reading.pronoun || self.namespace_to_change().is_some() || reading.says("that image") => {
                match refer::focus(self.conversation, Verb::SetImage, None, None) {
                    Found::One(object) => object.name,
                    Found::Several(twins) if twins.iter().all(|twin| twin.name == twins[0].name) => {
                        twins[0].name.clone()
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        let there = Reading { namespace: Some(namespace.to_owned()), ..reading.clone() };
        match refer::known(self.conversation, &name, Verb::SetImage, &there) {
            Found::One(object) if WORKLOADS.contains(&&*object.kind) && !object.image.is_empty() => Some(object),
            _ => None,
        }
    }
}
