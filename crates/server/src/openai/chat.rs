//! Chat completions: the model as it is, or with a thread's context before what is asked.

mod again;
mod assistant;
mod complete;
mod messages;
pub(crate) mod stored;
mod stream;

pub(crate) use complete::{__path_complete, complete};
