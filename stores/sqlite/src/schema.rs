//! What stands in the file, and how an older file becomes a newer one.
//!
//! A thread has a number of its own, and everything of it that has a position lies at `number << 32 | position`: its
//! messages stand together in one tree, so the newest ones are a short walk, whatever else the file holds.

use rusqlite::{Connection, TransactionBehavior};
use threadkeep_core::StoreError;

use crate::error::Result;

/// Marks a SQLite file as Threadkeep's (`ThKp`).
pub(crate) const APPLICATION_ID: i64 = 0x5468_4b70;

/// Each entry brings a file from its index to the next version. Released entries never change.
const MIGRATIONS: [&str; 7] = [
    include_str!("schema/001_first.sql"),
    include_str!("schema/002_collections.sql"),
    include_str!("schema/003_merging.sql"),
    include_str!("schema/004_driven.sql"),
    include_str!("schema/005_documents.sql"),
    include_str!("schema/006_checksums.sql"),
    include_str!("schema/007_tags.sql"),
];

/// The version that this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Brings the file up to date, once, whichever of several processes comes first.
pub(crate) fn migrate(connection: &mut Connection) -> Result<()> {
    if checked_version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again under the lock: another process may have been here in between.
    let version = checked_version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Refuses files of others and of the future; gives the version, 0 for an empty file.
pub(crate) fn checked_version(connection: &Connection) -> Result<i64> {
    if !connection.is_autocommit() {
        return read_version(connection);
    }
    // One snapshot: another process may be making the file at this moment.
    let transaction = connection.unchecked_transaction()?;
    let version = read_version(&transaction)?;
    transaction.commit()?;
    Ok(version)
}

fn read_version(connection: &Connection) -> Result<i64> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id")?;
    let version = pragma("user_version")?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION_ID {
        return Err(StoreError::Incompatible("the file is a SQLite database of another program".to_owned()).into());
    }
    if version > VERSION {
        let reason = format!("the file has schema {version}, this program knows up to {VERSION}");
        return Err(StoreError::Incompatible(reason).into());
    }
    Ok(version)
}
