//! Turns of assistants over HTTP.

pub(crate) mod stream;

pub(crate) use stream::respond;
pub(crate) use threadkeep_service::turns::{
    AskRequest, DecisionRequest, TurnResult, TurnTask, TurnUpdate, TurnUpdates, resume, start, wait_for_result,
};
