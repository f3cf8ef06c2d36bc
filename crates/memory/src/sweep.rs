//! Sweeping once per period, however many instances share the store.
//!
//! Two simultaneous sweeps are harmless but do the work twice. So there is no lock: the instance that writes the record of the
//! current period sweeps, and all others skip the sweep until that record has expired.

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

/// The record of the current period, written by this call.
struct Claim {
    scope: Scope,
    version: u64,
}

/// The value of the record.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct ClaimValue {
    by: Uuid,
}

impl Memory {
    /// Sweeps the whole store ([`threadkeep_core::Maintenance::sweep`]), unless an instance has done so within `every`: then it
    /// returns `None`.
    ///
    /// Each instance calls it with the same `every`, and more often than that. After a failed sweep, the next call sweeps;
    /// after one whose process was killed, the first call of the next period.
    ///
    /// # Errors
    /// `Invalid` for a period of 0, and those of the store.
    pub async fn sweep_if_due(&self, every: Duration) -> Result<Option<SweepReport>> {
        if every.is_zero() {
            return Err(MemoryError::invalid("every", "must be greater than 0"));
        }
        let tenants = retry(self.runtime(), || self.maintenance().list_tenants(None, 1)).await?;
        // The record belongs to the first tenant, which is the same for all instances. An empty store needs no record.
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
            // If this fails too, the record expires.
            drop(self.delete_claim(&claim).await);
        }
        Ok(Some(swept?))
    }

    async fn claim_sweep(&self, tenant: TenantId, every: Duration) -> Result<Option<Claim>> {
        let (scope, now) = (Scope::Tenant(tenant), self.now());
        let claimed = ClaimValue { by: self.generate_message_id().0 };
        let length_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        let value = Some(JsonText::of(&claimed)?);
        let write = RecordWrite { value, expires_at: Some(now.plus_ms(length_ms)), ..write(0) };
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

    /// Finds the record if an earlier attempt of this call wrote it and its reply was lost.
    async fn find_own_claim(&self, scope: Scope, claimed: &ClaimValue) -> Result<Option<Claim>> {
        let (owner, namespace, now) = (RecordOwner::Tenant, namespace(), self.now());
        let found = retry(self.runtime(), || self.store().find_record(&scope, &owner, &namespace, KEY, now)).await?;
        let own = found.filter(|record| record.value.read::<ClaimValue>().is_ok_and(|found| found == *claimed));
        Ok(own.map(|record| Claim { scope, version: record.version }))
    }

    async fn delete_claim(&self, claim: &Claim) -> Result<()> {
        let now = self.now();
        retry(self.runtime(), || self.store().write_record(&claim.scope, write(claim.version), now)).await?;
        Ok(())
    }
}

/// A write that deletes the record if it has this version; 0 expects that there is no record.
fn write(expected: u64) -> RecordWrite {
    let (owner, namespace, key) = (RecordOwner::Tenant, namespace(), KEY.to_owned());
    RecordWrite { owner, namespace, key, expected: Some(expected), value: None, expires_at: None }
}

fn namespace() -> Namespace {
    Namespace::System(NAMESPACE.to_owned())
}
