//! Tools that use live feeds, against a server that serves real protobuf over HTTP.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod arrivals;
mod compare;
mod fetching;
mod mta;
mod routes;
mod tools;
mod user;
