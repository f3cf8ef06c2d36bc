//! Small feeds, written here: what is read from them, what is refused, and how they are searched.

mod broken;
mod cache;
mod feeds;
mod live;
mod plain;
mod routing;
