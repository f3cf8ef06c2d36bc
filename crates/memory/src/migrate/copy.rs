use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use threadkeep_core::{
    Conflict, Dump, ListedThread, OwnedRecord, Record, RecordOwner, Result, StoreError, TenantId, ThreadName,
};

use super::{Differences, Item, Migration, Progress, survey, walk};
use crate::retry::{retry, retry_tracked};

/// Threads that are looked for in the target at once.
const LOOKS: usize = 8;

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopySummary {
    /// What was written.
    pub copied: Progress,
    /// What the target had already.
    pub already_there: Progress,
    /// What could not be copied.
    pub left_out: Differences,
}

/// What became of one thread.
enum Fate {
    CopySummary,
    AlreadyThere,
    InTheWay(String),
}

impl Migration {
    /// Copies what the target does not have, as it is in the snapshot. A thread appears there when it is whole; one that
    /// was on its way when a migration was cut is copied from its beginning. What is in the way is left alone and named.
    ///
    /// # Errors
    /// Those of the stores. What was copied until then stays.
    pub async fn copy(&self, mut progress: impl FnMut(Progress)) -> Result<CopySummary> {
        let mut copied = CopySummary::default();
        let mut threads = walk::Threads::of(self.runtime(), &*self.source);
        while let Some(page) = threads.next_page().await? {
            let looks = stream::iter(&page).map(|listed| self.look(listed)).buffered(LOOKS);
            let looks: Vec<Option<Fate>> = looks.try_collect().await?;
            let missing = page.iter().zip(&looks).filter(|(_, look)| look.is_none());
            let mut chunks =
                walk::FirstChunks::of(self.runtime(), &*self.source, missing.map(|(listed, _)| listed.number));
            // One after the other: what is written first is listed first.
            for (listed, look) in page.iter().zip(looks) {
                let fate = match look {
                    Some(fate) => fate,
                    None => self.copy_thread(listed, chunks.next().await?).await?,
                };
                copied.add(listed, fate);
                progress(copied.done());
            }
        }
        self.copy_records(&mut copied).await?;
        progress(copied.done());
        Ok(copied)
    }

    /// The fate of a thread whose id the target has already.
    async fn look(&self, listed: &ListedThread) -> Result<Option<Fate>> {
        let name = ThreadName::Id(listed.thread.id);
        let there = walk::find_thread(self.runtime(), &self.to, &listed.tenant, &name, self.now).await?;
        Ok(there.map(|there| match there == listed.thread {
            true => Fate::AlreadyThere,
            false => Fate::InTheWay(survey::other_thread(&listed.thread, &there)),
        }))
    }

    async fn copy_thread(&self, listed: &ListedThread, mut first: Option<Dump>) -> Result<Fate> {
        // When it is not known whether a chunk was written, the thread is begun again: so no chunk is written twice.
        match retry_tracked(self.runtime(), || self.copy_whole(listed, first.take())).await.result {
            // It was not there before: the reply to its last chunk was lost.
            Ok(Fate::AlreadyThere) => Ok(Fate::CopySummary),
            Err(StoreError::Conflict(Conflict::Thread)) => {
                Ok(Fate::InTheWay("its id or key belongs to another thread there".to_owned()))
            }
            result => result,
        }
    }

    async fn copy_whole(&self, listed: &ListedThread, first: Option<Dump>) -> Result<Fate> {
        let mut chunk = match first {
            Some(first) => Some(first),
            None => match self.look(listed).await? {
                Some(fate) => return Ok(fate),
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
        Ok(Fate::CopySummary)
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
        match self.find_in_target(tenant, owner, &record).await? {
            Some(there) if there == record => copied.already_there.records += 1,
            Some(there) => {
                let detail = survey::other_record(&record, &there);
                copied.left_out.add(tenant, walk::item(owner, &record), detail);
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
    fn add(&mut self, listed: &ListedThread, fate: Fate) {
        let side = match fate {
            Fate::CopySummary => &mut self.copied,
            Fate::AlreadyThere => &mut self.already_there,
            Fate::InTheWay(detail) => {
                return self.left_out.add(&listed.tenant, Item::Thread(listed.thread.id), detail);
            }
        };
        side.threads += 1;
        side.messages += listed.thread.message_count;
    }

    fn done(&self) -> Progress {
        let (new, old) = (self.copied, self.already_there);
        Progress {
            threads: new.threads + old.threads,
            messages: new.messages + old.messages,
            records: new.records + old.records,
        }
    }
}
