//! The values of an intent's slots.

use threadkeep_core::{Map, Value};

use crate::extract::Choice;

/// The values of an intent's slots, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slots(pub(crate) Vec<(String, Choice)>);

impl Slots {
    /// Returns the choice that fills a slot.
    #[must_use]
    pub fn get(&self, slot: &str) -> Option<&Choice> {
        self.0.iter().find(|(name, _)| name == slot).map(|(_, choice)| choice)
    }

    /// Returns the value of a slot; null if it is empty.
    #[must_use]
    pub fn value(&self, slot: &str) -> Value {
        self.get(slot).map_or(Value::Null, |choice| choice.value.clone())
    }

    /// Returns the label of the choice in a slot; empty if the slot is empty.
    #[must_use]
    pub fn label(&self, slot: &str) -> &str {
        self.get(slot).map_or("", |choice| &choice.label)
    }

    /// Returns all values as an object, by slot name.
    #[must_use]
    pub fn arguments(&self) -> Value {
        Value::Object(self.0.iter().map(|(name, choice)| (name.clone(), choice.value.clone())).collect::<Map>())
    }

    /// Fills or empties a slot.
    pub(crate) fn put(&mut self, slot: &str, choice: Option<Choice>) {
        match choice {
            Some(choice) => self.set(slot, choice),
            None => self.0.retain(|(name, _)| name != slot),
        }
    }

    pub(crate) fn set(&mut self, slot: &str, choice: Choice) {
        match self.0.iter_mut().find(|(name, _)| name == slot) {
            Some((_, known)) => *known = choice,
            None => self.0.push((slot.to_owned(), choice)),
        }
    }
}
