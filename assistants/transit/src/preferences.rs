//! What an assistant remembers about a rider: preferences and common trips.
//!
//! Everything is stored in the user's scope: other users cannot read it, and it survives a restart. Trips are not stored as preferences,
//! because contexts include all preferences of a user.

use serde::{Deserialize, Serialize};
use threadkeep::memory::RecordUpdate;
use threadkeep::{JsonText, Memory, MemoryError, Namespace, Record, RecordName, RecordOwner, Scope, StoreError};

/// Maximum number of trips stored for a user; the least frequent one is dropped first.
const MAX_TRIPS: usize = 200;

/// A trip that a user requested, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonTrip {
    /// The origin's name.
    pub from: String,
    /// The destination's name.
    pub to: String,
    /// The number of turns with a route between the two.
    pub count: u32,
}

/// A trip as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredTrip {
    #[serde(flatten)]
    trip: CommonTrip,
    /// The turn in which the trip was last counted: a turn that resumes after a crash calls its tools again.
    last_turn: String,
}

/// The preferences and trips of riders in a memory.
#[derive(Clone, Debug)]
pub struct RiderMemory {
    memory: Memory,
    /// The name of the record with the trips of a user.
    trips: RecordName,
    /// The prefix of the keys of preferences.
    prefix: String,
}

impl RiderMemory {
    /// Creates a store for the preferences of riders in a memory. Its keys start with the assistant's name.
    #[must_use]
    pub fn new(memory: Memory, assistant: &str) -> Self {
        let trips = RecordName { namespace: Namespace::App("trips".to_owned()), key: assistant.to_owned() };
        Self { memory, trips, prefix: format!("{assistant}-preference:") }
    }

    /// Stores a preference, replacing the previous value.
    ///
    /// # Errors
    /// [`MemoryError`] from the store, or if the key is invalid.
    pub async fn save(&self, scope: &Scope, key: &str, value: &str) -> Result<(), MemoryError> {
        self.memory.set_preference(scope, &self.storage_key(key), value).await
    }

    /// Returns a stored preference.
    ///
    /// # Errors
    /// [`MemoryError`] from the store.
    pub async fn get(&self, scope: &Scope, key: &str) -> Result<Option<String>, MemoryError> {
        self.memory.preference(scope, &self.storage_key(key)).await
    }

    /// Returns the names of the stored preferences, at most 20.
    ///
    /// # Errors
    /// [`MemoryError`] from the store.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<String>, MemoryError> {
        const MAX_LISTED: usize = 20;
        let all = self.memory.list_preferences(scope).await?;
        let own = all.iter().filter_map(|preference| preference.key.strip_prefix(&self.prefix));
        Ok(own.map(|key| key.replace('-', " ")).take(MAX_LISTED).collect())
    }

    /// Returns the trips of a user, most frequent first.
    ///
    /// # Errors
    /// [`MemoryError`] from the store.
    pub async fn common_trips(&self, scope: &Scope) -> Result<Vec<CommonTrip>, MemoryError> {
        let record = self.memory.find_record(scope, &owner_of(scope)?, &self.trips).await?;
        let trips: Vec<StoredTrip> = record.map(|record| record.value.read()).transpose()?.unwrap_or_default();
        Ok(trips.into_iter().map(|stored| stored.trip).collect())
    }

    /// Counts a trip for which a turn returned a route. Counts it once per turn, even if several tools returned it.
    ///
    /// # Errors
    /// [`MemoryError`] from the store.
    pub async fn count_trip(&self, scope: &Scope, from: &str, to: &str, turn: &str) -> Result<(), MemoryError> {
        let owner = owner_of(scope)?;
        let update = |record: Option<&Record>| {
            let trips = record.map(|record| record.value.read()).transpose()?.unwrap_or_default();
            Ok(RecordUpdate::Write(JsonText::of(&with_trip(trips, from, to, turn))?))
        };
        self.memory.update_record::<MemoryError>(scope, &owner, &self.trips, update).await
    }

    /// Normalises a preference's name: "Home station", "my home station" and "home_station" are the same preference.
    fn storage_key(&self, key: &str) -> String {
        let words: Vec<String> = key
            .to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty() && !matches!(*word, "my" | "the"))
            .map(str::to_owned)
            .collect();
        format!("{}{}", self.prefix, words.join("-"))
    }
}

/// Returns the owner of the trips.
fn owner_of(scope: &Scope) -> Result<RecordOwner, MemoryError> {
    match scope {
        Scope::User(_, user) => Ok(RecordOwner::User(user.clone())),
        Scope::Tenant(_) => Err(StoreError::invalid("scope", "trips belong to a user, not to a tenant").into()),
    }
}

fn with_trip(mut trips: Vec<StoredTrip>, from: &str, to: &str, turn: &str) -> Vec<StoredTrip> {
    match trips.iter_mut().find(|stored| stored.trip.from == from && stored.trip.to == to) {
        Some(stored) if stored.last_turn == turn => {}
        Some(stored) => {
            stored.trip.count = stored.trip.count.saturating_add(1);
            turn.clone_into(&mut stored.last_turn);
        }
        None => {
            trips.truncate(MAX_TRIPS - 1);
            let trip = CommonTrip { from: from.to_owned(), to: to.to_owned(), count: 1 };
            trips.push(StoredTrip { trip, last_turn: turn.to_owned() });
        }
    }
    trips.sort_by_key(|stored| std::cmp::Reverse(stored.trip.count));
    trips
}
