//! Sweeping once, however many instances there are.
//!
//! Two sweeps at once do no harm, they only do the work twice. So there is no lock to hold and none to lose: whoever
//! writes the record that stands for this period's turn sweeps, all others go without until it has expired.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, JsonText, Namespace, RecordOwner, RecordWrite, Scope, StoreError, SweepReport, TenantId,
};
use uuid::Uuid;

use crate::retry::{repeat, repeat_simply};
use crate::{Memory, MemoryError, Result};

pub(crate) const NAMESPACE: &str = "sweep";
const KEY: &str = "turn";

/// A turn at sweeping that this call took.
struct Turn {
    scope: Scope,
    version: u64,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    by: Uuid,
}

impl Memory {
    /// Sweeps the whole store ([`threadkeep_core::Maintenance::sweep`]), unless an instance of the same store took its turn
    /// within `every`: then it does nothing and answers `None`.
    ///
    /// Every instance calls it now and then with the same `every`, more often than that. A sweep that fails gives its turn
    /// back; one that is killed leaves it to whoever asks first in the next period.
    ///
    /// # Errors
    /// `Invalid` for a period of 0, and those of the store.
    pub async fn sweep_in_turn(&self, every: Duration) -> Result<Option<SweepReport>> {
        if every.is_zero() {
            return Err(MemoryError::invalid("every", "0; sweep at most once in a while"));
        }
        let tenants = repeat_simply(self.runtime(), || self.maintenance().list_tenants(None, 1)).await?;
        // The turn is noted at the first tenant, which is the same for all. Where there is none it needs no turns.
        let turn = match tenants.into_iter().next() {
            Some(tenant) => match self.take_turn(tenant, every).await? {
                None => return Ok(None),
                turn => turn,
            },
            None => None,
        };
        let now = self.now();
        let swept = repeat_simply(self.runtime(), || self.maintenance().sweep(now)).await;
        if let (Err(_), Some(turn)) = (&swept, turn) {
            // If it cannot be given back it expires.
            drop(self.give_back(&turn).await);
        }
        Ok(Some(swept?))
    }

    async fn take_turn(&self, tenant: TenantId, every: Duration) -> Result<Option<Turn>> {
        let (scope, now) = (Scope::Tenant(tenant), self.now());
        let taken = Taken { by: self.mint_message_id().0 };
        let length_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        let value = Some(JsonText::of(&taken)?);
        let write = RecordWrite { value, expires_at: Some(now.plus_ms(length_ms)), ..write(0) };
        let attempted = repeat(self.runtime(), || self.store().write_record(&scope, write.clone(), now)).await;
        match attempted.result {
            Ok(written) => Ok(Some(Turn { scope, version: written.version })),
            Err(StoreError::Conflict(Conflict::Record { .. })) if attempted.may_have_applied_before => {
                self.find_own_turn(scope, &taken).await
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The conflict may be with the attempt of ours whose reply was lost.
    async fn find_own_turn(&self, scope: Scope, taken: &Taken) -> Result<Option<Turn>> {
        let (owner, namespace, now) = (RecordOwner::Tenant, namespace(), self.now());
        let found =
            repeat_simply(self.runtime(), || self.store().find_record(&scope, &owner, &namespace, KEY, now)).await?;
        let ours = found.filter(|record| record.value.read::<Taken>().is_ok_and(|found| found == *taken));
        Ok(ours.map(|record| Turn { scope, version: record.version }))
    }

    async fn give_back(&self, turn: &Turn) -> Result<()> {
        let now = self.now();
        repeat_simply(self.runtime(), || self.store().write_record(&turn.scope, write(turn.version), now)).await?;
        Ok(())
    }
}

/// Deletes the turn that has a version; 0 is none.
fn write(expected: u64) -> RecordWrite {
    let (owner, namespace, key) = (RecordOwner::Tenant, namespace(), KEY.to_owned());
    RecordWrite { owner, namespace, key, expected: Some(expected), value: None, expires_at: None }
}

fn namespace() -> Namespace {
    Namespace::System(NAMESPACE.to_owned())
}
