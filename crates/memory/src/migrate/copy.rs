use futures::StreamExt;
use serde::Serialize;
use threadkeep_core::{
    Conflict, Document, DocumentOwner, Dump, Kind, Result, StoreError, TenantId, Thread, ThreadId, ThreadName,
};

use super::{Differences, Item, Migration, Progress, survey, walk};
use crate::retry::{repeat, repeat_simply};

/// Threads that are read at once, while they are written one after the other: what is written first is listed first.
const READ_AHEAD: usize = 8;
/// How often a thread is copied anew because it changed meanwhile.
const ATTEMPTS: usize = 4;

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// What was written.
    pub copied: Progress,
    /// What the target had already.
    pub already_there: Progress,
    /// What could not be copied.
    pub left_out: Differences,
}

/// What became of one thread.
enum Fate {
    Copied,
    AlreadyThere,
    /// It was deleted or expired since it was listed.
    Gone,
    /// It changed while it was read.
    Changed,
    InTheWay(String),
}

/// A thread as one look at both sides found it.
enum Look<'a> {
    Decided(Fate),
    Missing(Box<Missing<'a>>),
}

/// A thread that the target does not have, with its first chunk.
struct Missing<'a> {
    thread: Thread,
    first: Dump,
    rest: walk::Chunks<'a>,
}

impl Migration {
    /// Copies what the target does not have. A thread appears there when it is whole; one that was on its way when a
    /// migration was cut is copied from its beginning. What is in the way is left alone and told.
    ///
    /// # Errors
    /// Those of the stores. What was copied until then stays.
    pub async fn copy(&self, mut progress: impl FnMut(Progress)) -> Result<Copied> {
        let mut copied = Copied::default();
        for tenant in walk::tenants(&self.from).await? {
            let mut threads = walk::Threads::of(&self.from, &tenant, self.now);
            while let Some(page) = threads.next_page().await? {
                let looks = page.into_iter().map(async |thread| (self.look(&tenant, thread.id).await, thread));
                let mut looks = std::pin::pin!(futures::stream::iter(looks).buffered(READ_AHEAD));
                while let Some((look, thread)) = looks.next().await {
                    let fate = self.copy_thread(&tenant, thread.id, look).await?;
                    copied.add(&tenant, &thread, fate);
                    progress(copied.done());
                }
            }
            self.copy_documents(&tenant, &mut copied).await?;
            progress(copied.done());
        }
        Ok(copied)
    }

    async fn copy_thread(&self, tenant: &TenantId, id: ThreadId, look: Result<Look<'_>>) -> Result<Fate> {
        let mut look = Some(look);
        for _ in 0..ATTEMPTS {
            // Whatever the fate of a chunk was, its thread is begun anew: so no chunk is written twice.
            let attempt = repeat(|| self.copy_whole(tenant, id, look.take())).await;
            match attempt.result {
                Ok(Fate::Changed) => {}
                Err(StoreError::NotFound(Kind::Thread)) => return Ok(Fate::Gone),
                Err(StoreError::Conflict(Conflict::Thread)) => {
                    return Ok(Fate::InTheWay("its id or key belongs to another thread there".to_owned()));
                }
                result => return result,
            }
        }
        Ok(Fate::Changed)
    }

    async fn look<'a>(&'a self, tenant: &'a TenantId, id: ThreadId) -> Result<Look<'a>> {
        let name = ThreadName::Id(id);
        let Some(thread) = walk::find_thread(&self.from, tenant, &name, self.now).await? else {
            return Ok(Look::Decided(Fate::Gone));
        };
        match walk::find_thread(&self.to, tenant, &name, self.now).await? {
            Some(there) if there == thread => return Ok(Look::Decided(Fate::AlreadyThere)),
            Some(there) => return Ok(Look::Decided(Fate::InTheWay(survey::other_thread(&thread, &there)))),
            None => {}
        }
        let mut rest = walk::Chunks::of(&self.from, tenant, id);
        match rest.next().await? {
            Some(first) => Ok(Look::Missing(Box::new(Missing { thread, first, rest }))),
            None => Ok(Look::Decided(Fate::Gone)),
        }
    }

    async fn copy_whole<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: ThreadId,
        look: Option<Result<Look<'a>>>,
    ) -> Result<Fate> {
        let look = match look {
            Some(look) => look?,
            None => self.look(tenant, id).await?,
        };
        let Missing { thread, first, mut rest } = match look {
            Look::Decided(fate) => return Ok(fate),
            Look::Missing(missing) => *missing,
        };
        self.to.maintenance.restore_thread(tenant, id, first).await?;
        while let Some(chunk) = rest.next().await? {
            // One chunk shows one instant; of several each shows its own, so the last waits until nothing changed.
            if chunk.next.is_none() {
                let found = walk::find_thread(&self.from, tenant, &ThreadName::Id(id), self.now).await?;
                if found.as_ref() != Some(&thread) {
                    return Ok(Fate::Changed);
                }
            }
            self.to.maintenance.restore_thread(tenant, id, chunk).await?;
        }
        Ok(Fate::Copied)
    }

    async fn copy_documents(&self, tenant: &TenantId, copied: &mut Copied) -> Result<()> {
        let mut documents = walk::Documents::of(&self.from, tenant, self.now);
        while let Some((owner, page)) = documents.next_page().await? {
            for document in page {
                self.copy_document(tenant, &owner, document, copied).await?;
            }
        }
        Ok(())
    }

    async fn copy_document(
        &self,
        tenant: &TenantId,
        owner: &DocumentOwner,
        document: Document,
        copied: &mut Copied,
    ) -> Result<()> {
        match self.find_in_target(tenant, owner, &document).await? {
            Some(there) if there == document => copied.already_there.documents += 1,
            Some(there) => {
                let detail = survey::other_document(&document, &there);
                copied.left_out.add(tenant, walk::item(owner, &document), detail);
            }
            None => {
                let restore = || self.to.maintenance.restore_document(tenant, owner, document.clone());
                repeat_simply(restore).await?;
                copied.copied.documents += 1;
            }
        }
        Ok(())
    }
}

impl Copied {
    fn add(&mut self, tenant: &TenantId, thread: &Thread, fate: Fate) {
        let side = match fate {
            Fate::Copied => &mut self.copied,
            Fate::AlreadyThere => &mut self.already_there,
            Fate::Gone => return,
            Fate::Changed => {
                let detail = "it changed each time that it was read";
                return self.left_out.add(tenant, Item::Thread(thread.id), detail);
            }
            Fate::InTheWay(detail) => return self.left_out.add(tenant, Item::Thread(thread.id), detail),
        };
        side.threads += 1;
        side.messages += thread.message_count;
    }

    fn done(&self) -> Progress {
        let (new, old) = (self.copied, self.already_there);
        Progress {
            threads: new.threads + old.threads,
            messages: new.messages + old.messages,
            documents: new.documents + old.documents,
        }
    }
}
