use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use threadkeep_core::{
    Conflict, Dump, ListedThread, OwnedRecord, Record, RecordOwner, Result, StoreError, TenantId, ThreadRef,
};

use super::{Differences, Item, Migration, Progress, survey, walk};
use crate::retry::{retry, retry_with_outcome};

/// Maximum number of threads that are looked up in the target concurrently.
const CONCURRENT_READS: usize = 8;

/// The result of copying.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopySummary {
    /// The data that was written.
    pub copied: Progress,
    /// The data that existed in the target.
    pub already_there: Progress,
    /// The data that was not copied, because the target has other data under the same ids or keys.
    #[serde(rename = "left_out")]
    pub conflicts: Differences,
}

/// The outcome of copying one thread.
enum Outcome {
    Copied,
    Exists,
    /// The target has other data under the same id or key.
    Conflict(String),
}

impl Migration {
    /// Copies the data in the snapshot that does not exist in the target. A thread becomes visible in the target only when it is
    /// complete. If copying a thread was interrupted, the whole thread is copied again. Conflicting data in the target is not
    /// changed; the result lists the conflicts.
    ///
    /// # Errors
    /// Errors from the stores. Data that was copied before the error remains.
    pub async fn copy(&self, mut progress: impl FnMut(Progress)) -> Result<CopySummary> {
        let mut copied = CopySummary::default();
        let mut threads = walk::Threads::of(self.runtime(), &*self.source);
        while let Some(page) = threads.next_page().await? {
            let existing = stream::iter(&page).map(|listed| self.compare(listed)).buffered(CONCURRENT_READS);
            let existing: Vec<Option<Outcome>> = existing.try_collect().await?;
            let missing = page.iter().zip(&existing).filter(|(_, outcome)| outcome.is_none());
            let mut chunks =
                walk::FirstChunks::of(self.runtime(), &*self.source, missing.map(|(listed, _)| listed.number));
            // Threads are copied one after the other, because the target lists them in the order in which they were written.
            for (listed, existing) in page.iter().zip(existing) {
                let outcome = match existing {
                    Some(outcome) => outcome,
                    None => self.copy_thread(listed, chunks.next().await?).await?,
                };
                copied.add(listed, outcome);
                progress(copied.progress());
            }
        }
        self.copy_records(&mut copied).await?;
        progress(copied.progress());
        Ok(copied)
    }

    /// Compares a thread with the thread that has the same id in the target; `None` if the target has no such thread.
    async fn compare(&self, listed: &ListedThread) -> Result<Option<Outcome>> {
        let thread = ThreadRef::Id(listed.thread.id);
        let target = walk::find_thread(self.runtime(), &self.to, &listed.tenant, &thread, self.now).await?;
        Ok(target.map(|target| match target == listed.thread {
            true => Outcome::Exists,
            false => Outcome::Conflict(survey::describe_thread_difference(&listed.thread, &target)),
        }))
    }

    async fn copy_thread(&self, listed: &ListedThread, mut first: Option<Dump>) -> Result<Outcome> {
        // If it is unknown whether a chunk was written, the whole thread is copied again, so that no chunk is written twice.
        match retry_with_outcome(self.runtime(), || self.copy_whole(listed, first.take())).await.result {
            // The thread did not exist before, so an earlier attempt copied it although its reply was lost.
            Ok(Outcome::Exists) => Ok(Outcome::Copied),
            Err(StoreError::Conflict(Conflict::Thread)) => {
                Ok(Outcome::Conflict("its id or key belongs to another thread in the target".to_owned()))
            }
            result => result,
        }
    }

    /// Copies all chunks of a thread. Without `first`, reads the first chunk too, unless the thread exists in the target.
    async fn copy_whole(&self, listed: &ListedThread, first: Option<Dump>) -> Result<Outcome> {
        let mut chunk = match first {
            Some(first) => Some(first),
            None => match self.compare(listed).await? {
                Some(outcome) => return Ok(outcome),
                None => walk::next_chunk(self.runtime(), &*self.source, listed.number, None).await?,
            },
        };
        while let Some(dump) = chunk.take() {
            let next = dump.next;
            self.to.maintenance.restore_thread(&listed.tenant, listed.thread.id, dump).await?;
            if next.is_some() {
                chunk = walk::next_chunk(self.runtime(), &*self.source, listed.number, next).await?;
            }
        }
        Ok(Outcome::Copied)
    }

    async fn copy_records(&self, copied: &mut CopySummary) -> Result<()> {
        let mut records = walk::Records::of(self.runtime(), &*self.source);
        while let Some(page) = records.next_page().await? {
            for OwnedRecord { tenant, owner, record } in page {
                self.copy_record(&tenant, &owner, record, copied).await?;
            }
        }
        Ok(())
    }

    async fn copy_record(
        &self,
        tenant: &TenantId,
        owner: &RecordOwner,
        record: Record,
        copied: &mut CopySummary,
    ) -> Result<()> {
        match self.find_target_record(tenant, owner, &record).await? {
            Some(target) if target == record => copied.already_there.records += 1,
            Some(target) => {
                let detail = survey::describe_record_difference(&record, &target);
                copied.conflicts.add(tenant, walk::record_item(owner, &record), detail);
            }
            None => {
                let restore = || self.to.maintenance.restore_record(tenant, owner, record.clone());
                retry(self.runtime(), restore).await?;
                copied.copied.records += 1;
            }
        }
        Ok(())
    }
}

impl CopySummary {
    fn add(&mut self, listed: &ListedThread, outcome: Outcome) {
        let progress = match outcome {
            Outcome::Copied => &mut self.copied,
            Outcome::Exists => &mut self.already_there,
            Outcome::Conflict(detail) => {
                return self.conflicts.add(&listed.tenant, Item::Thread(listed.thread.id), detail);
            }
        };
        progress.threads += 1;
        progress.messages += listed.thread.message_count;
    }

    fn progress(&self) -> Progress {
        let (new, old) = (self.copied, self.already_there);
        Progress {
            threads: new.threads + old.threads,
            messages: new.messages + old.messages,
            records: new.records + old.records,
        }
    }
}
