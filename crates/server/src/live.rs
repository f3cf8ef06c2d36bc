//! Live events: changes to threads, which are sent to clients as they happen. A client that reconnects also receives the events
//! since the last event that it received.

mod cases;
pub(crate) mod encoding;
pub(crate) mod events;
mod followed_threads;
pub(crate) mod json;
pub(crate) mod notices;
pub(crate) mod socket;
mod subscription;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

const READ: Rule = Rule::role(KeyRole::Read);

/// Returns the door for live events.
pub(crate) fn door() -> Door {
    Door::new("live")
        .route(READ.without_time_limit().with_token_in_query(), || routes!(events::events))
        .route(READ.without_time_limit().with_token_in_query(), || routes!(socket::socket))
        .cases(cases::cases)
}
