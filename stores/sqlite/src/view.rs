//! Reads that are one: what they give is as of one instant.

use rusqlite::Connection;
use threadkeep_core::{Scope, ThreadName, ThreadRead, ThreadView, Timestamp};

use crate::connection::Shared;
use crate::error::Result;
use crate::{messages, owners, records, threads};

pub(crate) fn read_thread(
    shared: &Shared,
    scope: &Scope,
    name: &ThreadName,
    read: &ThreadRead,
    now: Timestamp,
) -> Result<Option<ThreadView>> {
    read.check()?;
    at_one_instant(shared, scope, |connection| {
        let Some((no, thread)) = threads::find(shared, connection, scope, name, now)? else { return Ok(None) };
        let page = read.messages.as_ref().map(|query| messages::page(connection, no, thread.positions, query));
        let found = read.records.iter().map(|name| records::find_of_thread(connection, no, name, now));
        let lists = read.lists.iter().map(|query| records::page_of(shared, connection, scope, query, now));
        Ok(Some(ThreadView {
            page: page.transpose()?,
            records: found.collect::<Result<_>>()?,
            lists: lists.collect::<Result<_>>()?,
            thread,
        }))
    })
}

/// Reads in one transaction.
pub(crate) fn at_one_instant<T>(
    shared: &Shared,
    scope: &Scope,
    read: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    shared.read(|connection| {
        // Looked up here, the names' numbers are remembered: inside a transaction they are not.
        owners::of_scope(shared, connection, scope)?;
        let transaction = Transaction::begin(connection)?;
        let found = read(connection)?;
        transaction.end()?;
        Ok(found)
    })
}

/// A read transaction that ends with its value. Its statements stay prepared, unlike those of rusqlite's own.
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
