//! Live events: changes of threads, delivered as they happen, with replay from the last event that the client received.

mod cases;
pub(crate) mod encoding;
pub(crate) mod events;
mod followed_threads;
pub(crate) mod json;
pub(crate) mod socket;
mod subscription;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

const READ: Rule = Rule::role(KeyRole::Read);

/// The routes for live events.
pub(crate) fn door() -> Door {
    Door::new("live")
        .route(READ.without_time_limit(), routes!(events::events))
        .route(READ.without_time_limit(), routes!(socket::socket))
        .cases(cases::cases)
}
