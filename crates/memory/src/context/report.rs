//! Stored context reports, which explain later why a context contained what it did.

use threadkeep_context::Report;
use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, RecordOwner, Scope, ThreadId};

use crate::retry::retry;
use crate::{Memory, Result};

/// How long a report is retained: 30 days.
const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;

impl Memory {
    /// Reads the report of a context that was assembled with [`crate::ContextOptions::turn`].
    ///
    /// # Errors
    /// `Corrupt` for a report that does not decode, `Invalid` or `LimitExceeded` for an invalid name.
    pub async fn context_report(&self, scope: &Scope, thread: ThreadId, turn: &str) -> Result<Option<Report>> {
        let (owner, RecordName { namespace, key }, now) = (RecordOwner::Thread(thread), name(turn), self.now());
        let found = retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?;
        Ok(found.map(|record| record.value.read()).transpose()?)
    }

    /// The record that [`Memory::context_report`] reads, for a caller that writes it in its own commit.
    ///
    /// # Errors
    /// `Invalid` for a report with numbers that JSON cannot represent.
    pub fn report_record(&self, turn: &str, report: &Report) -> Result<PutRecord> {
        let expires_at = Some(self.now().plus_ms(RETENTION_MS));
        Ok(PutRecord { name: name(turn), value: JsonText::of(report)?, expires_at })
    }

    pub(super) async fn store_report(
        &self,
        scope: &Scope,
        thread: ThreadId,
        turn: &str,
        report: &Report,
    ) -> Result<()> {
        let now = self.now();
        let mut batch = self.minted_batch(now);
        batch.put.push(self.report_record(turn, report)?);
        self.commit_repeatedly(scope, thread, &batch, now).await?;
        Ok(())
    }
}

fn name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System("context".to_owned()), key: format!("turn/{turn}") }
}
