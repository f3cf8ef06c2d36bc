//! Stored context reports, which explain why a context contained the messages that it did.

use threadkeep_context::Report;
use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, RecordOwner, Scope, ThreadId};

use crate::retry::retry;
use crate::{Memory, Result};

/// How long a report is retained, in milliseconds: 30 days.
const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;

impl Memory {
    /// Reads the report of a context that was assembled with [`crate::ContextOptions::turn`]; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` for a report that cannot be decoded, `Invalid` or `LimitExceeded` for an invalid `turn`.
    pub async fn context_report(&self, scope: &Scope, thread: ThreadId, turn: &str) -> Result<Option<Report>> {
        let (owner, RecordName { namespace, key }, now) = (RecordOwner::Thread(thread), report_name(turn), self.now());
        let found = retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?;
        Ok(found.map(|record| record.value.read()).transpose()?)
    }

    /// Creates the record that [`Memory::context_report`] reads, for a caller that writes it in its own commit.
    ///
    /// # Errors
    /// `Invalid` for a report with numbers that JSON cannot represent.
    pub fn report_record(&self, turn: &str, report: &Report) -> Result<PutRecord> {
        let expires_at = Some(self.now().plus_ms(RETENTION_MS));
        Ok(PutRecord { name: report_name(turn), value: JsonText::of(report)?, expires_at })
    }

    pub(super) async fn store_report(
        &self,
        scope: &Scope,
        thread: ThreadId,
        turn: &str,
        report: &Report,
    ) -> Result<()> {
        let now = self.now();
        let mut batch = self.new_batch(now);
        batch.put.push(self.report_record(turn, report)?);
        self.commit_with_retries(scope, thread, &batch, now).await?;
        Ok(())
    }
}

fn report_name(turn: &str) -> RecordName {
    RecordName { namespace: Namespace::System("context".to_owned()), key: format!("turn/{turn}") }
}
