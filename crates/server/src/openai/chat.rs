//! Chat completions. A completion is either a plain model call, or a model call in a thread, whose context precedes the messages of
//! the request.

mod assistant;
mod complete;
mod messages;
pub(crate) mod stored;
mod stream;

pub(crate) use complete::{__path_complete, complete};
