//! Endpoints for operators and browsers: health, metrics, the OpenAPI document with its viewer, and browser sessions.

mod cases;
pub(crate) mod document;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod ready;
pub(crate) mod session;
pub(crate) mod sweep;
pub(crate) mod viewer;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

const OPERATE: Rule = Rule::role(KeyRole::Operate);
const OPEN: Rule = Rule::open();

/// Returns the door with the endpoints for operators and browsers.
pub(crate) fn door() -> Door {
    Door::new("operations")
        .route(OPEN, || routes!(health::health))
        .route(OPEN, || routes!(ready::ready))
        .route(OPERATE, || routes!(metrics::metrics))
        .route(OPEN, || routes!(document::document))
        .route(OPEN, || routes!(viewer::start))
        .route(OPEN, || routes!(viewer::page))
        .route(OPEN, || routes!(viewer::file))
        .route(OPEN, || routes!(session::page))
        .route(OPEN, || routes!(session::exchange))
        .cases(cases::cases)
}
