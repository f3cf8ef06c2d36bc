//! Chat completions: plain model calls, or with a thread's context before the messages of the request.

mod assistant;
mod complete;
mod messages;
mod resent;
pub(crate) mod stored;
mod stream;

pub(crate) use complete::{__path_complete, complete};
