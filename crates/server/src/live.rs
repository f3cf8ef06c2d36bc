//! Live events: what happens in threads, as it happens, from where the listener was last.

mod cases;
pub(crate) mod events;
mod following;
pub(crate) mod json;
mod listening;
pub(crate) mod socket;
pub(crate) mod telling;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

const READ: Rule = Rule::role(KeyRole::Read);

/// Events as they happen.
pub(crate) fn door() -> Door {
    Door::new("live")
        .route(READ.own_time(), routes!(events::events))
        .route(READ.own_time(), routes!(socket::socket))
        .cases(cases::cases)
}
