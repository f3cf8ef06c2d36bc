//! Starts PostgreSQL and PgBouncer from the system's packages for tests, and stops them again.
//!
//! [`Server::shared`] is the one server of a test binary, with a database for each test ([`Server::create_database`]); a test
//! that kills its server starts one of its own ([`Server::start`]), and one over vectors asks for
//! [`Server::with_vectors`]. Servers run in a temporary folder, on a free port of this machine, and as an unprivileged user
//! where the tests run as root. A supervising shell stops them when the process that asked for them is gone, however it
//! ended.
//!
//! `THREADKEEP_TEST_POSTGRES_URL` names a server to take instead, by the URL of a role that may create databases and roles.
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
pub use programs::is_left_out;
pub use proxy::{Cut, Proxy};
pub use server::Server;
