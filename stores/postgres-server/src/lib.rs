//! Starts and stops PostgreSQL and PgBouncer from the system's packages for tests.
//!
//! [`Server::shared`] is the shared server of a test binary, with a database for each test ([`Server::create_database`]). A
//! test that kills its server starts a separate one ([`Server::start`]), and a test with vectors uses [`Server::with_vectors`].
//! Servers run in a temporary folder on a free port, and as an unprivileged user if the tests run as root. A supervising shell
//! stops them when the test process ends, even if it crashes.
//!
//! `THREADKEEP_TEST_POSTGRES_URL` selects an existing server instead. The role in the URL must be able to create databases and
//! roles.
#![warn(missing_docs)]

mod database;
mod pooler;
mod programs;
mod proxy;
mod server;
mod supervisor;
mod traces;

pub use database::Database;
pub use pooler::Pooler;
pub use programs::is_skipped;
pub use proxy::{Cut, Proxy};
pub use server::Server;
