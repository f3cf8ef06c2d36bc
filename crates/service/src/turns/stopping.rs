//! Stop requests for turns. A request that any instance receives reaches the turn, whichever instance runs it.

use std::convert::Infallible;

use threadkeep::agent::Stop;
use threadkeep::memory::turns::wait_for_stop_request;
use threadkeep::{Scope, ThreadId};

use crate::service::Service;

/// Stops a turn when a client requests that. Never returns, so that `select!` can run it alongside the turn.
pub(super) async fn stop_on_request(
    service: &Service,
    scope: &Scope,
    thread: ThreadId,
    turn: &str,
    stop: &Stop,
) -> Infallible {
    wait_for_stop_request(service.memory(), scope, thread, turn).await;
    stop.stop();
    std::future::pending().await
}
