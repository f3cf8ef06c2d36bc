//! Reads in one transaction, so that all results are from the same snapshot.

use rusqlite::Connection;
use threadkeep_core::{Scope, ThreadRead, ThreadRef, ThreadView, Timestamp};

use crate::connection::Shared;
use crate::error::Result;
use crate::{messages, owners, records, threads};

pub(crate) fn read_thread(
    shared: &Shared,
    scope: &Scope,
    thread: &ThreadRef,
    read: &ThreadRead,
    now: Timestamp,
) -> Result<Option<ThreadView>> {
    read.check()?;
    in_read_transaction(shared, scope, |connection| {
        let Some((thread_no, thread)) = threads::find(shared, connection, scope, thread, now)? else { return Ok(None) };
        let page =
            read.messages.as_ref().map(|query| messages::read_page(connection, thread_no, thread.positions, query));
        let found = read.records.iter().map(|name| records::find_thread_record(connection, thread_no, name, now));
        let lists = read.lists.iter().map(|query| records::list_in(shared, connection, scope, query, now));
        Ok(Some(ThreadView {
            page: page.transpose()?,
            records: found.collect::<Result<_>>()?,
            lists: lists.collect::<Result<_>>()?,
            thread,
        }))
    })
}

/// Runs `read` in one transaction.
pub(crate) fn in_read_transaction<T>(
    shared: &Shared,
    scope: &Scope,
    read: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    shared.read(|connection| {
        // Caches the numbers of the scope's owners, which is not possible within a transaction.
        owners::resolve_scope(shared, connection, scope)?;
        let transaction = Transaction::begin(connection)?;
        let found = read(connection)?;
        transaction.end()?;
        Ok(found)
    })
}

/// A read transaction that ends when it is dropped. Unlike with rusqlite's transactions, its statements are cached.
struct Transaction<'a> {
    connection: &'a Connection,
}

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection) -> Result<Self> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self { connection })
    }

    fn end(self) -> Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }
}
