//! The explanation of a context, kept for whoever asks later why the model saw what it saw.

use threadkeep_context::Report;
use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, RecordOwner, Scope, ThreadId};

use crate::retry::repeat_simply;
use crate::{Memory, Result};

/// How long a report is kept: 30 days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

impl Memory {
    /// Reads the report of a context that was assembled with [`crate::ContextOptions::turn`].
    ///
    /// # Errors
    /// `Corrupt` for a report that has another shape, `Invalid` or `LimitExceeded` for a name that is none.
    pub async fn context_report(&self, scope: &Scope, thread: ThreadId, turn: &str) -> Result<Option<Report>> {
        let (owner, RecordName { namespace, key }, now) = (RecordOwner::Thread(thread), name(turn), self.now());
        let found =
            repeat_simply(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?;
        Ok(found.map(|record| record.value.read()).transpose()?)
    }

    /// The record that [`Memory::context_report`] reads, for a caller that writes it with a commit of its own.
    ///
    /// # Errors
    /// `Invalid` for a report with numbers that JSON cannot hold.
    pub fn report_record(&self, turn: &str, report: &Report) -> Result<PutRecord> {
        let expires_at = Some(self.now().plus_ms(KEPT_MS));
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
