//! `save_preference`, `get_preference` and `get_common_trips`: what is remembered of one person.
//!
//! All of it lies in the person's own documents, so that nobody sees another's, and survives a restart.

use serde::{Deserialize, Serialize};
use threadkeep::{Memory, MemoryError, Scope};

const TRIPS: &str = "subway-trips";
const PREFIX: &str = "subway-preference:";
/// Trips that are counted for one person; the rarest gives way.
const MOST_TRIPS: usize = 200;

/// A trip that was asked for, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonTrip {
    /// The origin's name.
    pub from: String,
    /// The destination's name.
    pub to: String,
    /// How often a route between them was answered.
    pub count: u32,
}

/// A trip as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CountedTrip {
    #[serde(flatten)]
    trip: CommonTrip,
    /// The turn that it was last counted in. A turn that goes on after a crash calls its tools again.
    last_turn: String,
}

/// `save_preference(key, value)`: keeps a value, in place of an older one.
///
/// # Errors
/// [`MemoryError`], as the store says; an unfit key among them.
pub async fn save_preference(memory: &Memory, scope: &Scope, key: &str, value: &str) -> Result<(), MemoryError> {
    memory.set_preference(scope, &named(key), value).await
}

/// `get_preference(key)`: the value that was kept.
///
/// # Errors
/// [`MemoryError`], as the store says.
pub async fn get_preference(memory: &Memory, scope: &Scope, key: &str) -> Result<Option<String>, MemoryError> {
    memory.preference(scope, &named(key)).await
}

/// The names of what was kept with [`save_preference`], at most 20 of them.
///
/// # Errors
/// [`MemoryError`], as the store says.
pub async fn list_preferences(memory: &Memory, scope: &Scope) -> Result<Vec<String>, MemoryError> {
    const LISTED: usize = 20;
    let all = memory.list_preferences(scope).await?;
    let own = all.iter().filter_map(|preference| preference.key.strip_prefix(PREFIX));
    Ok(own.map(|key| key.replace('-', " ")).take(LISTED).collect())
}

/// `get_common_trips()`: the trips of a person, most frequent first.
///
/// # Errors
/// [`MemoryError`], as the store says.
pub async fn get_common_trips(memory: &Memory, scope: &Scope) -> Result<Vec<CommonTrip>, MemoryError> {
    let trips: Vec<CountedTrip> = memory.preference(scope, TRIPS).await?.unwrap_or_default();
    Ok(trips.into_iter().map(|counted| counted.trip).collect())
}

/// Counts a trip for which a route was answered in a turn; once, however many tools answered it in that turn.
///
/// # Errors
/// [`MemoryError`], as the store says.
pub async fn count_trip(memory: &Memory, scope: &Scope, from: &str, to: &str, turn: &str) -> Result<(), MemoryError> {
    let counted = memory.update_preference(scope, TRIPS, |trips: Option<Vec<CountedTrip>>| {
        let mut trips = trips.unwrap_or_default();
        match trips.iter_mut().find(|counted| counted.trip.from == from && counted.trip.to == to) {
            Some(counted) if counted.last_turn == turn => {}
            Some(counted) => {
                counted.trip.count = counted.trip.count.saturating_add(1);
                turn.clone_into(&mut counted.last_turn);
            }
            None => {
                trips.truncate(MOST_TRIPS - 1);
                let trip = CommonTrip { from: from.to_owned(), to: to.to_owned(), count: 1 };
                trips.push(CountedTrip { trip, last_turn: turn.to_owned() });
            }
        }
        trips.sort_by_key(|counted| std::cmp::Reverse(counted.trip.count));
        Some(trips)
    });
    counted.await.map(drop)
}

/// "Home station", "my home station" and "home_station" are one preference.
fn named(key: &str) -> String {
    let words: Vec<String> = key
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !matches!(*word, "my" | "the"))
        .map(str::to_owned)
        .collect();
    format!("{PREFIX}{}", words.join("-"))
}
