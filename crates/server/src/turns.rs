//! Turns of assistants, told over HTTP.

mod stream;

pub(crate) use stream::respond;
pub(crate) use threadkeep_service::turns::{Answered, Asking, Deciding, Told, Waiting, Work, resume, start, whole};
