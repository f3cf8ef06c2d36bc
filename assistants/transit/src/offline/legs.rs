//! The rides of a route, as follow-ups refer to them: "when is the G that I need?"

use serde::{Deserialize, Serialize};
use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Outcome, Slots};

use super::saved::station;
use super::trips::steps;

/// The slot in which a trip records its rides.
pub(super) const LEGS: &str = "legs";

/// A ride of a route, by the names in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// The line.
    pub line: String,
    /// The station where the passenger boards.
    pub from: String,
    /// The station where the passenger leaves the train.
    pub to: String,
}

/// Returns the recorded rides of a trip; empty if it has none.
pub(super) fn legs(trip: &Slots) -> Vec<Leg> {
    serde_json::from_value(trip.value(LEGS)).unwrap_or_default()
}

/// Reads the rides from the result of the route tool.
pub(super) fn legs_of(outcome: &Outcome<'_>) -> Option<Choice> {
    let from = station(outcome, "from_station")?;
    let mut routes = outcome.exchanges().iter().rev().filter(|exchange| {
        exchange.call.name.starts_with("get_route") && exchange.arguments()["from_station"].as_str() == Some(&from)
    });
    let text: Value = routes.next()?.value();
    let legs = legs_in(text.as_str()?);
    (!legs.is_empty()).then(|| Choice::new(json!(legs), "the rides"))
}

/// Reads the rides from the text of a route.
#[must_use]
pub fn legs_in(text: &str) -> Vec<Leg> {
    steps(text).filter_map(leg).collect()
}

/// Reads a ride: "1. Take the G (Southbound) from Greenpoint Av to Metropolitan Av: 4 stops, 8 min."
fn leg(step: &str) -> Option<Leg> {
    let (before, rest) = step.split_once("ake the ")?;
    let (ride, _) = rest.rsplit_once(": ")?;
    let line = ride.split(" (").next()?.split(" from ").next()?.split(" to ").next()?;
    let (_, to) = ride.rsplit_once(" to ")?;
    let walked = || before.split_once("Walk to ")?.1.split_once(" in the same complex").map(|(name, _)| name);
    let boarded = || ride.split_once(" from ")?.1.rsplit_once(" to ").map(|(name, _)| name);
    let from = walked().or_else(boarded)?;
    Some(Leg { line: line.to_owned(), from: from.to_owned(), to: to.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rides_are_read_from_steps() {
        for (step, expected) in [
            (
                "1. Take the G (Southbound) from Greenpoint Av to Metropolitan Av: 4 stops, 8 min.",
                Some(("G", "Greenpoint Av", "Metropolitan Av")),
            ),
            (
                "2. Walk to Lorimer St in the same complex and take the L (Manhattan) to 14 St-Union Sq: 5 stops, 10 min, 08:03 to 08:13.",
                Some(("L", "Lorimer St", "14 St-Union Sq")),
            ),
            (
                "1. Take the Central from Bank to Oxford Circus: 4 stops, 8 min.",
                Some(("Central", "Bank", "Oxford Circus")),
            ),
            ("2. Walk from Bank to Monument (5 min).", None),
        ] {
            let expected = expected.map(|(line, from, to)| Leg {
                line: line.to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
            });
            assert_eq!(leg(step), expected, "{step}");
        }
    }
}
