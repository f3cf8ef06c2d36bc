//! Starts and stops Redis servers and clusters from the system's packages for tests.
//!
//! [`Server`] is a single node, [`Cluster`] three primaries. They run in temporary folders on free ports, as an unprivileged user if
//! the tests run as root, with the append-only file on. A supervising shell stops each server when the value is dropped or the test
//! process ends, even if it crashes.
#![warn(missing_docs)]

mod certificates;
mod cluster;
mod programs;
mod proxy;
mod server;
mod supervisor;

pub use certificates::Certificates;
pub use cluster::Cluster;
pub use programs::is_left_out;
pub use proxy::Proxy;
pub use server::Server;
