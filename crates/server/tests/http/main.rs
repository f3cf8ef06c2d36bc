//! Tests of the server through real sockets. The folders mirror the URL paths.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod assistants;
mod audit;
mod browsers;
mod clients;
mod clock;
mod compat;
mod conversations;
mod docs;
mod doors;
mod erasure;
mod limits;
mod local;
mod log;
mod mcp;
mod middleware;
mod nginx;
mod observed;
mod openapi;
mod operations;
mod outgoing;
mod page;
mod pausable_store;
mod proxy;
mod schema;
mod security;
mod server;
mod tenants;
mod tls;
mod tokens;
mod v1;
mod webhooks;
mod whole_numbers;

use server::{Client, TestServer};
