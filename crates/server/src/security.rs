//! Who calls over HTTP, on whose behalf, and what the caller may do.
//!
//! A caller is known by a key, which belongs to one tenant and says on whose behalf it may act, or by a token of an issuer that
//! the server was told of. A request without either is taken only while no key was ever made, with the token of this machine's
//! user (`local`), and only from this machine (`loopback`).

pub(crate) mod authenticate;
pub(crate) mod local;
mod loopback;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
pub(crate) use threadkeep_service::{Caller, KeyRole, MayResume};

use crate::app::App;
use crate::error::ApiError;

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::internal("an action asked for a caller on a route without one"))
    }
}
