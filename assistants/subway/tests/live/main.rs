//! The tools that ask the MTA, against a server that serves real protobuf over HTTP.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod arrivals;
mod compare;
mod fetching;
mod mta;
mod person;
mod routes;
mod tools;
