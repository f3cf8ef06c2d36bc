//! Stop requests for turns. A request received by any instance reaches the turn, whichever instance is running it.

use std::convert::Infallible;

use threadkeep::agent::Stop;
use threadkeep::memory::turns::wait_for_stop_request;
use threadkeep::{Scope, ThreadId};

use crate::service::Service;

/// Stops a turn when a client requests it. Never returns, so that `select!` can run it alongside the turn.
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
