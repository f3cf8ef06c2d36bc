//! Stopping a turn from outside, whichever instance it runs on.

use std::convert::Infallible;

use threadkeep::agent::Stop;
use threadkeep::memory::turns::wait_for_stop_request;
use threadkeep::{Scope, ThreadId};

use crate::service::Service;

/// Stops a turn once somebody asked for it. Never returns: it runs beside the turn.
pub(super) async fn heed(service: &Service, scope: &Scope, thread: ThreadId, turn: &str, stop: &Stop) -> Infallible {
    wait_for_stop_request(service.memory(), scope, thread, turn).await;
    stop.stop();
    std::future::pending().await
}
