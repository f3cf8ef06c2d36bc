//! How many requests may be made in a day (UTC), counted in the store: by all instances together, and across restarts.
//!
//! An instance takes requests from the store in small blocks, so that not every request is a write. What is left of a
//! block when the instance ends is forfeited, at most a hundredth of the day's; more than the day's is never given.

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
/// Blocks of a day: as many writes it takes at least.
const BLOCKS: u32 = 100;
/// How often the store is asked again when another instance was first.
const ATTEMPTS: usize = 16;
/// Counts that are kept here before those of other days are dropped.
const KEPT: usize = 10_000;

/// How many requests may be made in a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quota {
    /// Requests in a day of UTC, at least 1.
    pub per_day: u32,
}

impl FromStr for Quota {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let per_day = text.parse().ok().filter(|per_day| *per_day > 0);
        per_day.map(|per_day| Self { per_day }).ok_or(KeyError::Invalid("a quota is at least 1 a day"))
    }
}

/// Why a request was not counted.
#[derive(Debug)]
pub(crate) enum Uncounted {
    /// The day's are used up; so long it takes until the next.
    Over(Duration),
    Store(StoreError),
}

impl From<StoreError> for Uncounted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What this instance has of each caller's day.
#[derive(Default)]
pub(crate) struct Quotas {
    blocks: Mutex<HashMap<String, Block>>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    day: i64,
    left: u32,
    /// Of how many the day's were used up, once they were.
    over: Option<u32>,
}

/// How a day's count lies in the store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Count {
    day: i64,
    given: u32,
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Quotas")
    }
}

impl Quotas {
    /// Counts a request of a caller.
    pub(crate) async fn count(&self, memory: &Memory, who: &str, quota: Quota) -> Result<(), Uncounted> {
        let now = memory.now();
        let day = now.as_millis().div_euclid(DAY_MS);
        let over =
            || Uncounted::Over(Duration::from_millis(u64::try_from((day + 1) * DAY_MS - now.as_millis()).unwrap_or(0)));
        match self.take(who, day, quota) {
            Some(true) => return Ok(()),
            Some(false) => return Err(over()),
            None => {}
        }
        let granted = reserve(memory, who, day, quota, now).await?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= KEPT {
            blocks.retain(|_, block| block.day == day);
        }
        let block = blocks.entry(who.to_owned()).or_insert(Block { day, left: 0, over: None });
        if block.day != day {
            *block = Block { day, left: 0, over: None };
        }
        if granted == 0 {
            block.over = Some(quota.per_day);
            return Err(over());
        }
        block.left += granted - 1;
        Ok(())
    }

    /// Takes a request from the block that is here; `None` where the store has to be asked.
    fn take(&self, who: &str, day: i64, quota: Quota) -> Option<bool> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = blocks.get_mut(who).filter(|block| block.day == day)?;
        if block.left > 0 {
            block.left -= 1;
            return Some(true);
        }
        (block.over == Some(quota.per_day)).then_some(false)
    }
}

/// Takes a block from the store; how many requests it holds, 0 where the day's are used up.
async fn reserve(memory: &Memory, who: &str, day: i64, quota: Quota, now: Timestamp) -> Result<u32, StoreError> {
    let scope = Scope::Tenant(TenantId::internal());
    let (owner, namespace) = (RecordOwner::Tenant, Namespace::System("server.quotas".to_owned()));
    let key = hex(&Sha256::digest(who.as_bytes()));
    let store = &memory.backend().store;
    let mut failed = StoreError::unavailable(threadkeep::core::Reason::Busy);
    for _ in 0..ATTEMPTS {
        let found = store.find_record(&scope, &owner, &namespace, &key, now).await?;
        let version = found.as_ref().map_or(0, |record| record.version);
        let count = found.map(|record| record.value.read::<Count>()).transpose()?;
        let given = count.filter(|count| count.day == day).map_or(0, |count| count.given);
        let granted = (quota.per_day / BLOCKS).max(1).min(quota.per_day.saturating_sub(given));
        if granted == 0 {
            return Ok(0);
        }
        let write = RecordWrite {
            owner: owner.clone(),
            namespace: namespace.clone(),
            key: key.clone(),
            expected: Some(version),
            value: Some(JsonText::of(&Count { day, given: given + granted })?),
            expires_at: Some(now.plus_ms(2 * DAY_MS)),
        };
        match store.write_record(&scope, write, now).await {
            Ok(_) => return Ok(granted),
            Err(error @ StoreError::Conflict(Conflict::Record { .. })) => failed = error,
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}
