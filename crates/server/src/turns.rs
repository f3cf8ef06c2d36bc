//! Turns of assistants over HTTP.

mod stream;

pub(crate) use stream::respond;
pub(crate) use threadkeep_service::turns::{
    TurnResult, AskRequest, DecisionRequest, TurnUpdate, TurnUpdates, TurnTask, resume, start, wait_for_result,
};
