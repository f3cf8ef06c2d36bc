//! `save_preference`, `get_preference` and `get_common_trips`: what the assistant remembers about a user.

use threadkeep::{Memory, MemoryError, Scope};
pub use threadkeep_transit::CommonTrip;
use threadkeep_transit::RiderMemory;

use crate::assistant::NAME;

/// Returns the preferences and trips of the assistant's users in a memory.
pub(crate) fn rider_memory(memory: &Memory) -> RiderMemory {
    RiderMemory::new(memory.clone(), NAME)
}

/// `save_preference(key, value)`: stores a value, replacing the previous one.
///
/// # Errors
/// [`MemoryError`] from the store, or if the key is invalid.
pub async fn save_preference(memory: &Memory, scope: &Scope, key: &str, value: &str) -> Result<(), MemoryError> {
    rider_memory(memory).save(scope, key, value).await
}

/// `get_preference(key)`: the stored value.
///
/// # Errors
/// [`MemoryError`] from the store.
pub async fn get_preference(memory: &Memory, scope: &Scope, key: &str) -> Result<Option<String>, MemoryError> {
    rider_memory(memory).get(scope, key).await
}

/// `get_common_trips()`: the trips of a user, most frequent first.
///
/// # Errors
/// [`MemoryError`] from the store.
pub async fn get_common_trips(memory: &Memory, scope: &Scope) -> Result<Vec<CommonTrip>, MemoryError> {
    rider_memory(memory).common_trips(scope).await
}

/// Counts a trip for which a turn returned a route. Counts it once per turn, even if several tools returned it.
///
/// # Errors
/// [`MemoryError`] from the store.
pub async fn count_trip(memory: &Memory, scope: &Scope, from: &str, to: &str, turn: &str) -> Result<(), MemoryError> {
    rider_memory(memory).count_trip(scope, from, to, turn).await
}
