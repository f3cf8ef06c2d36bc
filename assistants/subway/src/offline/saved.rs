//! Places that the user keeps, such as "home", looked up before a tool needs them.

use serde_json::json;
use threadkeep::Value;
use threadkeep::models::{Exchange, Intent, Outcome};

use super::stations::saved_key;

/// Looks up what the slots stand for, where that is a place that the user keeps.
pub(super) fn with_saved(intent: Intent, slots: &[&'static str]) -> Intent {
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

/// What a tool takes for the station of a slot; `None` where nothing is kept.
pub(super) fn station(outcome: &Outcome<'_>, slot: &str) -> Option<String> {
    let value = outcome.slots().value(slot);
    match saved_key(&value) {
        Some(key) => kept(outcome, key),
        None => value.as_str().map(str::to_owned),
    }
}

/// What to say where a place is not kept.
pub(super) fn missing(outcome: &Outcome<'_>, slots: &[&str]) -> Option<String> {
    slots.iter().find_map(|slot| {
        let value = outcome.slots().value(slot);
        let key = saved_key(&value)?;
        kept(outcome, key)
            .is_none()
            .then(|| format!("You have not told me your {key}. Say, for instance: “My {key} is Jay St.”"))
    })
}

/// What `get_preference` said of a key in this turn. It answers in words: "Your home station: Jay St".
fn kept(outcome: &Outcome<'_>, key: &str) -> Option<String> {
    let asked = outcome.exchanges().iter().find(|exchange| key_of(exchange).is_some_and(|known| known == key))?;
    let said = asked.value();
    let value = said.as_str()?.strip_prefix(&format!("Your {key}: "))?;
    Some(value.to_owned())
}

fn key_of(exchange: &Exchange<'_>) -> Option<String> {
    let arguments = exchange.arguments();
    let key = arguments.get("key").and_then(Value::as_str).map(str::to_owned);
    key.filter(|_| exchange.call.name == "get_preference")
}

/// The words of the last result.
pub(super) fn last_words(outcome: &Outcome<'_>) -> String {
    let last = outcome.exchanges().iter().rev().find(|exchange| exchange.result.is_some());
    let value = last.map(Exchange::value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
