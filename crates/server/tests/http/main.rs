//! The server, through real sockets. The folders mirror the paths.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod assistants;
mod clients;
mod compat;
mod conversations;
mod edge;
mod limits;
mod operations;
mod proxy;
mod security;
mod server;
mod tenants;
mod v1;

use server::{Client, TestServer};
