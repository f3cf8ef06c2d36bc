//! Turns of assistants over HTTP.

mod stream;

pub(crate) use stream::respond;
pub(crate) use threadkeep_service::turns::{
    Answered, AskRequest, DecisionRequest, TurnUpdate, Waiting, Work, resume, start, whole,
};
