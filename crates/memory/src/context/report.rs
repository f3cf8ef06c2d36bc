//! The explanation of a context, kept for whoever asks later why the model saw what it saw.

use threadkeep_context::Report;
use threadkeep_core::{DocumentName, DocumentOwner, JsonText, Namespace, PutDocument, Scope, ThreadId};

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
        let (owner, DocumentName { namespace, key }, now) = (DocumentOwner::Thread(thread), name(turn), self.now());
        let found =
            repeat_simply(self.runtime(), || self.store().find_document(scope, &owner, &namespace, &key, now)).await?;
        Ok(found.map(|document| document.value.read()).transpose()?)
    }

    /// The document that [`Memory::context_report`] reads, for a caller that writes it with a commit of its own.
    ///
    /// # Errors
    /// `Invalid` for a report with numbers that JSON cannot hold.
    pub fn report_document(&self, turn: &str, report: &Report) -> Result<PutDocument> {
        let expires_at = Some(self.now().plus_ms(KEPT_MS));
        Ok(PutDocument { name: name(turn), value: JsonText::of(report)?, expires_at })
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
        batch.put.push(self.report_document(turn, report)?);
        self.commit_repeatedly(scope, thread, &batch, now).await?;
        Ok(())
    }
}

fn name(turn: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System("context".to_owned()), key: format!("turn/{turn}") }
}
