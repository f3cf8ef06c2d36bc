//! Conversations in PostgreSQL, including Supabase: the store for several instances.
//!
//! Start with [`PostgresStore::open`]. `schema/` contains the tables and the SQL functions. `commit` describes how a thread
//! changes, `commit_batcher` how commits share a transaction, `change_reader` how subscribers share a read of the change
//! log, `collections` the entries that applications store, `pool` how a call takes a single round trip, `listen` and
//! `notify` how instances wake each other, and `index` how the search index follows the change log off the commit path.
//!
//! Every call runs as a role that owns nothing, under row-level security, in a scope that is set in the same transaction: if a
//! statement lacks a condition, the database still denies access. Frequent operations are one function call each, so that
//! they take one round trip and the server caches their plans, even behind a pooler without prepared statements.
#![warn(missing_docs)]

mod background;
mod change_reader;
mod changes;
mod collections;
mod commit;
mod commit_batcher;
mod derived;
mod dump;
mod error;
mod index;
mod listen;
mod maintenance;
mod messages;
mod metadata;
mod notify;
mod options;
mod pool;
mod records;
mod restore;
mod row;
mod schema;
mod search;
mod snapshot;
mod store;
mod sweep;
mod threads;
mod tls;
mod verify;
mod view;

use std::sync::Arc;

use threadkeep_core::{Backend, Result};

pub use crate::options::{Listen, PostgresOptions};
use crate::pool::Shared;

/// A store in a PostgreSQL database. Cheap to clone; dropping the last clone closes its connections.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

impl PostgresStore {
    /// SQL that deletes all data and resets the tables to their initial state. Must be run by the owner of the tables.
    pub const EMPTY: &str = include_str!("schema/empty.sql");

    /// Opens the database at a URL, and creates or migrates its schema if the role has the privileges.
    ///
    /// [`PostgresOptions::from_url`] describes the URL. Requires a tokio runtime, in which it spawns tasks.
    ///
    /// # Errors
    /// `Invalid` for an invalid URL or rejected credentials, `Incompatible` if the schema is missing or outdated and cannot be
    /// migrated or was written by a later version, `Unavailable` if the server cannot be reached.
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(PostgresOptions::from_url(url)?).await
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// The same as [`PostgresStore::open`].
    pub async fn open_with(options: PostgresOptions) -> Result<Self> {
        let shared = Shared::open(options)?;
        schema::prepare(&shared).await?;
        notify::start(&shared);
        background::start(&shared);
        Ok(Self { shared })
    }

    /// Returns the store as a [`Backend`], whose interfaces are the same for all stores.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        Backend { store: this.clone(), maintenance: this.clone(), search: this }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}
