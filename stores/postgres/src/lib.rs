//! Keeps conversations in PostgreSQL: the store for several instances, Supabase included.
//!
//! Start with [`PostgresStore::open`]. `schema/` holds the tables and the functions that run beside them, `commit` how a
//! thread changes, `lanes` how many commits share a transaction, `following` how many
//! subscribers share a look, `collections` what applications fill, `pool` how a call becomes
//! one flight, `listen` and `notify` how instances wake each other, `index` how
//! search follows the log off the commit path.
//!
//! Every call runs as a role that owns nothing, under row security, in a scope that is set in the same transaction: what a
//! statement forgets to ask for, the database still refuses. Hot calls are one function call each, so that they are one
//! round trip and their plans are kept by the server, also behind a pooler that allows no prepared statements.
#![warn(missing_docs)]

mod changes;
mod collections;
mod commit;
mod derived;
mod dump;
mod error;
mod following;
mod index;
mod keeper;
mod lanes;
mod listen;
mod maintenance;
mod messages;
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

/// A store in one PostgreSQL database. Cheap to clone; its connections are closed with the last clone.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

impl PostgresStore {
    /// SQL by which the owner of the tables removes everything that was ever kept, and leaves them as they were made.
    pub const EMPTY: &str = include_str!("schema/empty.sql");

    /// Opens the database that a URL names, and brings its schema up to date where the role may do so.
    ///
    /// [`PostgresOptions::from_url`] says what a URL can hold. Needs a tokio runtime, in which it leaves tasks running.
    ///
    /// # Errors
    /// `Invalid` for a URL that is none and for credentials that are refused, `Incompatible` when the schema is missing
    /// and may not be made or was written by a later version, `Unavailable` when the server cannot be reached.
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(PostgresOptions::from_url(url)?).await
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_with(options: PostgresOptions) -> Result<Self> {
        let shared = Shared::open(options)?;
        schema::prepare(&shared).await?;
        notify::start(&shared);
        keeper::start(&shared);
        Ok(Self { shared })
    }

    /// All that this store offers, as everyone holds it.
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
