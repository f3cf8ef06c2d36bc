//! Small feeds, written here: what is read from them, what is refused, and how they are searched.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod broken;
mod cache;
mod feeds;
mod live;
mod plain;
mod routing;
