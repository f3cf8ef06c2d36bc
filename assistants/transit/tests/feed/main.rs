//! Reading and searching small feeds.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod broken;
mod brute_force;
mod cache;
mod feeds;
mod live;
mod routing;
