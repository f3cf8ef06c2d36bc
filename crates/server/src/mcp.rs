//! The Model Context Protocol over HTTP. Each request is answered completely and on its own: there are no sessions.
//!
//! The tools and the protocol are in `threadkeep_mcp`. This door decides which tools a caller may use, and on whose behalf.

mod call;
mod cases;

use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::security::KeyRole;

/// Returns the door for MCP clients.
pub(crate) fn door() -> Door {
    Door::new("mcp").route(Rule::role(KeyRole::Read), || routes!(call::call)).cases(cases::cases)
}
