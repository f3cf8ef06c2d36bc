//! Sweeping once per period, regardless of how many instances share the store. A sweep deletes expired data and overwrites erased
//! text.
//!
//! Simultaneous sweeps are harmless but duplicate work, so no lock is needed: the instance that writes the record (the *claim*)
//! for the current period sweeps, and all others skip the sweep until the claim has expired.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, JsonText, Namespace, RecordOwner, RecordWrite, Scope, StoreError, SweepReport, TenantId,
};
use uuid::Uuid;

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, MemoryError, Result};

pub(crate) const NAMESPACE: &str = "sweep";
const KEY: &str = "turn";

/// The claim for the current period, written by this call.
struct Claim {
    scope: Scope,
    version: u64,
}

/// The value of the claim's record.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct ClaimValue {
    by: Uuid,
}

impl Memory {
    /// Sweeps the whole store ([`threadkeep_core::Maintenance::sweep`]). Does nothing and returns `None` if another instance has
    /// done so within `every`.
    ///
    /// Every instance should call this with the same `every`, and more often than that. If a sweep fails, the next call sweeps.
    /// If the process is killed during a sweep, the first call in the next period sweeps.
    ///
    /// # Errors
    /// `Invalid` for a period of 0, and errors from the store.
    pub async fn sweep_if_due(&self, every: Duration) -> Result<Option<SweepReport>> {
        if every.is_zero() {
            return Err(MemoryError::invalid("every", "must be greater than 0"));
        }
        let tenants = retry(self.runtime(), || self.maintenance().list_tenants(None, 1)).await?;
        // The claim belongs to the first tenant, which is the same for all instances. An empty store needs no claim.
        let claim = match tenants.into_iter().next() {
            Some(tenant) => match self.claim_sweep(tenant, every).await? {
                None => return Ok(None),
                claim => claim,
            },
            None => None,
        };
        let now = self.now();
        let swept = retry(self.runtime(), || self.maintenance().sweep(now)).await;
        if let (Err(_), Some(claim)) = (&swept, claim) {
            // If deleting the claim also fails, it expires at the end of the period.
            drop(self.delete_claim(&claim).await);
        }
        Ok(Some(swept?))
    }

    /// Writes the claim for a period that starts now; `None` if another instance has one.
    async fn claim_sweep(&self, tenant: TenantId, every: Duration) -> Result<Option<Claim>> {
        let (scope, now) = (Scope::Tenant(tenant), self.now());
        let claimed = ClaimValue { by: self.generate_message_id().0 };
        let period_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        let value = Some(JsonText::of(&claimed)?);
        let write = RecordWrite { value, expires_at: Some(now.plus_ms(period_ms)), ..claim_write(0) };
        let outcome =
            retry_with_outcome(self.runtime(), || self.store().write_record(&scope, write.clone(), now)).await;
        match outcome.result {
            Ok(written) => Ok(Some(Claim { scope, version: written.version })),
            Err(StoreError::Conflict(Conflict::Record { .. })) if outcome.may_have_applied_before => {
                self.find_own_claim(scope, &claimed).await
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds the claim if an earlier attempt of this call wrote it, although the reply was lost.
    async fn find_own_claim(&self, scope: Scope, claimed: &ClaimValue) -> Result<Option<Claim>> {
        let (owner, namespace, now) = (RecordOwner::Tenant, sweep_namespace(), self.now());
        let found = retry(self.runtime(), || self.store().find_record(&scope, &owner, &namespace, KEY, now)).await?;
        let own = found.filter(|record| record.value.read::<ClaimValue>().is_ok_and(|found| found == *claimed));
        Ok(own.map(|record| Claim { scope, version: record.version }))
    }

    async fn delete_claim(&self, claim: &Claim) -> Result<()> {
        let now = self.now();
        retry(self.runtime(), || self.store().write_record(&claim.scope, claim_write(claim.version), now)).await?;
        Ok(())
    }
}

/// Creates a write that deletes the claim if it has the version `expected`. Version 0 requires that there is no claim.
fn claim_write(expected: u64) -> RecordWrite {
    let (owner, namespace, key) = (RecordOwner::Tenant, sweep_namespace(), KEY.to_owned());
    RecordWrite { owner, namespace, key, expected: Some(expected), value: None, expires_at: None }
}

fn sweep_namespace() -> Namespace {
    Namespace::System(NAMESPACE.to_owned())
}
