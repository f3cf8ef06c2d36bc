//! Saved places, such as "home": looked up before the tool call that needs them.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Exchange, Intent, Outcome};

use super::Speech;
use super::stations::saved_key;

/// Adds a `get_preference` call for each slot that refers to a saved place.
#[must_use]
pub fn with_saved(intent: Intent, slots: &[&'static str]) -> Intent {
    slots.iter().copied().fold(intent, |intent, slot| {
        intent.then_calls("get_preference", move |outcome| {
            let value = outcome.slots().value(slot);
            let key = saved_key(&value)?;
            let is_known =
                outcome.exchanges().iter().any(|exchange| key_of(exchange).is_some_and(|known| known == key));
            (!is_known).then(|| json!({"key": key}))
        })
    })
}

/// Returns the station of a slot as a tool argument; `None` if it refers to a place that is not saved.
#[must_use]
pub fn station(outcome: &Outcome<'_>, slot: &str) -> Option<String> {
    let value = outcome.slots().value(slot);
    match saved_key(&value) {
        Some(key) => saved_value(outcome, key).or_else(|| origin(outcome, slot)?.value.as_str().map(str::to_owned)),
        None => value.as_str().map(str::to_owned),
    }
}

impl Speech {
    /// Returns the reply if a slot refers to a place that is not saved.
    #[must_use]
    pub fn missing(&self, outcome: &Outcome<'_>, slots: &[&str]) -> Option<String> {
        slots.iter().find_map(|slot| {
            let value = outcome.slots().value(slot);
            let key = saved_key(&value)?;
            let example = self.example_station;
            (saved_value(outcome, key).is_none() && origin(outcome, slot).is_none())
                .then(|| format!("I do not know your {key} yet. Say, for instance: “My {key} is {example}.”"))
        })
    }
}

/// Returns the place that is assumed for one that is not saved: where an earlier trip started.
fn origin<'a>(outcome: &'a Outcome<'_>, slot: &str) -> Option<&'a Choice> {
    outcome.slots().get(slot)?.others.first()
}

/// Says which place was assumed to be "home" if none is saved.
#[must_use]
pub(super) fn assumed_origin(outcome: &Outcome<'_>, slots: &[&str]) -> Option<String> {
    slots.iter().find_map(|slot| {
        let value = outcome.slots().value(slot);
        let key = saved_key(&value)?;
        let origin = origin(outcome, slot).filter(|_| saved_value(outcome, key).is_none())?;
        Some(format!("You have no {key} saved, so I took {}, where you started.", origin.label))
    })
}

/// Returns the value that `get_preference` returned for a key in this turn. Its result is text: "Your home station: Jay St".
fn saved_value(outcome: &Outcome<'_>, key: &str) -> Option<String> {
    let exchange = outcome.exchanges().iter().find(|exchange| key_of(exchange).is_some_and(|known| known == key))?;
    let result = exchange.value();
    let value = result.as_str()?.strip_prefix(&format!("Your {key}: "))?;
    Some(value.to_owned())
}

fn key_of(exchange: &Exchange<'_>) -> Option<String> {
    let arguments = exchange.arguments();
    let key = arguments.get("key").and_then(Value::as_str).map(str::to_owned);
    key.filter(|_| exchange.call.name == "get_preference")
}

/// Returns the text of the last tool result.
#[must_use]
pub fn last_result_text(outcome: &Outcome<'_>) -> String {
    let last = outcome.exchanges().iter().rev().find(|exchange| exchange.result.is_some());
    let value = last.map(Exchange::value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
