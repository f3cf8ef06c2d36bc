//! All objects that a message means: "both", "all of them", "those".

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::offline::answers;
use crate::offline::plan::{Planner, repeat, reply};
use crate::offline::refer::{self, Found};
use crate::offline::words::Replicas;

use super::{MAX_EACH, Targets};

impl Planner<'_> {
    /// Returns the objects of a message that means several.
    pub(super) fn each(&self, verb: Verb) -> Targets {
        match refer::focus(self.conversation, verb, self.reading.kind.as_deref(), self.reading.namespace.as_deref()) {
            Found::Several(objects) if self.reading.refers_to_two() && objects.len() != 2 => {
                Targets::Then(reply(answers::ask_which(&objects)))
            }
            // "Uncordon all of them", after one request each.
            Found::One(object) => {
                let recent =
                    self.conversation.earlier.iter().rev().take(5).filter(|exchange| !exchange.requested.is_empty());
                let subjects =
                    recent.flat_map(refer::subjects).filter_map(|object| refer::fitting(&object, verb, None));
                let mut all: Vec<ObjectSummary> = Vec::new();
                for object in subjects {
                    let is_known =
                        all.iter().any(|known| known.name == object.name && known.namespace == object.namespace);
                    if !is_known {
                        all.push(object);
                    }
                }
                // "Scale both", after a list of two and looks at single ones.
                if all.len() < 2 && (self.reading.refers_to_two() || verb.is_read()) {
                    all = refer::pair_with(self.conversation, &object, verb);
                }
                // "Delete all of them", after a list and looks at single ones.
                if all.len() < 2 && self.reading.has("all") {
                    all = refer::list_with(self.conversation, &object, verb);
                }
                // "Halve them", after a look at one workload: its replicas.
                let is_step =
                    matches!(self.reading.replicas, Some(Replicas::By(_) | Replicas::Times(_) | Replicas::Half));
                if all.len() < 2 && verb == Verb::Scale && is_step && !self.reading.refers_to_two() {
                    return self.found(Found::One(object), verb);
                }
                // In the order in which they were spoken of.
                if verb.is_read() {
                    all.reverse();
                }
                // "The two": the same name in the namespaces that were spoken of.
                if all.len() < 2 {
                    all = repeat::twins(self.conversation, &object);
                }
                let fits =
                    if self.reading.refers_to_two() { all.len() == 2 } else { (2..=MAX_EACH).contains(&all.len()) };
                if fits { Targets::Objects(all) } else { Targets::Then(reply(answers::ask_what(verb))) }
            }
            Found::Several(objects) if objects.len() > MAX_EACH && !verb.is_read() => Targets::Then(reply(format!(
                "{} at once is too many for requests of single changes. Which ones do you mean?",
                objects.len()
            ))),
            Found::Several(objects) => Targets::Objects(objects.into_iter().take(MAX_EACH).collect()),
            found => self.found(found, verb),
        }
    }
}
