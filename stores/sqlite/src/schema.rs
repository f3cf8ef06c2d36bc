//! The tables of the file and the migrations from older schemas.
//!
//! Each thread has a number, and its positioned rows have the key `number << 32 | position`. The messages of a thread are
//! therefore adjacent in the B-tree, and the cost of reading the newest ones does not depend on the size of the file.
//!
//! The names of some tables and columns differ from the terms of the code: the table `documents` contains records, `commits` is the
//! change log, and a column `position` contains a key (`row::key`), which consists of a thread's number and a position.

use rusqlite::{Connection, TransactionBehavior};
use threadkeep_core::StoreError;

use crate::error::Result;

/// The application id that identifies a SQLite file as a Threadkeep store (`ThKp`).
pub(crate) const APPLICATION_ID: i64 = 0x5468_4b70;

/// Entry `n` migrates a file from version `n` to `n + 1`. Released entries never change.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema/001_first.sql"),
    include_str!("schema/002_collections.sql"),
    include_str!("schema/003_merging.sql"),
    include_str!("schema/004_driven.sql"),
    include_str!("schema/005_documents.sql"),
    include_str!("schema/006_checksums.sql"),
    include_str!("schema/007_tags.sql"),
    include_str!("schema/008_metadata.sql"),
];

/// The schema version that this crate writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Migrates the file to [`VERSION`]. Safe to call from several processes simultaneously.
pub(crate) fn migrate(connection: &mut Connection) -> Result<()> {
    if checked_version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The version is read again under the lock, because another process may have migrated the file in the meantime.
    let version = checked_version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Returns the file's schema version; 0 for an empty file. Fails for files of other applications and of later versions.
pub(crate) fn checked_version(connection: &Connection) -> Result<i64> {
    if !connection.is_autocommit() {
        return read_version(connection);
    }
    // All values are read in a single snapshot, because another process may be creating the file.
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
        return Err(StoreError::Incompatible("the file is a SQLite database of another application".to_owned()).into());
    }
    if version > VERSION {
        let reason = format!("the file has schema version {version}; this program supports versions up to {VERSION}");
        return Err(StoreError::Incompatible(reason).into());
    }
    Ok(version)
}
