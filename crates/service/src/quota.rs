//! Daily quotas (UTC). Requests are counted in the store, across all instances and restarts.
//!
//! An instance reserves requests in small blocks, so that not every request causes a write. When an instance ends, the rest of its
//! block is lost, at most 1% of the quota. The quota is never exceeded.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use threadkeep::core::RecordWrite;
use threadkeep::{Conflict, JsonText, Memory, Namespace, RecordOwner, Scope, StoreError, TenantId, Timestamp};

use crate::hex::hex;
use crate::keys::KeyError;

const DAY_MS: i64 = 86_400_000;
/// The number of blocks into which a quota is divided, and therefore the minimum number of writes to use it up.
const BLOCKS: u32 = 100;
/// The maximum number of attempts to reserve a block while other instances reserve blocks too.
const ATTEMPTS: usize = 16;
/// Once this many blocks are in memory, the blocks of other days are removed.
const MAX_BLOCKS: usize = 10_000;

/// A maximum number of requests per day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quota {
    /// Requests per day (UTC), at least 1.
    pub per_day: u32,
}

impl FromStr for Quota {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let per_day = text.parse().ok().filter(|per_day| *per_day > 0);
        per_day.map(|per_day| Self { per_day }).ok_or(KeyError::Invalid("a quota must be at least 1 per day"))
    }
}

/// Why a request was not counted.
#[derive(Debug)]
pub(crate) enum CountError {
    /// The quota is used up. Contains the time until the next day.
    Exceeded(Duration),
    Store(StoreError),
}

impl From<StoreError> for CountError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The blocks of callers that this instance has reserved.
#[derive(Default)]
pub(crate) struct Quotas {
    blocks: Mutex<HashMap<String, Block>>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    day: i64,
    remaining: u32,
    /// The daily quota for which the store granted no further block, if that happened. After the caller's quota is raised, blocks
    /// can be reserved again.
    exceeded: Option<u32>,
}

/// The stored number of requests that all instances have reserved on a day.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Count {
    day: i64,
    #[serde(rename = "given")]
    reserved: u32,
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Quotas")
    }
}

impl Quotas {
    /// Counts a request from a caller.
    pub(crate) async fn count(&self, memory: &Memory, caller: &str, quota: Quota) -> Result<(), CountError> {
        let now = memory.now();
        let day = now.as_millis().div_euclid(DAY_MS);
        let exceeded = || {
            CountError::Exceeded(Duration::from_millis(
                u64::try_from((day + 1) * DAY_MS - now.as_millis()).unwrap_or(0),
            ))
        };
        match self.take_reserved(caller, day, quota) {
            Some(true) => return Ok(()),
            Some(false) => return Err(exceeded()),
            None => {}
        }
        let granted = reserve(memory, caller, day, quota, now).await?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= MAX_BLOCKS {
            blocks.retain(|_, block| block.day == day);
        }
        let block = blocks.entry(caller.to_owned()).or_insert(Block { day, remaining: 0, exceeded: None });
        if block.day != day {
            *block = Block { day, remaining: 0, exceeded: None };
        }
        if granted == 0 {
            block.exceeded = Some(quota.per_day);
            return Err(exceeded());
        }
        block.remaining += granted - 1;
        Ok(())
    }

    /// Takes a request from the reserved block. Returns whether the request is within the quota, or `None` if another block has
    /// to be reserved first.
    fn take_reserved(&self, caller: &str, day: i64, quota: Quota) -> Option<bool> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = blocks.get_mut(caller).filter(|block| block.day == day)?;
        if block.remaining > 0 {
            block.remaining -= 1;
            return Some(true);
        }
        (block.exceeded == Some(quota.per_day)).then_some(false)
    }
}

impl Quotas {
    /// Returns the number of requests from a caller that all instances have counted today. Requests that other instances have
    /// reserved but not received are included.
    pub(crate) async fn requests_today(&self, memory: &Memory, caller: &str) -> Result<u32, StoreError> {
        let now = memory.now();
        let day = now.as_millis().div_euclid(DAY_MS);
        let (_, count) = find_count(memory, &record_key(caller), now).await?;
        let reserved = count.filter(|count| count.day == day).map_or(0, |count| count.reserved);
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = blocks.get(caller).filter(|block| block.day == day).map_or(0, |block| block.remaining);
        Ok(reserved.saturating_sub(unused))
    }
}

/// Returns the start of the next day (UTC), when quotas are reset.
#[must_use]
pub fn next_day(now: Timestamp) -> Timestamp {
    now.plus_ms(DAY_MS - now.as_millis().rem_euclid(DAY_MS))
}

/// Finds the stored count of a caller. Also returns the version of the record; 0 if there is none.
async fn find_count(memory: &Memory, key: &str, now: Timestamp) -> Result<(u64, Option<Count>), StoreError> {
    let scope = Scope::Tenant(TenantId::internal());
    let store = &memory.backend().store;
    let found = store.find_record(&scope, &RecordOwner::Tenant, &namespace(), key, now).await?;
    let version = found.as_ref().map_or(0, |record| record.version);
    Ok((version, found.map(|record| record.value.read::<Count>()).transpose()?))
}

fn namespace() -> Namespace {
    Namespace::System("server.quotas".to_owned())
}

/// Returns the key of the record that counts a caller's requests. It is a hash, because a caller's name may contain a user's
/// name.
fn record_key(caller: &str) -> String {
    hex(&Sha256::digest(caller.as_bytes()))
}

/// Reserves a block in the store. Returns the number of requests in the block, or 0 if the quota is used up.
async fn reserve(memory: &Memory, caller: &str, day: i64, quota: Quota, now: Timestamp) -> Result<u32, StoreError> {
    let scope = Scope::Tenant(TenantId::internal());
    let key = record_key(caller);
    let store = &memory.backend().store;
    let mut last_error = StoreError::unavailable(threadkeep::core::Reason::Busy);
    for _ in 0..ATTEMPTS {
        let (version, count) = find_count(memory, &key, now).await?;
        let reserved = count.filter(|count| count.day == day).map_or(0, |count| count.reserved);
        let granted = (quota.per_day / BLOCKS).max(1).min(quota.per_day.saturating_sub(reserved));
        if granted == 0 {
            return Ok(0);
        }
        let write = RecordWrite {
            owner: RecordOwner::Tenant,
            namespace: namespace(),
            key: key.clone(),
            expected: Some(version),
            value: Some(JsonText::of(&Count { day, reserved: reserved + granted })?),
            expires_at: Some(now.plus_ms(2 * DAY_MS)),
        };
        match store.write_record(&scope, write, now).await {
            Ok(_) => return Ok(granted),
            Err(error @ StoreError::Conflict(Conflict::Record { .. })) => last_error = error,
            Err(error) => return Err(error),
        }
    }
    Err(last_error)
}
