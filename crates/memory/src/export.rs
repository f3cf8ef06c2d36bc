//! Exporting conversations in the format of [`threadkeep_core::exchange`].

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use threadkeep_core::exchange::{EXPORT_VERSION, ExportLine, ExportedThread};
use threadkeep_core::{
    Namespace, Owner, Record, RecordOwner, RecordQuery, Scope, StoreError, Thread, ThreadId, ThreadOrder, ThreadQuery,
    limits,
};

use crate::messages::{READ_PAGE, ScanStep};
use crate::retry::retry;
use crate::{Memory, Result, ThreadSelection};

/// The lines of an export.
pub type ExportLines = BoxStream<'static, Result<ExportLine>>;

type LinePage = stream::Iter<std::vec::IntoIter<Result<ExportLine>>>;
type ThreadPage = stream::Iter<std::vec::IntoIter<Result<Thread>>>;

/// The `what` of a [`StoreError::Corrupt`] for a message that cannot be decoded. Stores use the same value.
const CORRUPT_MESSAGE: &str = "message";

impl Memory {
    /// Exports one thread, or everything to which a scope has full access: threads with their messages, and records of
    /// applications. A tenant's export includes its users' records.
    ///
    /// The lines are read while the stream is polled, and only one page at a time is in memory. First comes a header, then each
    /// thread in the order of creation, followed by its messages and records, then the other records. Data that is written
    /// during the export may be missing. For a message that cannot be decoded, the stream returns a `Corrupt` error and continues.
    /// After any other error, it ends.
    #[must_use]
    pub fn export(&self, scope: &Scope, selection: ThreadSelection) -> ExportLines {
        let header = ExportLine::Threadkeep { version: EXPORT_VERSION, exported_at: self.now() };
        let header = stream::once(std::future::ready(Ok(header)));
        let export = Export { memory: self.clone(), scope: scope.clone() };
        let rest = match selection {
            ThreadSelection::Thread(thread) => {
                stream::once(export.find_and_export_thread(thread)).try_flatten().boxed()
            }
            ThreadSelection::All => {
                export.clone().export_threads().chain(export.export_user_and_tenant_records()).boxed()
            }
        };
        let lines = header.chain(rest).scan(false, |has_ended, line| {
            let line = (!*has_ended).then_some(line);
            *has_ended = matches!(&line, Some(Err(error)) if !is_corrupt_message_error(error));
            std::future::ready(line)
        });
        lines.boxed()
    }
}

#[derive(Clone)]
struct Export {
    memory: Memory,
    scope: Scope,
}

impl Export {
    async fn find_and_export_thread(self, thread: ThreadId) -> Result<ExportLines> {
        let thread = self.memory.get_thread(&self.scope, thread).await?;
        Ok(self.export_thread(thread))
    }

    fn export_threads(self) -> ExportLines {
        let first = Some(ThreadQuery::new(ThreadOrder::Created, READ_PAGE));
        let export = self.clone();
        let pages = stream::try_unfold(first, move |query| export.clone().threads_page(query));
        pages.try_flatten().map_ok(move |thread| self.clone().export_thread(thread)).try_flatten().boxed()
    }

    async fn threads_page(self, query: Option<ThreadQuery>) -> Result<Option<(ThreadPage, Option<ThreadQuery>)>> {
        let Some(query) = query else { return Ok(None) };
        let page = self.memory.list_threads(&self.scope, &query).await?;
        let next = page.next.map(|next| ThreadQuery { after: Some(next), ..query });
        // Ephemeral threads expire within a day, so they are not exported.
        let threads = page.threads.into_iter().filter(|thread| !thread.is_ephemeral());
        Ok(Some((stream::iter(threads.map(Ok).collect::<Vec<_>>()), next)))
    }

    fn export_thread(self, thread: Thread) -> ExportLines {
        let owner = RecordOwner::Thread(thread.id);
        let messages = self.clone().export_messages(thread.id);
        let line = stream::once(std::future::ready(Ok(ExportLine::Thread(to_exported(thread)))));
        let lines = line.chain(messages).chain(stream::once(self.records(owner)).try_flatten());
        // If the thread has been deleted since it was listed, the export continues with the next thread.
        let lines = lines.take_while(|line| {
            let is_deleted = matches!(line, Err(error) if error.is_thread_not_found());
            std::future::ready(!is_deleted)
        });
        lines.boxed()
    }

    fn export_messages(self, thread: ThreadId) -> ExportLines {
        let pages = stream::try_unfold(Some(0), move |after| self.clone().messages_page(thread, after));
        pages.try_flatten().boxed()
    }

    async fn messages_page(self, thread: ThreadId, after: Option<u64>) -> Result<Option<(LinePage, Option<u64>)>> {
        let Some(after) = after else { return Ok(None) };
        let ScanStep { page, next } = self.memory.page_after(&self.scope, thread, after, READ_PAGE).await?;
        let messages = page.messages.into_iter();
        let messages = messages.map(|message| Ok(ExportLine::Message(Box::new(message.into()))));
        let corrupt = page.corrupt.into_iter().map(|row| {
            let detail = format!("thread {thread}, position {}: {}", row.seq, row.detail);
            Err(StoreError::corrupt(CORRUPT_MESSAGE, detail).into())
        });
        Ok(Some((stream::iter(messages.chain(corrupt).collect::<Vec<_>>()), next)))
    }

    fn export_user_and_tenant_records(self) -> ExportLines {
        let owners = stream::once(self.clone().record_owners()).try_flatten();
        owners.and_then(move |owner| self.clone().records(owner)).try_flatten().boxed()
    }

    /// Lists the users and the tenant whose records are exported.
    async fn record_owners(self) -> Result<stream::Iter<std::vec::IntoIter<Result<RecordOwner>>>> {
        let owners = match &self.scope {
            Scope::User(_, user) => vec![Ok(RecordOwner::User(user.clone()))],
            Scope::Tenant(tenant) => {
                let (mut owners, mut after) = (vec![Ok(RecordOwner::Tenant)], None);
                loop {
                    let maintenance = self.memory.maintenance();
                    let list = || maintenance.list_owners(tenant, after.as_ref(), limits::PAGE);
                    let page = retry(self.memory.runtime(), list).await?;
                    let Some(last) = page.last().cloned() else { break owners };
                    owners.extend(page.into_iter().filter_map(|owner| match owner {
                        Owner::User(user) => Some(Ok(RecordOwner::User(user))),
                        Owner::Tenant => None,
                    }));
                    after = Some(last);
                }
            }
        };
        Ok(stream::iter(owners))
    }

    async fn records(self, owner: RecordOwner) -> Result<LinePage> {
        let records = self.memory.all_records(&self.scope, RecordQuery::of(owner.clone())).await?;
        let app_records = records.into_iter().filter(|record| matches!(record.namespace, Namespace::App(_)));
        // Tags are only meaningful in the store that assigned them.
        let lines = app_records.map(|record| Record { tag: None, ..record });
        let lines = lines.map(|record| Ok(ExportLine::Record { owner: owner.clone(), record }));
        Ok(stream::iter(lines.collect::<Vec<_>>()))
    }
}

fn to_exported(thread: Thread) -> ExportedThread {
    let Thread { id, owner, key, title, metadata, state, created_at, expires_at, .. } = thread;
    ExportedThread { id, owner, key, title, metadata, state, created_at, expires_at }
}

fn is_corrupt_message_error(error: &crate::MemoryError) -> bool {
    matches!(error, crate::MemoryError::Store(StoreError::Corrupt { what: CORRUPT_MESSAGE, .. }))
}
